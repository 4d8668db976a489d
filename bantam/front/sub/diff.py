"""`bantam diff A B`: where two runs part, and what each of them cost."""

from collections.abc import Sequence

from bantam.core.base.problem import Problem
from bantam.core.past import compare
from bantam.core.past.compare import Cost
from bantam.core.past.tape import Tape
from bantam.front.show.tell import columns, tell
from bantam.host.place import Place
from bantam.shell.disk.store import Store
from bantam.shell.disk.tape import read

EQUAL, DIFFERENT = 0, 1
NAME_CHARS_MAX, NAME_CHARS_MIN = 24, 4  # of a column's head, however narrow the terminal
COLUMNS = 80  # where there is no terminal
ROOM_FOR_WORDS = 11  # columns in each half: of what was used, blanks between the columns, and a name's letter


def run(words: Sequence[str], place: Place) -> int | Problem:
    """Compare two logs or tapes: 0 if they are equal, 1 if not."""
    if len(words) != 2:
        return Problem("bantam diff takes two logs or tapes: ids or files")
    runs: list[Tape] = []
    store = Store(place.home, place.clock.wall)
    for name in words:
        found = read(name, place.folder, store)
        if isinstance(found, Problem):
            return found
        runs.append(found)
    where = compare.parted(*runs)
    first = f"the runs part at {where}" if where else "the runs are equal"
    return tell((first, *_table(words, [*map(compare.cost, runs)], columns(1))), DIFFERENT if where else EQUAL)


def _table(names: Sequence[str], costs: Sequence[Cost], columns: int) -> list[str]:
    """Names, and a row for each thing that was used; a price only where one is set."""
    chars = min(NAME_CHARS_MAX, max(NAME_CHARS_MIN, (columns or COLUMNS) // 2 - ROOM_FOR_WORDS))
    rows = [
        ["", *(f"{letter}: {_cut(name, chars)}" for letter, name in zip("AB", names, strict=True))],
        ["model calls", *(str(cost.spent.calls) for cost in costs)],
        ["tokens in", *(str(cost.spent.tokens_in) for cost in costs)],
        ["tokens out", *(str(cost.spent.tokens_out) for cost in costs)],
        ["seconds", *(f"{cost.seconds:.1f}" for cost in costs)],
    ]
    if any(cost.usd is not None for cost in costs):
        rows.append(["USD", *("-" if cost.usd is None else f"{cost.usd:.4f}" for cost in costs)])
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return ["  ".join((row[0].ljust(widths[0]), *(row[n].rjust(widths[n]) for n in (1, 2)))) for row in rows]


def _cut(name: str, chars: int) -> str:
    return name if len(name) <= chars else "…" + name[1 - chars :]
