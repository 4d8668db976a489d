"""What a run without an editor is asked: a prompt from `-p`, a file or standard input, or each line of that."""

import argparse
import asyncio
import os
import select
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress

from bantam.core.words import prompts
from bantam.front.show.tell import remark
from bantam.front.usage import leave

STDIN_GRACE_S = 3.0  # for the first byte of an inherited pipe in print mode
INPUT_BYTES_MAX = 128_000_000  # of one prompt, which takes some five times as much memory on its way


def prompt_of(options: argparse.Namespace) -> str | None:
    """The one prompt of this run; None when each line of standard input is one."""
    if options.prompt is not None:
        prompt = prompts.with_piped(options.prompt, _piped_text(options.stdin))
        if not prompt.strip():
            leave("-p needs a text")
        return prompt
    if not options.file:
        return None
    name = "standard input" if options.file == "-" else options.file
    text = decoded(_read_all(0, name) if options.file == "-" else _read_file(name))
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


def decoded(data: bytes) -> str:
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
        text = decoded(_read_all(0, "standard input"))
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
    return decoded(_read_all(0, "standard input"))


def _read_all(fd: int, name: str) -> bytes:
    pieces, size = [], 0
    try:
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
            size += len(piece)
            if size > INPUT_BYTES_MAX:
                leave(f"{name} is {too_long()}")
    except OSError as problem:
        leave(f"cannot read {name}: {problem.strerror or problem}")
    return b"".join(pieces)


def too_long() -> str:
    return f"longer than {INPUT_BYTES_MAX // 1_000_000} MB, which is more than one prompt may be"


async def lines(ended: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """The lines of standard input as they come, until that or the run has `ended`.

    They are read by a thread, for a file cannot be waited for otherwise.

    It is one line ahead, so that endless input takes no memory.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    wanted = threading.Semaphore()

    def read() -> None:
        with suppress(RuntimeError):  # the run, and with it the loop, is over
            with suppress(OSError), open(0, "rb", closefd=False) as source:  # closed, or a folder: no lines
                while wanted.acquire() and (line := source.readline(INPUT_BYTES_MAX + 1)):
                    loop.call_soon_threadsafe(queue.put_nowait, line)
            loop.call_soon_threadsafe(queue.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    over = asyncio.ensure_future(ended.wait())
    line = asyncio.ensure_future(queue.get())
    try:
        while True:
            await asyncio.wait((line, over), return_when=asyncio.FIRST_COMPLETED)
            if not line.done() or not line.result():
                return
            data, line = line.result(), asyncio.ensure_future(queue.get())
            wanted.release()
            yield data
    finally:
        line.cancel()
        over.cancel()
