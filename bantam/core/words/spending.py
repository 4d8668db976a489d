"""What was used, in words: tokens, cost, and how full the window is. What nobody knows is said to be unknown."""

from bantam.core.base.record import dataclass
from bantam.core.effects import Spent
from bantam.core.words.wrap import Row


@dataclass(frozen=True)
class Usage:
    """Of the last turn and of all; costs in USD, None where unknown; tokens of the context, and of the window or 0."""

    turn: Spent
    turn_usd: float | None
    total: Spent
    total_usd: float | None
    context: int
    window: int


def table(usage: Usage) -> tuple[Row, ...]:
    """The lines of `/usage`."""
    return (
        Row("this turn  ", _spent(usage.turn, usage.turn_usd)),
        Row("all turns  ", _spent(usage.total, usage.total_usd)),
        Row("context    ", _context(usage)),
    )


def _spent(spent: Spent, usd: float | None) -> str:
    calls = f"{spent.calls} model call{'' if spent.calls == 1 else 's'}"
    cached = f" ({spent.tokens_cached:,} from a cache)" if spent.tokens_cached else ""
    tokens = f"{spent.tokens_in:,} tokens in{cached}, {spent.tokens_out:,} out"
    cost = "cost unknown" if usd is None and spent.calls else f"${usd or 0:.4f}"
    return f"{calls}, {tokens}, {cost}"


def _context(usage: Usage) -> str:
    """How much of the window the conversation fills, by estimate."""
    if not usage.window:
        return f"about {usage.context:,} tokens; the size of the window is unknown (context_window=)"
    return f"about {usage.context:,} of {usage.window:,} tokens ({100 * usage.context / usage.window:.0f} %)"
