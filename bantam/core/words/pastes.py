"""Long pastes: each is one character in the editor, so that no key can take a part of it.

The characters are lone high surrogates (Unicode 3.9, D71): a keyboard, a file and a history, which are read as UTF-8
with bad bytes as *low* surrogates (PEP 383), hold none. A text that holds one all the same is folded, whatever its
size, so that `unfold` gives back whatever was folded. What is folded is shown as `[pasted text 1, 284 lines]`; those
words, when they are typed, are words.
"""

import re
from collections.abc import Mapping

from bantam.core.base.record import dataclass, field

LINES_MAX = 15
CHARS_MAX = 10_000
"""A paste that is longer than either is folded: one line may be 10 MB, too."""
MARKS = range(0xD800, 0xDC00)
"""One for each paste of a run; later ones are left as they are."""
_MARK = re.compile("[\ud800-\udbff]")


@dataclass(frozen=True)
class Pastes:
    """What was folded in a run, by its mark. Nothing is forgotten: a draft may come back by undo, by yank, by Up."""

    texts: Mapping[str, str] = field(default_factory=dict)

    def unfold(self, text: str) -> str:
        """The text with all that is folded in it."""
        return _MARK.sub(lambda mark: self.texts.get(mark[0], mark[0]), text)

    def shown(self, text: str) -> str:
        """The text as it is to be seen."""
        return _MARK.sub(lambda mark: self.label(mark[0]), text)

    def label(self, mark: str) -> str:
        """What stands for a paste on the screen; the mark itself where it stands for none."""
        text = self.texts.get(mark)
        if text is None:
            return mark
        count = lines(text)
        size = f"{count:,} lines" if count > 1 else f"{len(text):,} characters"
        return f"[pasted text {ord(mark) - MARKS[0] + 1}, {size}]"

    def refold(self, draft: str, edited: str) -> str:
        """What became of a draft while it was unfolded: what is still whole in it, and in order, is folded again."""
        out, at = "", 0
        for mark in _MARK.findall(draft):
            text = self.texts.get(mark, "")
            found = edited.find(text, at) if text else -1
            if found >= 0:
                out += edited[at:found] + mark
                at = found + len(text)
        return out + edited[at:]


def folded(pastes: Pastes, text: str) -> tuple[Pastes, str]:
    """What a paste puts into the editor: itself, or where it is long a mark that stands for it."""
    is_long = lines(text) > LINES_MAX or len(text) > CHARS_MAX or _MARK.search(text) is not None
    if not is_long or len(pastes.texts) == len(MARKS):
        return pastes, text
    mark = chr(MARKS[len(pastes.texts)])
    return Pastes({**pastes.texts, mark: text}), mark


def lines(text: str) -> int:
    """How many lines a text has; one that ends in a line end has none behind it."""
    return text.removesuffix("\n").count("\n") + 1


def has_mark(text: str) -> bool:
    """Whether anything may be folded in a text."""
    return _MARK.search(text) is not None
