"""Approvals where nobody can be asked, and `bantam policy`, which says beforehand what the rules would do."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import events
from tests.invariants import complaint
from tests.program import Place, Ran, Reply, place, serving

DONE = Reply("I could not.")
RULES = "allow printf *; deny rm *"


def call(*commands: str, text: str = "") -> Reply:
    return Reply(text, calls=[("shell_exec", {"command": command}) for command in commands])


def results(body: Any) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


# --- nobody is there


def ask(here: Place, mode: str) -> Ran:
    match mode:
        case "print":
            return here.run("-p", "Touch it.")
        case "quiet":
            return here.ask("Touch it.", "-q")
        case "file":
            return here.ask("Touch it.")
        case _:
            return here.run(piped="Touch it.\n")


@pytest.mark.parametrize("mode", ["print", "quiet", "file", "piped"])
def test_a_command_that_asks_is_denied_at_once_and_the_status_is_4(tmp_path: Path, mode: str) -> None:
    with serving([call("printf before", "touch made"), DONE]) as fake:
        here = place(tmp_path, fake, approve=RULES)
        ran = ask(here, mode)
        said = results(fake.requests[1].body)
    assert ran.status == 4
    assert ran.out.endswith("I could not.\n")
    assert ran.out == "I could not.\n" or mode in ("file", "piped")
    assert said == ["before\n\nexit: 0", "not run: it needs an approval, and there is nobody to ask"]
    assert not (here.work / "made").exists()
    told = [line for line in ran.err.splitlines() if line.startswith("not run: touch")]
    assert told == [
        "not run: touch made: it needs an approval (no rule is about it), and there is nobody to ask; "
        'to allow it, write into model.cfg: approve=allow "touch made"; allow printf *; deny rm *'
    ]


def test_what_is_to_be_written_makes_the_command_run(tmp_path: Path) -> None:
    command = 'printf \'"\\n%s\' ä; touch "made"'
    with serving([call(command), DONE, call(command), DONE]) as fake:
        here = place(tmp_path, fake, approve="ask")
        first = here.run("-p", "x")
        line = first.err.split("write into model.cfg: ")[1].splitlines()[0]
        here.configure(endpoint=fake.endpoint, model="test", approve=line.removeprefix("approve="))
        assert here.run("-p", "x").status == 0
    assert first.status == 4
    assert (here.work / "made").exists()


def test_the_same_command_is_told_once_and_each_other_one_too(tmp_path: Path) -> None:
    with serving([call("touch a", "touch a", "touch b"), call("touch a"), DONE]) as fake:
        ran = place(tmp_path, fake, approve="ask").run("-q", "-", piped="x")
    assert ran.status == 4
    assert [line.split(":")[1] for line in ran.err.splitlines()] == [" touch a", " touch b"]
    assert "(approve=ask)" in ran.err


def test_a_rule_that_would_be_too_long_is_not_spelt_out(tmp_path: Path) -> None:
    with serving([call("touch " + "x" * 5000), DONE]) as fake:
        ran = place(tmp_path, fake, approve="ask").run("-q", "-", piped="x")
    assert ran.status == 4
    assert ran.err.endswith("write into model.cfg: a rule of approve that matches it\n")
    assert len(ran.err) < 500


def test_a_subagent_that_needs_an_approval_counts(tmp_path: Path) -> None:
    replies = [Reply(calls=[("run_subagent", {"prompt": "touch it"})]), call("touch made"), Reply("no"), DONE]
    with serving(replies) as fake:
        here = place(tmp_path, fake, approve="ask")
        assert here.run("-p", "x").status == 4
        assert results(fake.requests[3].body) == ["no"]


def test_a_denied_command_is_told_to_the_model_and_is_no_failure(tmp_path: Path) -> None:
    with serving([call("rm -rf made"), DONE]) as fake:
        here = place(tmp_path, fake, approve=RULES)
        (here.work / "made").write_text("")
        ran = here.run("-p", "x")
        (said,) = results(fake.requests[1].body)
    assert (ran.status, ran.out) == (0, "I could not.\n")
    assert said.startswith("not run: ")
    assert "deny rm *" in said
    assert (here.work / "made").exists()


def test_the_answer_goes_to_the_output_file_too(tmp_path: Path) -> None:
    with serving([call("touch made"), DONE]) as fake:
        here = place(tmp_path, fake, approve="ask")
        assert here.run("-o", "answer", "-p", "x").status == 4
    assert (here.work / "answer").read_text() == "I could not.\n"


def test_the_first_line_that_needed_one_gives_the_status_and_the_next_goes_on(tmp_path: Path) -> None:
    with serving([call("touch made"), DONE, Reply("pelican")]) as fake:
        here = place(tmp_path, fake, approve="ask")
        ran = here.run(piped="one\ntwo\n")
    assert ran.status == 4
    assert ran.out.endswith("pelican\n")
    assert complaint(tuple(here.autosave())) == ""


def test_events_say_it_too(tmp_path: Path) -> None:
    with serving([call("touch made"), DONE]) as fake:
        ran = place(tmp_path, fake, approve="ask").run("--json", "-p", "x")
    lines = events.read(ran.out)
    (error,) = (line["message"] for line in lines if line["type"] == "error")
    assert error.startswith("not run: touch made: ")
    end = lines[-1]
    assert (end["reason"], end["exit"], end["answer"]) == ("unapproved", 4, "I could not.")


def test_rules_allow_deny_and_ask_command_by_command(tmp_path: Path) -> None:
    commands = ("echo hi", "rm -rf x", "echo a && rm b", "git push", "echo x > y")
    with serving([call(*commands), DONE]) as fake:
        here = place(tmp_path, fake, approve="allow git status; ask git *; deny rm *; allow echo *")
        assert here.run("-p", "x").status == 4
        said = results(fake.requests[1].body)
    assert said[0] == "hi\n\n\nexit: 0"
    assert [result.startswith("not run: the rules") for result in said] == [False, True, True, False, False]
    assert said[3] == said[4] == "not run: it needs an approval, and there is nobody to ask"
    assert not (here.work / "y").exists()


def test_a_rule_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    ran = Place(tmp_path, approve="allow ls; permit rm").run("-p", "x")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("bantam: model.cfg, line 3: approve: rule 2, 'permit rm': ")


# --- bantam policy


@pytest.mark.parametrize(
    ("command", "status", "out"),
    [
        ("printf x", 0, "allow\n  allow  printf x  (allow printf *)\n"),
        ("rm x", 1, "deny\n  deny   rm x  (deny rm *)\n"),
        ("printf x; make", 4, "ask\n  ask    make  (no rule is about it)\n  allow  printf x  (allow printf *)\n"),
        ("printf \x1b[2J", 0, "allow\n  allow  printf ␛[2J  (allow printf *)\n"),
    ],
)
def test_policy_says_what_the_rules_do(tmp_path: Path, command: str, status: int, out: str) -> None:
    here = Place(tmp_path, approve=RULES)
    assert here.run("policy", command) == Ran(status, out, "")


def test_policy_reads_options_and_needs_no_key(tmp_path: Path) -> None:
    here = Place(tmp_path, "https://stranger.example/v1")
    here.environment["OPENAI_API_KEY"] = "sk-marker-0123456789"
    assert here.run("policy", "make").out == "allow\n  allow  make  (approve=never)\n"
    assert here.run("-c", "approve=ask", "policy", "make").status == 4
    assert here.run("policy", "-c", "approve=ask", "make").status == 4
    assert not (here.home / ".bantam").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["policy"], "takes one command, in quotes, or --log ID"),
        (["policy", "git", "status"], "takes one command, in quotes"),
        (["policy", "make", "--log", "x"], "takes one command, in quotes"),
        (["policy", "--log", "20200101"], "--log: there is no session 20200101"),
        (["policy", "--log", "broken"], "--log: cannot read "),
        (["policy", "--log", "saved"], "--log: there is no session saved"),
        (["-c", "approve=allow", "policy", "make"], "-c approve: approve: rule 1"),
        (["--log", "x", "-p", "x"], "--log is for policy"),
        (["--json", "policy", "make"], "policy takes no --json"),
    ],
)
def test_wrong_usage_of_policy_is_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    here = Place(tmp_path, approve=RULES)
    for name in ("logs/broken.jsonl", "sessions/saved.json"):
        path = here.home / ".bantam" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"messages": []}')
    ran = here.run(*arguments)
    assert ran.status == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1


def past_run(tmp_path: Path) -> tuple[Place, str]:
    """A run with four commands, one of a subagent and one that asked and did not run; and the id of its log."""
    replies = [
        call("printf 1", "rm -f nothing"),
        Reply(calls=[("run_subagent", {"prompt": "more"})]),
        call("make it"),
        Reply("made"),
        call("touch \x1b[2Jmade"),
        DONE,
    ]
    with serving(replies) as fake:
        here = place(tmp_path, fake, approve="ask touch *; allow *")
        assert here.run("-p", "x").status == 4
    (log,) = (here.home / ".bantam/logs").iterdir()
    return here, log.stem


def test_policy_goes_through_a_past_run(tmp_path: Path) -> None:
    here, id = past_run(tmp_path)
    assert here.run("-c", f"approve={RULES}", "policy", "--log", id[:-1]) == Ran(
        1,
        "allow  printf 1  (allow printf *)\n"
        "deny   rm -f nothing  (deny rm *)\n"
        "ask    make it  (no rule is about it)\n"
        "ask    touch ␛[2Jmade  (no rule is about it)\n"
        "4 commands: 1 allowed, 2 would ask, 1 denied\n",
        "",
    )
    (here.home / ".bantam/sessions").mkdir()
    (here.home / f".bantam/sessions/{id}-1.json").write_text("{}")  # a session is no log
    never = here.run("-c", "approve=never", "policy", f"--log={id[:-1]}")
    assert (never.status, never.out.splitlines()[-1]) == (0, "4 commands: 4 allowed")
    assert here.run("policy", "--log", id).status == 4


def test_a_damaged_log_tells_of_all_that_it_can(tmp_path: Path) -> None:
    here, id = past_run(tmp_path)
    log = here.home / f".bantam/logs/{id}.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b"CommandEnded" in line)
    log.write_bytes(b"".join(lines[:at]) + b"!\n" + b"".join(lines[at:]))
    ran = here.run("policy", "--log", id)
    assert ran.out.endswith("4 commands: 3 allowed, 1 would ask\n")
    assert ran.status == 4
    assert f"the log {id} is damaged in line {at + 1} (not JSON): {len(lines)} of its {len(lines) + 1} lines" in ran.err
    assert ran.err.count("\n") == 1


def test_a_run_without_commands_and_a_reader_that_left(tmp_path: Path) -> None:
    with serving([DONE]) as fake:
        here = place(tmp_path, fake)
        here.run("-p", "x")
    (log,) = (here.home / ".bantam/logs").iterdir()
    assert here.run("policy", "--log", log.stem) == Ran(0, "0 commands\n", "")
    reader, writer = os.pipe()
    os.close(reader)
    left = here.start("policy", "--log", log.stem, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert left.communicate(timeout=60)[1] == b""
    assert left.returncode == 141
