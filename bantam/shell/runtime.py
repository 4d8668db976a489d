"""The interpreter: events into the core, effects out of it. Decides nothing.

A handler is an async generator from a request to the events that answer it. It never raises, ends with
exactly one final event, and leaves nothing running when it is cancelled. The dict of handlers is the whole
plug-in system.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, assert_never

from bantam.core import tree
from bantam.core.effects import (
    AskApproval,
    CallModel,
    Cancel,
    CheckAnswer,
    Effect,
    Emit,
    Request,
    RunShell,
    RunTool,
    Save,
    Sleep,
    TurnEnded,
)
from bantam.core.events import Event, Id
from bantam.core.messages import Messages
from bantam.core.past import history
from bantam.core.rules.redact import Redactor
from bantam.core.state import Session

Handler = Callable[[Any], AsyncGenerator[Event, None]]


class Runtime:
    """One session and everything that is outstanding for it.

    `sink` shows outputs, `keep` saves the conversation, `log` is told each event before it happens,
    `redactor` takes secrets out of all that happens and is done. `clock` counts seconds.
    """

    def __init__(
        self,
        session: Session,
        handlers: Mapping[type[Request], Handler],
        sink: Callable[[Emit], None],
        keep: Callable[[Messages], None],
        log: Callable[[float, Event], None],
        redactor: Redactor,
        clock: Callable[[], float],
    ) -> None:
        self.session = session
        self._handlers, self._sink, self._keep, self._log = handlers, sink, keep, log
        self.redactor, self._clock = redactor, clock
        self._tasks: dict[Id, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Future[TurnEnded] | None = None

    @property
    def busy(self) -> bool:
        return not tree.idle(self.session)

    @property
    def conversation(self) -> Messages:
        """The root's messages as they may be kept."""
        return self.redactor.messages((), tree.conversation(self.session))

    async def turn(self, *events: Event) -> TurnEnded:
        """Let events happen that begin a turn or go on with one, and wait for the turn's end."""
        self._turn = asyncio.get_running_loop().create_future()
        for event in events:
            self.tell(event)
        ended = await self._turn
        await self.settled()
        return ended

    def tell(self, event: Event) -> None:
        """Let `event` happen. Synchronous, so no two events ever interleave."""
        now, event = round(self._clock(), history.TIME_DIGITS), self.redactor.event(event)  # as the log will have it
        self._log(now, event)
        self.session, effects = tree.step(self.session, event, now)
        for effect in effects:
            for clean in self.redactor.effects(effect):
                self._perform(clean)

    async def settled(self) -> None:
        """Wait until what was cancelled has ended: its processes, its connections."""
        while self._ending:
            await asyncio.wait(self._ending)

    async def close(self) -> None:
        """Cancel whatever is outstanding and wait for its end."""
        for id in list(self._tasks):
            self._cancel(id)
        await self.settled()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Emit(who, output):
                self._sink(effect)
                if isinstance(output, TurnEnded) and not who and self._turn and not self._turn.done():
                    self._turn.set_result(output)
            case Save(messages):
                self._keep(messages)
            case Cancel(id):
                self._cancel(id)
            case CallModel() | RunShell() | RunTool() | Sleep() | AskApproval() | CheckAnswer():
                self._tasks[effect.id] = asyncio.get_running_loop().create_task(self._answer(effect))
            case never:
                assert_never(never)

    def _cancel(self, id: Id) -> None:
        task = self._tasks.pop(id, None)
        if task is not None and not task.done():
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            task.cancel()

    async def _answer(self, request: Request) -> None:
        try:
            async with aclosing(self._handlers[type(request)](request)) as events:
                async for event in events:
                    self.tell(event)
        except Exception as bug:  # neither handlers nor the core raise: a bug must end the turn, not vanish
            if self._turn is None or self._turn.done():
                raise
            self._turn.set_exception(bug)
        finally:
            if self._tasks.get(request.id) is asyncio.current_task():
                del self._tasks[request.id]
