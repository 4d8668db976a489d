"""The table of transitions in CONTRIBUTING.md is what sessions are seen to do: no row less and none more."""

from collections.abc import Iterator

import pytest

from bantam.core.events import Answer, ConfigChanged, ToolFinished, UserSaid
from bantam.core.state import Agent, Idle
from tests import world
from tests.invariants import QUICK
from tests.root import ROOT
from tests.world import Moment, Rolled, World

pytestmark = pytest.mark.core
Transition = tuple[str, str, str]
BEGIN, END = "<!-- transitions -->", "<!-- /transitions -->"
SEEDS = range(800)  # of lives that come by all rows; a thousand others show none more


def documented() -> set[Transition]:
    """The rows of the table, one for each next phase."""
    block = (ROOT / "CONTRIBUTING.md").read_text().partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in block.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(phase, event, end) for phase, event, ends in rows[2:] for end in ends.split(" / ")}


def of(moment: Moment) -> Iterator[Transition]:
    """What each agent did that an event reached and that did something with it."""
    before, after = moment.before.agents, moment.after.agents
    if isinstance(moment.event, ConfigChanged) or (moment.after == moment.before and not moment.effects):
        return
    path = moment.path
    yield name(before[path]), type(moment.event).__name__, name(after.get(path))
    while isinstance(moment.event, Answer) and path and path not in after:  # a child's end is its parent's result
        path = path[:-1]
        yield name(before[path]), ToolFinished.__name__, name(after.get(path))
    for new in after.keys() - before.keys():
        yield Idle.__name__, UserSaid.__name__, name(after[new])


def name(agent: Agent | None) -> str:
    """The phase of an agent; one that is gone has come to rest."""
    return type(Idle() if agent is None else agent.phase).__name__


def observed() -> set[Transition]:
    """What some lives by seed show; the invariants hold in them, too."""
    seen: set[Transition] = set()
    for seed in SEEDS:
        dice = Rolled(seed)
        life = World(world.config(dice), (*QUICK, lambda _, moment: seen.update(of(moment))), twice=False)
        for _ in range(60):
            life.act(dice, faults=50)
    return seen


def table(transitions: set[Transition]) -> str:
    """The transitions as they are written down."""
    order = ["Idle", "Calling", "BackingOff", "Acting", "Checking"]
    rows = sorted({(phase, event) for phase, event, _ in transitions}, key=lambda row: (order.index(row[0]), row[1]))
    lines = ["| phase | event | next phase |", "| --- | --- | --- |"]
    for phase, event in rows:
        ends = [end for end in order if (phase, event, end) in transitions]
        lines.append(f"| {phase} | {event} | {' / '.join(ends)} |")
    return "\n".join(lines)


def test_the_table_of_transitions_is_what_sessions_do() -> None:
    seen = observed()
    assert table(documented()) == table(seen), f"what was seen:\n\n{table(seen)}"
