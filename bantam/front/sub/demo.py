"""`bantam demo`: a guided tour in a scratch folder, with a scripted model behind HTTP on loopback.

On a terminal the user takes it in the real REPL; without one it runs by itself. What it touches lies in the
scratch folder, which goes with it; no key is read or sent.
"""

import asyncio
import json
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.effects import Emit, Reason, Requesting, TextDelta
from bantam.core.rules.credentials import Untrusted
from bantam.core.words import status
from bantam.core.words.wrap import Kept, Row
from bantam.front.here import here
from bantam.front.show.screen import Screen
from bantam.front.show.tell import complain
from bantam.front.sub import script
from bantam.host import setup
from bantam.host.setup import Setup

INTRODUCTION = tuple(  # a row has no indent to go on with, as prose would
    Row("", line)
    for line in (
        f"A guided tour of Bantam in {script.STEPS} steps. The model is a script on this machine: no network, no key.",
        "The folder is a scratch folder, removed when you leave with Ctrl+D or /quit.",
        "",
        "Type something, for example hello, and press Enter.",
    )
)
CONFIG = """\
# The settings of this folder, as key=value lines; /cfg shows and changes them.
endpoint={endpoint}
model=demo
# no key is needed, and none of the environment is taken
api_key=
"""
PROMPTS = ("Hello!", "Go on.", "The first line,\nand the second.", "Go on.", "Go on.", "And now?")
PROMPT = "bantam> "  # as in `tty`, which would import prompt_toolkit
ENOUGH = 8  # numbers, until someone who takes the tour by itself would press Ctrl+C
UNATTENDED_SPEED = 2.0  # nobody has to read along
BODY_BYTES_MAX = 64_000_000
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nConnection: close\r\n\r\n"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run() -> int:
    """The whole tour; returns the exit status."""
    attended = all(map(_is_terminal, (0, 1)))
    begin = _attended() if attended else _unattended
    for number in SIGNALS:  # until the tour heeds them itself: so that the folder is removed
        signal.signal(number, _leave)
    with ExitStack() as stack:
        try:
            speed = _speed() * (1.0 if attended else UNATTENDED_SPEED)
            endpoint = serve(speed)
            scratch = tempfile.TemporaryDirectory(prefix="bantam-demo-", ignore_cleanup_errors=True)
            found = _prepare(Path(stack.enter_context(scratch)), endpoint)
        except OSError as problem:
            return _fail(problem.strerror or str(problem))
        return begin(found) if isinstance(found, Setup) else _fail(found.text)


def _prepare(scratch: Path, endpoint: str) -> Setup | Untrusted | Problem:
    """Work in the folder, with a home in it, so that no file of the user's is read or written."""
    home, work = scratch / "home", scratch / "work"
    for made in (home, work):
        made.mkdir()
    for name, text in {setup.CONFIG_FILE: CONFIG.format(endpoint=endpoint), **script.FILES}.items():
        (work / name).write_text(text)
    os.environ.update(HOME=str(home), BANTAM_HOME=str(home / ".bantam"), PWD=str(work))
    os.chdir(work)
    found = setup.read(replace(here(), environ={}))
    return replace(found, place=here()) if isinstance(found, Setup) else found


def _attended() -> Callable[[Setup], int]:
    """The REPL, imported before there is anything to tidy up."""
    from bantam.front.terminal import repl

    def begin(found: Setup) -> int:
        Screen("transcript", found.config.color).say(INTRODUCTION)
        return repl.run(found)

    return begin


# --- without a terminal


def _unattended(found: Setup) -> int:
    return asyncio.run(_tour(found))


async def _tour(found: Setup) -> int:
    """Say what a user would say, and press Ctrl+C where one would."""
    from bantam.host.conversation import Conversation

    screen = Watched(found.config.color, found.config.render)
    talk = Conversation(found, screen)
    screen.interrupt = talk.interrupt
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, screen.stop, 128 + number)
    try:
        for prompt in PROMPTS:
            screen.say(Kept(PROMPT + prompt.replace("\n", "\n" + " " * len(PROMPT))))
            reason = await talk.say(prompt)
            if screen.stopped:
                return screen.stopped
            if reason is Reason.INTERRUPTED:
                screen.say("(Ctrl+C)")
            elif reason is not Reason.DONE:
                return status.of(reason)
        return 0
    finally:
        await talk.close()


class Watched(Screen):
    """A screen with someone in front who interrupts: when the model has counted for a while, or has to leave."""

    def __init__(self, color: str, render: str) -> None:
        super().__init__("transcript", color, render)
        self.interrupt: Callable[[], None] = lambda: None
        self.stopped = 0
        self.unwritable = self.stop
        self._text = ""

    def stop(self, code: int) -> None:
        """End the tour with this exit status."""
        self.stopped = self.stopped or code
        self._interrupt_soon()

    def _interrupt_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self.interrupt)  # an event must not happen within another

    def show(self, emit: Emit) -> None:
        super().show(emit)
        match emit:
            case Emit((), Requesting()):
                self._text = ""
            case Emit((), TextDelta(text)):
                self._text += text
                if script.counted(self._text) >= ENOUGH:
                    self._text = ""
                    self._interrupt_soon()


# --- the endpoint


def serve(speed: float) -> str:
    """Answer on a free port of loopback for as long as the program runs; returns the endpoint. Raises OSError."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: asyncio.run(_serve(listener, speed)), daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


async def _serve(listener: socket.socket, speed: float) -> None:
    server = await asyncio.start_server(partial(_answer, speed), sock=listener)
    await server.serve_forever()


async def _answer(speed: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request on one connection."""
    with suppress(OSError, EOFError, ValueError, RecursionError, asyncio.LimitOverrunError):  # no client, or no HTTP
        body = json.loads(await _body(reader))
        if script.wants_stream(body):
            await _stream(writer, script.chunks(body), speed)
        else:
            writer.write((HEAD.format("application/json") + json.dumps(script.whole(body))).encode())
            await writer.drain()
    writer.close()


async def _body(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    fields = dict(line.lower().partition(":")[::2] for line in head.splitlines())
    size = int(fields.get("content-length") or 0)
    if not 0 <= size <= BODY_BYTES_MAX:
        raise ValueError(size)
    return await reader.readexactly(size)


async def _stream(
    writer: asyncio.StreamWriter, chunks: Iterable[tuple[float, Mapping[str, Any]]], speed: float
) -> None:
    """Server-sent events. Ends with an OSError when nobody listens any more."""
    writer.write(HEAD.format("text/event-stream").encode())
    for wait_s, chunk in chunks:
        await asyncio.sleep(wait_s / speed)
        writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await writer.drain()
    writer.write(b"data: [DONE]\n\n")
    await writer.drain()


def _speed() -> float:
    """BANTAM_DEMO_SPEED: a factor, for tests."""
    try:
        speed = float(os.environ.get("BANTAM_DEMO_SPEED") or 1)
    except ValueError:
        return 1.0
    return speed if 0 < speed < float("inf") else 1.0


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def _fail(why: str) -> int:
    complain(f"demo: {why}")
    return status.FAILED


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False
