"""Budgets of the real program: each axis ends the run with status 3 and one line that names it."""

import time
from pathlib import Path
from typing import Any

import pytest

from scripts.fakemodel import Reply
from tests.invariants import complaint
from tests.program import place, serving

USED = {"prompt_tokens": 60, "completion_tokens": 40}


def asks(command: str, usage: dict[str, int] | None = USED) -> Reply:
    return Reply(calls=[("shell_exec", {"command": command})], usage=usage)


@pytest.mark.parametrize(
    ("settings", "calls"),
    [
        ({"max_al_iterations": "3"}, 3),
        ({"max_calls_total": "3"}, 3),
        ({"max_tokens_total": "250"}, 3),
        ({"max_cost_usd": "0.0003", "price_in": "1", "price_out": "1"}, 3),
        ({"max_identical_calls": "2"}, 3),
    ],
)
def test_each_budget_ends_the_turn_and_names_itself(tmp_path: Path, settings: dict[str, str], calls: int) -> None:
    with serving([asks("echo x >> ran")]) as fake:
        here = place(tmp_path, fake, **settings)
        ran = here.run("-q", "-p", "x")
        assert len(fake.requests) == calls
    assert (ran.status, ran.out) == (3, "")
    assert ran.err.startswith("stopped: ")
    assert ran.err.endswith(f"({next(iter(settings))})\n")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("reply", [asks("echo begun; sleep 60"), Reply(wait_s=60), Reply(text="x", end="hang")])
def test_the_clock_ends_a_hung_request_and_a_running_command(tmp_path: Path, reply: Reply) -> None:
    with serving([reply]) as fake:
        here = place(tmp_path, fake, max_seconds="1")
        begun = time.monotonic()
        ran = here.ask("x")
    assert ran.status == 3
    assert time.monotonic() - begun < 30
    assert ran.err.endswith("stopped: 1 seconds are over (max_seconds)\n")
    assert complaint(tuple(here.autosave())) == ""
    if reply.calls:
        assert here.autosave()[-1]["content"].startswith("begun\n[timed out after ")


def test_a_wait_that_would_outlast_the_time_is_the_end(tmp_path: Path) -> None:
    with serving([Reply(status=503, body="busy", headers={"Retry-After": "90"})]) as fake:
        ran = place(tmp_path, fake, max_seconds="30").run("-p", "x")
    assert ran.status == 3
    assert "max_seconds" in ran.err
    assert "busy" in ran.err


def test_eight_subagents_hold_a_budget_within_one_response_each(tmp_path: Path) -> None:
    def answers(body: Any) -> Reply:
        if "child" in body["messages"][0]["content"]:
            return asks("true")
        return Reply(calls=[("run_subagent", {"prompt": str(n)}) for n in range(8)], usage=USED)

    with serving(answers) as fake:
        ran = place(tmp_path, fake, max_tokens_total="1200").run("-p", "x")
        calls = len(fake.requests)
    assert ran.status == 3
    assert 12 <= calls <= 12 + 8


def test_the_next_line_has_a_budget_of_its_own_and_the_conversation_is_whole(tmp_path: Path) -> None:
    script = [asks("true"), asks("true"), Reply(text="fine", usage=USED)]
    with serving(script) as fake:
        here = place(tmp_path, fake, max_calls_total="2")
        ran = here.run(piped="one\ntwo\n")
        said = fake.requests[-1].body["messages"]
    assert ran.status == 3
    assert ran.out.endswith("fine\n")
    assert complaint(tuple(said)) == ""


def test_where_the_server_counts_nothing_tokens_are_guessed(tmp_path: Path) -> None:
    with serving([asks("true", None)]) as fake:
        ran = place(tmp_path, fake, max_tokens_total="2000").run("-p", "x")
        assert 2 <= len(fake.requests) <= 20
    assert ran.status == 3


def test_a_server_that_refuses_to_count_is_asked_without(tmp_path: Path) -> None:
    refusal = Reply(status=400, body='{"error": {"message": "unknown field stream_options"}}')
    with serving([refusal, Reply(text="fine")]) as fake:
        ran = place(tmp_path, fake, max_tokens_total="100000").run("-p", "x")
        assert ["stream_options" in request.body for request in fake.requests] == [True, False]
    assert (ran.status, ran.out) == (0, "fine\n")
