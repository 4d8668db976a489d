"""The way to a topic, from its name, from one like it, and from any word that stands in it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base import texts
from bantam.core.base.problem import Problem
from bantam.host import topics

MANUAL = topics.manual()
names = st.sampled_from([*MANUAL])


@given(st.text() | st.lists(st.sampled_from(" ".join(MANUAL.values()).split())).map(" ".join))
def test_whatever_is_asked_for_is_answered(wanted: str) -> None:
    found = topics.text(wanted)
    if isinstance(found, Problem):
        assert found.text.startswith("there is no topic")
        assert texts.safe(found.text).splitlines() == [found.text]
    else:
        assert found.endswith("\n")
        assert not found.endswith("\n\n")


@given(
    names, st.sampled_from([str.upper, str.title, " {} ".format, "{}.md".format, lambda name: name.replace("-", " ")])
)
def test_a_topic_is_found_by_its_name_however_written(name: str, write: Callable[[str], str]) -> None:
    assert topics.text(write(name)) == MANUAL[name]


@given(names, st.data())
def test_a_slip_of_the_fingers_still_finds_the_name(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    slip = data.draw(st.sampled_from([name[:at] + name[at + 1 :], name[:at] + "q" + name[at:]]))
    assert topics.nearest([*MANUAL], slip, topics.SIMILAR) == name or len(name) < 5


@given(names, st.data())
def test_every_word_of_a_topic_leads_to_it(name: str, data: st.DataObject) -> None:
    """Also several words one behind the other, be they in different lines."""
    words = MANUAL[name].split()
    at = data.draw(st.integers(0, len(words) - 1))
    some = words[at : at + data.draw(st.integers(1, 3))]
    if not any(word.strip("*#|-`") == "" for word in some):
        places = topics.search(MANUAL, [word.lower() for word in some])
        assert some[0][0] in "-_" or name in places
        assert all(line in MANUAL[topic] for topic, line in places.items())


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("exit status", "statuses"),
        ("exit code", "statuses"),
        ("model", "local-model"),
        ("sandbox", "faq"),
        ("diff", "replay"),
        ("proxies", "faq"),
        ("-o", "pipes"),
    ],
)
def test_what_is_about_a_word_comes_before_what_speaks_of_it(wanted: str, first: str) -> None:
    assert next(iter(topics.search(MANUAL, wanted.split()))) == first


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("pipe", "pipes"),
        ("json", "json-events"),
        ("local", "local-model"),
        ("configuration", "config"),
        ("budgett", "budgets"),
        ("approve", "approval"),
        ("--resume", "resume"),
    ],
)
def test_a_name_nearby_is_suggested_in_a_line(wanted: str, near: str) -> None:
    assert topics.text(wanted) == Problem(f"there is no topic {wanted}; did you mean {near}?")


def test_what_stands_nowhere_is_said_so() -> None:
    assert topics.text("xyzzy") == Problem("there is no topic xyzzy, and none speaks of it; bantam help lists them")
    found = topics.text("\x1b[2J" + "y" * 200)
    assert isinstance(found, Problem)
    assert "\x1b" not in found.text
    assert len(found.text) < 200


def test_words_that_stand_apart_find_the_line_with_most_of_them() -> None:
    places = topics.search({"a": "# A\n\nOne.\nfour legs\ntwo legs and a tail", "b": "# B\n\nlegs"}, ["tail", "legs"])
    assert places == {"a": "two legs and a tail"}


def test_without_a_word_all_topics_are_listed_with_a_line_each() -> None:
    listed = topics.text("")
    assert isinstance(listed, str)
    rows = {line.split()[0]: line for line in listed.splitlines() if line.startswith("  ")}
    assert [*rows] == sorted(MANUAL)
    assert all(len(line) <= 80 and topics.about(MANUAL[name]) in line for name, line in rows.items())


def test_words_one_behind_the_other_are_found_across_lines_and_before_words_apart() -> None:
    places = topics.search({"a": "# A\n\nOne.\nthe exit\nstatus", "b": "# B\n\nstatus and exit"}, ["exit", "status"])
    assert places == {"a": "the exit"}
