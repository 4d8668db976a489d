"""Slash commands: what a line asks for."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.words import commands
from bantam.core.words.commands import Cfg, Clear, Compact, Help, List, Load, Quit, Save, Wrong
from bantam.core.words.wrap import plain
from tests.strategies import wild_text

pytestmark = pytest.mark.core
words = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=9)
values = st.lists(words, min_size=1, max_size=3).map(" ".join)


@given(wild_text | st.text(), st.sampled_from(["", "/", "/cfg", "/load ", "/x", " /save", "!"]))
def test_a_line_is_a_command_exactly_if_it_begins_with_a_slash_and_letters(text: str, start: str) -> None:
    line = start + text
    first = [*line.split(), ""][0]
    assert (commands.parse(line) is not None) == bool(re.fullmatch("/[A-Za-z]+", first))


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/save", Save()),
        (" /LIST ", List()),
        ("/compact\n", Compact()),
        ("/clear", Clear()),
        ("/help", Help()),
        ("/quit", Quit()),
        ("/exit", Quit()),
        ("/list", List()),
        ("/list  logs ", List("logs")),
        ("/load  2026 ", Load("2026")),
        ("/cfg", Cfg()),
        ("/cfg model", Cfg("model")),
        ("/cfg model=", Cfg("model", "")),
        ("/cfg =x", Cfg("", "x")),
        ("/save x", Wrong("/save takes nothing behind it")),
        ("/load", Wrong("/load needs the id of a session; /list shows them")),
        ("/laod x", Wrong("unknown command /laod; did you mean /load?")),
        ("/zzzzzzzz", Wrong("unknown command /zzzzzzzz; /help lists the commands")),
        ("/etc/hosts is a file", None),
        ("/1", None),
        ("", None),
    ],
)
def test_a_line_asks_for(line: str, command: commands.Command | None) -> None:
    assert commands.parse(line) == command


@given(words.filter(lambda key: "=" not in key), values, st.sampled_from([" ", "=", " = ", "\t", "= ", "  "]))
def test_a_setting_is_changed_with_or_without_a_sign(key: str, value: str, between: str) -> None:
    expected = value if not value.startswith("=") or "=" in between else value[1:].lstrip()
    assert commands.parse(f"/cfg {key}{between}{value}") == Cfg(key, expected)


@pytest.mark.parametrize("line", ["/cfg api_key x", " /CFG  API_KEY=x", "/cfg\tapi_key"])
def test_a_line_with_the_key_is_private(line: str) -> None:
    assert commands.is_private(line)


@given(wild_text)
def test_other_lines_are_not_private(text: str) -> None:
    assert not commands.is_private("/cfg api_keys " + text)
    assert not commands.is_private("the /cfg api_key " + text)


@given(wild_text, wild_text)
def test_what_was_piped_in_joins_the_prompt_as_a_block(prompt: str, piped: str) -> None:
    joined = commands.with_piped(prompt, piped)
    assert joined.startswith(prompt)
    assert joined == prompt if not piped.strip() else joined.endswith(f"<stdin>\n{piped}\n</stdin>")


@given(wild_text, st.sampled_from([{}, {"type": "object"}]))
def test_the_schema_of_the_answer_joins_the_prompt(prompt: str, schema: dict[str, str]) -> None:
    joined = commands.with_schema(prompt, schema)
    assert joined.startswith(prompt)
    assert (joined == prompt) == (not schema)
    assert not schema or joined.endswith('{"type": "object"}')


def test_help_names_every_command() -> None:
    told = plain(commands.help_table())
    assert all(name in told for name in commands.NAMES)
    assert len({line.index("  ") < 25 for line in told.splitlines()}) == 1
