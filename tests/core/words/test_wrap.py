"""Bantam's own words in lines of any width: nothing is lost, nothing sticks out, and words stay whole."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from bantam.core.words import wrap
from bantam.core.words.wrap import Kept, Page, Row, Text, laid, plain, width
from tests.strategies import any_text, wild_text

pytestmark = pytest.mark.core
FAMILY, FLAG, HEART, ACCENTS = "👨‍👩‍👧", "🇨🇭", "❤️", "é̂x"  # joined; two halves; a sign made an emoji; marks
words = st.text("abc.-/[", min_size=1, max_size=12) | st.sampled_from(
    ["bantam", "-c", "/list", "--help", "[y/n/a]", "漢字", "한", "x" * 50, FAMILY, FLAG * 3, HEART, ACCENTS]
)
prose = st.lists(words | st.sampled_from(["", " ", "\n", "\t"]), max_size=30).map(" ".join)
texts = prose | any_text | wild_text
rows = st.builds(Row, texts.map(lambda text: text.replace("\n", " ") + " "), texts) | st.builds(
    Row, st.just("k="), texts
)
pages = texts.filter(lambda text: "|" not in text).map(Page)  # a table is drawn as narrow as it can be
parts = texts | rows | pages
told: st.SearchStrategy[Text] = parts | st.lists(parts, min_size=1, max_size=4).map(tuple)
columns = st.integers(1, 130)


def unspaced(text: str) -> str:
    return re.sub(r"[ \t\n]", "", text)


def one_sign(line: str) -> bool:
    return len([*wrap.signs(line)]) == 1


@given(told, columns)
def test_no_line_is_wider_than_the_terminal_but_for_a_sign_that_is(text: Text, columns: int) -> None:
    for line in laid(text, columns).split("\n"):
        assert width(line) <= columns or one_sign(line)


@given(told, columns)
def test_no_sign_is_lost_or_moved(text: Text, columns: int) -> None:
    assert unspaced(laid(text, columns)) == unspaced(plain(text))


@given(texts | rows.filter(lambda row: row.head != "k="), columns)
@example("a " + "x" * 7 + " b", 6)
def test_words_are_whole_unless_they_are_wider_than_a_line(text: Text, columns: int) -> None:
    pieces = iter(re.findall("[^ \n]+", laid(text, columns)))
    for word in re.findall("[^ \t\n]+", plain(text)):
        found = [next(pieces)]
        while "".join(found) != word:
            found.append(next(pieces))
            assert word.startswith("".join(found))
        assert len(found) == 1 or width(word) > columns
    assert not [*pieces]


@given(told, columns)
def test_lines_that_fit_stay_as_they_are(text: Text, columns: int) -> None:
    once = laid(text, columns)
    assert laid(once, columns) == once


@given(told)
def test_without_a_width_and_in_one_that_is_enough_a_text_is_as_it_was(text: Text) -> None:
    assert laid(text, 0) == plain(text)
    if "\t" not in plain(text):
        assert laid(text, 10_000) == plain(text)


@given(texts, columns)
def test_words_of_others_are_bytes(text: str, columns: int) -> None:
    assert laid(("compacted to:", Kept(text)), max(columns, 20)) == f"compacted to:\n{text}"


@given(told)
def test_all_words_can_be_changed_in_their_places(text: Text) -> None:
    assert plain(wrap.mapped(str.upper, text)) == plain(text).upper()
    assert wrap.mapped(str, wrap.mapped(str, text)) == wrap.mapped(str, text)


def test_no_character_is_counted_narrower_than_the_editor_counts_it() -> None:
    some = [*map(chr, range(0x20, 0x7F)), *"äßжא…–←│漢字かなカ한글Ａ！😀🚀✅"]
    assert [width(char) for char in some] == [get_cwidth(char) for char in some]
    everything = (chr(code) for code in range(0x20, 0x32000) if not 0xD800 <= code <= 0xDFFF)
    assert [char for char in everything if width(char) < get_cwidth(char)] == []


@pytest.mark.parametrize("sign", [FAMILY, FLAG, HEART, "👍🏽", "e\u0301\u0302", "한", "漢"])
def test_what_a_terminal_shows_as_one_is_never_parted(sign: str) -> None:
    assert laid(sign * 3, 1).split("\n") == [sign] * 3
    assert width(sign) >= get_cwidth(sign) >= 1


# --- what it looks like


def test_prose_goes_on_indented_below_its_own_beginning() -> None:
    text = "  the quick brown fox jumps over the lazy dog"
    assert laid(text, 20).split("\n") == ["  the quick brown", "    fox jumps over", "    the lazy dog"]
    assert laid("one\n\ntwo  three", 10) == "one\n\ntwo  three"


def test_the_last_column_is_wrapped_under_itself_or_below_the_first_where_it_is_too_narrow() -> None:
    table = (Row("/save     ", "save the conversation under an id"), Row("/help     ", "this list"), Row("/quit  ", ""))
    assert laid(table, 32).split("\n") == [
        "/save     save the conversation",
        "          under an id",
        "/help     this list",
        "/quit  ",
    ]
    assert laid(table, 20).split("\n") == [
        "/save",
        "    save the",
        "    conversation",
        "    under an id",
        "/help     this list",
        "/quit  ",
    ]
    assert laid(table, 5).split("\n")[-4:] == ["/help", " this", " list", "/quit"]


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        # whole on a line of its own, with as much of the indent as there is room for
        ("see http://x.example/a/path for it", 26, ["see", "  http://x.example/a/path", "  for it"]),
        ("see http://x.example/a/path for it", 27, ["see http://x.example/a/path", "  for it"]),
        ("see http://x.example/a/path for it", 24, ["see", " http://x.example/a/path", "  for it"]),
        # it has to be broken: not indented, so that it can be put together again
        ("see http://x.example/a/path for it", 20, ["see", "http://x.example/a/p", "ath for it"]),
        # commands to copy
        ("or type bantam -c a=b; or not", 18, ["or type", "  bantam -c a=b;", "  or not"]),
        ("or type bantam trust; or not", 15, ["or type", "  bantam trust;", "  or not"]),
        ("or use one of /list logs now", 20, ["or use one of", "  /list logs now"]),
        ("find it: bantam --help lists it", 20, ["find it:", "  bantam --help", "  lists it"]),
        # a question keeps its answers
        ("run it? (a: always) [y/n/a]", 25, ["run it? (a:", "  always) [y/n/a]"]),
    ],
)
def test_what_somebody_may_copy_or_type_stays_whole(text: str, columns: int, lines: list[str]) -> None:
    assert laid(text, columns).split("\n") == lines


def test_wide_signs_take_two_columns() -> None:
    assert laid("漢字 漢字 漢字", 10).split("\n") == ["漢字 漢字", "  漢字"]
    assert laid("漢字漢字漢", 5).split("\n") == ["漢字", "漢字", "漢"]
