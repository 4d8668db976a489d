"""The budgets of a turn."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.effects import BUDGETS, Reason, Spent
from bantam.core.rules import limits
from bantam.core.state import Agent, Calling, Idle
from bantam.core.window import context
from bantam.core.wire.assemble import Partial, merge
from bantam.core.words import status

pytestmark = pytest.mark.core
counts = st.integers(0, 60)
NONE = Config(max_al_iterations=10**6)


@given(st.integers(1, 50), st.integers(0, 100))
def test_the_limit_is_the_number_of_calls_that_are_made(most: int, made: int) -> None:
    config = Config(max_al_iterations=most)
    assert limits.over(config, made, Spent(), 0) == (None if made < most else Reason.ITERATIONS)


plain = st.tuples(counts, counts, counts).map(lambda used: Spent(*used))


@given(plain, counts, st.integers(1, 60))
def test_each_budget_ends_at_its_value_and_zero_is_none(spent: Spent, elapsed_s: int, most: int) -> None:
    used = {
        Reason.CALLS: (replace(NONE, max_calls_total=most), spent.calls),
        Reason.TOKENS: (replace(NONE, max_tokens_total=most), spent.tokens_in + spent.tokens_out),
        Reason.SECONDS: (replace(NONE, max_seconds=most), elapsed_s),
        Reason.COST: (
            replace(NONE, max_cost_usd=most / 1e6, price_in=2, price_out=3),
            2 * spent.tokens_in + 3 * spent.tokens_out,
        ),
    }
    for reason, (config, has) in used.items():
        found = limits.over(config, 0, spent, elapsed_s)
        assert found == (reason if has >= most else None), (reason, has)
    assert limits.over(NONE, 0, spent, elapsed_s) is None


@given(st.floats(0, 100), st.floats(0.5, 50))
def test_what_is_left_of_the_time_ends_with_it(elapsed_s: float, most_s: float) -> None:
    config = replace(NONE, max_seconds=most_s)
    left_s = limits.left_s(config, elapsed_s)
    assert left_s is not None
    assert limits.over(config, 0, Spent(), elapsed_s + left_s) is Reason.SECONDS
    assert limits.left_s(NONE, elapsed_s) is None


@pytest.mark.parametrize("reason", BUDGETS)
def test_a_budget_says_its_name_and_value_and_has_the_status_of_a_limit(reason: Reason) -> None:
    seven = Config(
        max_al_iterations=7, max_calls_total=7, max_tokens_total=7, max_seconds=7, max_cost_usd=7, max_identical_calls=7
    )
    words = limits.explain(reason, seven)
    assert words.startswith("stopped: ")
    assert words.endswith(f"({limits.key(reason)}=7)")
    many = Config(max_tokens_total=10_000_000)
    assert limits.explain(Reason.TOKENS, many).endswith("(max_tokens_total=10000000)")
    assert getattr(seven, limits.key(reason)) == 7
    assert status.of(reason) == 3


def calling(usage: Mapping[str, object] | None, text: str) -> Agent:
    chunk = {"choices": [{"delta": {"content": text}}]} | ({"usage": usage} if usage else {})
    partial = merge(Partial(), chunk) if text or usage else Partial()
    said = (messages.system("s" * 400), messages.user("hello"))
    return Agent((), said, Calling((1,), "reply", 1, partial))


def test_tokens_are_what_the_server_counted_and_else_a_guess_where_a_budget_needs_one() -> None:
    told = {"prompt_tokens": 11, "completion_tokens": 3}
    budget = replace(NONE, max_tokens_total=1000)
    assert limits.charge(calling(told, "x" * 400), budget) == Spent(1, 11, 3)
    assert limits.charge(calling(None, "x" * 400), NONE) == Spent(1, 0, 0)
    guess = limits.charge(calling(None, "x" * 400), budget)
    assert guess.tokens_in == context.estimate(calling(None, "").messages)
    assert 100 <= guess.tokens_out <= 120
    assert limits.charge(calling(None, ""), budget) == Spent(1, 0, 0)
    assert limits.charge(replace(calling(told, "x"), phase=Idle()), budget) == Spent()


@pytest.mark.parametrize(
    ("usage", "prices", "usd", "cached"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}, {}, 0.5, 0),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}, {"price_in": 7}, 0.5, 0),
        ({"prompt_tokens": 1000, "completion_tokens": 2}, {"price_in": 1}, 0.001, 0),
        ({"prompt_tokens": 1000, "completion_tokens": 2}, {}, None, 0),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 7}, "cost": True}, {}, None, 7),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 12, "cost": -1}, {}, None, 9),
        ({}, {}, None, 0),
        ({"cost": float("nan"), "prompt_tokens": 1, "prompt_tokens_details": 5}, {}, None, 0),
    ],
)
def test_the_servers_word_about_the_cost_counts_first_and_what_nobody_said_is_unknown(
    usage: Mapping[str, object], prices: dict[str, float], usd: float | None, cached: int
) -> None:
    config = Config(**prices)  # type: ignore[arg-type]
    spent = limits.charge(calling(usage, "x"), config)
    assert limits.known_cost_usd(config, spent) == usd
    assert spent.tokens_cached == cached
    twice = limits.add(spent, limits.charge(calling({"prompt_tokens": 1, "completion_tokens": 1}, "x"), config))
    if not prices:
        assert limits.known_cost_usd(config, twice) is None  # a part of it is not known, so the whole is not


def test_a_budget_of_money_counts_what_the_server_says() -> None:
    config = Config(max_cost_usd=0.5)
    spent = limits.charge(calling({"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.5}, "x"), config)
    assert limits.over(config, 0, spent, 0) is Reason.COST
