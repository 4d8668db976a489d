"""Runs that are killed, disks that are full, homes that are shared: nothing that was said is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bantam.core.past.mend import GAP
from scripts.fakemodel import Reply
from tests.invariants import complaint
from tests.program import Place, place, serving
from tests.pty_helpers import Bantam
from tests.root import ROOT

HOMES, KILLS = 5, 20


def works(body: Any) -> Reply:
    """A model that runs one command for each prompt, and is strict about what it is sent."""
    said = body["messages"]
    if problem := complaint(tuple(said)):
        return Reply(status=400, body=problem)
    if said[-1]["role"] == "tool":
        return Reply(text="done")
    words = [m["content"] for m in said if m["role"] == "user"][-1]
    return Reply(calls=[("shell_exec", {"command": f"echo {words} >> ran.txt"})])


def test_a_hundred_killed_runs_lose_nothing_and_run_nothing_twice(tmp_path: Path) -> None:
    with ThreadPoolExecutor(HOMES) as pool:
        list(pool.map(lambda number: _kill_and_resume(tmp_path / str(number), number), range(HOMES)))


def _kill_and_resume(folder: Path, seed: int) -> None:
    """One conversation whose process is killed again and again, at any moment between its start and its end."""
    folder.mkdir()
    luck, killed, number = random.Random(seed), 0, 0
    with serving(works) as fake:
        here = place(folder, fake)
        begun = time.monotonic()
        assert here.ask("prompt-0").status == 0
        whole_s = time.monotonic() - begun
        while killed < KILLS:
            number += 1
            (here.work / "next.txt").write_text(f"prompt-{number}")
            run = here.start("--resume", "next.txt", stdout=subprocess.DEVNULL)
            try:
                run.wait(luck.random() * whole_s)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                killed += 1
            _, err = run.communicate(timeout=30)
            assert all(line.startswith(b"Bantam was killed") for line in err.splitlines()), err
        (here.work / "next.txt").write_text("last")
        ran = here.run("--resume", "next.txt")
        assert ran.status == 0, ran.err
        sent = [m["content"] for r in fake.requests for m in r.body["messages"] if m["role"] == "user"]
    said = here.autosave()
    assert complaint(tuple(said)) == ""
    kept = [m["content"] for m in said if m["role"] == "user"]
    assert len(set(kept)) == len(kept)
    assert set(sent) <= set(kept)
    done = (here.work / "ran.txt").read_text().split()
    assert len(set(done)) == len(done)
    assert set(done) <= set(kept)


SAVES = """
import sys
from pathlib import Path
from bantam.core import messages
from tests.kept import Store
store = Store(Path(sys.argv[1]))
store.tidy()
said = (messages.system("s"), messages.user("x" * 4_000_000))
for number in range(10**6):
    said = (*said, messages.user(str(number)))
    store.autosave(said)
    print(number, flush=True)
