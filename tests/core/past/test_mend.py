"""A log with damaged lines: what it tells is a valid conversation with all that the damage did not touch."""

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import tree
from bantam.core.base.settings import Config
from bantam.core.events import (
    Answer,
    Cleared,
    CommandEnded,
    CompactAsked,
    Event,
    Interrupted,
    Loaded,
    ModelChunks,
    ModelEnded,
    SummaryAsked,
    UserSaid,
)
from bantam.core.messages import Messages
from bantam.core.past import history, mend
from bantam.core.past.history import Past
from tests.core.past.test_history import ASKED, lines, written
from tests.invariants import complaint
from tests.world import Rolled, World, config

pytestmark = pytest.mark.core

Damaging = Callable[[bytes], bytes]
WAYS: dict[str, Damaging] = {
    "NUL bytes": lambda line: b"\0" * 4096 + b"\n",
    "cut": lambda line: line[: len(line) // 2] + b"\n",
    "glued": lambda line: line[: len(line) // 2],
    "no event": lambda line: b'[0.5, {"type": "Config"}]\n',
    "no JSON": lambda line: b"!\n",
    "no UTF-8": lambda line: b"\xff" + line,
    "empty": lambda line: b"\n",
    "gone": lambda line: b"!\n",
}
EXTRA = (b"\0" * 512 + b"\n", b"!\n", b"\xff\n", b"\n", b"{}\n", b'[1, {"type": "x"}]\n', b"[" * 5000 + b"\n")


def life(seed: int, faults: int = 15) -> World:
    dice = Rolled(seed)
    world = World(config(dice))
    for _ in range(dice.number(40)):
        world.act(dice, faults)
    return world


def as_real(world: World) -> bool:
    """Whether a run could write such a log: answers are to what was asked, and a conversation changes between turns."""
    session = tree.start(world.start, "s")
    for (_, event), (after, _) in zip(world.log, world.history, strict=True):
        if isinstance(event, Answer) and event.id not in tree.outstanding(session):
            return False
        if isinstance(event, (Cleared, Loaded, CompactAsked, SummaryAsked)) and not tree.idle(session):
            return False
        session = after
    return True


def said(past: Past) -> Messages:
    """The conversation when everything that was still awaited is lost."""
    session = past.session
    for event in (*history.recovery(session), Interrupted()):
        session, _ = tree.step(session, event, past.now)
    return tree.conversation(session)


seeds = st.integers(0, 10**6)


@given(seeds, st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([*WAYS])), min_size=1, max_size=4))
def test_whatever_is_damaged_the_conversation_is_valid_and_has_the_turns_before(
    seed: int, places: list[tuple[int, str]]
) -> None:
    world = life(seed)
    told = lines(written(world))
    if len(told) < 2:
        return
    damaged = [*told]
    for place, way in places:
        at = 1 + place % (len(told) - 1)
        damaged[at] = WAYS[way](told[at])
    first = next((at for at, (old, new) in enumerate(zip(told, damaged, strict=True)) if old != new), None)
    pasts = [*history.pasts(lines(b"".join(damaged)))]
    for past in pasts:
        assert complaint(said(past)) == ""
    if first is None:
        return
    whole = [session for session, _ in world.history[: first - 1]]
    ended = [tree.conversation(session) for session in whole if tree.idle(session)]
    replaced = any(isinstance(event, (Cleared, Loaded, CompactAsked)) for _, event in world.log[first - 1 :]) or any(
        purged(session) for session, _ in world.history
    )
    if ended and not replaced:
        assert tuple(tree.conversation(pasts[-1].session))[: len(ended[-1])] == tuple(ended[-1])
    assert (pasts[-1].damage.count > 0) == (pasts[-1].problem != "")


def purged(session: object) -> bool:
    """Whether a session may shorten what was said: a small window, or servers that refuse messages."""
    root = session.agents[()]  # type: ignore[attr-defined]
    return bool(session.config.context_window) or root.strips > 0 or getattr(root.phase, "purpose", "") == "shrink"  # type: ignore[attr-defined]


@given(seeds, st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(EXTRA)), min_size=1, max_size=4))
def test_damage_that_hides_nothing_changes_nothing(seed: int, places: list[tuple[int, bytes]]) -> None:
    """What was written between lines, over lines without effect, or twice."""
    world = life(seed, faults=8)
    if not as_real(world):
        return
    told = lines(written(world))
    before = [tree.start(world.start, "You are Bantam."), *(session for session, _ in world.history)]
    idle = [at for at in range(1, len(told)) if before[at] == before[at - 1] and not world.history[at - 1][1]]
    damaged = [*told]
    for place, extra in places:
        at = 1 + place % len(told)
        if at in idle:
            damaged[at] = extra
        elif at < len(told):
            damaged[at] = extra + told[at] if place % 3 else told[at] + told[at]
        else:
            damaged.append(extra)
    past = history.fold(lines(b"".join(damaged)))
    assert past.session == before[-1]
    assert past.damage.count > 0
    awaited = [tree.outstanding(session) for session in before]
    late = [at for at, (_, event) in enumerate(world.log) if isinstance(event, Answer) and event.id not in awaited[at]]
    assert past.damage.idle <= len(late)  # which mean nothing in a whole log, either


