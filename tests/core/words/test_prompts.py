"""What a user's line is: a command or text, and what joins a prompt."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.words import prompts
from tests.strategies import wild_text

pytestmark = pytest.mark.core


@given(wild_text | st.text(), st.sampled_from(["", "/", "/cfg", "/load ", "/x", " /save", "!"]))
def test_a_line_is_a_command_exactly_if_it_begins_with_a_slash_and_letters(text: str, start: str) -> None:
    line = start + text
    first = [*line.split(), ""][0]
    assert (prompts.slash(line) is not None) == bool(re.fullmatch("/[A-Za-z]+", first))


@pytest.mark.parametrize("line", ["/cfg api_key x", " /CFG  API_KEY=x", "/cfg\tapi_key"])
def test_a_line_with_the_key_is_private(line: str) -> None:
    assert prompts.is_private(line)


@given(wild_text)
def test_other_lines_are_not_private(text: str) -> None:
    assert not prompts.is_private("/cfg api_keys " + text)
    assert not prompts.is_private("the /cfg api_key " + text)


@given(wild_text, wild_text)
def test_what_was_piped_in_joins_the_prompt_as_a_block(prompt: str, piped: str) -> None:
    joined = prompts.with_piped(prompt, piped)
    assert joined.startswith(prompt)
    assert joined == prompt if not piped.strip() else joined.endswith(f"<stdin>\n{piped}\n</stdin>")


@given(wild_text, st.sampled_from([{}, {"type": "object"}]))
def test_the_schema_of_the_answer_joins_the_prompt(prompt: str, schema: dict[str, str]) -> None:
    joined = prompts.with_schema(prompt, schema)
    assert joined.startswith(prompt)
    assert (joined == prompt) == (not schema)
    assert not schema or joined.endswith('{"type": "object"}')
