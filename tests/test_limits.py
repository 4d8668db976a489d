"""The bounds of a turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import limits
from bantam.core.effects import Reason
from bantam.core.settings import Config

pytestmark = pytest.mark.core


@given(st.integers(1, 50), st.integers(0, 100))
def test_the_limit_is_the_number_of_calls_that_are_made(most: int, made: int) -> None:
    config = Config(max_al_iterations=most)
    assert limits.over(config, made) == (None if made < most else Reason.ITERATIONS)


def test_a_limit_says_its_name_and_value() -> None:
    assert (
        limits.explain(Reason.ITERATIONS, Config(max_al_iterations=7))
        == "stopped after 7 model calls (max_al_iterations)"
    )
