"""Tapes: a recorder that writes a run's log to a place of its own, and a player that answers from one.

A replay has no network, no shell and no clock: each request waits until the tape comes to an event that answers it.
"""

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

from bantam.core import tree
from bantam.core.base.problem import Problem
from bantam.core.effects import CallModel, Request
from bantam.core.events import Answer, Event, Id, Interrupted, ModelChunks, ToolProgress
from bantam.core.messages import Messages
from bantam.core.past import history, tape
from bantam.core.past.tape import Tape
from bantam.core.state import Session
from bantam.core.words import status
from bantam.shell.disk import files
from bantam.shell.disk.files import StoreError
from bantam.shell.disk.store import Store


class Recorder:
    """Writes a tape to a file of `folder` as things happen. Raises OSError if that cannot be made; an old one goes.

    A device or a pipe is no place for a tape, nor is one where another run records.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._path = name, folder / name
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise OSError("not a regular file")
        if not files.lock(self._fd):
            raise OSError("another run records there")
        os.fchmod(self._fd, 0o600)
        os.ftruncate(self._fd, 0)
        self._begun = False

    def append(self, now: float, event: Event, header: Callable[[], dict[str, Any]]) -> None:
        """Add an event, behind the header if it is the first. Raises StoreError."""
        lines = [] if self._begun else [header()]
        try:
            for line in [*lines, history.line(now, event)]:
                files.write_all(self._fd, files.json_line(line))
        except OSError as problem:
            why = f"cannot record under {self._name}: {problem.strerror or problem}"
            raise StoreError(why, self._path, problem.errno or 0) from None
        self._begun = True


def lines_of(name: str, folder: Path, store: Store) -> Iterator[bytes]:
    """The lines of a file of the folder, or of the log with this id. Raises StoreError."""
    path = folder / name
    if not path.exists() and "/" not in name:
        found = store.find(name, logs_only=True)
        if isinstance(found, Problem):
            raise StoreError(f"there is no file {name}, and {found.text}")
        path = store.logs / f"{found}.jsonl"
    try:
        return files.lines(path.read_bytes())
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise StoreError(f"cannot read {name}: {why}") from None


def read(name: str, folder: Path, store: Store) -> Tape | Problem:
    """The tape of a file of the folder, or of the log with this id."""
    try:
        return tape.read(lines_of(name, folder, store))
    except StoreError as problem:
        return Problem(str(problem))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        return Problem(f"{name} is no tape: {problem}")


class Player:
    """Answers from a tape. `stop` ends the run, which is asked when it differs; then `problem` says where."""

    def __init__(self, played: Tape) -> None:
        self.tape = played
        self.problem = ""
        self.stopped = 0
        """The exit status that a signal on the tape gives; 0 for none."""
        self._at = 0
        self._equal: dict[Id, tuple[Messages, Messages]] = {}
        """The last messages of each agent, here and on the tape; a difference ends the run."""
        self._asked: dict[Id, list[Request]] = {}
        for request in played.requests:
            self._asked.setdefault(request.id, []).append(request)
        self._moved: asyncio.Event | None = None
        self._tell: Callable[[Event], None] = lambda event: None
        self._session: Callable[[], Session] | None = None

    def drive(self, tell: Callable[[Event], None], session: Callable[[], Session]) -> None:
        """What to tell an interruption of the tape to, and where the run stands."""
        self._tell, self._session = tell, session

    def now(self) -> float:
        """The time of the next event on the tape."""
        events = self.tape.events
        return events[min(self._at, len(events) - 1)][0] if events else 0.0

    async def play(self, request: Request) -> AsyncGenerator[Event, None]:
        """The answers to a request, each when its turn has come."""
        self._compare(request)
        while not self.problem:
            event = self._next
            if event is None:
                self._differ("the tape ends here, and the run goes on")
            elif isinstance(event, Answer) and event.id == request.id:
                yield event
                if not isinstance(event, (ModelChunks, ToolProgress)):
                    return
            else:
                self._moved = self._moved or asyncio.Event()
                await self._moved.wait()

    def hear(self, event: Event) -> None:
        """An event happens: the next of the tape, or one of the user's that must be like it."""
        taped = self._next
        if self.problem:
            return
        if taped is None:
            self._differ(f"the tape ends here, and the run goes on with {type(event).__name__}")
        elif type(taped) is not type(event):
            self._differ(f"{type(event).__name__} is not {type(taped).__name__}")
        self._at += 1
        if self._moved:
            self._moved.set()
            self._moved = None
        asyncio.get_running_loop().call_soon(self._look)

    def finish(self) -> str:
        """Where the run has differed from the tape; "" if it has not."""
        left = len(self.tape.events) - self._at
        if left and not self.problem:
            self._at += 1
            self.problem = self._words(f"the run has ended, and the tape has {left} more events")
        return self.problem

    @property
    def _next(self) -> Event | None:
        return self.tape.events[self._at][1] if self._at < len(self.tape.events) else None

    def _look(self) -> None:
        """An interruption is on the tape, and what nobody waits for is not answered."""
        assert self._session is not None
        event, session = self._next, self._session()
        if self.problem or tree.idle(session):
            return
        if isinstance(event, Interrupted):
            self.stopped = event.signal and status.SIGNALLED + event.signal
            self._tell(event)
        elif isinstance(event, Answer) and event.id not in tree.outstanding(session):
            self._differ(f"the tape answers request {tape.number(event.id)}, and the run did not make it")

    def _compare(self, request: Request) -> None:
        taped = self._asked.get(request.id)
        if not taped:
            self._differ(f"request {tape.number(request.id)} is not on the tape")
        elif found := tape.difference(request, taped[0], self._known(request, taped.pop(0))):
            self._differ(f"{type(request).__name__} {tape.number(request.id)}, {found}")

    def _known(self, request: Request, taped: Request) -> int:
        """How many first messages of a call to the model were compared with an earlier one."""
        if not isinstance(request, CallModel) or not isinstance(taped, CallModel):
            return 0
        agent, both = request.id[:-1], (request.messages, taped.messages)
        before, self._equal[agent] = self._equal.get(agent, ((), ())), both
        return tape.known(*both, before)

    def _differ(self, why: str) -> None:
        if not self.problem:
            self.problem = self._words(why)
            asyncio.get_running_loop().call_soon(self._tell, Interrupted())

    def _words(self, why: str) -> str:
        return f"the replay differs from its tape at event {self._at}: {why}"
