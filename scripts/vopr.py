"""The simulator for long: random lives of a session by seed, the invariants checked after every event.

    scripts/vopr.py [--seed N] [--steps N] [--seconds S] [--faults PERCENT]

Without a seed, a minute of lives with any seeds; with one and nothing else, that one life. A seed and a commit
repeat a run. On failure it prints both, with the shortest list of events it found that
still fails, and exits with status 1.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bantam.core.base.settings import Config  # noqa: E402
from bantam.core.events import Event  # noqa: E402  (the path comes first)
from tests import world  # noqa: E402
from tests.invariants import CHECKS, QUICK  # noqa: E402
from tests.world import Moment, Rolled, World  # noqa: E402

LIFE_STEPS = 60  # deeds of one session before it must come to rest
Log = list[tuple[float, Event]]
Checks = tuple[Callable[[World, Moment], None], ...]


def checks(seed: int) -> tuple[Checks, bool]:
    """The slow checks are for one life in five: they look at each event by itself, and not at what led there."""
    return (CHECKS, True) if seed % 5 == 0 else (QUICK, False)


def live(seed: int, faults: int) -> int:
    """One session from its first event to its rest: the number of events. Raises AssertionError for a broken row."""
    dice = Rolled(seed)
    session = World(world.config(dice), *checks(seed))
    for _ in range(dice.number(LIFE_STEPS)):
        session.act(dice, faults)
    session.heal()
    return len(session.log)


def fails(config: Config, log: Log) -> str:
    """What is broken by a list of events alone; "" if nothing is."""
    session = World(config, CHECKS)
    try:
        for session.now, event in log:
            session.tell(event)
        session.heal()
    except AssertionError as problem:
        return str(problem)
    return ""


def shorter(log: Log) -> Iterator[Log]:
    """The list less one part, large parts first."""
    size = len(log) // 2
    while size:
        yield from (log[:at] + log[at + size :] for at in range(0, len(log), size))
        size //= 2


def shrunk(config: Config, log: Log, row: str) -> Log:
    """The shortest list found that breaks the same row."""
    for candidate in shorter(log):
        if fails(config, candidate).split(":")[0] == row:
            return shrunk(config, candidate, row)
    return log


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, help="of the first life")
    options.add_argument("--steps", type=int, default=0, help="stop after so many events (0: no limit)")
    options.add_argument("--seconds", type=float, default=0, help="stop after so many seconds (0: no limit)")
    options.add_argument("--faults", type=int, default=25, help="percent of deeds that are something bad")
    asked = options.parse_args()
    if asked.seed is None and not asked.steps:
        asked.seconds = asked.seconds or 60
    begun, steps = time.monotonic(), 0
    seed = first = random.SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    while True:
        try:
            steps += live(seed, asked.faults)
        except AssertionError as problem:
            report(seed, asked.faults, problem)
            return 1
        seed += 1
        spent = time.monotonic() - begun
        is_one = not asked.steps and not asked.seconds
        if is_one or 0 < asked.steps <= steps or 0 < asked.seconds <= spent:
            break
    lives = f"{seed - first} lives (seeds {first} to {seed - 1})"
    print(f"{steps} events in {lives}, {steps / spent:.0f} events/s: all is well")
    return 0


def report(seed: int, faults: int, problem: AssertionError) -> None:
    """What is needed to see it again."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    dice = Rolled(seed)
    session = World(world.config(dice), *checks(seed))
    try:
        for _ in range(dice.number(LIFE_STEPS)):
            session.act(dice, faults)
    except AssertionError:
        pass
    log = shrunk(session.start, session.log, str(problem).split(":")[0])
    print(fails(session.start, log) if len(log) < len(session.log) else problem)
    print(f"\nagain: scripts/vopr.py --seed {seed} --faults {faults}   (commit {git.stdout.strip()})")


if __name__ == "__main__":
    sys.exit(main())
