"""Markdown as it comes -> (style, text) pairs. It is styling only: the texts together are exactly what came.

The lines of CommonMark 0.31.2 (chapters 4 and 5) and the tables of GitHub. Which style a character has depends on
the text before it, and on as much behind it as its meaning hangs on: the run of marks it stands in and the character
after that, or the beginning of its line (of at most HEAD_MAX characters; the line of a fence or a rule is whole
within these). It does not depend on how the text was cut. Nothing else is held back, and nothing that was told is
told otherwise later. Styles end with their line; a fence alone goes on.
"""

from bantam.core.words import blocks
from bantam.core.words import spans as inline
from bantam.core.words.blocks import HEAD_MAX, Styler
from bantam.core.words.spans import WORD, Pair, kind

START = Styler()


def feed(styler: Styler, text: str) -> tuple[Styler, list[Pair]]:
    """The next piece of a text; the pairs are what is decided now."""
    if not text:
        return styler, []
    if not styler.held and not styler.starts:
        if styler.verbatim:
            if "\n" not in text:
                return styler, [(styler.verbatim, text)]
        elif inline.is_plain(styler.spans, text):
            last, spans = text[-1], styler.spans
            before = WORD if last.isascii() and last.isalnum() else kind(last)
            if before != spans.before:
                styler = styler._replace(spans=spans._replace(before=before))
            return styler, [(spans.style, text)]
    return _feed(styler, styler.held + text)


def finish(styler: Styler) -> list[Pair]:
    """What is still held, when nothing more comes."""
    return _merged(_piece(styler, styler.held, True)[2]) if styler.held else []


def _feed(styler: Styler, text: str) -> tuple[Styler, list[Pair]]:
    pairs: list[Pair] = []
    at = 0
    while True:
        end = text.find("\n", at)
        if end < 0:
            break
        styler, _, more = _piece(styler, text[at:end], True)
        pairs += more
        pairs.append((styler.verbatim, "\n"))
        styler = styler._replace(starts=True, verbatim="")
        at = end + 1
    piece = text[at:]
    styler, used, more = _piece(styler, piece, False)
    return styler._replace(held=piece[used:]), _merged(pairs + more)


def _merged(pairs: list[Pair]) -> list[Pair]:
    """Neighbours of one style become one pair."""
    groups: list[tuple[str, list[str]]] = []
    for style, text in pairs:
        if groups and groups[-1][0] == style:
            groups[-1][1].append(text)
        elif text:
            groups.append((style, [text]))
    return [(style, "".join(texts)) for style, texts in groups]


def _piece(styler: Styler, text: str, ends: bool) -> tuple[Styler, int, list[Pair]]:
    """Style as much of a piece of one line as is decided; `ends`: the line ends with it."""
    at = 0
    pairs: list[Pair] = []
    if styler.starts and (text or ends):
        whole, more = ends and len(text) <= HEAD_MAX, not ends and len(text) < HEAD_MAX
        begun = blocks.begin(styler, text[:HEAD_MAX], whole, more)
        if begun is None:
            return styler, 0, []
        styler, at, pairs = begun
    if styler.verbatim:
        return styler, len(text), [*pairs, (styler.verbatim, text[at:])]
    spans, at, rest = inline.read(styler.spans, text, at, ends)
    return (styler if spans is styler.spans else styler._replace(spans=spans)), at, pairs + rest
