"""The real program in a terminal of its own, driven by pexpect, and a strict model for it to talk to.

Whoever waits here waits for something to appear; nothing sleeps.
"""

import os
import re
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pexpect
import pytest

from scripts.fakemodel import FakeModel, Reply, serving

ROOT = Path(__file__).parent.parent
PROMPT = "bantam> "
AT_ONCE_S = 1  # in which an interrupt brings the prompt back
PATIENCE_S = 20  # for a machine that is busy; nothing takes as long
SLOW = Reply("one two three four five six seven eight nine ten " * 20, delta_chars=5, pause_s=0.05)
# shells that run the program "$@" and tell of it; its commands know the terminal as $TERMINAL
WATCHED = """export TERMINAL="$(tty)"; echo "modes $(stty -g)"
sh -c 'echo "pid $$"; exec "$@"' sh "$@"; echo "status $?, modes $(stty -g)"
"""
JOB = 'set -m; "$@"; echo "status $?"; fg; echo "status $?"; fg; echo "status $?"'
ERRORS_APART = 'exec "$@" 2>errors'
BASH = 'PROGRAM="$*" PS1="shell> " exec bash --norc --noprofile -i'
needs_bash = pytest.mark.skipif(
    which("bash") is None, reason="bash is not installed: no shell with job control to type at"
)


class Bantam:
    """`bantam` on a terminal of 24 lines. Every `send` is exact: Enter is a carriage return.

    It is as wide as COLUMNS says, a variable that the program does not see.
    """

    def __init__(self, folder: Path, endpoint: str, through: str = "", **environment: str) -> None:
        columns = int(environment.pop("COLUMNS", "80"))
        self.home, self.work = folder / "home", folder / "work"
        for made in (self.home, self.work):
            made.mkdir(exist_ok=True)
        config = self.work / "model.cfg"
        if not config.exists():
            config.write_text(f"# kept\nendpoint={endpoint}\nmodel=fake\ntemperature=0.7\n")
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        program = [sys.executable, "-m", "bantam"]
        command = ["sh", "-c", through, "sh", *program] if through else program
        self.all = ""
        self._child = pexpect.spawn(
            command[0],
            command[1:],
            env={**kept, "TERM": "xterm-256color", "HOME": str(self.home), "PYTHONPATH": str(ROOT), **environment},
            cwd=str(self.work),
            dimensions=(24, columns),
            timeout=PATIENCE_S,
            encoding="utf-8",
        )
        self._child.delaybeforesend = None

    def send(self, text: str) -> None:
        self._child.send(text)

    def expect(self, text: str, timeout: float = PATIENCE_S) -> str:
        """Wait for a text; returns what came before it."""
        self._child.expect_exact(text, timeout=timeout)
        before = str(self._child.before)
        self.all += before + text
        return before

    def match(self, pattern: str) -> re.Match[str]:
        """Wait for a pattern."""
        self._child.expect(pattern)
        self.all += str(self._child.before) + str(self._child.after)
        found = self._child.match
        assert isinstance(found, re.Match)
        return found

    def prompt(self, timeout: float = PATIENCE_S) -> str:
        """Wait for the next prompt; returns what came before it, without escape sequences."""
        return plain(self.expect(PROMPT, timeout))

    def ask(self, line: str) -> str:
        """Enter a line; returns what came before the next prompt."""
        self.send(line + "\r")
        return self.prompt()

    def resize(self, columns: int, rows: int = 24) -> None:
        self._child.setwinsize(rows, columns)

    def end(self) -> int:
        """Wait for the program's end; returns its exit status."""
        self._child.expect(pexpect.EOF)
        self.all += str(self._child.before)
        self._child.close()
        assert self._child.exitstatus is not None, f"ended by signal {self._child.signalstatus}"
        return int(self._child.exitstatus)

    def modes(self) -> list[Any]:
        """The terminal's modes, as termios has them."""
        return termios.tcgetattr(self._child.child_fd)

    def cook(self) -> None:
        """Give the terminal the modes that shells like: lines, echo, and keys that send signals."""
        modes = self.modes()
        modes[0] |= termios.ICRNL
        modes[3] |= termios.ECHO | termios.ICANON | termios.ISIG
        termios.tcsetattr(self._child.child_fd, termios.TCSANOW, modes)

    def hang_up(self) -> int:
        """Take the terminal away; returns the exit status."""
        self._child.close(force=False)
        return int(self._child.exitstatus)

    def leave(self) -> None:
        self.send("\x04")
        assert self.end() == 0
        assert "Traceback" not in self.all

    def stop(self) -> None:
        """Leave no process, whatever has failed."""
        self._child.close(force=True)


