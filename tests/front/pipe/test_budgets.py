"""Budgets of a turn, with the real program: each ends it with status 3 and one line that names the setting."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import events
from tests.invariants import complaint
from tests.program import Ran, Reply, place, serving

SOON_S = 30  # far less than what would have gone on otherwise
USAGE = {"prompt_tokens": 30, "completion_tokens": 30}
PRICES = {"price_in": "10", "price_out": "20"}  # 0.0009 USD a call of that usage
HANGS = Reply(end="hang")
CALLS, SAME = "the model calls of this turn", "the same call came"
Said = Callable[[Any], Reply]


def busy(usage: dict[str, int] | None = USAGE, **more: Any) -> Said:
    """A model that always asks for another command, except where the user says pelican."""
    numbers = itertools.count()

    def reply(body: Any) -> Reply:
        if body["messages"][-1]["content"] == "pelican":
            return Reply("pelican", usage=usage)
        return Reply(calls=[("shell_exec", {"command": f"printf {next(numbers)}"})], usage=usage, **more)

    return reply


def again(body: Any) -> Reply:
    return Reply(calls=[("shell_exec", {"command": "true"})])


def hangs(body: Any) -> Reply:
    return Reply("pelican") if body["messages"][-1]["content"] == "pelican" else HANGS


def stops(ran: Ran) -> list[str]:
    return [line for line in ran.err.splitlines() if line.startswith("stopped: ")]


AXES: dict[str, tuple[Said, dict[str, str], str, int]] = {
    "iterations": (busy(), {"max_al_iterations": "2"}, f"{CALLS} are used up (max_al_iterations=2)", 2),
    "calls": (busy(), {"max_calls_total": "2"}, f"{CALLS} and its subagents are used up (max_calls_total=2)", 2),
    "tokens": (busy(), {"max_tokens_total": "100"}, "the tokens of this turn are used up (max_tokens_total=100)", 2),
    "cost": (busy(), {"max_cost_usd": "0.001", **PRICES}, "the money for this turn is used up (max_cost_usd=0.001)", 2),
    "seconds": (hangs, {"max_seconds": "1.5"}, "the time of this turn is over (max_seconds=1.5)", 1),
    "cycle": (again, {"max_identical_calls": "2"}, f"{SAME} too often in a row (max_identical_calls=2)", 3),
}  # fmt: skip


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("option", ["-q", "-p"])
def test_each_budget_is_status_3_one_line_and_no_answer(tmp_path: Path, axis: str, option: str) -> None:
    script, settings, words, calls = AXES[axis]
    with serving(script) as fake:
        here = place(tmp_path, fake, **settings)
        ran = here.run("-p", "x", "-o", "answer") if option == "-p" else here.ask("x", "-q", "-o", "answer")
        assert len(fake.requests) == calls
    assert (ran.status, ran.out) == (3, "")
    assert stops(ran) == [f"stopped: {words}"]
    assert option == "-p" or ran.err.count("\n") == 1
    assert not (here.work / "answer").exists()


@pytest.mark.parametrize("axis", [axis for axis in AXES if axis != "cycle"])
def test_the_next_line_goes_on_with_a_valid_conversation_and_a_fresh_budget(tmp_path: Path, axis: str) -> None:
    script, settings, _, calls = AXES[axis]
    with serving(script) as fake:
        here = place(tmp_path, fake, **settings)
        ran = here.run(piped="x\npelican\n")
        assert len(fake.requests) == calls + 1
        sent = fake.requests[-1].body["messages"]
    assert ran.status == 3  # that of the first line that failed
    assert ran.out.endswith("\npelican\n")
    assert complaint(tuple(sent)) == ""
    assert complaint(tuple(here.autosave())) == ""
    assert [m["content"] for m in sent if m["role"] == "user"] == ["x", "pelican"]


def test_events_name_the_budget(tmp_path: Path) -> None:
    with serving(busy()) as fake:
        ran = place(tmp_path, fake, max_tokens_total="100").run("--json", "-p", "x")
    end = events.read(ran.out)[-1]
    assert (end["reason"], end["exit"], end["answer"], ran.status) == ("tokens", 3, None, 3)
    assert end["usage"] == {"calls": 2, "tokens_in": 60, "tokens_out": 60, "tokens_cached": 0, "cost_usd": None}


def test_the_clock_ends_a_command_and_keeps_what_it_printed(tmp_path: Path) -> None:
    begun = time.monotonic()
    with serving([Reply(calls=[("shell_exec", {"command": "echo begun; sleep 60; touch late"})])]) as fake:
        here = place(tmp_path, fake, max_seconds="2")
        ran = here.ask("x", "-q")
        assert len(fake.requests) == 1
    assert time.monotonic() - begun < SOON_S
    assert (ran.status, ran.out) == (3, "")
    assert stops(ran) == ["stopped: the time of this turn is over (max_seconds=2)"]
    result = here.autosave()[-1]
    assert result["role"] == "tool"
    assert result["content"].startswith("begun\n")
    assert result["content"].endswith("exit: 124")
    assert complaint(tuple(here.autosave())) == ""


def test_the_clock_ends_an_answer_that_goes_on_and_on(tmp_path: Path) -> None:
    begun = time.monotonic()
    with serving([Reply("word " * 1000, delta_chars=5, pause_s=0.1)]) as fake:
        ran = place(tmp_path, fake, max_seconds="0.6").run("-p", "x")
    assert time.monotonic() - begun < SOON_S
    assert (ran.status, ran.out, len(stops(ran))) == (3, "", 1)


def test_a_wait_that_is_longer_than_the_clock_is_not_begun(tmp_path: Path) -> None:
    begun = time.monotonic()
    with serving([Reply(status=503, body="busy", headers={"Retry-After": "100"})]) as fake:
        ran = place(tmp_path, fake, max_seconds="60").run("-p", "x")
    assert time.monotonic() - begun < SOON_S
    assert ran.status == 3
    assert stops(ran) == ["stopped: the time of this turn is over (max_seconds=60); the API answered 503: busy"]


@pytest.mark.parametrize("settings", [{"max_calls_total": "20"}, {"max_tokens_total": "1200"}])
def test_eight_subagents_at_once_hold_it_within_one_response_each(tmp_path: Path, settings: dict[str, str]) -> None:
    work = busy(wait_s=0.05)

    def reply(body: Any) -> Reply:
        if "this is a child agent" in body["messages"][0]["content"]:
            return work(body)
        return Reply(calls=[("run_subagent", {"prompt": f"part {n}"}) for n in range(8)], usage=USAGE)

    with serving(reply) as fake:
        here = place(tmp_path, fake, **settings)
        ran = here.ask("x", "-q")
        assert 20 <= len(fake.requests) < 20 + 8
    assert ran.status == 3
    assert f"({next(iter(settings))}=" in stops(ran)[-1]
    assert complaint(tuple(here.autosave())) == ""
    assert len([m for m in here.autosave() if m["role"] == "tool"]) == 8


@pytest.mark.parametrize("stream", ["true", "false"])
def test_where_a_server_sends_no_usage_it_is_estimated(tmp_path: Path, stream: str) -> None:
    with serving(busy(usage=None)) as fake:
        here = place(tmp_path, fake, max_tokens_total="3000", stream=stream)
        ran = here.ask("x" * 4000, "-q")  # some 1000 tokens, and three calls
        assert len(fake.requests) == 3
    assert (ran.status, ran.out) == (3, "")


def test_a_server_that_refuses_stream_options_is_estimated_too(tmp_path: Path) -> None:
    work = busy(usage=None)

    def reply(body: Any) -> Reply:
        refusal = '{"error": {"message": "Unrecognized request argument supplied: stream_options"}}'
        return Reply(status=400, body=refusal) if "stream_options" in body else work(body)

    with serving(reply) as fake:
        here = place(tmp_path, fake, max_cost_usd="0.03", price_in="10")
        ran = here.ask("x" * 4000, "-q")
        assert ["stream_options" in request.body for request in fake.requests] == [True, False, False, False]
    assert (ran.status, ran.out) == (3, "")
    assert stops(ran) == ["stopped: the money for this turn is used up (max_cost_usd=0.03)"]


def test_an_attempt_that_failed_is_a_call(tmp_path: Path) -> None:
    with serving([Reply(status=503, body="busy")]) as fake:
        ran = place(tmp_path, fake, max_calls_total="3").run("-p", "x")
        assert len(fake.requests) == 3
    assert (ran.status, len(stops(ran))) == (3, 1)


def test_a_turn_that_ends_within_its_budgets_is_not_stopped(tmp_path: Path) -> None:
    everything = {
        "max_al_iterations": "1", "max_calls_total": "1", "max_tokens_total": "60", "max_cost_usd": "0.0009",
        "max_seconds": "60", "max_identical_calls": "1", **PRICES,
    }  # fmt: skip
    with serving(busy()) as fake:
        ran = place(tmp_path, fake, **everything).run("-p", "pelican")
    assert (ran.status, ran.out) == (0, "pelican\n")
