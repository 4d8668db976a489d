"""Colours for the code in fences: pairs -> pairs, the same text in the same order.

Pygments knows the languages; it is imported for the first fence that names one. Without it, and for a language
that it does not know, code stays in the one style that it came in, and is told as it comes. Otherwise it is told
line by line. Pygments wants a whole text: each line is read once more behind those that it may belong to (the
beginning of a comment, say), and those are forgotten as soon as a line reads the same without them.
"""

from functools import lru_cache
from typing import Any

from bantam.core.words.view import Pair

PREFIX = "code:"
MARK = "mark"  # the style of the lines of a fence, and of nothing between them
LINE_CHARS_MAX = 500  # of a line that is held until its end; the rest of its block is not coloured
CONTEXT_CHARS_MAX = 2_000  # of what is read again with each line; if it would be more, the same
LANGUAGES_MAX = 50  # that are kept ready
COLORS = {  # Pygments' kinds of tokens, and those within them
    "Comment.Preproc": "keyword",
    "Comment": "comment",
    "Keyword": "keyword",
    "Operator.Word": "keyword",
    "Name.Function": "defined",
    "Name.Class": "defined",
    "Name.Tag": "keyword",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Generic.Deleted": "removed",
    "Generic.Inserted": "string",
    "Generic.Heading": "defined",
    "Generic.Subheading": "defined",
}


class Highlighter:
    """Colours what is written to one terminal. Between calls it holds at most the beginning of a line of code."""

    def __init__(self) -> None:
        self._style = ""
        self._lexer: Any = None
        self._line = ""
        self._context = ""

    def colored(self, pairs: list[Pair]) -> list[Pair]:
        """The pairs with their code coloured, less the code that waits for the end of its line."""
        out: list[Pair] = []
        for style, text in pairs:
            if style.startswith(PREFIX):
                out += self._code(style, text)
                continue
            if self._line:
                out += self._give(self._line)
            if style == MARK:  # other styles, such as a quote's, may stand between the lines of one block
                self._style = ""
            out.append((style, text))
        return out

    def _code(self, style: str, text: str) -> list[Pair]:
        if style != self._style:
            self._style, self._lexer, self._context = style, _lexer(style.removeprefix(PREFIX)), ""
        out: list[Pair] = []
        *lines, rest = (self._line + text).split("\n")
        self._line = ""
        for line in lines:
            out += self._give(line + "\n")
        if self._lexer and len(rest) <= LINE_CHARS_MAX:
            self._line = rest
        elif rest:
            out += self._give(rest)
        return out

    def _give(self, line: str) -> list[Pair]:
        """A line, or what there is of it, in its colours."""
        self._line = ""
        if self._lexer and len(line.rstrip("\n")) <= LINE_CHARS_MAX and len(self._context) <= CONTEXT_CHARS_MAX:
            alone = _tokens(self._lexer, line)
            behind = _tokens(self._lexer, self._context + line, len(self._context)) if self._context else alone
            if alone and behind:
                self._context = line if alone == behind else self._context + line
                return behind
        self._lexer = None
        return [(self._style, line)]


def _tokens(lexer: Any, text: str, start: int = 0) -> list[Pair]:
    """The text from `start` on in its colours; [] if the lexer cannot do it without changing a character."""
    pairs: list[Pair] = []
    at = 0
    try:
        for kind, token in lexer.get_tokens(text):
            at += len(token)
            if at > start:
                pairs.append((_style(str(kind)), token[start - at :] if at - len(token) < start else token))
    except Exception:  # of many languages, by many hands: whatever is wrong with one, the text is shown
        return []
    return _merged(pairs) if "".join(token for _, token in pairs) == text[start:] else []


def _merged(pairs: list[Pair]) -> list[Pair]:
    """Neighbours of one colour become one pair; blanks have none."""
    merged: list[Pair] = []
    for style, text in pairs:
        if merged and (merged[-1][0] == style or text.isspace()):
            merged[-1] = (merged[-1][0], merged[-1][1] + text)
        else:
            merged.append((style, text))
    return merged


@lru_cache(maxsize=LANGUAGES_MAX)
def _lexer(language: str) -> Any:
    """What reads a language; None without Pygments, or where that does not know it."""
    try:
        from pygments.lexers import get_lexer_by_name

        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except Exception:  # it may come from a plug-in, which may be broken
        return None


@lru_cache(maxsize=1000)
def _style(kind: str) -> str:
    """`Token.Literal.String.Doc` is a string."""
    kind = kind.removeprefix("Token.")
    while kind and kind not in COLORS:
        kind = kind.rpartition(".")[0]
    return COLORS.get(kind, "")
