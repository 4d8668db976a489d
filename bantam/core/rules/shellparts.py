"""What a command line consists of: words, simple commands, and what is unclear."""

import re

from bantam.core.base.record import dataclass

SHOWN_CHARS_MAX = 200
GAP = "$_"


@dataclass(frozen=True)
class Word:
    """A word of a command without its quotes. `known` is False if only the running shell knows what it becomes;
    `text` then has a `$_` for each gap, and file name patterns as they were written."""

    text: str
    known: bool = True


Words = tuple[Word, ...]


@dataclass(frozen=True)
class Part:
    """A simple command. `shown` is where it stands, for messages.

    `assigned`: the assignments in front of it, or alone, that can matter to a program; `writes`: a redirection
    goes to a file. `anywhere`: the command begins at any of these words, since it is not known at which.
    """

    shown: str
    words: Words
    assigned: Words = ()
    writes: bool = False
    anywhere: bool = False


@dataclass(frozen=True)
class Unclear:
    shown: str
    why: str


Found = Part | Unclear


def shown(text: str) -> str:
    """A piece of a command in one line, clipped. Escape sequences may still be in it."""
    return " ".join(text[: 2 * SHOWN_CHARS_MAX].split())[:SHOWN_CHARS_MAX]


def is_marked(text: str) -> bool:
    """Whether a text, read by a shell, could be more than one word."""
    return bool(re.search(r"[^\w./:@%+,=$-]", text))