def plain(text: str) -> str:
    """The text without escape sequences and carriage returns."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text)


class Window:
    """What a terminal of `rows` and `columns` shows of a program's bytes, and what it has kept for scrolling back.

    Like some real ones, it keeps the window, too, when all of it is erased at once.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._columns = rows, columns
        self._gone: list[str] = []
        self._lines = [""] * rows
        self._x = self._y = 0
        self._wraps = True

    def text(self) -> list[str]:
        """All lines from the first, without blanks at their ends."""
        return [line.rstrip() for line in [*self._gone, *self._lines]]

    def feed(self, data: str) -> "Window":
        for piece in re.finditer(r"\x1b\[([?>]?)([0-9;]*)([A-Za-z])|([^\x1b])", data):
            private, numbers, letter, char = piece.groups()
            if char:
                self._put(char)
            elif private:
                self._wraps = letter == "h" if numbers == "7" else self._wraps
            else:
                self._obey(letter, int(numbers.partition(";")[0] or 0))
        return self

    def _obey(self, letter: str, number: int) -> None:
        many = number or 1
        match letter:
            case "A":
                self._y = max(0, self._y - many)
            case "B":
                self._y = min(self._rows - 1, self._y + many)
            case "C":
                self._x = min(self._columns - 1, self._x + many)
            case "D":
                self._x = max(0, min(self._x, self._columns - 1) - many)
            case "J" | "K":
                assert number == 0
                if letter == "J":
                    if (self._x, self._y) == (0, 0):
                        self._gone += self._lines
                    self._lines[self._y + 1 :] = [""] * (self._rows - self._y - 1)
                self._lines[self._y] = self._lines[self._y][: self._x]
            case _:
                assert letter == "m", letter

    def _put(self, char: str) -> None:
        match char:
            case "\r":
                self._x = 0
            case "\b":
                self._x = max(0, min(self._x, self._columns - 1) - 1)
            case "\n":
                self._feed_line()
            case _:
                if self._x == self._columns:
                    self._x = 0 if self._wraps else self._columns - 1
                    if self._wraps:
                        self._feed_line()
                line = self._lines[self._y].ljust(self._x)
                self._lines[self._y] = line[: self._x] + char + line[self._x + 1 :]
                self._x += 1

    def _feed_line(self) -> None:
        if self._y == self._rows - 1:
            self._gone.append(self._lines.pop(0))
            self._lines.append("")
        else:
            self._y += 1


Start = Callable[..., Bantam]


@contextmanager
def model(folder: Path, script: Sequence[Reply] | Callable[[Any], Reply]) -> Iterator[tuple[FakeModel, Start]]:
    """A model that says `script` and refuses invalid conversations, and what starts Bantams that talk to it."""
    started: list[Bantam] = []
    told = iter([] if callable(script) else script)

    def strict(body: Any) -> Reply:
        wrong = complaint(body["messages"])
        if wrong:
            return Reply(wrong, status=400)
        return script(body) if callable(script) else next(told, Reply("That is all."))

    with serving(strict) as fake:

        def start(through: str = "", **environment: str) -> Bantam:
            started.append(Bantam(folder, fake.endpoint, through, **environment))
            return started[-1]

        try:
            yield fake, start
        finally:
            for bantam in started:
                bantam.stop()


def complaint(messages: Sequence[Any]) -> str:
    """What a strict server says about a conversation whose calls are not each answered directly behind them."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "a tool result without its call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "a tool call without its result"
        open_calls += [call["id"] for call in message.get("tool_calls", ())]
    return "a tool call without its result" if open_calls else ""


def said(fake: FakeModel) -> list[str]:
    """What the user said, as the last request has it."""
    return [message["content"] for message in fake.requests[-1].body["messages"] if message["role"] == "user"]


def results(fake: FakeModel) -> list[str]:
    """The tool results of the last request."""
    return [message["content"] for message in fake.requests[-1].body["messages"] if message["role"] == "tool"]


def shell(command: str) -> Reply:
    """The model runs a command."""
    return Reply(calls=[("shell_exec", {"command": command})])


def autosaved(home: Path) -> str:
    return (home / ".bantam/sessions/autosave.json").read_text()


def hung_up(fake: FakeModel) -> None:
    """Wait until no request is under way any more. Raises AssertionError."""
    until = time.monotonic() + PATIENCE_S
    while fake.open:
        assert time.monotonic() < until, "a connection is open"
        time.sleep(0.01)
