"""`bantam diff A B`: where two runs part, and what each of them cost."""

from collections.abc import Sequence
from itertools import zip_longest

from bantam.core import codec, limits, tape
from bantam.core.config import Problem
from bantam.core.effects import Spent
from bantam.core.events import Event
from bantam.core.tape import Tape
from bantam.core.tree import idle, start, step
from bantam.front.tell import tell
from bantam.shell.tape import read

EQUAL, DIFFERENT = 0, 1


def run(words: Sequence[str]) -> int | Problem:
    """Compare two logs or tapes, times left out: 0 if they are equal, 1 if not."""
    if len(words) != 2:
        return Problem("bantam diff takes two logs or tapes: ids or files")
    runs: list[Tape] = []
    for name in words:
        found = read(name)
        if isinstance(found, Problem):
            return Problem(found.text)
        runs.append(found)
    one, two = runs
    where = _first(one, two)
    width = max(map(len, words))
    rows = [where or "the two runs are equal"]
    rows.append(f"{'':<{width}}  {'calls':>6} {'tokens in':>10} {'tokens out':>10} {'seconds':>8} {'USD':>9}")
    for name, played in zip(words, runs, strict=True):
        spent, seconds = _spent(played)
        counts = f"{spent.calls:>6} {spent.tokens_in:>10} {spent.tokens_out:>10}"
        rows.append(f"{name:<{width}}  {counts} {seconds:>8.1f} {limits.cost_usd(played.config, spent):>9.4f}")
    return tell("\n".join(rows), DIFFERENT if where else EQUAL)


def _first(one: Tape, two: Tape) -> str:
    """The first thing that differs, settings and system prompt first; "" for nothing."""
    begun = {"system": one.system, "settings": codec.encode(one.config)}
    if found := tape.unequal(begun, {"system": two.system, "settings": codec.encode(two.config)}):
        return f"they begin differently: {found}"
    for number, (here, there) in enumerate(zip_longest(one.events, two.events), 1):
        if here is None or there is None:
            shorter = "first" if here is None else "second"
            return f"the {shorter} run ends before event {number}: {_named((here or there)[1])}"
        if type(here[1]) is not type(there[1]):
            return f"event {number}: {_named(here[1])} is not {_named(there[1])}"
        if found := tape.unequal(codec.encode(here[1]), codec.encode(there[1])):
            return f"event {number}, {_named(here[1])}, {found}"
    return ""


def _named(event: Event) -> str:
    return type(event).__name__


def _spent(played: Tape) -> tuple[Spent, float]:
    session = start(played.config, played.system)
    for now, event in played.events:
        session, _ = step(session, event, now)
    spent = session.total if idle(session) else limits.add(session.total, session.spent)
    return spent, played.events[-1][0] if played.events else 0.0
