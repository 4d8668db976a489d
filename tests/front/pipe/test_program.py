"""The real program without a terminal: prompts from files, pipes and -p, its streams and exit statuses."""

import json
import os
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.program import Place, Reply, place, serving

HELLO = Reply("pelican")
ASK_TWICE = [Reply("Looking. ", calls=[("shell_exec", {"command": "printf blue"})]), HELLO]


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def test_a_file_is_asked_and_the_whole_turn_is_shown(tmp_path: Path) -> None:
    with serving(ASK_TWICE) as fake:
        here = place(tmp_path, fake)
        ran = here.ask("Which colour?\n")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "...requesting...\nLooking. \n"
        '[tool call: shell_exec({"command": "printf blue"})]\n'
        "[tool result: shell_exec]\nblue\n\nexit: 0\n...requesting...\npelican\n"
    )
    assert roles(here.autosave()) == ["system", "user", "assistant", "tool", "assistant"]


def test_reasoning_is_bracketed_and_never_in_the_answer(tmp_path: Path) -> None:
    with serving([Reply("pelican", reasoning="hm")]) as fake:
        here = place(tmp_path, fake)
        ran = here.ask("x")
    assert "--- reasoning start ---\nhm\n--- reasoning end ---\npelican\n" in ran.out
    assert here.autosave()[-1]["content"] == "pelican"


