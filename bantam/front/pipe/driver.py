"""`--input json`: a program holds a conversation over a pipe, one JSON object a line each way.

`core/words/input.py` says what a line may be. A prompt begins a turn; while one runs, the model hears it with its next
call.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol

from bantam.core.base.problem import Problem
from bantam.core.effects import Reason
from bantam.core.words import input
from bantam.core.words.input import LINE_BYTES_MAX, Interrupt, Prompt
from bantam.front.show.writer import Writer

LINES_AHEAD_MAX = 100  # that are read and not looked at yet


class Driven(Protocol):
    """What the driver needs of a conversation."""

    @property
    def busy(self) -> bool: ...

    async def say(self, text: str) -> Reason: ...

    def add(self, text: str) -> None: ...

    def interrupt(self) -> None: ...


class Driver:
    """Does what lines ask for. `reason` is why the first turn or line failed that did."""

    def __init__(self, talk: Driven, screen: Writer) -> None:
        self._talk, self._screen = talk, screen
        self._turn: asyncio.Task[Reason] | None = None
        self._stopped = False  # the turn, by the driver itself: that is no failure
        self.reason = Reason.DONE

    async def run(self, lines: AsyncIterator[bytes], ended: asyncio.Event) -> Reason:
        """Until the lines or the run have `ended`, and the turn has. Whoever sets `ended` interrupts that turn."""
        number = 0
        over = asyncio.ensure_future(ended.wait())
        line = asyncio.ensure_future(_next(lines))
        while not over.done():
            turn = () if self._turn is None else (self._turn,)
            await asyncio.wait((line, over, *turn), return_when=asyncio.FIRST_COMPLETED)
            if self._turn is not None and (self._turn.done() or not self._talk.busy):
                await self._settle()
            if line.done() and not over.done():
                data, number = line.result(), number + 1
                if data is None:
                    break
                self._take(data, number)
                line = asyncio.ensure_future(_next(lines))
        for waiting in (line, over):
            waiting.cancel()
        if ended.is_set():  # perhaps when the turn had not quite begun
            self._talk.interrupt()
        await self._settle()
        return self.reason

    def _take(self, data: bytes, number: int) -> None:
        match input.parse(data):
            case Prompt(text) if self._talk.busy:
                self._talk.add(text)
            case Prompt(text):
                self._turn = asyncio.ensure_future(self._talk.say(text))  # begins before the next line can come
            case Interrupt():
                self._stopped = self._talk.busy
                self._talk.interrupt()
            case Problem(why):
                self._screen.say(f"standard input, line {number}: {why}", error=True)
                self._note(Reason.FAILED)

    async def _settle(self) -> None:
        """Wait for the end of the turn, if there is one. Raises what a bug raised in it."""
        if self._turn is not None:
            reason = await self._turn
            if not (reason is Reason.INTERRUPTED and self._stopped):
                self._note(reason)
            self._turn, self._stopped = None, False

    def _note(self, reason: Reason) -> None:
        if self.reason is Reason.DONE:
            self.reason = reason


async def _next(lines: AsyncIterator[bytes]) -> bytes | None:
    return await anext(lines, None)


async def read(fd: int) -> AsyncIterator[bytes]:
    """The lines of a pipe, a file or a terminal as they come. A longer one than allowed comes cut, one byte too long.

    Read by a thread, for a file cannot be waited for otherwise.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(LINES_AHEAD_MAX)

    def pump() -> None:
        with suppress(OSError, RuntimeError):  # standard input is closed, or a folder; nobody listens any more
            with suppress(OSError), open(fd, "rb", closefd=False) as source:
                while line := source.readline(LINE_BYTES_MAX + 1):
                    rest = line
                    while len(line) > LINE_BYTES_MAX and rest and not rest.endswith(b"\n"):
                        rest = source.readline(LINE_BYTES_MAX)
                    room.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=pump, daemon=True).start()
    while line := await lines.get():
        room.release()
        yield line
