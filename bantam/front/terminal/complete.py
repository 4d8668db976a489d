"""What Tab and Up bring: completions, and the input history in its file.

Both only help: whatever goes wrong here is said once and stops nothing.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory

from bantam.core.words import prompts
from bantam.host import commands
from bantam.host.commands import Completion as Kind
from bantam.shell.disk.files import StoreError


class Completions(Completer):
    """Commands at the beginning, ids and keys behind those that take them, paths anywhere else."""

    def __init__(self, sessions: Callable[[], Iterable[str]], keys: Callable[[], Iterable[str]]) -> None:
        self._options = {Kind.SESSION: sessions, Kind.SETTING: keys}
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before, blank, word = _last_word(document.text_before_cursor)
        row = commands.row_of(before.lower())
        options = self._options.get(row.completion) if row else None
        if not before and not blank:
            found = [name for name in commands.names() if word and name.startswith(word.lower())]
        else:
            found = [] if options is None else [name for name in options() if name.startswith(word)]
        if found or options is not None:
            return [Completion(name, -len(word)) for name in found]
        return self._files(word, complete_event)

    def _files(self, word: str, event: CompleteEvent) -> Iterable[Completion]:
        for found in self._paths.get_completions(Document(word), event):
            slash = "/" if found.display_text.endswith("/") else ""  # of a folder: it goes on
            yield Completion(found.text + slash, found.start_position, found.display)


class History(FileHistory):
    """The lines that were typed. `clean` takes the key out of them; `keeps` says whether they may be written."""

    def __init__(
        self, path: str, clean: Callable[[str], str], keeps: Callable[[], bool], complain: Callable[[StoreError], None]
    ) -> None:
        super().__init__(path)
        self._path, self._clean, self._keeps, self._complain = path, clean, keeps, complain

    def append_string(self, string: str) -> None:
        if string.strip() and not prompts.is_private(string):
            super().append_string(self._clean(string))

    def remember(self, string: str) -> None:
        """Keep a line that was thrown away, for this session only."""
        if string.strip() and not prompts.is_private(string):
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


def _last_word(text: str) -> tuple[str, bool, str]:
    """What stands before the last word, whether there are blanks between them, and that word."""
    word = text.split(" ")[-1].split("\n")[-1].split("\t")[-1]
    head = text[: len(text) - len(word)]
    return head.strip(), bool(head), word
