"""Code in its colours: the same text, whatever comes, line by line, and not before it is needed."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.words import view
from bantam.core.words.view import Pair
from bantam.front.show.highlight import LINE_CHARS_MAX, Highlighter
from tests.root import ROOT

PYTHON, C = "code:python", "code:c"
CODE = ["def f(x):", "\n", '"""', "x", " = ", "'", "# a", "/*", "*/", "{", "}", "<script>", "\\", "\t", "é", "\0", "1"]
styles = st.sampled_from(["code:python", "code:c", "code:html", "code:console", "code:nothing", "code", "", "quote"])
pieces = st.tuples(styles, st.lists(st.sampled_from(CODE) | st.text(max_size=5), min_size=1).map("".join).filter(bool))


def colored(*pairs: Pair) -> list[Pair]:
    """All of it, each pair by itself, until something ends the line."""
    highlighter = Highlighter()
    return [got for pair in [*pairs, ("", "\n")] for got in highlighter.colored([pair])]


def text_of(pairs: list[Pair]) -> str:
    return "".join(text for _, text in pairs)


@given(st.lists(pieces))
def test_colours_change_no_text(pairs: list[Pair]) -> None:
    got = colored(*pairs)
    assert text_of(got) == text_of(pairs) + "\n"
    assert {style for style, _ in got} <= {"", *view.STYLES} | {style for style, _ in pairs}


@given(st.lists(st.sampled_from(CODE)).map("".join), st.integers(1, 9))
def test_colours_do_not_depend_on_how_the_code_came(code: str, size: int) -> None:
    parts = [(PYTHON, code[at : at + size]) for at in range(0, len(code), size)]
    assert characters(colored(*parts)) == characters(colored((PYTHON, code)))


def characters(pairs: list[Pair]) -> list[Pair]:
    return [(style, char) for style, text in pairs for char in text]


def test_code_is_told_when_its_line_is_whole() -> None:
    highlighter = Highlighter()
    assert highlighter.colored([(PYTHON, "def f(")]) == []
    assert highlighter.colored([(PYTHON, "):\n    pass")]) == [("keyword", "def "), ("defined", "f"), ("", "():\n")]
    assert highlighter.colored([("mark", "```")]) == [("", "    "), ("keyword", "pass"), ("mark", "```")]


def test_code_without_a_language_is_told_as_it_comes() -> None:
    highlighter = Highlighter()
    for style in ("code", "code:nosuchlanguage"):
        assert highlighter.colored([(style, "def f(")]) == [(style, "def f(")]


def test_a_text_of_many_lines_has_one_colour() -> None:
    text = '"""A def\nclass in\n\n  it."""'
    pairs = colored((PYTHON, f"x\n{text}\ndef f(): pass\n"))
    assert "".join(part for style, part in pairs if style == "string").strip() == text
    assert ("defined", "f") in pairs
    comment = colored((C, "int a; /* int\nint b; */ int c;\n"))
    assert "".join(part for style, part in comment if style == "comment").split() == ["/*", "int", "int", "b;", "*/"]


def test_names_of_subagents_and_signs_of_quotes_may_stand_between_the_lines() -> None:
    pairs = colored((PYTHON, '"""a\n'), ("", "  1| "), ("quote", ">"), (PYTHON, "def\n"))
    assert ("string", "def\n") in pairs
    pairs = colored((PYTHON, '"""a\n'), ("mark", "```"), ("mark", "```python"), (PYTHON, "def f\n"))
    assert ("keyword", "def ") in pairs


def test_a_long_line_is_not_held_and_the_rest_of_its_block_has_no_colours() -> None:
    highlighter = Highlighter()
    long = "x" * (LINE_CHARS_MAX + 1)
    assert highlighter.colored([(PYTHON, long)]) == [(PYTHON, long)]
    assert highlighter.colored([(PYTHON, "\ndef")]) == [(PYTHON, "\n"), (PYTHON, "def")]
    highlighter.colored([("mark", "```")])
    assert highlighter.colored([(PYTHON, "pass\n")]) == [("keyword", "pass\n")]


def test_a_text_without_end_costs_no_more_and_more() -> None:
    lines = '"""' + "words\n" * 20_000  # each behind all before it would be a gigabyte to read
    assert text_of(colored((PYTHON, lines))) == lines + "\n"


COLOR = "from bantam.front.show.highlight import *; print(Highlighter().colored([('code:c', 'int a')]))"


@pytest.mark.parametrize(
    ("options", "program", "said"),
    [
        ([], "import bantam.front.show.screen", "[]\n"),
        (["-S"], COLOR, "[('code:c', 'int a')]\n[]\n"),  # without what is installed
        ([], COLOR, "[]\n['pygments']\n"),
    ],
)
def test_the_highlighter_is_imported_for_the_first_code_and_may_be_missing(
    options: list[str], program: str, said: str
) -> None:
    told = "import sys; print([n for n in ('pygments', 'bantam.core.words.spans') if n in sys.modules])"
    ran = subprocess.run(
        [sys.executable, *options, "-c", f"{program}\n{told}"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == said
