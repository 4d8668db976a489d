"""Shows a run to a program: one JSON object a line on standard output, and nothing else there.

`run.start` is the first line and `run.end` the last, however the run ends: `guarded` sees to it.
"""

import io
import signal
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import NoReturn

from bantam import __version__
from bantam.core.effects import Emit, Reason
from bantam.core.events import Event
from bantam.core.words import report, status, wrap
from bantam.front.show.writer import Writer
from bantam.front.usage import Left

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class JsonLines(Writer):
    """Shows a run as events."""

    def __init__(self, out: int = 1, created: str | None = None) -> None:
        super().__init__(out)
        self.created = created or self.created
        self._report = report.Report()
        self.started = False
        self._ended = False

    def start(self, model: str | None) -> None:
        """The first line, unless it was written."""
        if not self.started:
            self.started = True
            self._write(report.started(__version__, self.created, model))

    def hear(self, now: float, event: Event) -> None:
        self._report = report.heard(self._report, event, now)

    def show(self, emit: Emit) -> None:
        self._report, events = report.told(self._report, emit)
        self._write(*events)

    def say(self, text: wrap.Text, style: str = "", error: bool = False) -> None:
        self._write(report.said(self._report, wrap.plain(text), error))

    def end(self, reason: str, code: int, session: str | None) -> None:
        """The last line, unless it was written."""
        self._write(report.ended(self._report, reason, code, session))
        self._ended = True

    def _write(self, *events: report.Json) -> None:
        if events and not self._ended:
            self._raw(self._out, "".join(map(report.line, events)))


class Notices(io.TextIOBase):
    """Takes the place of standard error: what is written there is told as notices, line by line."""

    def __init__(self, lines: JsonLines) -> None:
        self._lines, self._text = lines, ""

    def write(self, text: str) -> int:
        *whole, self._text = (self._text + text).split("\n")
        for line in filter(str.strip, whole):
            self._lines.say(line.removeprefix("bantam: "), "notice")
        return len(text)


def guarded(lines: JsonLines, run: Callable[[], int]) -> int:
    """Carry out a run, and end its lines if it could not do so itself; returns the exit status."""
    for number in SIGNALS:  # until the run heeds them itself
        signal.signal(number, _leave)
    with redirect_stderr(Notices(lines)):
        try:
            return run()
        except Left as left:
            return _end(lines, left.why, report.USAGE, status.USAGE)
        except SystemExit as stop:
            if not stop.code and not lines.started:  # --help
                return 0
            code = stop.code if isinstance(stop.code, int) else status.FAILED
            return _end(lines, "", Reason.INTERRUPTED if code > status.SIGNALLED else Reason.FAILED, code)
        except Exception as bug:
            return _end(lines, status.unexpected(bug), Reason.FAILED, status.FAILED)


def _end(lines: JsonLines, why: str, reason: str, code: int) -> int:
    lines.start(None)
    if why:
        lines.say(why, error=True)
    lines.end(reason, code, None)
    return code


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(status.SIGNALLED + number)
