"""What keeps things from being kept, said once: whoever meets it next says what else it means, or nothing."""

import errno
from pathlib import Path

from bantam.host.place import Place
from bantam.shell.disk.files import StoreError

SAME = (  # one cause has several numbers, by which step it is that fails
    {errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG},  # no folder there, and none to be had
    {errno.EACCES, errno.EPERM, errno.EROFS},  # it may not be written
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG},  # it is full
)


class Causes:
    """The causes that were said in one conversation: of its log, its saves, its tape and what its user typed."""

    def __init__(self, place: Place | None = None) -> None:
        self._homes = (place.user_home, place.home) if place else ()
        self._said: dict[tuple[Path, int], set[str]] = {}

    def words(self, problem: StoreError, means: str, minor: bool = False) -> str:
        """What to say of a problem and what it `means`: all of it, what is new in that, or "".

        What is `minor` is worth no line of its own where the cause is known.
        """
        said = self._said.get(self._cause(problem))
        if said is not None and (minor or means in said):
            return ""
        self._note(problem, "" if minor else means)
        return f"{problem}; {means}" if said is None else means

    def answer(self, problem: StoreError) -> str:
        """The same for somebody who has asked, and gets an answer each time."""
        if problem.number and self._cause(problem) in self._said:
            return "nothing was saved"
        if problem.number:
            self._note(problem, "")
        return str(problem)

    def _note(self, problem: StoreError, means: str) -> None:
        self._said.setdefault(self._cause(problem), set()).add(means)

    def _cause(self, problem: StoreError) -> tuple[Path, int]:
        """Where and why, with one home and the different steps towards a file taken as one."""
        homes = (home for home in self._homes if problem.path.is_relative_to(home))
        kind = next((min(numbers) for numbers in SAME if problem.number in numbers), problem.number)
        return next(homes, problem.path.parent), kind
