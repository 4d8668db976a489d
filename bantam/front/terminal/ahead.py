"""What is typed while a turn runs: lines that are told to the turn, and keys that wait for the next prompt.

The editor is not there, so that only a line is understood that was typed with the plainest keys; any other key waits
for the prompt with all that comes behind it, for only there is it known what it does.
"""

import asyncio
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output

from bantam.core.words import pastes
from bantam.front.terminal import characters, tty
from bantam.front.terminal.talk import Talk

QUIET_S = 0.5  # a key that comes sooner after another belongs to it
BRIEF_CHARS = 50  # of a line, where it is mentioned
ENTER = KeyPress(Keys.ControlM, "\r")


class Queue:
    """The lines that were entered during a turn. `say` tells of one, `remember` puts one into the history."""

    def __init__(self, talk: Talk, say: Callable[[str], None], remember: Callable[[str], None]) -> None:
        self._talk, self._say, self._remember = talk, say, remember
        self._told: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a turn runs that can be told something; a command that takes no time is none."""
        return self._talk.busy

    def add(self, text: str) -> bool:
        """Tell the turn, if the line is for it."""
        if not (self.is_open and self._talk.is_said(text)):
            return False
        self._talk.add(text)
        self._told.append(text)
        self._say(f"queued: {brief(text)}")
        return True

    def take_back(self) -> str:
        """The last line that the turn was told; "" where there is none, or it is said already."""
        text = self._talk.take_back() if self._told else ""
        if text:
            self._told.pop()
            self._say(f"taken back: {brief(text)}")
        return text

    def wait(self, text: str) -> None:
        """A line waits for the end of the turn; or, without a text, keys do that only the editor understands."""
        if self.is_open:
            self._say(f"after this turn: {brief(text)}" if text else "what is typed now waits for the prompt")

    def settle(self) -> list[str]:
        """The turn is over: what it did not hear of all that it was told. The rest is history."""
        back = self._talk.returned()
        for text in self._told[: max(0, len(self._told) - len(back))]:
            self._remember(text)
        self._told = []
        return back


def brief(text: str) -> str:
    """The beginning of a text, on one line."""
    words = " ".join(text[: 2 * BRIEF_CHARS].split())
    more = pastes.lines(text.strip("\n")) - 1
    cut = words if len(words) <= BRIEF_CHARS else words[: BRIEF_CHARS - 1] + "…"
    return f"{cut} ({more + 1:,} lines)" if more else cut


def line(keys: list[KeyPress]) -> str | None:
    """The text that keys make in an empty editor; None where it takes an editor to know."""
    text = ""
    for press in keys:
        match press.key:
            case Keys.BracketedPaste:
                text += press.data.replace("\r\n", "\n").replace("\r", "\n")
            case Keys.ControlJ:
                text += "\n"
            case Keys.Backspace:
                text = text[: characters.before(text, len(text))]
            case Keys():
                return None
            case _:
                text += press.data
    return text


class TypeAhead:
    """Keys that come while a turn runs: lines for it, and what is kept for the next prompts.

    Ctrl+C calls `interrupt`, Ctrl+Z `suspend`, and the end of the input `end`. Up takes the last line back, as long as
    nothing is typed behind it.
    """

    def __init__(
        self,
        keyboard: Input,
        display: Output,
        queue: Queue,
        enter_is_lf: Callable[[], bool],
        interrupt: Callable[[], None],
        suspend: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        self._keyboard, self._display, self._queue = keyboard, display, queue
        self._enter_is_lf = enter_is_lf
        self._interrupt, self._suspend, self._end = interrupt, suspend, end
        self._waiting: list[list[KeyPress]] = []  # lines for after the turn, without their Enter
        self._kept: list[KeyPress] = []  # of the line that is being typed
        self._needs_editor = False  # and so does all that is typed behind it
        self._kept_at = 0.0  # of the loop's clock, when the last of them came
        self._asked: asyncio.Future[str] | None = None
        self._answers = ""
        self._escape: asyncio.TimerHandle | None = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read keys meanwhile. What was read too early by the last prompt counts as typed now."""
        loop = asyncio.get_running_loop()
        with self._keyboard.raw_mode(), self._keyboard.attach(self._read):
            self.mark_pastes(True)
            loop.call_soon(self._take, get_typeahead(self._keyboard))  # once the turn has begun
            try:
                yield
            finally:
                if self._escape:
                    self._escape.cancel()
                self.mark_pastes(False)
                waiting = [press for keys in self._waiting for press in (*keys, ENTER)]
                store_typeahead(self._keyboard, waiting + self._kept)

    def settle(self) -> None:
        """The turn is over: what it was told and did not hear is entered at the next prompts, before all else."""
        self._waiting = [*([KeyPress(Keys.BracketedPaste, text)] for text in self._queue.settle()), *self._waiting]

    async def answer(self, answers: str, show: Callable[[], None]) -> str:
        """Which of these letters is typed, once `show` has shown what they mean.

        Everything else is kept as ever, and so is a letter that comes in the middle of what somebody types: it
        may well have been meant for that, before the question could be seen.
        """
        while not self._keyboard.closed and select.select([self._keyboard.fileno()], [], [], 0)[0]:
            self._read()
        show()
        self._asked, self._answers = asyncio.get_running_loop().create_future(), answers
        try:
            return await self._asked
        finally:
            self._asked = None

    def mark_pastes(self, marked: bool) -> None:
        """Have the terminal mark pastes, so that their line ends are no Enter."""
        if marked:
            self._display.enable_bracketed_paste()
        else:
            self._display.disable_bracketed_paste()
        self._display.flush()

    def _read(self) -> None:
        self._take(self._keyboard.read_keys())
        if self._keyboard.closed:
            self._end()
        if self._escape:
            self._escape.cancel()
        self._escape = asyncio.get_running_loop().call_later(tty.SEQUENCE_S, self._flush)

    def _flush(self) -> None:
        self._take(self._keyboard.flush_keys())

    def _take(self, keys: list[KeyPress]) -> None:
        for press in keys:
            if press.key == Keys.ControlC:
                self._interrupt()
            elif press.key == Keys.ControlZ:
                self._suspend()
            elif press.key != Keys.CPRResponse and not self._is_answer(press):
                self._keep(press)
                self._kept_at = asyncio.get_running_loop().time()

    def _keep(self, press: KeyPress) -> None:
        enters = press.key == Keys.ControlM or (press.key == Keys.ControlJ and self._enter_is_lf())
        if self._needs_editor or not (enters or (press.key == Keys.Up and not self._kept)):
            self._kept.append(press)
            if not self._needs_editor and line([press]) is None:
                self._needs_editor = True
                self._queue.wait("")
        elif enters:
            self._enter()
        elif self._waiting and self._queue.is_open:
            self._kept = self._waiting.pop()
        elif text := self._queue.take_back():
            self._kept = [KeyPress(Keys.BracketedPaste, text)]
        else:  # the history is the editor's
            self._kept.append(press)
            self._needs_editor = True

    def _enter(self) -> None:
        keys, self._kept = self._kept, []
        text = line(keys)
        assert text is not None
        if not text.strip():
            return
        if self._waiting or not self._queue.add(text):  # what was entered later is carried out later
            self._waiting.append(keys)
            self._queue.wait(text)

    def _is_answer(self, key: KeyPress) -> bool:
        """Whether the key answers a question, which is thereby answered."""
        letter, quiet_s = key.key.lower(), asyncio.get_running_loop().time() - self._kept_at
        if not self._asked or self._asked.done() or letter not in list(self._answers) or quiet_s < QUIET_S:
            return False
        self._asked.set_result(letter)
        return True
