"""Markdown within a line, as it comes: emphasis, code, links. A mark is judged by the characters beside it alone.

CommonMark 0.31.2, chapter 6, as far as it can be known before the line has ended: what opens is styled at once,
and whatever was not closed ends with its line. In doubt there is no mark: `2*3`, `x**2`, `*.py` and `snake_case`
open nothing, so that the rest of a line seldom looks wrong.
"""

import re
from typing import NamedTuple

Pair = tuple[str, str]
MARK = "mark"
"""The style of Markdown's own characters."""
TICKS_MAX = 16  # in a run; a longer one is text
STARS_MAX = 4  # as many, or more, are text
WORD, LETTER, SPACE, OTHER = "a", "w", " ", "."  # kinds of characters: ASCII, other alphabets, blanks, the rest
_NEVER_OPENS = ".,;:!?)]}/|=&%^"  # behind * or _: rather a pattern of files, or a formula
_TAIL = r""".,;:!?'"*_~)\]"""  # may end a sentence, and stand within an address
_INTERESTING = re.compile(
    rf"[\n|\\]|\*{{1,{STARS_MAX}}}|_{{1,{STARS_MAX}}}|`{{1,{TICKS_MAX}}}|~{{1,{STARS_MAX}}}|\]\(?"
    r"|(?<![^\W_])h(?:ttps?://|t{0,2}\Z|ttps?:?/?\Z)"
)
_TICKS = re.compile(f"`{{1,{TICKS_MAX}}}")
_ADDRESS = re.compile(rf"(?:[{_TAIL}]{{0,8}}[^\s<>`|\\{_TAIL}])+")
_ADDRESS_TAIL = re.compile(rf"[{_TAIL}]{{0,9}}")
_DESTINATION = re.compile(r"[^\s()]+|.", re.DOTALL)
_ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


class Spans(NamedTuple):
    """Where in a line we are."""

    base: str = ""
    """The style of the line itself: of a heading, a quote."""
    table: bool = False
    strong: str = ""
    """The mark that opened it: two stars or two underscores."""
    em: str = ""
    strike: bool = False
    style: str = ""
    """Of ordinary text here, which follows from those above."""
    before: str = SPACE
    """The kind of the last character; of a star, an underscore, a backtick or a tilde that is text, itself."""
    ticks: int = 0
    """In code: the length of the run of backticks that closes it."""
    depth: int = 0
    """In the destination of a link: how many brackets are open."""
    address: bool = False
    """In an address that stands in the text."""


Step = tuple[Spans, int, str] | None
"""What follows, where it begins, and the style of what was read; None where that depends on what comes next."""


def read(spans: Spans, text: str, at: int, ends: bool) -> tuple[Spans, int, list[Pair]]:
    """Style a piece of a line from `at` on; what is returned begins where more has to be known.

    `ends`: the line ends with this piece, so that nothing more has to be known.
    """
    pairs: list[Pair] = []
    while at < len(text):
        if spans.ticks:
            step = _in_code(spans, text, at, ends)
        elif spans.depth:
            step = _in_destination(spans, text, at)
        elif spans.address:
            step = _in_address(spans, text, at, ends)
        else:
            step = _in_text(spans, text, at, ends)
        if step is None:
            break
        spans, end, style = step
        if end > at:
            pairs.append((style, text[at:end]))
        at = end
    return spans, at, pairs


def is_plain(spans: Spans, text: str) -> bool:
    """Whether text within a line, not empty, means nothing but itself, wherever it goes on."""
    return not (spans.ticks or spans.depth or spans.address or _INTERESTING.search(text))


def kind(char: str) -> str:
    """What a character is to the mark beside it."""
    if char.isalnum():
        return WORD if char.isascii() else LETTER
    return SPACE if char.isspace() else char if char in "*_`~" else OTHER


def _in_text(spans: Spans, text: str, at: int, ends: bool) -> Step:
    found = _INTERESTING.search(text, at)
    start = len(text) if found is None else found.start()
    if start > at:
        return spans._replace(before=kind(text[start - 1])), start, spans.style
    assert found is not None
    mark, end = found[0], found.end()
    open_ended = end == len(text) and not ends
    match mark[0]:
        case "*" | "_" | "~":
            if open_ended and len(mark) < STARS_MAX:
                return None
            after = kind(text[end]) if end < len(text) else SPACE
            made = _emphasis(spans, mark, after, text[end : end + 1])
            return (_as_text(spans, mark[0]), end, spans.style) if made is None else (made, end, MARK)
        case "`":
            if open_ended and len(mark) < TICKS_MAX:
                return None
            if len(mark) == TICKS_MAX or spans.before == "`":
                return _as_text(spans, "`"), end, spans.style
            return spans._replace(ticks=len(mark), before=OTHER), end, MARK
        case "\\":
            return _escape(spans, text, end, ends)
        case "|":
            return _as_text(spans, OTHER), end, MARK if spans.table else spans.style
        case "]":
            if mark == "](":
                return spans._replace(depth=1, before=OTHER), end, MARK
            return None if open_ended else (_as_text(spans, OTHER), end, spans.style)
        case _:
            return _address(spans, mark, at, end, ends)