def test_all_of_standard_input_is_one_prompt(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        assert here.run("-", piped="\ufeffone\r\ntwo\n").status == 0
        assert fake.requests[0].body["messages"][-1]["content"] == "one\ntwo\n"


def test_each_piped_line_is_a_turn_of_one_conversation(tmp_path: Path) -> None:
    with serving([Reply("first"), Reply("second")]) as fake:
        here = place(tmp_path, fake)
        ran = here.run(piped="one\n\n  \n!two\n")
        assert ran.status == 0
        assert [m["content"] for m in fake.requests[1].body["messages"][1:]] == ["one", "first", "!two"]


def test_a_failed_line_does_not_stop_the_next_and_names_the_status(tmp_path: Path) -> None:
    with serving([Reply(status=401, body='{"error": {"message": "bad key"}}'), HELLO]) as fake:
        ran = place(tmp_path, fake).run(piped="one\ntwo\n")
    assert ran.status == 1
    assert "bad key" in ran.err
    assert ran.out.endswith("pelican\n")


def test_commands_work_in_piped_lines(tmp_path: Path) -> None:
    with serving([Reply("first"), Reply("about one"), Reply("second")]) as fake:
        here = place(tmp_path, fake)
        ran = here.run(piped="one\n/save\n/list\n/clear\n/lod\n/etc/hosts is a file\n/quit\nnever\n")
        last = fake.requests[-1].body["messages"]
    assert ran.status == 1
    assert "unknown command /lod; did you mean /load?" in ran.err
    assert ": about one" in ran.out
    assert [m["content"] for m in last[1:]] == ["/etc/hosts is a file"]
    assert len(fake.requests) == 3


def test_a_session_is_loaded_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    with serving([Reply("first"), Reply("about one"), Reply("second")]) as fake:
        here = place(tmp_path, fake)
        here.run(piped="one\n/save\n")
        saved = next(p.stem for p in (here.home / ".bantam/sessions").glob("2*.json"))
        ran = here.run(piped=f"/load {saved[:-1]}\ntwo\n")
        assert ran.status == 0, ran.err
        assert [m["content"] for m in fake.requests[2].body["messages"][1:]] == ["one", "first", "two"]


def test_a_log_can_be_loaded_too(tmp_path: Path) -> None:
    with serving([Reply("first"), Reply("second")]) as fake:
        here = place(tmp_path, fake)
        here.run("-p", "one")
        log = next(p.stem for p in (here.home / ".bantam/logs").iterdir())
        ran = here.run(piped=f"/load {log}\ntwo\n")
        assert ran.status == 0, ran.err
        assert [m["content"] for m in fake.requests[1].body["messages"][1:]] == ["one", "first", "two"]


def test_compact_leaves_the_system_prompt_and_the_summary(tmp_path: Path) -> None:
    with serving([Reply("first"), Reply("we talked"), Reply("second")]) as fake:
        here = place(tmp_path, fake)
        here.run(piped="one\n/compact\ntwo\n")
        sent = fake.requests[2].body["messages"]
    assert roles(sent) == ["system", "user", "user"]
    assert "we talked" in sent[1]["content"]


def test_cfg_changes_one_line_and_what_is_sent(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        config = here.work / "model.cfg"
        config.write_text("# mine\n" + config.read_text() + "temperature = 0.9 \n# end\n")
        config.chmod(0o640)
        ran = here.run(piped="/cfg temperature 0.2\n/cfg timeout x\nhi\n/cfg temperature\n")
        assert fake.requests[0].body["temperature"] == 0.2
    assert config.read_text().splitlines()[-2:] == ["temperature=0.2", "# end"]
    assert config.read_text().startswith("# mine\n")
    assert config.stat().st_mode & 0o777 == 0o640
    assert "timeout must be a number of seconds above 0" in ran.err
    assert ran.status == 1


def test_print_mode_puts_only_the_answer_on_standard_output(tmp_path: Path) -> None:
    with serving(ASK_TWICE) as fake:
        here = place(tmp_path, fake)
        ran = here.run("-p", "Which?")
    assert (ran.status, ran.out) == (0, "pelican\n")
    assert "Looking." in ran.err
    assert "[tool result: shell_exec]" in ran.err
    assert "pelican" not in ran.err
    assert not (here.home / ".bantam/sessions/autosave.json").exists()


def test_what_is_piped_into_print_mode_joins_the_prompt(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        place(tmp_path, fake).run("-p", "Review:", piped="a\nb\n")
        assert fake.requests[0].body["messages"][-1]["content"] == "Review:\n\n<stdin>\na\nb\n\n</stdin>"


def test_a_silent_pipe_does_not_hang_print_mode(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        read, write = os.pipe()
        process = place(tmp_path, fake).start("-p", "x", stdin=read)
        out, err = process.communicate(timeout=30)
        os.close(read)
        os.close(write)
    assert (process.returncode, out) == (0, b"pelican\n")
    assert b"nothing came on standard input" in err


def test_quiet_is_silent_beside_the_answer(tmp_path: Path) -> None:
    with serving([Reply(status=503, body="busy"), *ASK_TWICE]) as fake:
        ran = place(tmp_path, fake).ask("x", "-q")
    assert (ran.status, ran.out) == (0, "pelican\n")
    assert ran.err == "the API answered 503: busy; trying again in 1 s (1 of 9)\n"


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (Reply(status=401, body='{"error": {"message": "Incorrect API key"}}'), 1, "401: Incorrect API key"),
        (Reply(status=404, body='{"error": {"message": "no such model"}}'), 1, "no such model"),
        (Reply(status=503, body="busy"), 75, "503: busy"),
        (Reply(status=429, headers={"Retry-After": "200"}), 75, "asks to wait 200 s"),
        (Reply(body="<html>"), 1, "HTML"),
        (Reply(body=""), 75, "empty body"),
        (
            Reply(calls=[("shell_exec", {"command": "true"})]),
            3,
            "stopped: the model calls of this turn are used up (max_al_iterations=2)",
        ),
    ],
)
def test_the_status_says_how_it_ended(tmp_path: Path, reply: Reply, status: int, words: str) -> None:
    with serving([reply]) as fake:
        ran = place(tmp_path, fake, max_al_iterations="2").run("-p", "x")
    assert (ran.status, ran.out) == (status, "")
    assert words in ran.err


def test_no_network_is_a_failure_for_now(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        here = Place(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        ran = here.ask("x")
    assert ran.status == 75
    assert "could not connect" in ran.err
    assert roles(here.autosave()) == ["system", "user"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nonsense"], "unknown option --nonsense"),
        (["a", "b"], "only one FILE"),
        (["a", "-q", "b"], "only one FILE"),
        (["a", "-q", "b", "-y"], "unknown option -y"),
        (["--", "-y"], "prompt file -y: No such file"),
        (["-p", "x", "a"], "exclude each other"),
        (["-p", "x", "replay"], "replay takes no -p; for a prompt file of that name say ./replay"),
        (["demo", "-o", "x"], "demo takes no -o"),
        (["diff", "a", "b", "-q"], "diff takes no -q"),
        (["trust", "--resume"], "trust takes no --resume"),
        (["-p"], "-p"),
        (["-p", " "], "-p needs a text"),
        (["missing.txt"], "missing.txt: No such file"),
        (["."], "Is a directory"),
        (["empty.txt"], "empty.txt is empty"),
        (["-c", "nonsense", "-p", "x"], "-c nonsense: expected key=value"),
        (["-c", "timeout=x", "-p", "x"], "timeout must be a number of seconds"),
        (["-C", "missing", "-p", "x"], "missing: No such file"),
        (["models"], "models is not available in this version"),
        (["-c", "sandbox=bwrap", "-p", "x"], "sandbox is not available"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    here = Place(tmp_path)
    (here.work / "empty.txt").write_text(" \n")
    ran = here.run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert words in ran.err
    assert ran.err.startswith("bantam: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"endpoint=http://x/v1\nmodel\n", "model.cfg, line 2: expected key=value"),
        (b"\xff\n", "model.cfg, line 1: not UTF-8"),
        (b"stream=maybe\n", "model.cfg, line 1: stream must be true or false"),
        (b"messages=[]\n", "messages is made by Bantam"),
    ],
)
def test_a_malformed_configuration_names_file_line_and_what_was_expected(
    tmp_path: Path, text: bytes, words: str
) -> None:
    here = Place(tmp_path)
    (here.work / "model.cfg").write_bytes(text)
    ran = here.ask("x")
    assert ran.status == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_an_unreadable_configuration_is_one_line(tmp_path: Path) -> None:
    here = Place(tmp_path)
    (here.work / "model.cfg").unlink()
    (here.work / "model.cfg").mkdir()
    ran = here.ask("x")
    assert (ran.status, ran.err) == (2, "bantam: model.cfg: cannot be read: Is a directory\n")


def test_a_misspelt_setting_is_sent_and_noticed(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake, colour="never")
        ran = here.ask("x")
        assert fake.requests[0].body["colour"] == "never"
    assert ran.err == "model.cfg, line 3: colour is sent to the API as it is; did you mean color?\n"


def test_the_environments_key_goes_only_where_it_may(tmp_path: Path) -> None:
    here = Place(tmp_path, "http://api.invalid/v1")
    here.environment["OPENAI_API_KEY"] = "sk-marker-123"
    ran = here.ask("x")
    assert ran.status == 2
    assert "-c endpoint=http://api.invalid/v1" in ran.err
    with serving([HELLO]) as fake:
        here.configure(endpoint=fake.endpoint, model="test")
        assert here.ask("x").status == 0
        assert fake.requests[0].headers["authorization"] == "Bearer sk-marker-123"


def test_the_key_is_nowhere_else(tmp_path: Path) -> None:
    run_env = Reply(calls=[("shell_exec", {"command": "env; cat ../key"})])
    with serving([run_env, Reply("it is sk-marker-123"), HELLO]) as fake:
        here = place(tmp_path, fake)
        here.environment |= {"OPENAI_API_KEY": "sk-marker-123", "SSH_AUTH_SOCK": "/tmp/agent"}
        (tmp_path / "key").write_text("sk-marker-123")
        ran = here.run(piped="my key is sk-marker-123\nagain\n")
        bodies = [json.dumps(request.body) for request in fake.requests]
    assert "SSH_AUTH_SOCK=/tmp/agent" in bodies[1]
    kept = [p.read_text() for p in here.home.rglob("*") if p.is_file()]
    assert "[key]" in ran.out
    assert len(kept) == 2
    assert not [text for text in [ran.out, ran.err, *bodies, *kept] if "sk-marker" in text]


def test_the_version_and_the_help_import_nothing_slow(tmp_path: Path) -> None:
    here = Place(tmp_path)
    for option in ("--version", "--help"):
        script = (
            f"import sys, os; sys.argv = ['bantam', {option!r}]; import bantam.__main__ as m\n"
            "os._exit = lambda code: None\nm.main()\n"
            "sys.exit(sorted({'aiohttp', 'prompt_toolkit', 'asyncio'} & {*sys.modules}) or 0)"
        )
        ran = subprocess.run([here.command()[0], "-c", script], env=here.environment, cwd=here.work, check=False)
        assert ran.returncode == 0
    assert here.run("--version").out.startswith("bantam 1.")
    assert here.run("-q", "--version", "demo").out == here.run("--version").out
    assert "exit status" in here.run("--help").out


def test_one_shot_runs_never_import_prompt_toolkit(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        here.environment["PYTHONPROFILEIMPORTTIME"] = "1"
        assert "prompt_toolkit" not in here.ask("x").err


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path) -> None:
    with serving([Reply("a line of text\n" * 20_000, delta_chars=500)]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        process = here.start("prompt.txt")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141
        process.stderr.close()
    assert roles(here.autosave()) == ["system", "user", "assistant"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("busy", ["answer", "command"])
def test_a_signal_stops_what_runs_and_keeps_the_rest(tmp_path: Path, number: signal.Signals, busy: str) -> None:
    answer = Reply("half an answer", delta_chars=4, end="hang")
    command = Reply(calls=[("shell_exec", {"command": 'echo be""gun; exec sleep 300'})])
    with serving([answer if busy == "answer" else command]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        process = here.start("prompt.txt")
        assert process.stdout is not None
        wanted = b"answer" if busy == "answer" else b"begun"
        seen = b""
        while wanted not in seen:
            seen += os.read(process.stdout.fileno(), 1000)
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert time.monotonic() - began < 5
    assert (process.returncode, err) == (128 + number, b""), out
    last = here.autosave()[-1]["content"]
    assert last.startswith("half an answer" if busy == "answer" else "begun\n[interrupted by the user]")


def test_any_locale_gets_utf8(tmp_path: Path) -> None:
    with serving([Reply("✓ 🦀 é")]) as fake:
        here = place(tmp_path, fake)
        here.environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp1252"}
        (here.work / "prompt.txt").write_bytes(b"caf\xe9?")
        ran = here.run("prompt.txt")
        assert fake.requests[0].body["messages"][-1]["content"] == "caf\ufffd?"
    assert ran.out.endswith("✓ 🦀 é\n")
    assert "not UTF-8" in ran.err


def test_nothing_to_read_ends_at_once(tmp_path: Path) -> None:
    ran = Place(tmp_path).run()
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_saving_nothing_leaves_no_trace(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake, save="false")
        assert here.ask("x").status == 0
    assert not list(here.home.iterdir())


def test_a_home_that_cannot_be_written_is_said_once_and_the_answer_comes(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.home / ".bantam").write_text("in the way")
        ran = here.run(piped="one\ntwo\n")
    assert ran.status == 0
    assert ran.out.count("pelican") == 2
    assert 1 <= ran.err.count("the conversation goes on unsaved") <= 2


def test_subagents_of_one_answer_run_at_the_same_time(tmp_path: Path) -> None:
    def model(body: Any) -> Reply:
        said = body["messages"]
        if said[-1]["role"] == "tool":
            return HELLO
        if "child agent" in said[0]["content"]:
            return Reply(f"did {said[-1]['content']}", wait_s=1)
        return Reply(calls=[("run_subagent", {"prompt": name}) for name in "abc"])

    with serving(model) as fake:
        here = place(tmp_path, fake)
        ran = here.ask("x")
        times = [request.at for request in fake.requests[1:4]]
        last = fake.requests[-1].body["messages"]
    assert max(times) - min(times) < 0.9
    assert [m["content"] for m in last if m["role"] == "tool"] == ["did a", "did b", "did c"]
    assert "  2| did a" in ran.out


@pytest.mark.parametrize("arguments", [["prompt.txt"], ["-p", "x"], ["-q", "prompt.txt"]])
def test_a_full_disk_is_an_error_and_the_session_is_kept(tmp_path: Path, arguments: list[str]) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with open("/dev/full", "wb") as full:
            process = here.start(*arguments, stdout=full)
            _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err.count(b"cannot write to standard output: No space left on device") == 1


@pytest.mark.parametrize(("closed", "status"), [("<&-", 0), (">&-", 1), ("2>&-", 0), ("<&- >&- 2>&-", 1)])
def test_closed_streams_are_no_files_of_ours(tmp_path: Path, closed: str, status: int) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        shell = [shlex.join(here.command("prompt.txt")) + " " + closed]
        ran = subprocess.run(
            ["sh", "-c", *shell], cwd=here.work, env=here.environment, capture_output=True, check=False, timeout=30
        )
    assert ran.returncode == status
    assert here.autosave()[-1]["content"] == ("pelican" if status == 0 else "x")
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize("end", ["reset", "cut"])
def test_an_answer_with_its_finish_reason_is_whole_however_the_connection_ends(tmp_path: Path, end: Any) -> None:
    chunk = {"choices": [{"delta": {"content": "pelican"}, "finish_reason": "stop"}]}
    with serving([Reply(chunks=[chunk], end=end, pause_s=0.05)]) as fake:
        ran = place(tmp_path, fake).run("-p", "x")
    assert (ran.status, ran.out, len(fake.requests)) == (0, "pelican\n", 1)


def test_commands_get_no_key_that_this_run_does_not_use(tmp_path: Path) -> None:
    with serving([Reply(calls=[("shell_exec", {"command": "env"})]), HELLO]) as fake:
        here = place(tmp_path, fake, api_key="sk-other-111")
        here.environment |= {"OPENAI_API_KEY": "sk-marker-123", "ANTHROPIC_API_KEY": "sk-marker-456"}
        ran = here.ask("x")
        sent = json.dumps(fake.requests[1].body)
    assert (ran.status, "sk-marker" in sent, "sk-marker" in ran.out) == (0, False, False)


def test_text_of_an_argument_survives_any_locale(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        here.environment |= {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        assert here.run("-p", "é ✓", "-c", "note=ü").status == 0
        body = fake.requests[0].body
    assert (body["messages"][-1]["content"], body["note"]) == ("é ✓", "ü")


def test_a_key_that_was_written_wrongly_is_not_shown(tmp_path: Path) -> None:
    here = Place(tmp_path)
    for line in ("api_key: sk-marker-123", "api_key sk-marker-123", "sk-marker-123"):
        (here.work / "model.cfg").write_text(f"{line}\n")
        ran = here.ask("x")
        assert (ran.status, ran.err) == (2, "bantam: model.cfg, line 1: expected key=value\n")


def test_a_saved_session_does_not_hide_the_log_of_its_run(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        here.run(piped="a\n/save\nb\n")
    saved, logs = ({p.stem for p in (here.home / ".bantam" / folder).iterdir()} for folder in ("sessions", "logs"))
    assert not saved & logs


@pytest.mark.parametrize("lines", ["5\n[1,2]\n", "[" * 100_000 + "\n", '[0, {"type": "UserSaid"}]\n[0, {}]\n'])
def test_a_broken_log_is_one_line_and_the_next_line_is_asked(tmp_path: Path, lines: str) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        here.run("-p", "x")
        log = next((here.home / ".bantam/logs").iterdir())
        (log.parent / "broken.jsonl").write_text(log.read_text().split("\n")[0] + "\n" + lines)
        ran = here.run(piped="/load broken\nmore\n")
    assert (ran.status, ran.err.count("\n"), "the log broken is damaged in line" in ran.err) == (0, 1, True)
    assert ran.out.endswith("pelican\n")


def test_a_version_that_cannot_be_written_is_a_failure_without_a_traceback(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        process = Place(tmp_path).start("--version", stdout=full)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (1, b"")


def test_a_setting_given_for_the_run_gives_way_to_a_later_cfg(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        ran = here.run("-c", "model=first", "-c", "seed=1", piped="one\n/cfg model second\ntwo\n")
        sent = [(request.body["model"], request.body["seed"]) for request in fake.requests]
    assert sent == [("first", 1), ("second", 1)]
    assert "model=second\n" in ran.out


def test_a_setting_that_is_switched_off_is_no_error(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        ran = here.run(piped="/cfg temperature null\none\n/cfg sandbox bwrap\n")
        assert "temperature" not in fake.requests[0].body
    assert "temperature is left out of requests" in ran.out
    assert (
        ran.err == "nothing was changed: model.cfg, line 4: sandbox is not available in this version; remove the line\n"
    )
    assert "sandbox" not in (here.work / "model.cfg").read_text()


def test_a_key_in_the_system_prompt_is_neither_sent_nor_kept(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake, api_key="sk-marker-123")
        (here.work / "system.txt").write_text("Never say sk-marker-123.")
        here.ask("x")
        assert fake.requests[0].body["messages"][0]["content"] == "Never say [key]."
    assert not [p for p in here.home.rglob("*") if p.is_file() and "sk-marker" in p.read_text()]
