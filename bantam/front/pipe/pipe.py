"""Runs without an editor: a prompt from a file, from `-p` or from standard input, and piped lines."""

import argparse
import asyncio
import errno
import gc
import os
import select
import signal
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from types import FrameType

from bantam.core import messages
from bantam.core.base.record import dataclass
from bantam.core.effects import ANSWERED, Reason
from bantam.core.words import commands, report, status
from bantam.front.pipe import target
from bantam.front.show.screen import Mode, Screen
from bantam.front.show.tell import remark
from bantam.front.show.writer import Writer
from bantam.front.usage import leave
from bantam.host.conversation import Chat, Quit
from bantam.host.setup import Setup
from bantam.shell.net import model

STDIN_GRACE_S = 3.0  # for the first byte of an inherited pipe in print mode
INPUT_BYTES_MAX = 128_000_000  # of one prompt, which takes some five times as much memory on its way
STUCK_S = 0.5  # that a reader who takes nothing may delay the end after a signal
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Why the run must end early: 128 + the signal's number, or that nobody reads it any more."""

    def __init__(self) -> None:
        self.status = 0
        self.event = asyncio.Event()


def run(found: Setup, options: argparse.Namespace) -> int:
    """One run without an editor; returns the exit status."""
    if options.output is not None:
        problem = target.problem(options.output)
        if problem is not None:
            leave(problem)
    screen = _watcher(found, options)
    prompt = None if options.input else _prompt(options)
    model.load()
    before = [signal.getsignal(number) for number in SIGNALS]
    end = asyncio.run(_run(found, options, screen, prompt))
    for number, handler in zip(SIGNALS, before, strict=True):  # a named pipe may let us wait for its reader
        signal.signal(number, handler)
    reason, code = end.reason, end.code
    answered = code == status.READER_GONE or reason in ANSWERED
    if options.output is not None and end.answer is not None and answered:
        unwritten = target.write(options.output, end.answer)
        reason, code = (Reason.FAILED, unwritten) if unwritten else (reason, code)
    screen.end(reason, code, end.log_id)
    return code


@dataclass(frozen=True)
class End:
    """How a run ended: why, with which status, the last turn's answer if that ended well, and the id of its log."""

    reason: str
    code: int
    answer: str | None
    log_id: str | None = None


def _watcher(found: Setup, options: argparse.Namespace) -> Writer:
    if options.events:
        options.events.start(found.config.model)
        events: Writer = options.events
        return events
    mode: Mode = "quiet" if options.quiet else "answer" if options.prompt is not None else "transcript"
    return Screen(mode, found.config.color)


async def _run(found: Setup, options: argparse.Namespace, screen: Writer, prompt: str | None) -> End:
    chat = Chat(
        found,
        options.settings,
        screen,
        autosaves=options.prompt is None,
        resumed=options.resumed,
        tape=options.tape,
    )
    stop = Stop()
    _heed_signals(chat, screen, stop)
    gc.freeze()
    gc.enable()
    try:
        end = await _turns(chat, screen, options, prompt, stop)
    finally:
        await chat.close()
    chat.save()
    if chat.player and (problem := chat.player.finish()):
        screen.say(f"bantam: {problem}", error=True)
        return End(report.DIVERGED, status.DIVERGED, None, chat.log_id)
    stopped = stop.status or (chat.player.stopped if chat.player else 0)
    reason = Reason.INTERRUPTED if stopped else end.reason
    code = stopped or end.code
    if chat.tape_is_cut and code == status.DONE:
        reason, code = Reason.FAILED, status.FAILED
    return End(reason, code, end.answer, chat.log_id)


async def _turns(chat: Chat, screen: Writer, options: argparse.Namespace, prompt: str | None, stop: Stop) -> End:
    if prompt is not None:
        return _end(chat, await chat.say(prompt))
    first = await chat.go_on() if chat.is_unfinished else Reason.DONE
    if options.input:
        from bantam.front.pipe import driver

        end = _end(chat, await driver.Driver(chat, screen).run(driver.read(0), stop.event))
    else:
        end = await _lines(chat, stop)
    return end if first is Reason.DONE else End(first, status.of(first), end.answer)


def _end(chat: Chat, reason: Reason) -> End:
    said = reason in ANSWERED
    return End(reason, status.of(reason), messages.last_words(chat.runtime.conversation) if said else None)


