"""Runs without an editor: a prompt from a file, from `-p` or from standard input, and piped lines."""

import argparse
import asyncio
import gc
import os
import select
import signal
import sys
import threading
from collections.abc import AsyncIterator

from bantam.core import commands, status
from bantam.front.chat import Chat, Quit
from bantam.front.cli import leave
from bantam.front.screen import Mode, Screen
from bantam.front.setup import Setup
from bantam.shell import model

STDIN_GRACE_S = 3.0  # for the first byte of an inherited pipe in print mode
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Why the run must end early: 128 + the signal's number, or that nobody reads it any more."""

    def __init__(self) -> None:
        self.status = 0
        self.event = asyncio.Event()


def run(found: Setup, options: argparse.Namespace) -> int:
    """One run without an editor; returns the exit status."""
    mode: Mode = "quiet" if options.quiet else "answer" if options.prompt is not None else "transcript"
    prompt = _prompt(options)
    model.load()
    return asyncio.run(_run(found, options, mode, prompt))


async def _run(found: Setup, options: argparse.Namespace, mode: Mode, prompt: str | None) -> int:
    screen = Screen(mode, found.config.color)
    chat = Chat(found, options.settings, screen, autosaves=options.prompt is None, resumed=options.resumed)
    stop = Stop()
    _heed_signals(chat, screen, stop)
    gc.freeze()
    gc.enable()
    try:
        if prompt is not None:
            code = status.of(await chat.say(prompt))
        else:
            code = status.of(await chat.go_on()) if chat.is_unfinished else 0
            later = await _lines(chat, stop)
            code = code or later
    finally:
        await chat.close()
    chat.save()
    return stop.status or code


def _heed_signals(chat: Chat, screen: Screen, stop: Stop) -> None:
    loop = asyncio.get_running_loop()

    def end(code: int) -> None:
        stop.status = stop.status or code
        stop.event.set()
        chat.interrupt()

    for number in SIGNALS:
        loop.add_signal_handler(number, end, 128 + number)

    def unwritable(code: int) -> None:
        stop.status = stop.status or code
        loop.call_soon(end, code)  # it comes in the middle of a step

    screen.unwritable = unwritable


async def _lines(chat: Chat, stop: Stop) -> int:
    """Each line of standard input is one turn; a failed one does not stop the next."""
    code = 0
    async for line in _piped_lines(stop):
        if not line.strip():
            continue
        try:
            reason = await chat.line(line)
        except Quit:
            break
        code = code or status.of(reason)
        if stop.event.is_set():
            break
    return code


async def _piped_lines(stop: Stop) -> AsyncIterator[str]:
    """The lines as they come, read by a thread, for a file cannot be waited for otherwise."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        try:
            with open(0, "rb", closefd=False) as source:
                for line in source:
                    loop.call_soon_threadsafe(lines.put_nowait, line)
        except OSError:
            pass  # standard input is closed, or a folder: no lines
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    ended = asyncio.ensure_future(stop.event.wait())
    while True:
        line = asyncio.ensure_future(lines.get())
        await asyncio.wait((line, ended), return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            line.cancel()
            return
        data = line.result()
        if not data:
            ended.cancel()
            return
        yield _text(data).rstrip("\n")


def _prompt(options: argparse.Namespace) -> str | None:
    """The one prompt of this run; None when each line of standard input is one."""
    if options.prompt is not None:
        piped = _piped_text()
        prompt = commands.with_piped(options.prompt, piped)
        if not prompt.strip():
            leave("-p needs a text")
        return prompt
    if not options.file:
        return None
    data = _read_all(0) if options.file == "-" else _read_file(options.file)
    text = _text(data)
    if not text.strip():
        name = "standard input" if options.file == "-" else options.file
        leave(f"{name} is empty: there is nothing to ask")
    return text


def _read_file(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as problem:
        leave(f"cannot read the prompt file {name}: {problem.strerror or problem}")


def _text(data: bytes) -> str:
    """What a user wrote: UTF-8 with or without a BOM, line ends as LF; other bytes are replaced, and that is said."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        sys.stderr.write("bantam: the input is not UTF-8; what could not be read was replaced\n")
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _piped_text() -> str:
    """What was piped into print mode. A pipe that stays open and silent is not waited for."""
    try:
        if os.isatty(0):
            return ""
        if not select.select([0], [], [], STDIN_GRACE_S)[0]:
            sys.stderr.write(f"bantam: nothing came on standard input for {STDIN_GRACE_S:g} s; going on without it\n")
            return ""
    except OSError:  # closed
        return ""
    return _text(_read_all(0))


def _read_all(fd: int) -> bytes:
    pieces = []
    try:
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
    except OSError as problem:
        leave(f"cannot read standard input: {problem.strerror or problem}")
    return b"".join(pieces)
