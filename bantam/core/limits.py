"""Bounds of a turn: which one is used up, if any."""

from bantam.core.effects import Reason
from bantam.core.settings import Config


def over(config: Config, iterations: int) -> Reason | None:
    """The limit that forbids another model call of an agent that was answered `iterations` times."""
    return Reason.ITERATIONS if iterations >= config.max_al_iterations else None


def explain(reason: Reason, config: Config) -> str:
    """One line that names the limit and its value."""
    assert reason is Reason.ITERATIONS
    return f"stopped after {config.max_al_iterations} model calls (max_al_iterations)"
