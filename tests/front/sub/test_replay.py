"""Tapes: a run recorded once runs again from its tape alone, and says where it differs."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bantam.host import topics
from scripts.fakemodel import Reply
from tests.program import Place, Ran, place, serving
from tests.pty_helpers import Bantam
from tests.root import ROOT

KEY = "sk-marker-0123456789"
USED = {"prompt_tokens": 60, "completion_tokens": 40}


def answers(body: Any) -> Reply:
    """Two commands, two subagents at once, a retry, and an answer."""
    said = body["messages"]
    if "child" in said[0]["content"]:
        return Reply(text=f"child of {said[1]['content']}", usage=USED)
    results = sum(message["role"] == "tool" for message in said)
    if results == 0:
        calls = [("shell_exec", {"command": "echo one; touch made"}), ("shell_exec", {"command": "exit 3"})]
        return Reply(reasoning="hm", text="I look", calls=calls, usage=USED)
    if results == 2:
        return Reply(calls=[("run_subagent", {"prompt": name}) for name in ("a", "b")], usage=USED)
    return Reply(text="done ✓", usage=USED)


def recorded(folder: Path, *arguments: str, piped: str | None = None, **settings: str) -> tuple[Place, Ran]:
    with serving(answers) as fake:
        here = place(folder, fake, **settings)
        here.environment["OPENAI_API_KEY"] = KEY
        (here.work / "prompt.txt").write_text("do it")
        ran = here.run("--record", "tape", *arguments, piped=piped)
    (here.work / "made").unlink()
    shutil.rmtree(here.home)
    here.home.mkdir()
    return here, ran


MODES = [["-p", "do it"], ["prompt.txt"], ["-q", "prompt.txt"], ["--json", "prompt.txt"], ["--json", "-p", "do it"]]


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_a_replay_is_the_run_byte_for_byte_without_model_shell_and_key(tmp_path: Path, mode: list[str]) -> None:
    here, first = recorded(tmp_path, *mode)
    del here.environment["OPENAI_API_KEY"]
    here.configure(endpoint="http://api.invalid/v1", model="test")  # the endpoint does not count
    again = here.run("--replay", "tape", *mode)
    assert (again.status, again.out, again.err) == (first.status, first.out, first.err)
    assert not (here.work / "made").exists()
    assert list(here.home.iterdir()) == []


COMMANDS = ["echo a", "exit 3", "kill -9 $$", "printf '\\377\\33[2J'; sleep 0.1; echo b", "head -c 300000 /dev/zero"]
REFUSALS = ["no", "unknown parameter: stream_options", "maximum context length exceeded"]
SETTINGS = {
    "max_calls_total": ["4", "9"],
    "max_seconds": ["2"],
    "approve": ["ask", "allow echo *; ask *", "deny echo *; allow *"],
    "stream": ["false"],
    "context_window": ["400"],
}


def whatever(luck: random.Random) -> Callable[[Any], Reply]:
    """A model that does anything: answers, calls, subagents, refusals, breaking off."""

    def reply(body: Any) -> Reply:
        deed = luck.randrange(9)
        match deed:
            case 0:
                message = json.dumps({"error": {"message": luck.choice(REFUSALS)}})
                return Reply(status=luck.choice([400, 401, 429, 503]), body=message)
            case 1:
                return Reply(
                    calls=[("shell_exec", {"command": luck.choice(COMMANDS)}) for _ in range(luck.randint(1, 3))]
                )
            case 2:
                return Reply(calls=[("run_subagent", {"prompt": f"part {n}"}) for n in range(luck.randint(1, 3))])
            case 3:
                return Reply(calls=[("nope", {}), ("shell_exec", {"cmd": 1})])
            case 4:
                return Reply(text="half an answer", end=luck.choice(["cut", "reset"]))
            case _:
                return Reply(text=luck.choice(["ok \u2028 \x1b[31m", '{"a": 1}']), usage=USED)

    return reply


@pytest.mark.parametrize("seed", range(16))
def test_a_replay_shows_whatever_its_run_did(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    settings = {name: luck.choice(values) for name, values in SETTINGS.items() if luck.random() < 0.4}
    mode = luck.choice([["--json"], ["-q"], []])
    prompt, piped = luck.choice([(["-p", "do it"], None), ([], "one\n/compact\ntwo\n\nthree\n")])
    with serving(whatever(luck)) as fake:
        here = place(tmp_path, fake, **settings)
        run = here.run(*mode, "--record", "tape", *prompt, piped=piped)
        again = here.run(*mode, "--replay", "tape", *prompt, piped=piped)
    assert again == run


def test_piped_lines_and_failures_replay_with_their_status(tmp_path: Path) -> None:
    here, first = recorded(tmp_path, piped="one\n/cfg temperature\ntwo\n", max_calls_total="3")
    again = here.run("--replay", "tape", piped="one\n/cfg temperature\ntwo\n")
    assert first.status == 3
    assert (again.status, again.out, again.err) == (first.status, first.out, first.err)


def test_a_replay_needs_no_network_at_all(tmp_path: Path) -> None:
    here, first = recorded(tmp_path, "-p", "do it")
    empty = ["unshare", "-rn"]
    if shutil.which("unshare") is None or subprocess.run([*empty, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system refuses network namespaces")
    ran = subprocess.run(
        [*empty, *here.command("--replay", "tape", "-p", "do it")],
        cwd=here.work,
        env=here.environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.decode() == first.out


@pytest.mark.parametrize(
    ("change", "arguments", "where"),
    [
        ("", ["-p", "do that"], 'event 1: CallModel 1, messages[1].content: "do that" is not "do it"'),
        ("temperature=0.1\n", ["-p", "do it"], "event 1: CallModel 1, temperature: 0.1 is not 0.7"),
        ("top_k=3\n", ["-p", "do it"], "event 1: CallModel 1, top_k: 3 is not nothing"),
        ("tools=shell_exec\n", ["-p", "do it"], "event 1: CallModel 1, tools[1]: nothing is not "),
        ("max_calls_total=1\n", ["-p", "do it"], "the run has ended, and the tape has "),
        ("approve=deny *\n", ["-p", "do it"], "CallModel 2, CallModel is not RunShell"),
    ],
)
def test_a_run_that_differs_is_status_6_and_says_where(
    tmp_path: Path, change: str, arguments: list[str], where: str
) -> None:
    here, _ = recorded(tmp_path, "-p", "do it")
    with (here.work / "model.cfg").open("a") as file:
        file.write(change)
    ran = here.run("--replay", "tape", *arguments)
    assert (ran.status, ran.out) == (6, "")
    assert where in ran.err.splitlines()[-1]
    assert ran.err.splitlines()[-1].startswith("bantam: the replay differs from its tape at event ")


def test_a_system_prompt_that_changed_is_named(tmp_path: Path) -> None:
    here, _ = recorded(tmp_path, "-p", "do it")
    (here.work / "system.txt").write_text("Be brief.")
    ran = here.run("--json", "--replay", "tape", "-p", "do it")
    *_, error, end = map(json.loads, ran.out.splitlines())
    assert (ran.status, end["exit"], end["reason"]) == (6, 6, "diverged")
    assert 'messages[0].content: "Be brief." is not "You are Bantam' in error["message"]


def test_more_turns_than_on_the_tape_differ(tmp_path: Path) -> None:
    here, _ = recorded(tmp_path, piped="one\n")
    ran = here.run("--replay", "tape", piped="one\ntwo\n")
    assert ran.status == 6
    assert "the tape ends here, and the run goes on with UserSaid" in ran.err


def test_a_tape_is_for_the_user_alone_and_holds_no_key(tmp_path: Path) -> None:
    leak = Reply(calls=[("shell_exec", {"command": f"echo {KEY[:9]}''{KEY[9:]}"})])
    with serving([leak, Reply(text="fine")]) as fake:
        here = place(tmp_path, fake)
        here.environment["OPENAI_API_KEY"] = KEY
        assert here.run("--record", "tape", "-p", f"is {KEY} safe?").status == 0
    assert (here.work / "tape").stat().st_mode & 0o777 == 0o600
    assert KEY not in (here.work / "tape").read_text()
    assert "[key]" in (here.work / "tape").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--replay", "nothing", "-p", "x"],
        ["--replay", "model.cfg", "-p", "x"],
        ["--replay", ".", "-p", "x"],
        ["--record", "no/such/folder", "-p", "x"],
        ["--record", "a", "--replay", "b", "-p", "x"],
        ["--record", "a", "--resume", "-p", "x"],
        ["--replay", "a", "--input", "json"],
    ],
)
def test_what_cannot_be_played_or_recorded_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    ran = Place(tmp_path).run(*arguments)
    assert (ran.status, ran.err.count("\n")) == (2, 1), ran
    assert "Traceback" not in ran.err


# --- telling a past run, and comparing two


def test_a_past_run_is_told_again_from_its_log(tmp_path: Path) -> None:
    with serving(answers) as fake:
        here = place(tmp_path, fake)
        first = here.ask("do\nit")
        (here.work / "made").unlink()
    id = next((here.home / ".bantam/logs").iterdir()).stem
    ran = here.run("replay", id)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "bantam> do\n        it\n" + first.out
    assert not (here.work / "made").exists()


def test_two_runs_part_at_an_event_and_cost_what_they_cost(tmp_path: Path) -> None:
    here, _ = recorded(tmp_path, "-p", "do it", price_in="10")
    shutil.copy(here.work / "tape", here.work / "other")
    equal = here.run("diff", "tape", "other")
    assert equal.status == 0
    assert equal.out.splitlines()[0] == "the runs are equal"
    rows = {line[:11].strip(): line[11:].split() for line in equal.out.splitlines()[2:]}
    assert rows == {
        "model calls": ["5", "5"],
        "tokens in": ["300", "300"],
        "tokens out": ["200", "200"],
        "seconds": rows["seconds"],
        "USD": ["0.0030", "0.0030"],
    }
    text = (here.work / "tape").read_text().replace('"text":"do it"', '"text":"do that"')
    (here.work / "other").write_text(text)
    ran = here.run("diff", "tape", "other")
    assert ran.status == 1
    assert ran.out.splitlines()[0] == 'the runs part at event 1, input 1, text: "do it" is not "do that"'


@pytest.mark.parametrize("arguments", ["diff", "diff a", "diff a b", "replay", "replay a", "replay a b"])
def test_what_cannot_be_told_or_compared_is_one_line(tmp_path: Path, arguments: str) -> None:
    ran = Place(tmp_path).run(*arguments.split())
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_replay_is_told_by_id_too(tmp_path: Path) -> None:
    with serving([Reply(text="one")]) as fake:
        here = place(tmp_path, fake)
        here.run("-p", "x")
    id = next((here.home / ".bantam/logs").iterdir()).stem
    ran = here.run("--replay", id[:10], "-p", "x")
    assert (ran.status, ran.out) == (0, "one\n")
    assert os.listdir(here.home / ".bantam/logs") == [f"{id}.jsonl"]


def test_the_pipeline_of_the_manual_runs_offline(tmp_path: Path) -> None:
    """Its very commands, but for the name of the program: recorded against a model, then without any."""
    record, replay = (block.split("```")[0] for block in topics.manual()["tapes"].split("```sh\n")[1:3])

    def translate(body: Any) -> Reply:
        words = body["messages"][1]["content"]
        return Reply(text="- a crash\n- a leak" if words.startswith("List") else "- ein Absturz\n- ein Leck")

    with serving(translate) as fake:
        here = place(tmp_path, fake)
        here.environment["PATH"] = f"{tmp_path}:{here.environment['PATH']}"
        (tmp_path / "bantam").write_text(f'#!/bin/sh\nexec {here.command()[0]} -m bantam "$@"\n')
        (tmp_path / "bantam").chmod(0o755)
        (here.work / "report.txt").write_text("It crashes, and it leaks.")
        subprocess.run(["sh", "-ec", record], cwd=here.work, env=here.environment, check=True, timeout=60)
    assert (here.work / "expected.txt").read_text() == "- ein Absturz\n- ein Leck\n"
    subprocess.run(["sh", "-ec", replay], cwd=here.work, env=here.environment, check=True, timeout=60)
    (here.work / "report.txt").write_text("Something else.")
    changed = subprocess.run(["sh", "-ec", replay], cwd=here.work, env=here.environment, check=False, timeout=60)
    assert changed.returncode != 0


def test_a_tape_that_ends_in_mid_turn_ends_the_replay(tmp_path: Path) -> None:
    here, _ = recorded(tmp_path, "-p", "do it")
    whole = (here.work / "tape").read_text().splitlines(True)
    (here.work / "tape").write_text("".join(whole[:-2]))
    ran = here.run("--replay", "tape", "-p", "do it")
    assert (ran.status, ran.out) == (6, "")
    assert "the tape ends here, and the run goes on" in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_is_played_where_it_came(tmp_path: Path, number: int) -> None:
    calls = [("shell_exec", {"command": f"echo begun; kill -{number} $PPID; exec sleep 60"})]
    with serving([Reply(calls=calls)]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("do it")
        run = here.run("--json", "--record", "tape", "prompt.txt")
    again = here.run("--json", "--replay", "tape", "prompt.txt")
    assert (run.status, again.status) == (128 + number, 128 + number)
    assert "begun" in run.out
    assert again.out == run.out


def test_a_chat_can_be_recorded_and_told(tmp_path: Path) -> None:
    with serving([Reply(text="one")]) as fake:
        chat = Bantam(tmp_path, fake.endpoint, through='exec "$@" --record tape')
        chat.prompt()
        chat.ask("hello")
        chat.leave()
    ran = subprocess.run(
        [sys.executable, "-m", "bantam", "replay", "tape"],
        cwd=chat.work,
        env={"HOME": str(chat.home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.decode() == "bantam> hello\n...requesting...\none\n"


def test_lines_behind_an_interruption_are_not_read_again(tmp_path: Path) -> None:
    with serving([Reply(text="half an answer", end="hang")]) as fake:
        here = place(tmp_path, fake)
        run = here.start("--record", "tape", stdin=subprocess.PIPE)
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(b"one\ntwo\n")
        run.stdin.flush()
        first = b""
        while b"answer" not in first:
            first += os.read(run.stdout.fileno(), 4096)
        run.send_signal(signal.SIGINT)
        rest, _ = run.communicate(timeout=30)
    again = here.run("--replay", "tape", piped="one\ntwo\n")
    assert (again.status, again.out.encode()) == (130, first + rest)


def test_a_login_in_the_endpoint_is_in_no_log_and_no_tape(tmp_path: Path) -> None:
    with serving([Reply(text="one")]) as fake:
        here = place(tmp_path, fake)
        here.configure(endpoint=fake.endpoint.replace("http://", "http://me:s3cret-word@"), model="x")
        ran = here.run("--record", "tape", piped="hi\n/cfg temperature 0.5\n/save\n")
        assert fake.requests[0].headers["authorization"].startswith("Basic ")
    assert ran.status == 0
    kept = [path for path in (*here.home.rglob("*"), here.work / "tape") if path.is_file()]
    assert len(kept) >= 4
    assert not [path for path in kept if "s3cret" in path.read_text()]


def test_a_tape_is_a_file_of_one_run_and_an_incomplete_one_is_a_failure(tmp_path: Path) -> None:
    with serving([Reply(text="one")]) as fake:
        here = place(tmp_path, fake)
        device = here.run("--record", "/dev/full", "-p", "x")
        (here.work / "tape").write_text("old" * 1000)
        assert here.run("--record", "tape", "-p", "x").status == 0
        assert here.run("--replay", "tape", "-p", "x").out == "one\n"
        full = subprocess.run(
            ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *here.command("--record", "other", "-q", "-p", "x" * 9000)],
            cwd=here.work,
            env=here.environment,
            capture_output=True,
            check=False,
            timeout=60,
        )
    assert (device.status, device.err) == (2, "bantam: --record /dev/full: not a regular file\n")
    assert (full.returncode, full.stdout) == (1, b"one\n")
    assert b"cannot record under other: File too large; the tape is not whole\n" in full.stderr
