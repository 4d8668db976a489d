"""Markdown as it comes: the text stays as it is, however it is cut, and what a style may reach."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.words import markdown
from bantam.core.words.blocks import HEAD_MAX
from bantam.core.words.spans import TICKS_MAX, Pair
from tests.strategies import any_text, halved, wild_text

pytestmark = pytest.mark.core
COMMONMARK: list[str] = json.loads((Path(__file__).parent / "commonmark.json").read_text())["examples"]
OFTEN = r"* _ ` ~ > # [ ]( ](x( \ | h https:// a*b_c` **a** a ](a '."
LONG = [*OFTEN.split(), "``` ", "> ", "- ", "1. ", " ", "\t", "\n", "\n```", "\n> ", "*a `", "\0", "\ud800"]
LONG_CHARS = 100_000
BLANKS = [" ", "  ", "    ", "\t", "\n", "\n", "\n\n", "\r\n"]
SIGNS = r"""* ** *** _ __ ` `` ``` ```` ~ ~~ ~~~ # ## > - + 1. 2) --- *** ___ | |--| [ ] ]( ( ) \ \* h https:// http://a.b
a b word 2 . , : é 字 = == === ```python ~~~c++ {.x}"""
MARKS = [*SIGNS.split(), *BLANKS]
PLACES = ["", "   ", "> ", "- ", "12. ", "1. > "]
marked = st.lists(st.sampled_from(MARKS) | st.sampled_from(COMMONMARK), max_size=12).map("".join)
texts = marked | any_text | wild_text | wild_text.map(halved)


def told(*pieces: str) -> list[Pair]:
    """All pairs, neighbours of one style in one."""
    styler, pairs = markdown.START, []
    for piece in pieces:
        styler, more = markdown.feed(styler, piece)
        pairs += more
    return merged(pairs + markdown.finish(styler))


def merged(pairs: list[Pair]) -> list[Pair]:
    joined: list[Pair] = []
    for style, text in pairs:
        before = joined.pop() if joined and joined[-1][0] == style else (style, "")
        joined.append((style, before[1] + text))
    return joined


def cut(text: str, at: list[int]) -> list[str]:
    ends = sorted(end for end in at if end < len(text))
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


def text_of(pairs: list[Pair]) -> str:
    return "".join(text for _, text in pairs)


@given(texts, st.lists(st.integers(0, 120), max_size=30))
def test_the_text_and_its_styles_are_the_same_however_it_comes(text: str, at: list[int]) -> None:
    whole = told(text)
    assert text_of(whole) == text
    assert told(*cut(text, at)) == whole
    assert told(*text) == whole


@pytest.mark.parametrize("text", COMMONMARK)
def test_the_examples_of_commonmark_keep_their_text_and_their_styles_in_any_pieces(text: str) -> None:
    whole = told(text)
    assert text_of(whole) == text
    for size in (1, 2, 3, 5, 8):
        assert told(*(text[at : at + size] for at in range(0, len(text), size))) == whole


def test_the_examples_of_commonmark_are_all_there() -> None:
    assert len(COMMONMARK) == 652


@given(texts)
def test_no_style_but_that_of_a_fence_goes_beyond_its_line(text: str) -> None:
    styler, _ = markdown.feed(markdown.START, text + "\n")
    if styler.fence is None:
        styler, pairs = markdown.feed(styler, "\nplain words")
        assert merged(pairs + markdown.finish(styler)) == [("", "\nplain words")]


@given(st.sampled_from(["```", "~~~~", "`````"]), st.sampled_from(PLACES), st.lists(marked))
def test_what_is_in_a_fence_is_code_and_nothing_else(fence: str, place: str, pieces: list[str]) -> None:
    inner = re.sub(r"[^> ]", " ", place)
    lines = [line for line in "".join(pieces).split("\n") if not re.match(rf"[ \t]*{fence[0]}*[ \t]*\Z", line)]
    body = "".join(f"{inner}{line}\n" for line in lines)
    pairs = told(f"{place}{fence}c\n{body}{inner}{fence}\nafter")
    opened, closed = [at for at, (style, _) in enumerate(pairs) if style == "mark"]
    assert pairs[opened + 1] == ("", "\n")
    quoted = [("quote", inner[:-1])] if ">" in place else []
    between = [pair for pair in pairs[opened + 2 : closed] if pair not in quoted]
    assert {style for style, _ in between} <= {"code:c"}
    if ">" not in place:
        assert text_of(between) == body
    assert pairs[closed + 1 :] == [("", "\nafter")]


@given(texts, texts)
def test_what_is_held_back_is_short_and_may_be_a_mark(text: str, more: str) -> None:
    styler, _ = markdown.feed(markdown.START, text)
    styler, pairs = markdown.feed(styler, more)
    if not styler.starts:
        assert re.fullmatch(r"""[*_`~]*|\]|\\|h|ht|http?s?|https?:/?|[.,;:!?'"*_~)\]]+""", styler.held)
        assert len(styler.held) < TICKS_MAX
    assert len(styler.held) < HEAD_MAX
    assert all(part for _, part in pairs)


@given(st.text(st.sampled_from("abc xyz,.()!?é字"), min_size=1))
def test_ordinary_text_is_told_at_once(text: str) -> None:
    styler, _ = markdown.feed(markdown.START, "Some ")
    assert markdown.feed(styler, text)[1] == [("", text)]


@pytest.mark.parametrize("part", LONG)
def test_a_long_text_of_one_thing_is_told_whole(part: str) -> None:
    """Much of it, at once and in pieces: if that took a look at all of it for each piece, this would not end."""
    text = part * (LONG_CHARS // len(part))
    assert text_of(told(text)) == text
    assert text_of(told(*cut(text, [*range(0, len(text), 997)]))) == text


GOLDEN: dict[str, list[Pair]] = {
    "plain": [("", "plain")],
    "# One": [("mark", "#"), ("heading", " One")],
    "###### Six": [("mark", "######"), ("heading", " Six")],
    "####### Seven": [("", "####### Seven")],
    "#tag": [("", "#tag")],
    "## A *b*\nc": [
        ("mark", "##"),
        ("heading", " A "),
        ("mark", "*"),
        ("heading emphasis", "b"),
        ("mark", "*"),
        ("", "\nc"),
    ],
    "a *b* c": [("", "a "), ("mark", "*"), ("emphasis", "b"), ("mark", "*"), ("", " c")],
    "_b_": [("mark", "_"), ("emphasis", "b"), ("mark", "_")],
    "**b**.": [("mark", "**"), ("strong", "b"), ("mark", "**"), ("", ".")],
    "__b__": [("mark", "__"), ("strong", "b"), ("mark", "__")],
    "***b***": [("mark", "***"), ("strong emphasis", "b"), ("mark", "***")],
    "**a *b* c**": [
        ("mark", "**"),
        ("strong", "a "),
        ("mark", "*"),
        ("strong emphasis", "b"),
        ("mark", "*"),
        ("strong", " c"),
        ("mark", "**"),
    ],
    "**a *b***": [("mark", "**"), ("strong", "a "), ("mark", "*"), ("strong emphasis", "b"), ("mark", "***")],
    "这是**重点**内容": [("", "这是"), ("mark", "**"), ("strong", "重点"), ("mark", "**"), ("", "内容")],
    "**open\nnext": [("mark", "**"), ("strong", "open"), ("", "\nnext")],
    "snake_case_name": [("", "snake_case_name")],
    "2*3*4 and x**2": [("", "2*3*4 and x**2")],
    "a * b": [("", "a * b")],
    "ls *.py": [("", "ls *.py")],
    "****": [("rule", "****")],
    "a **** b": [("", "a **** b")],
    "~~no~~ ~a~": [("mark", "~~"), ("strike", "no"), ("mark", "~~"), ("", " ~a~")],
    "`a*b*`": [("mark", "`"), ("code", "a*b*"), ("mark", "`")],
    "``a`b``": [("mark", "``"), ("code", "a`b"), ("mark", "``")],
    "``` a` b": [("mark", "```"), ("code", " a` b")],
    "\\*a\\*": [("", "\\*a\\*")],
    "[a](http://b.c/(d)) e": [("", "[a"), ("mark", "]("), ("link", "http://b.c/(d)"), ("mark", ")"), ("", " e")],
    '[a](b "c")': [("", "[a"), ("mark", "]("), ("link", "b"), ("", ' "c")')],
    "- [ ] a": [("item", "-"), ("", " [ ] a")],
    "see https://a.b/c_d_e.": [("", "see "), ("link", "https://a.b/c_d_e"), ("", ".")],
    "<https://a.b>": [("", "<"), ("link", "https://a.b"), ("", ">")],
    "**http://a.b**": [("mark", "**"), ("link", "http://a.b"), ("mark", "**")],
    "oh http and xhttps://a": [("", "oh http and xhttps://a")],
    "- a\n  + b": [("item", "-"), ("", " a\n"), ("item", "  +"), ("", " b")],
    "12) a": [("item", "12)"), ("", " a")],
    "1986 was": [("", "1986 was")],
    "- - a": [("item", "- -"), ("", " a")],
    "-5 is": [("", "-5 is")],
    "> a\n> > b\nc": [
        ("quote", ">"),
        ("quoted", " a"),
        ("", "\n"),
        ("quote", "> >"),
        ("quoted", " b"),
        ("", "\nc"),
    ],
    "---\n* * *": [("rule", "---\n* * *")],
    "| a | b |\n|---|:-:|\n| *c* | d |": [
        ("mark", "|"),
        ("strong", " a "),
        ("mark", "|"),
        ("strong", " b "),
        ("mark", "|"),
        ("", "\n"),
        ("mark", "|---|:-:|\n|"),
        ("", " "),
        ("mark", "*"),
        ("emphasis", "c"),
        ("mark", "*"),
        ("", " "),
        ("mark", "|"),
        ("", " d "),
        ("mark", "|"),
    ],
    "```py\n*a*\n```\n*b": [
        ("mark", "```py"),
        ("", "\n"),
        ("code:py", "*a*\n"),
        ("mark", "```"),
        ("", "\n"),
        ("mark", "*"),
        ("emphasis", "b"),
    ],
    "~~~~\n~~~\n~~~~~": [("mark", "~~~~"), ("", "\n"), ("code", "~~~\n"), ("mark", "~~~~~")],
    "``` {.C++ a=b}\nx": [("mark", "``` {.C++ a=b}"), ("", "\n"), ("code:c++", "x")],
    "- a\n  ```sh\n  b\n  ```\n- c": [
        ("item", "-"),
        ("", " a\n"),
        ("mark", "  ```sh"),
        ("", "\n"),
        ("code:sh", "  b\n"),
        ("mark", "  ```"),
        ("", "\n"),
        ("item", "-"),
        ("", " c"),
    ],
    "> ```\n> a\nb": [
        ("quote", ">"),
        ("mark", " ```"),
        ("", "\n"),
        ("quote", ">"),
        ("code", " a\n"),
        ("", "b"),
    ],
    "> > ```\n > > a\n> b": [
        ("quote", "> >"),
        ("mark", " ```"),
        ("", "\n"),
        ("quote", " > >"),
        ("code", " a\n"),
        ("quote", ">"),
        ("quoted", " b"),
    ],
    "~~ a": [("", "~~ a")],
    "a " + "`" * 20 + "b": [("", "a " + "`" * 20 + "b")],
    ">" * 17 + " *a*": [
        ("quote", ">" * 16),
        ("quoted", "> "),
        ("mark", "*"),
        ("quoted emphasis", "a"),
        ("mark", "*"),
    ],
    "~~~" + "x" * 200: [("", "~~~" + "x" * 200)],
    "a\n\n    *b*": [("", "a\n\n"), ("code", "    *b*")],
    "a\n    *b*": [("", "a\n    "), ("mark", "*"), ("emphasis", "b"), ("mark", "*")],
    "- a\n\n  b\n\n      *c*": [("item", "-"), ("", " a\n\n  b\n\n"), ("code", "      *c*")],
}


@pytest.mark.parametrize("text", GOLDEN)
def test_it_looks_like_this(text: str) -> None:
    assert told(text) == told(*text) == GOLDEN[text]
