"""Runs without an editor: a prompt from a file, from `-p` or from standard input, and piped lines."""

import argparse
import asyncio
import errno
import gc
import signal
from contextlib import aclosing
from types import FrameType

from bantam.core import messages
from bantam.core.base.record import dataclass
from bantam.core.effects import ANSWERED, Reason
from bantam.core.words import prompts, report, status
from bantam.front.pipe import given
from bantam.front.show.screen import Mode, Screen
from bantam.front.show.writer import Writer
from bantam.front.usage import leave
from bantam.host.conversation import Conversation
from bantam.host.setup import Setup
from bantam.shell.net import model

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
        from bantam.front.pipe import target

        problem = target.problem(options.output)
        if problem is not None:
            leave(problem)
    screen = _watcher(found, options)
    prompt = None if options.input else given.prompt_of(options)
    model.load()
    before = [signal.getsignal(number) for number in SIGNALS]
    end = asyncio.run(_run(found, options, screen, prompt))
    for number, handler in zip(SIGNALS, before, strict=True):  # a named pipe may let us wait for its reader
        signal.signal(number, handler)
    reason, code = end.reason, end.code
    answered = code == status.READER_GONE or reason in ANSWERED
    if options.output is not None and end.answer is not None and answered:
        from bantam.front.pipe import target

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
    return Screen(mode, found.config.color, found.config.render)


async def _run(found: Setup, options: argparse.Namespace, screen: Writer, prompt: str | None) -> End:
    talk = Conversation(found, screen, options.prompt is None, options.resumed, options.tape, options.attached)
    stop = Stop()
    _heed_signals(talk, screen, stop)
    gc.freeze()
    gc.enable()
    try:
        end = await _turns(talk, screen, options, prompt, stop)
    finally:
        await talk.close()
    talk.keep()
    if talk.player and (problem := talk.player.finish()):
        screen.say(f"bantam: {problem}", error=True)
        return End(report.DIVERGED, status.DIVERGED, None, talk.log_id)
    stopped = stop.status or (talk.player.stopped if talk.player else 0)
    reason = Reason.INTERRUPTED if stopped else end.reason
    code = stopped or end.code
    if talk.keeper.tape_is_cut and code == status.DONE:
        reason, code = Reason.FAILED, status.FAILED
    return End(reason, code, end.answer, talk.log_id)


async def _turns(
    talk: Conversation, screen: Writer, options: argparse.Namespace, prompt: str | None, stop: Stop
) -> End:
    if prompt is not None:
        return _end(talk, await talk.say(prompt))
    first = await talk.go_on() if talk.is_unfinished else Reason.DONE
    if options.input:
        from bantam.front.pipe import driver

        end = _end(talk, await driver.Driver(talk, screen).run(driver.read(0), stop.event))
    else:
        end = await _lines(talk, stop)
    return end if first is Reason.DONE else End(first, status.of(first), end.answer)


def _end(talk: Conversation, reason: Reason) -> End:
    said = reason in ANSWERED
    return End(reason, status.of(reason), messages.last_words(talk.runtime.conversation) if said else None)


def _heed_signals(talk: Conversation, screen: Writer, stop: Stop) -> None:
    loop = asyncio.get_running_loop()

    def end(code: int) -> None:
        stop.status = stop.status or code
        stop.event.set()
        talk.interrupt(code - status.SIGNALLED)

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


async def _lines(talk: Conversation, stop: Stop) -> End:
    """Each line of standard input is one turn; a failed one does not stop the next, but the end is its.

    The answer is the last turn's, if that ended well.
    """
    from bantam.host.commands import Quit

    first, answer = End(Reason.DONE, status.DONE, None), None
    async with aclosing(given.lines(stop.event)) as lines:
        async for data in lines:
            if len(data) > given.INPUT_BYTES_MAX:
                talk.watcher.say(f"bantam: a line of standard input is {given.too_long()}", error=True)
                return End(report.USAGE, status.USAGE, None) if first.code == 0 else first
            line = given.decoded(data).rstrip("\n")
            if not line.strip():
                continue
            try:
                end = _end(talk, await talk.line(line))
            except Quit:
                break
            first = end if first.code == 0 else first
            if prompts.slash(line) is None:
                answer = end.answer
            if stop.event.is_set() or end.reason is Reason.INTERRUPTED:  # by a signal, be it one on a tape
                break
    return End(first.reason, first.code, answer)
