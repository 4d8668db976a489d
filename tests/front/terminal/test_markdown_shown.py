"""Answers on a real terminal: styled, and with the escape sequences removed the model's own text."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.fakemodel import FakeModel, Reply
from tests.pty_helpers import Start, model, plain

ANSWER = """# Title

Some **bold** and `code`, see https://example.org.

- an item
  ```python
  def f(): pass
  ```
> a quote of *it*

| a | b |
|---|---|
| 1 | 2 |
The end.
"""
STYLED = (
    "\x1b[2m#\x1b[0m\x1b[1m Title",
    "\x1b[2m**\x1b[0m\x1b[1mbold\x1b[0m\x1b[2m**\x1b[0m",
    "\x1b[36mcode\x1b[0m",
    "\x1b[4mhttps://example.org\x1b[0m.",
    "\x1b[36m-\x1b[0m an item",
    "\x1b[35mdef \x1b[0m\x1b[1mf\x1b[0m",
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[tuple[FakeModel, Start]]:
    with model(tmp_path, lambda body: Reply(ANSWER, delta_chars=3)) as made:
        yield made


def whole(shown: str) -> str:
    """The same with pieces of one style put together: where the network cut the answer is not ours to say."""
    while (joined := re.sub(r"(\x1b\[([\d;]+)m[^\x1b]*)\x1b\[0m\x1b\[\2m", r"\1", shown)) != shown:
        shown = joined
    return shown


def answer(start: Start, *settings: str, **environment: str) -> str:
    """What the terminal got as the answer."""
    bantam = start(**environment)
    bantam.prompt()
    for setting in settings:
        bantam.ask(f"/cfg {setting}")
    bantam.send("go\r")
    bantam.expect("\x1b[K" if environment.get("TERM") != "dumb" else "\r                \r")
    shown = bantam.expect("The end.") + "The end.\n"
    bantam.prompt()
    bantam.leave()
    return shown.replace("\r\n", "\n").removeprefix("\n")


def test_an_answer_is_styled_and_its_text_is_the_models(start: tuple[FakeModel, Start]) -> None:
    shown = answer(start[1])
    assert plain(shown) == ANSWER
    for part in STYLED:
        assert part in whole(shown)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_an_answer_is_as_it_came_without_colours(start: tuple[FakeModel, Start], environment: dict[str, str]) -> None:
    assert answer(start[1], **environment) == ANSWER


def test_the_setting_is_followed_at_once(start: tuple[FakeModel, Start]) -> None:
    assert answer(start[1], "render plain") == ANSWER
    assert plain(answer(start[1], "render markdown")) == ANSWER
