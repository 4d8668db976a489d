"""Budgets of a turn: what was used, and which one is used up, if any. Those of subagents are the turn's."""

import math
from collections.abc import Mapping
from typing import Any

from bantam.core.base.record import fields
from bantam.core.base.settings import Config
from bantam.core.effects import Reason, Spent
from bantam.core.state import Agent, Calling
from bantam.core.window import context
from bantam.core.wire import assemble
from bantam.core.wire.assemble import Partial

CLOCK_S = 0.001  # a timer may fire so much too early, by rounding


def charge(agent: Agent, config: Config) -> Spent:
    """What the call that an agent waits for has used, as the server counted it.

    Where it did not count and a budget depends on it, by the estimate of `context`.
    """
    if not isinstance(agent.phase, Calling):
        return Spent()
    usage, partial = agent.phase.partial.usage, agent.phase.partial
    tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if tokens == (0, 0) and partial != Partial() and (config.max_tokens_total or config.max_cost_usd):
        tokens = context.estimate(agent.messages), context.estimate((assemble.finished(partial),))
    usd = _told_usd(usage)
    return Spent(1, *tokens, min(_cached(usage), tokens[0]), *(() if usd is None else (usd, *tokens)))


def add(a: Spent, b: Spent) -> Spent:
    return Spent(*(getattr(a, field.name) + getattr(b, field.name) for field in fields(a)))


def cost_usd(config: Config, spent: Spent) -> float:
    """What servers said, and by the prices of the configuration what they did not: USD per million tokens."""
    rest = spent.tokens_in - spent.told_in, spent.tokens_out - spent.told_out
    return spent.usd + (rest[0] * config.price_in + rest[1] * config.price_out) / 1e6


def known_cost_usd(config: Config, spent: Spent) -> float | None:
    """The same, or None where it is not known: tokens were used whose price nobody said."""
    told = (spent.told_in, spent.told_out) == (spent.tokens_in, spent.tokens_out) and spent != Spent(spent.calls)
    priced = bool(config.price_in or config.price_out)
    return cost_usd(config, spent) if told or priced else None


def _told_usd(usage: Mapping[str, Any]) -> float | None:
    """What a server says that its answer cost, in USD: `usage.cost`, of OpenRouter and gateways that do as it does."""
    usd = usage.get("cost")
    if isinstance(usd, bool) or not isinstance(usd, (int, float)) or not math.isfinite(usd) or usd < 0:
        return None
    return float(usd)


def _cached(usage: Mapping[str, Any]) -> int:
    """Tokens of the prompt that came from a cache, as OpenAI tells them, or DeepSeek."""
    details = usage.get("prompt_tokens_details")
    found = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
    return found or _count(usage.get("prompt_cache_hit_tokens"))


def over(config: Config, iterations: int, spent: Spent, elapsed_s: float) -> Reason | None:
    """The budget that forbids another model call of an agent that was answered `iterations` times."""
    used: Mapping[Reason, tuple[float, float]] = {
        Reason.ITERATIONS: (iterations, config.max_al_iterations),
        Reason.CALLS: (spent.calls, config.max_calls_total),
        Reason.TOKENS: (spent.tokens_in + spent.tokens_out, config.max_tokens_total),
        Reason.COST: (cost_usd(config, spent), config.max_cost_usd),
        Reason.SECONDS: (elapsed_s + CLOCK_S, config.max_seconds),
    }
    return next((reason for reason, (has, most) in used.items() if most and has >= most), None)


def left_s(config: Config, elapsed_s: float) -> float | None:
    """What is left of `max_seconds`; None for no limit."""
    return max(0.0, config.max_seconds - elapsed_s) if config.max_seconds else None


def explain(reason: Reason, config: Config) -> str:
    """One line that names the budget and its value."""
    name, words = _NAMES[reason]
    return f"stopped: {words} ({name}={getattr(config, name):.15g})"


def key(reason: Reason) -> str:
    """The setting whose value a budget is."""
    return _NAMES[reason][0]


_NAMES: Mapping[Reason, tuple[str, str]] = {
    Reason.ITERATIONS: ("max_al_iterations", "the model calls of this turn are used up"),
    Reason.CALLS: ("max_calls_total", "the model calls of this turn and its subagents are used up"),
    Reason.TOKENS: ("max_tokens_total", "the tokens of this turn are used up"),
    Reason.COST: ("max_cost_usd", "the money for this turn is used up"),
    Reason.SECONDS: ("max_seconds", "the time of this turn is over"),
    Reason.CYCLE: ("max_identical_calls", "the same call came too often in a row"),
}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
