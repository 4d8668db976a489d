"""Slash commands: what a line asks for, and that the table knows all of each."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.problem import Problem
from bantam.core.words.wrap import plain
from bantam.host import commands
from bantam.host.commands import Asked
from tests.program import Reply, place, serving

words = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=9)
values = st.lists(words, min_size=1, max_size=3).map(" ".join)


def asked(line: str) -> tuple[str, str] | str | None:
    """The command's name and its argument, what is wrong, or None for text."""
    match commands.parse(line):
        case Asked(row, argument):
            return row.name, argument
        case Problem(why):
            return why
        case None:
            return None


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/save", ("/save", "")),
        (" /LIST ", ("/list", "")),
        ("/compact\n", ("/compact", "")),
        ("/clear", ("/clear", "")),
        ("/help", ("/help", "")),
        ("/quit", ("/quit", "")),
        ("/exit", ("/quit", "")),
        ("/list", ("/list", "")),
        ("/list  logs ", ("/list", "logs")),
        ("/load  2026 ", ("/load", "2026")),
        ("/cfg", ("/cfg", "")),
        ("/cfg model", ("/cfg", "model")),
        ("/cfg model=", ("/cfg", "model=")),
        ("/help pipes", ("/help", "pipes")),
        ("/save x", "/save takes nothing behind it"),
        ("/exit x", "/exit takes nothing behind it"),
        ("/load", "/load needs the id of a session; /list shows them"),
        ("/laod x", "unknown command /laod; did you mean /load?"),
        ("/exti", "unknown command /exti; did you mean /exit?"),
        ("/zzzzzzzz", "unknown command /zzzzzzzz; /help lists the commands"),
        ("/etc/hosts is a file", None),
        ("/1", None),
        ("", None),
    ],
)
def test_a_line_asks_for(line: str, command: tuple[str, str] | str | None) -> None:
    assert asked(line) == command


@pytest.mark.parametrize(
    ("rest", "found"),
    [("", ("", None)), ("model", ("model", None)), ("model=", ("model", "")), ("=x", ("", "x"))],
)
def test_a_setting_is_shown_or_changed(rest: str, found: tuple[str, str | None]) -> None:
    assert commands.setting(rest) == found


@given(words.filter(lambda key: "=" not in key), values, st.sampled_from([" ", "=", " = ", "\t", "= ", "  "]))
def test_a_setting_is_changed_with_or_without_a_sign(key: str, value: str, between: str) -> None:
    expected = value if not value.startswith("=") or "=" in between else value[1:].lstrip()
    assert commands.setting(f"{key}{between}{value}") == (key, expected)


def test_help_names_every_command() -> None:
    told = plain(commands.help_table())
    assert all(name in told for name in commands.names())
    assert len({line.index("  ") < 25 for line in told.splitlines()}) == 1


def test_the_table_is_whole() -> None:
    """No name twice, each in its own suggestion, and an argument where one is needed."""
    assert len({*commands.names()}) == len(commands.names())
    for row in commands.ROWS:
        assert row.help
        assert row.argument or not row.needs
        assert all(commands.row_of(name) is row for name in (row.name, *row.aliases))
        assert asked(f"{row.name}zz") == f"unknown command {row.name}zz; did you mean {row.name}?"


@pytest.mark.parametrize(("line", "words"), [("/help", "/compact"), ("/help PIPES", "# Pipes"), ("/help pxpect", "")])
def test_help_knows_the_manual(line: str, words: str, tmp_path: Path) -> None:
    with serving([Reply("hi")]) as fake:
        ran = place(tmp_path, fake).run(piped=f"{line}\n")
    assert words in ran.out
    assert (ran.status, ran.err) == ((0, "") if words else (1, "there is no topic pxpect; did you mean pexpect?\n"))
