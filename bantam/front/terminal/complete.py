"""What Tab and Up bring: completions, and the input history in its file.

Both only help: whatever goes wrong here is said once and stops nothing.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory

from bantam.core.words import config, prompts
from bantam.host import commands
from bantam.host.commands import Completion as Kind
from bantam.shell.disk.files import StoreError

SUMMARIES_MAX = 50  # sessions whose summary is read for one Tab: who sees more types on
_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]*)|([^\s"]*))\Z')  # what `attach.mentions` takes, as far as typed


def topics_of_the_manual() -> Iterable[str]:
    from bantam.host import topics  # seldom needed, and never at the start

    return sorted(topics.manual())


def kind_of(command: str) -> Kind | None:
    """What stands behind a command."""
    row = commands.row_of(command)
    return row.completion if row else None


class Completions(Completer):
    """Commands at the beginning, what they take behind them, and paths anywhere else. Runs in a thread.

    `sessions` gives ids and `summary` the words of one, `keys` the names of settings; `topics` and `models` what
    `/help` and `/model` take.
    """

    def __init__(
        self,
        sessions: Callable[[], Iterable[str]],
        keys: Callable[[], Iterable[str]],
        topics: Callable[[], Iterable[str]] = topics_of_the_manual,
        models: Callable[[], Iterable[str]] = tuple,
        summary: Callable[[str], str] = lambda _: "",
        kind: Callable[[str], Kind | None] = kind_of,
    ) -> None:
        self._sessions, self._keys, self._summary, self._kind = sessions, keys, summary, kind
        self._offers: Mapping[Kind, Callable[[str], Iterable[Completion]]] = {
            Kind.SESSION: self._of_sessions,
            Kind.SETTING: self._of_settings,
            Kind.PATH: self._of_paths,
            Kind.TOPIC: lambda rest: _beginning(rest, topics()),
            Kind.MODEL: lambda rest: _beginning(rest, models()),
        }
        self._models = models
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if mention := _MENTION.search(text):
            return self._of_mention(mention[1], mention[2] or "")
        command, *behind = text.lstrip().split(None, 1) if text.strip() else ("",)
        rest = behind[0] if behind else ""
        if command and not behind and not text[-1].isspace():
            names = [name for name in commands.names() if name.startswith(command.lower())]
            if names:
                return [Completion(name, -len(command)) for name in names]
        elif kind := self._kind(command.lower()):
            return self._offers[kind](rest)
        return self._of_paths(re.split(r"[ \n\t]", text)[-1])

    def _of_sessions(self, rest: str) -> Iterator[Completion]:
        found = (id for id in self._sessions() if id.startswith(rest))
        for count, id in enumerate(found):  # one by one: the menu need not wait for the last summary
            yield Completion(id, -len(rest), display_meta=self._summary(id) if count < SUMMARIES_MAX else "")

    def _of_settings(self, rest: str) -> Iterable[Completion]:
        key, sign, value = re.split(r"(\s*=\s*|\s+|$)", rest, maxsplit=1)
        if not sign:
            return _beginning(key, self._keys())
        found = tuple(self._models()) if key == "model" else config.values(key)
        return _beginning(value, found) if found else self._of_paths(value)

    def _of_paths(self, word: str) -> Iterator[Completion]:
        for found in self._files.get_completions(Document(word), CompleteEvent(completion_requested=True)):
            slash = "/" if found.display_text.endswith("/") else ""  # of a folder: it goes on
            yield Completion(found.text + slash, found.start_position, found.display)

    def _of_mention(self, quoted: str | None, plain: str) -> Iterator[Completion]:
        """Paths behind an @, in quotes where there is a blank in one; that of a folder stays open, for it goes on."""
        typed = plain if quoted is None else quoted
        for found in self._of_paths(typed):
            path = typed[: len(typed) + found.start_position] + found.text
            marks = quoted is not None or any(map(str.isspace, path))
            whole = f'"{path}' + ('"' if not path.endswith("/") else "") if marks else path
            yield Completion(whole, -len(typed) - (quoted is not None), found.display)


class History(FileHistory):
    """The lines that were typed. `clean` takes the key out of them; `keeps` says whether they may be written.

    What is folded in a line stays so in this session; the file has the `whole` of it.
    """

    def __init__(
        self,
        path: str,
        clean: Callable[[str], str],
        keeps: Callable[[], bool],
        complain: Callable[[StoreError], None],
        whole: Callable[[str], str] = str,
    ) -> None:
        super().__init__(path)
        self._whole = whole
        self._path, self._clean, self._keeps, self._complain = path, clean, keeps, complain

    def append_string(self, string: str) -> None:
        whole = self._whole(string)
        if whole.strip() and not prompts.is_private(whole):
            self._loaded_strings.insert(0, self._clean(string))
            self.store_string(self._clean(whole))

    def remember(self, string: str) -> None:
        """Keep a line that was thrown away, for this session only."""
        if string.strip() and not prompts.is_private(self._whole(string)):
            self._loaded_strings.insert(0, self._clean(string))

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError as problem:
            self._complain(StoreError(f"cannot read {self._path}: {problem.strerror or problem}"))
            return []

    def store_string(self, string: str) -> None:
        if not self._keeps():
            return
        entry = f"\n# {time.strftime('%Y-%m-%d %H:%M:%S')}\n" + "".join(f"+{line}\n" for line in string.split("\n"))
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                found = os.fstat(fd).st_mode
                if stat.S_ISREG(found) and stat.S_IMODE(found) != 0o600:
                    os.fchmod(fd, 0o600)
                os.write(fd, entry.encode(errors="replace"))  # one write: several REPLs share the file
            finally:
                os.close(fd)
        except OSError as problem:
            words = f"cannot write {self._path}: {problem.strerror or problem}"
            self._complain(StoreError(words, Path(self._path), problem.errno or 0))


def _beginning(word: str, words: Iterable[str]) -> list[Completion]:
    return [Completion(found, -len(word)) for found in words if found.startswith(word)]