def _heed_signals(chat: Chat, screen: Writer, stop: Stop) -> None:
    loop = asyncio.get_running_loop()

    def end(code: int) -> None:
        stop.status = stop.status or code
        stop.event.set()
        chat.interrupt(code - status.SIGNALLED)

    def unwritable(code: int) -> None:
        stop.status = stop.status or code
        loop.call_soon(end, code)  # it comes in the middle of a step

    def came(number: int, _: FrameType | None) -> None:
        stop.status = stop.status or 128 + number
        signal.setitimer(signal.ITIMER_REAL, STUCK_S, STUCK_S)

    def stuck(_: int, frame: FrameType | None) -> None:
        # the loop will not come to `end` before a reader has taken what is being written
        if frame is not None and frame.f_code is Writer._raw.__code__:
            raise BrokenPipeError(errno.EPIPE, "nobody reads")

    signal.signal(signal.SIGALRM, stuck)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:  # nohup means what it says
            loop.add_signal_handler(number, end, 128 + number)
            signal.signal(number, came)  # at once, even in a write; the loop has heard it all the same
    screen.unwritable = unwritable
    if screen.lost:
        unwritable(screen.lost)


async def _lines(chat: Chat, stop: Stop) -> End:
    """Each line of standard input is one turn; a failed one does not stop the next, but the end is its.

    The answer is the last turn's, if that ended well.
    """
    first, answer = End(Reason.DONE, status.DONE, None), None
    async with aclosing(_piped_lines(stop)) as lines:
        async for data in lines:
            if len(data) > INPUT_BYTES_MAX:
                chat.screen.say(f"bantam: a line of standard input is {_too_long()}", error=True)
                return End(report.USAGE, status.USAGE, None) if first.code == 0 else first
            line = _text(data).rstrip("\n")
            if not line.strip():
                continue
            try:
                end = _end(chat, await chat.line(line))
            except Quit:
                break
            first = end if first.code == 0 else first
            if commands.parse(line) is None:
                answer = end.answer
            if stop.event.is_set() or end.reason is Reason.INTERRUPTED:  # by a signal, be it one on a tape
                break
    return End(first.reason, first.code, answer)


async def _piped_lines(stop: Stop) -> AsyncGenerator[bytes, None]:
    """The lines as they come, read by a thread, for a file cannot be waited for otherwise.

    It is one line ahead, so that endless input takes no memory.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    wanted = threading.Semaphore()

    def read() -> None:
        with suppress(RuntimeError):  # the run, and with it the loop, is over
            with suppress(OSError), open(0, "rb", closefd=False) as source:  # closed, or a folder: no lines
                while wanted.acquire() and (line := source.readline(INPUT_BYTES_MAX + 1)):
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    ended = asyncio.ensure_future(stop.event.wait())
    line = asyncio.ensure_future(lines.get())
    try:
        while True:
            await asyncio.wait((line, ended), return_when=asyncio.FIRST_COMPLETED)
            if not line.done() or not line.result():
                return
            data, line = line.result(), asyncio.ensure_future(lines.get())
            wanted.release()
            yield data
    finally:
        line.cancel()
        ended.cancel()


def _prompt(options: argparse.Namespace) -> str | None:
    """The one prompt of this run; None when each line of standard input is one."""
    if options.prompt is not None:
        prompt = commands.with_piped(options.prompt, _piped_text(options.stdin))
        if not prompt.strip():
            leave("-p needs a text")
        return prompt
    if not options.file:
        return None
    name = "standard input" if options.file == "-" else options.file
    text = _text(_read_all(0, name) if options.file == "-" else _read_file(name))
    if not text.strip():
        leave(f"{name} is empty: there is nothing to ask")
    return text


def _read_file(name: str) -> bytes:
    try:
        fd = os.open(name, os.O_RDONLY)
    except OSError as problem:
        leave(f"cannot read the prompt file {name}: {problem.strerror or problem}")
    try:
        return _read_all(fd, f"the prompt file {name}")
    finally:
        os.close(fd)


def _text(data: bytes) -> str:
    """What a user wrote: UTF-8 with or without a BOM, line ends as LF; other bytes are replaced, and that is said."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        remark("the input is not UTF-8; what could not be read was replaced")
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _piped_text(wish: str | None) -> str:
    """What was piped into print mode, as `--stdin` wishes; auto does not wait for a pipe that stays open and silent."""
    if wish == "ignore":
        return ""
    if wish == "require":
        text = _text(_read_all(0, "standard input"))
        if not text:
            leave("standard input is empty, and --stdin require needs it")
        return text
    try:
        if os.isatty(0):
            return ""
        if not select.select([0], [], [], STDIN_GRACE_S)[0]:
            remark(f"nothing came on standard input for {STDIN_GRACE_S:g} s; going on without it")
            return ""
    except OSError:  # closed
        return ""
    return _text(_read_all(0, "standard input"))


def _read_all(fd: int, name: str) -> bytes:
    pieces, size = [], 0
    try:
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
            size += len(piece)
            if size > INPUT_BYTES_MAX:
                leave(f"{name} is {_too_long()}")
    except OSError as problem:
        leave(f"cannot read {name}: {problem.strerror or problem}")
    return b"".join(pieces)


def _too_long() -> str:
    return f"longer than {INPUT_BYTES_MAX // 1_000_000} MB, which is more than one prompt may be"
