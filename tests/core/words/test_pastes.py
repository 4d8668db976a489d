"""Long pastes are one character each in the editor, and come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.words import pastes
from bantam.core.words.pastes import CHARS_MAX, LINES_MAX, MARKS, Pastes, folded
from tests.strategies import any_text

pytestmark = pytest.mark.core
LONG = "line\n" * (LINES_MAX + 1)
long_texts = any_text.map(lambda text: text + LONG + text)
typed = st.text(st.characters(codec="utf-8"), max_size=20) | st.just("[pasted text 1, 16 lines]")
"""What a keyboard can type: no half of a surrogate pair."""


@given(st.lists(any_text | long_texts, max_size=5))
def test_what_was_folded_comes_back(texts: list[str]) -> None:
    made = Pastes()
    for text in texts:
        made, put = folded(made, text)
        assert made.unfold(put) == text


@given(st.lists(st.tuples(typed, any_text | long_texts), max_size=5), typed)
def test_a_draft_of_pastes_and_words_comes_back_whole(parts: list[tuple[str, str]], end: str) -> None:
    made, draft, whole = Pastes(), "", ""
    for word, text in parts:
        made, put = folded(made, text)
        draft, whole = draft + word + put, whole + word + text
    assert made.unfold(draft + end) == whole + end
    assert made.unfold(made.refold(draft + end, whole + end)) == whole + end


@given(st.lists(long_texts, min_size=1, max_size=3), typed, typed)
def test_what_an_editor_made_of_a_draft_is_kept(texts: list[str], before: str, behind: str) -> None:
    made, draft = Pastes(), ""
    for text in texts:
        made, put = folded(made, text)
        draft += put
    for edited in (before + made.unfold(draft) + behind, before + behind, made.unfold(draft)[:-1]):
        assert made.unfold(made.refold(draft, edited)) == edited


def test_a_long_paste_is_one_character_until_it_is_said() -> None:
    made, first = folded(Pastes(), LONG)
    made, second = folded(made, "x" * (CHARS_MAX + 1))
    assert (len(first), len(second), first == second) == (1, 1, False)
    assert made.shown(f"a {first} b {second}") == "a [pasted text 1, 16 lines] b [pasted text 2, 10,001 characters]"
    assert made.unfold(first + "[pasted text 1, 16 lines]") == LONG + "[pasted text 1, 16 lines]"
    assert made.refold(f"{first}?", f"see {LONG}!") == f"see {first}!"


@pytest.mark.parametrize("text", ["", "short", "line\n" * LINES_MAX, "x" * CHARS_MAX])
def test_a_short_paste_is_text(text: str) -> None:
    assert folded(Pastes(), text) == (Pastes(), text)


def test_when_all_marks_are_used_a_paste_stays_as_it_is() -> None:
    full = Pastes({chr(code): "x" for code in MARKS})
    assert folded(full, LONG) == (full, LONG)


def test_a_mark_that_stands_for_nothing_is_itself() -> None:
    assert Pastes().unfold("a\ud800b") == Pastes().shown("a\ud800b") == "a\ud800b"
    assert not pastes.has_mark("a\udc80b")