# --- stories


HEAD = json.dumps(history.header("a", "b", "", "s", Config())).encode() + b"\n"


def answer(number: int, text: str) -> tuple[Event, ...]:
    chunk = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
    return ModelChunks((number,), (chunk,)), ModelEnded((number,), marked=True)


def log(*events: Event | bytes) -> Past:
    made = [e if isinstance(e, bytes) else json.dumps(history.line(n, e)).encode() for n, e in enumerate(events)]
    return history.fold([HEAD, *(line + b"\n" for line in made)])


def texts(past: Past) -> Sequence[str]:
    return [m["content"] for m in tree.conversation(past.session)[1:]]


NULS = b"\0" * 100


def test_the_end_of_an_answer_is_lost_and_the_next_turn_is_whole() -> None:
    past = log(UserSaid("a"), answer(1, "one")[0], NULS, UserSaid("b"), *answer(2, "two"))
    assert texts(past) == ["a", "one", "b", "two"]
    assert past.problem == "is damaged in line 4 (NUL bytes): 6 of its 7 lines are kept"
    assert tree.idle(past.session)


def test_what_was_said_is_lost_and_the_answer_is_kept() -> None:
    past = log(UserSaid("a"), *answer(1, "one"), b"[3, {", *answer(2, "two"), UserSaid("c"), *answer(3, "three"))
    assert texts(past) == ["a", "one", mend.GAP, "two", "c", "three"]
    assert past.problem == "is damaged in line 5 (it breaks off): 9 of its 10 lines are kept"


def test_results_of_lost_calls_mean_nothing_and_the_turn_goes_on_behind_them() -> None:
    past = log(*ASKED[:2], b"\xff", CommandEnded((2,), 0, "out"), *answer(3, "three"))
    assert texts(past) == ["build it", mend.GAP, "three"]
    assert past.problem == (
        "is damaged in line 4 (not UTF-8): 5 of its 7 lines are kept, and 1 means nothing without what is missing"
    )


def test_a_lost_result_is_said_to_be_missing() -> None:
    past = log(*ASKED, NULS, *answer(3, "three"), UserSaid("b"), *answer(4, "four"))
    assert [m["role"] for m in tree.conversation(past.session)[1:4]] == ["user", "assistant", "tool"]
    assert texts(past)[3:] == [mend.GAP, "three", "b", "four"]


def test_what_was_said_meanwhile_is_not_lost() -> None:
    past = log(UserSaid("a"), NULS, UserSaid("b"), UserSaid("c"), *answer(2, "two"), *answer(3, "three"))
    assert texts(past) == ["a", "b", "two", "c", "three"]


def test_nul_bytes_before_a_line_cost_nothing() -> None:
    line = json.dumps(history.line(0.5, UserSaid("b"))).encode()
    past = log(UserSaid("a"), *answer(1, "one"), NULS + line, *answer(2, "two"))
    assert texts(past) == ["a", "one", "b", "two"]
    assert past.problem == "is damaged in line 5 (NUL bytes): 7 of its 7 lines are kept"


def test_a_line_that_was_written_twice_counts_once() -> None:
    line = json.dumps(history.line(0.5, UserSaid("a"))).encode()
    past = log(line, line, *answer(1, "one"))
    assert texts(past) == ["a", "one"]
    assert past.problem == "is damaged in line 3 (the same as the line before): 4 of its 5 lines are kept"


def test_a_cleared_conversation_stays_cleared() -> None:
    past = log(UserSaid("a"), answer(1, "one")[0], NULS, Cleared(), UserSaid("b"), *answer(2, "two"))
    assert texts(past) == ["b", "two"]


def test_many_damaged_lines_are_counted() -> None:
    past = log(*[b"!"] * 2, NULS, b"[]", b"", UserSaid("a"))
    assert past.problem == (
        "is damaged in lines 2 (not JSON), 3 (the same as the line before), 4 (NUL bytes) and 2 more: "
        "2 of its 7 lines are kept"
    )


NO_EVENTS = ("3", "[1]", "[1, 2]", "[1, {}]", "{}", "null", '[1, {"type": "Config"}]', '[1, {"type": "UserSaid"}]')
NO_TIMES = ("true", '"x"', "NaN", "1e999", "1" + "0" * 400)


@pytest.mark.parametrize("line", [*NO_EVENTS, *(f'[{time}, {{"type": "Interrupted"}}]' for time in NO_TIMES)])
def test_what_is_json_and_no_event_is_called_so(line: str) -> None:
    assert log(line.encode()).problem == "is damaged in line 2 (no event): 1 of its 2 lines are kept"