def _as_text(spans: Spans, before: str) -> Spans:
    return spans if spans.before == before else spans._replace(before=before)


def _emphasis(spans: Spans, run: str, after: str, char: str) -> Spans | None:
    """What a run of stars, underscores or tildes opens or closes; None if it is text."""
    sign, count, before = run[0], len(run), spans.before
    if count >= STARS_MAX or before == sign or (sign == "~" and count != 2):
        return None
    inside_word = before in (WORD, LETTER) if sign == "_" else before == WORD and sign == "*"
    closes = before != SPACE and not (sign == "_" and after in (WORD, LETTER))
    never = _NEVER_OPENS if count == 1 else _NEVER_OPENS[1:]
    opens = after != SPACE and not inside_word and char not in never
    if sign == "~":
        if (spans.strike and closes) or (not spans.strike and opens):
            return _restyled(spans._replace(strike=not spans.strike, before=OTHER))
        return None
    em, strong = sign if count != 2 else "", sign * 2 if count > 1 else ""
    if closes and ((em and spans.em == em) or (strong and spans.strong == strong)):
        left = spans._replace(
            em="" if em and spans.em == em else spans.em,
            strong="" if strong and spans.strong == strong else spans.strong,
            before=OTHER,
        )
        return _restyled(left)
    if opens and ((em and not spans.em) or (strong and not spans.strong)):
        return _restyled(spans._replace(em=spans.em or em, strong=spans.strong or strong, before=OTHER))
    return None


def _restyled(spans: Spans) -> Spans:
    styles = ("strong", spans.strong), ("emphasis", spans.em), ("strike", spans.strike)
    words = [spans.base] * bool(spans.base) + [style for style, is_open in styles if is_open]
    return spans._replace(style=" ".join(words))


def _escape(spans: Spans, text: str, end: int, ends: bool) -> Step:
    """A backslash takes the meaning of the punctuation behind it."""
    if end == len(text):
        return (_as_text(spans, OTHER), end, spans.style) if ends else None
    return _as_text(spans, OTHER), end + (text[end] in _ASCII_PUNCTUATION), spans.style


def _address(spans: Spans, mark: str, at: int, end: int, ends: bool) -> Step:
    """The beginning of an address, or a word that looked as if it were one."""
    if spans.before in (WORD, LETTER):
        return spans._replace(before=WORD), at + 1, spans.style
    if mark.endswith("://"):
        return spans._replace(address=True), end, "link"
    return (spans._replace(before=kind(mark[-1])), end, spans.style) if ends else None


def _in_address(spans: Spans, text: str, at: int, ends: bool) -> Step:
    found = _ADDRESS.match(text, at)
    if found:
        return spans._replace(before=kind(found[0][-1])), found.end(), "link"
    tail = _ADDRESS_TAIL.match(text, at)
    if tail and tail.end() == len(text) and len(tail[0]) <= 8 and not ends:
        return None
    return spans._replace(address=False), at, "link"


def _in_code(spans: Spans, text: str, at: int, ends: bool) -> Step:
    found = _TICKS.search(text, at)
    start = len(text) if found is None else found.start()
    if start > at:
        return _as_text(spans, OTHER), start, "code"
    assert found is not None
    end, count = found.end(), len(found[0])
    if end == len(text) and not ends and count < TICKS_MAX:
        return None
    if count == spans.ticks and spans.before != "`":
        return spans._replace(ticks=0, before=OTHER), end, MARK
    return _as_text(spans, "`"), end, "code"


def _in_destination(spans: Spans, text: str, at: int) -> Step:
    found = _DESTINATION.match(text, at)
    assert found is not None
    char, end = found[0][0], found.end()
    if char.isspace():  # the title follows, or it was no link
        return spans._replace(depth=0, before=SPACE), at, "link"
    depth = spans.depth + (char == "(") - (char == ")")
    return spans._replace(depth=depth, before=OTHER), end, "link" if depth else MARK