"""


def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_session(tmp_path: Path) -> None:
    luck = random.Random(1)
    root = ROOT
    for _ in range(15):
        run = subprocess.Popen(
            [sys.executable, "-c", SAVES, str(tmp_path)], stdout=subprocess.PIPE, env={"PYTHONPATH": str(root)}
        )
        assert run.stdout is not None
        last = [run.stdout.readline()]
        reader = threading.Thread(target=lambda out=run.stdout, last=last: last.extend(out), daemon=True)
        reader.start()
        time.sleep(luck.random() * 0.05)  # any moment will do
        run.kill()
        run.wait()
        reader.join()
        run.stdout.close()
        saved = json.loads((tmp_path / "sessions" / "autosave.json").read_bytes())["messages"]
        assert int(saved[-1]["content"]) >= int(last[-1])
    assert len(list((tmp_path / "sessions").iterdir())) <= 2  # the next start removes the other one


# --- one home, many runs


def test_fifty_runs_at_once_in_one_folder_keep_each_its_own(tmp_path: Path) -> None:
    def summarises(body: Any) -> Reply:
        words = [m["content"] for m in body["messages"] if m["role"] == "user"]
        return Reply(text=f"about {words[0]}")

    with serving(summarises) as fake:
        here = place(tmp_path, fake)
        runs = [here.start(stdin=subprocess.PIPE) for _ in range(50)]
        for number, run in enumerate(runs):
            assert run.stdin is not None
            run.stdin.write(f"prompt-{number}\n/save\n".encode())
            run.stdin.close()
            run.stdin = None
        ended = [(run.communicate(timeout=60), run.returncode) for run in runs]
    assert [(err, status) for (_, err), status in ended] == [(b"", 0)] * 50
    saved = [json.loads(path.read_text()) for path in (here.home / ".bantam/sessions").glob("2*.json")]
    words = {record["messages"][1]["content"] for record in saved}
    assert words == {f"prompt-{number}" for number in range(50)}
    assert all(record["summary"] == f"about {record['messages'][1]['content']}" for record in saved)
    assert len(list((here.home / ".bantam/logs").iterdir())) == 50
    assert here.autosave()[1]["content"] in words


# --- a disk that takes nothing


def unwritable(here: Place) -> list[list[str]]:
    """Prefixes of a command that let it write no file, or none where its home should be."""
    (here.home / "file").write_text("")
    return [["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"], ["env", f"BANTAM_HOME={here.home}/file/x"]]


@pytest.mark.parametrize("way", [0, 1], ids=["full", "no folder"])
def test_a_disk_that_takes_nothing_is_said_once_and_the_chat_goes_on(tmp_path: Path, way: int) -> None:
    with serving([Reply(text="one"), Reply(text="two")]) as fake:
        here = place(tmp_path, fake)
        run = subprocess.run(
            [*unwritable(here)[way], *here.command()],
            input=b"first\nsecond\n",
            cwd=here.work,
            env=here.environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        said = fake.requests[-1].body["messages"]
    assert run.returncode == 0
    assert run.stdout.endswith(b"two\n")
    assert run.stderr.count(b"\n") == 1
    assert run.stderr.endswith(b"; the conversation goes on unsaved\n")
    assert [m["content"] for m in said[1:]] == ["first", "one", "second"]


# --- what --resume says and does


def test_a_command_that_was_running_is_not_run_again(tmp_path: Path) -> None:
    calls = [("shell_exec", {"command": "echo begun; echo x >> count.txt; echo $$ > command; exec sleep 60"})]
    with serving([Reply(calls=calls), Reply(text="never mind"), Reply(text="and so on")]) as fake:
        here = place(tmp_path, fake)
        run = here.start("-p", "do it")
        _until(lambda: (here.work / "count.txt").exists())
        log = next((here.home / ".bantam/logs").iterdir())
        _until(lambda: "begun" in log.read_text().splitlines()[-1])
        run.kill()
        run.communicate()
        resumed = here.run("--resume", piped="")
        said = fake.requests[1].body["messages"]
        again = here.run(f"--resume={log.stem[:-3]}", "-p", "go on")
        nothing = here.run("--resume", piped="")
    assert (resumed.status, resumed.err, again.status, again.out) == (0, "", 0, "and so on\n")
    assert [m["role"] for m in said] == ["system", "user", "assistant", "tool"]
    assert said[-1]["content"].startswith("begun\n[lost: ")
    assert (here.work / "count.txt").read_text() == "x\n"
    assert (nothing.status, nothing.out) == (0, f"resumed {log.stem}: 6 messages\n")
    os.kill(int((here.work / "command").read_text()), signal.SIGKILL)


def test_a_saved_session_is_resumed_with_the_settings_of_now(tmp_path: Path) -> None:
    with serving([Reply(text="one"), Reply(text="title"), Reply(text="two")]) as fake:
        here = place(tmp_path, fake)
        here.run(piped="first\n/save\n")
        id = next((here.home / ".bantam/sessions").glob("2*.json")).stem
        here.configure(endpoint=fake.endpoint, model="another")
        ran = here.run(f"--resume={id}", "-p", "second")
        body = fake.requests[-1].body
    assert (ran.status, ran.out, body["model"]) == (0, "two\n", "another")
    assert [m["content"] for m in body["messages"][1:]] == ["first", "one", "second"]


@pytest.mark.parametrize("id", ["", "nope", "../x", "-rf", "a\x7f"])
def test_what_cannot_be_resumed_is_one_line(tmp_path: Path, id: str) -> None:
    ran = Place(tmp_path).run(f"--resume={id}", "-p", "x")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("bantam: --resume: ")


def test_a_damaged_log_is_gone_on_with_in_a_new_one(tmp_path: Path) -> None:
    """A block of NUL bytes where a crash left it, and a line that breaks off: in the middle of what was said."""
    with serving([Reply(text=text) for text in ("one", "two", "three", "four", "five")]) as fake:
        here = place(tmp_path, fake)
        here.run(piped="first\nsecond\nthird\n")
        (log,) = (here.home / ".bantam/logs").iterdir()
        lines = log.read_bytes().splitlines(keepends=True)
        second = next(n for n, line in enumerate(lines) if b"ModelEnded" in line)
        third = next(n for n, line in enumerate(lines) if b'"third"' in line)
        lines[second], lines[third] = b"\0" * 4096 + b"\n", lines[third][:20] + b"\n"
        log.write_bytes(b"".join(lines))
        words = f"is damaged in lines {second + 1} (NUL bytes) and {third + 1} (it breaks off): "
        kept = f"{len(lines) - 2} of its {len(lines)} lines are kept"
        loaded = here.run(piped=f"/load {log.stem}\n/list {log.stem}\n")
        told, diff = here.run("replay", log.stem), here.run("diff", log.stem, log.stem)
        again = here.run(f"--replay={log}", piped="first\nsecond\nthird\n")
        resumed = here.run(f"--resume={log.stem}", "-p", "fourth")
        said = fake.requests[-1].body["messages"]
        later = here.run("--resume", "-p", "fifth")
        last = fake.requests[-1].body["messages"]
    assert loaded.err.splitlines() == [f"the log {log.stem} {words}{kept}"]
    assert words.removeprefix("is ").removesuffix(": ") in loaded.out
    assert (told.status, told.err.splitlines()) == (2, [f"bantam: {log.stem} {words}{kept}"])
    assert [word in told.out for word in ("first", "one", "second", "two", "three")] == [True] * 5
    tape = "it " + words.removesuffix(": ")
    assert (diff.status, diff.err) == (2, f"bantam: {log.stem} is no tape: {tape}\n")
    assert (again.status, again.err) == (2, f"bantam: --replay: {log} is no tape: {tape}\n")
    assert (resumed.status, later.status, "damaged" in later.err) == (0, 0, False)
    assert f"the log {log} {words}{kept}; it stays as it is, and nothing is added to it" in resumed.err
    texts = ["first", "one", "second", "two", GAP, "three", "fourth"]
    assert [m["content"] for m in said[1:]] == texts
    assert [m["content"] for m in last[1:]] == [*texts, "four", "fifth"]
    assert log.read_bytes() == b"".join(lines)


# --- every way a session can be broken


def broken_sessions() -> Iterator[tuple[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "shell_exec", "arguments": '{"command": "ls"}'}}
    other = {**call, "id": "c2"}
    user, result = {"role": "user", "content": "before"}, {"role": "tool", "tool_call_id": "c1", "content": "out"}
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    yield "call-without-result", [user, calls]
    yield "result-without-call", [user, result]
    yield "two-calls-one-result", [user, {**calls, "tool_calls": [call, other]}, result]
    yield "nothing-said", [user, {"role": "assistant", "content": None}]
    yield "bad-arguments", [user, {**calls, "tool_calls": [{**call, "function": {"name": "x", "arguments": "{"}}]}]
    yield "no-id", [user, {**calls, "tool_calls": [{"function": {"name": "x"}}]}]
    yield "members", [user, {"role": "assistant", "content": "kept words", "x_members": {"a": [1]}}]
    yield "parts", [{"role": "user", "content": [{"type": "text", "text": "kept words"}]}]
    yield "surrogate", [{"role": "user", "content": "kept words \ud83d \0 \u2028"}]
    yield "long-line", [{"role": "user", "content": "kept words" + "x" * 5_000_000}]
    yield "not-messages", [3, None, [], "x", {"role": 5}]
    yield "late-result", [user, calls, {"role": "user", "content": "x"}, result]


def test_whatever_a_session_holds_the_next_request_is_accepted(tmp_path: Path) -> None:
    sessions = dict(broken_sessions())
    with serving([Reply(text="fine")]) as fake:
        here = place(tmp_path, fake)
        folder = here.home / ".bantam" / "sessions"
        folder.mkdir(parents=True)
        for name, said in sessions.items():
            (folder / f"{name}.json").write_text(json.dumps({"id": name, "messages": said}))
        ran = here.run(piped="".join(f"/load {name}\n{name}?\n" for name in sessions))
        bodies = [request.body["messages"] for request in fake.requests]
        last = here.run(piped="/load autosave\nagain\n")
    assert (ran.status, ran.err, last.status) == (0, "", 0)
    assert [said[-1]["content"] for said in bodies] == [f"{name}?" for name in sessions]
    for name, said in zip(sessions, bodies, strict=True):
        assert complaint(tuple(said)) == "", name
        assert ("kept words" in json.dumps(sessions[name])) == ("kept words" in json.dumps(said))
    assert bodies[list(sessions).index("members")][2]["x_members"] == {"a": [1]}
    assert bodies[list(sessions).index("late-result")][3]["content"] == "out"


@pytest.mark.parametrize("data", [b"", b'{"id": "autosave", "mess', b"\0" * 5000, b"[]", b'{"messages": 3}', None])
def test_a_broken_autosave_is_told_of_at_the_start_and_kept(tmp_path: Path, data: bytes | None) -> None:
    with serving([Reply(text="fine")]) as fake:
        here = place(tmp_path, fake)
        autosave = here.home / ".bantam" / "sessions" / "autosave.json"
        autosave.parent.mkdir(parents=True)
        if data is None:
            autosave.mkdir()
        else:
            autosave.write_bytes(data)
        ran = here.run(piped="hello\n")
    assert (ran.status, ran.err.count("\n")) == (0, 1)
    aside = Path(ran.err.strip().rpartition(" ")[2])
    assert aside.is_dir() if data is None else aside.read_bytes() == data
    assert here.autosave()[1]["content"] == "hello"


def _until(holds: Any) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit
        os.sched_yield()


def test_the_chat_goes_on_with_a_killed_one(tmp_path: Path) -> None:
    calls = [("shell_exec", {"command": "echo $$ > command; echo begun; exec sleep 60"})]
    with serving([Reply(calls=calls), Reply(text="never mind"), Reply(text="still here")]) as fake:
        chat = Bantam(tmp_path, fake.endpoint, through='echo $$ > pid; exec "$@"')
        chat.prompt()
        chat.send("do it\r")
        chat.expect("[tool result: shell_exec]")
        os.kill(int((chat.work / "pid").read_text()), signal.SIGKILL)
        chat.stop()
        again = Bantam(tmp_path, fake.endpoint, through='exec "$@" --resume')
        first = again.prompt()
        assert "resumed " in first
        assert "[lost: Bantam was killed while this ran" in first
        assert first.rstrip().endswith("never mind")
        assert "still here" in again.ask("and now?")
        again.leave()
        said = fake.requests[-1].body["messages"]
    assert complaint(tuple(said)) == ""
    assert [m["role"] for m in said] == ["system", "user", "assistant", "tool", "assistant", "user"]
    os.kill(int((chat.work / "command").read_text()), signal.SIGKILL)
