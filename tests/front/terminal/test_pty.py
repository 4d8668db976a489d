"""The program on a real terminal, in scenes: what a person or a pexpect script sees of it.

One process a scene (two where the second finds what the first has left).
"""

import json
import os
import signal
import stat
from pathlib import Path

import pytest

from scripts.fakemodel import Reply, echo
from tests.pty_helpers import (
    AT_ONCE_S,
    JOB,
    SLOW,
    WATCHED,
    Bantam,
    autosaved,
    hung_up,
    model,
    plain,
    results,
    said,
    shell,
)
from tests.shell.run.test_process import living

BEGUN = r"begun\x1b\[0m"  # a command's output, and not the call that tells of it


def beginning(bantam: Bantam, id: str) -> str:
    """The shortest text with which only this id begins, among sessions and logs."""
    others = {path.stem for path in (bantam.home / ".bantam").glob("*/*.json*")} - {id}
    return next(id[:end] for end in range(1, 99) if not any(other.startswith(id[:end]) for other in others))


def test_lines_joined_by_ctrl_j_are_one_message_and_the_prompt_is_written_once(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start()
        bantam.prompt()
        assert bantam.ask("one\ntwo\nthree").endswith("one\ntwo\nthree\n")  # no early prompt: it is the answer
        assert said(fake) == ["one\ntwo\nthree"]
        bantam.ask("   ")
        bantam.ask("next")
        assert len(fake.requests) == 2
        bantam.send("/qu\t")
        bantam.expect("it")
        bantam.send("\r")
        assert bantam.end() == 0


def test_a_session_is_saved_listed_cleared_and_loaded_by_its_beginning(tmp_path: Path) -> None:
    with model(tmp_path, [Reply("Hello."), Reply("a greeting"), Reply("You greeted me.")]) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.ask("hello there")
        assert "a greeting" in bantam.ask("/save")
        (saved,) = (path for path in (bantam.home / ".bantam/sessions").glob("2*.json"))
        assert json.loads(saved.read_text())["summary"] == "a greeting"
        assert f"{saved.stem} " in bantam.ask("/list")
        bantam.ask("/clear")
        assert "did you mean /load?" in bantam.ask("/laod 2")
        assert "loaded" in bantam.ask(f"/load {beginning(bantam, saved.stem)}")
        bantam.ask("what did I say?")
        assert said(fake) == ["hello there", "what did I say?"]
        bantam.leave()


def test_cfg_changes_one_line_and_the_next_request(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start()
        bantam.prompt()
        config = bantam.work / "model.cfg"
        before = config.read_text()
        bantam.ask("/cfg temperature 0.2")
        assert config.read_text() == before.replace("temperature=0.7", "temperature=0.2")
        bantam.ask("hello")
        assert fake.requests[-1].body["temperature"] == 0.2
        bantam.leave()


def test_ctrl_c_stops_an_answer_and_keeps_what_was_said(tmp_path: Path) -> None:
    with model(tmp_path, [SLOW, Reply("Gladly.")]) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("count\r")
        bantam.expect("one two")
        bantam.send("\x03")
        bantam.prompt(AT_ONCE_S)
        bantam.ask("go on")
        assert fake.requests[-1].body["messages"][2]["content"].startswith("one two")
        assert said(fake) == ["count", "go on"]
        bantam.leave()


def test_ctrl_c_stops_a_command_and_leaves_no_process(tmp_path: Path) -> None:
    with model(tmp_path, [shell("echo begun $$; sleep 100; echo never"), Reply("Stopped.")]) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("wait\r")
        group = int(bantam.match(r"begun (\d+)\x1b")[1])
        bantam.send("\x03\x03")  # the second comes while the first is at work
        bantam.prompt(AT_ONCE_S)
        assert not living(group)
        bantam.ask("and now?")
        (result,) = results(fake)
        assert result.startswith("begun")
        assert "interrupted" in result
        bantam.leave()


def test_ctrl_c_stops_a_subagent_with_its_command(tmp_path: Path) -> None:
    script = [Reply(calls=[("run_subagent", {"prompt": "wait"})]), shell("echo begun $$; sleep 100"), Reply("Well.")]
    with model(tmp_path, script) as (_, start):
        bantam = start()
        bantam.prompt()
        bantam.send("delegate\r")
        group = int(bantam.match(r"begun (\d+)\x1b")[1])
        bantam.send("\x03")
        bantam.prompt(AT_ONCE_S)
        assert not living(group)
        assert "Well." in bantam.ask("and now?")
        bantam.leave()


def test_a_paste_is_one_message_and_waits_for_enter(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("\x1b[200~a\nb\r\nc\r\x1b[201~ pasted")
        bantam.expect("pasted")
        assert not fake.requests
        bantam.ask(" and sent")
        assert said(fake) == ["a\nb\nc\n pasted and sent"]
        bantam.leave()


def test_what_is_entered_during_a_turn_is_said_before_its_next_call(tmp_path: Path) -> None:
    waits = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over"
    long = "long " * 2000  # more than a terminal holds
    with model(tmp_path, [shell(waits), Reply("First."), Reply("Second.")]) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("work\r")
        bantam.expect("\x1b[?2004h")  # pastes are marked in a turn, too
        bantam.match(BEGUN)
        bantam.send(f"{long}\rsecond\nline\rthe \x1b[200~rest\rof it\x1b[201~")
        assert plain(bantam.expect("queued: second line (2 lines)")).split() == ["queued:", *["long"] * 9, "long…"]
        (bantam.work / "go").touch()
        assert plain(bantam.expect("First.")).split() == ["over", "exit:", "0", "...requesting..."]
        bantam.prompt()
        bantam.expect("of it")  # stands in the editor
        assert said(fake) == ["work", long, "second\nline"]
        bantam.ask("")
        assert said(fake)[-1] == "the rest\nof it"
        bantam.leave()


def test_ctrl_c_and_ctrl_d_at_the_prompt_lose_nothing_by_one_key(tmp_path: Path) -> None:
    with model(tmp_path, [Reply("Ok."), shell("echo begun; sleep 0.2"), Reply("Done.")]) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("abc\x04\x03")  # Ctrl+D behind a text does nothing
        bantam.prompt()
        bantam.ask("def")
        assert said(fake) == ["def"]
        bantam.send("\x03")
        assert "Ctrl+C again or Ctrl+D" in bantam.prompt()
        bantam.send("x\x7f\x03")  # not directly after
        assert "Ctrl+C again or Ctrl+D" in bantam.prompt()
        bantam.send("work\r")
        bantam.match(BEGUN)
        bantam.send("\x04")  # typed ahead: it leaves at the next prompt
        bantam.expect("Done.")
        assert bantam.end() == 0
        assert "Done." in autosaved(bantam.home)


def test_ctrl_c_twice_leaves(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (_, start):
        bantam = start()
        bantam.prompt()
        bantam.send("\x03")
        bantam.prompt()
        bantam.send("\x03")
        assert bantam.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("scene", ["prompt", "answer", "command"])
def test_a_signal_ends_it_saved_and_with_the_terminal_as_it_was(tmp_path: Path, scene: str, number: int) -> None:
    script = {
        "prompt": [Reply("Hello.")],
        "answer": [Reply("Hello."), SLOW],
        "command": [Reply("Hello."), shell("stty raw -echo <$TERMINAL; echo begun $$; sleep 100")],
    }[scene]
    with model(tmp_path, script) as (fake, start):
        bantam = start(WATCHED)
        modes = bantam.match(r"modes (\S+)\r")[1]
        pid = int(bantam.match(r"pid (\d+)\r")[1])
        bantam.prompt()
        bantam.ask("hello")
        group = 0
        if scene != "prompt":
            bantam.send("more\r")
        if scene == "answer":
            bantam.expect("one two")
        if scene == "command":
            group = int(bantam.match(r"begun (\d+)\x1b")[1])
        os.kill(pid, number)
        ended = bantam.match(r"status (\d+), modes (\S+)\r")
        bantam.end()
        assert ended.groups() == (str(128 + number), modes)
        assert bantam.all.rindex("\x1b[?25h") > bantam.all.rindex("\x1b[?25l")  # the cursor is visible
        assert bantam.all.rindex("\x1b[?2004l") > bantam.all.rindex("\x1b[?2004h")  # pastes are not marked
        assert "Hello." in autosaved(bantam.home)
        assert "Traceback" not in bantam.all
        assert not (group and living(group))
        hung_up(fake)


def test_a_dumb_terminal_gets_no_escape_byte(tmp_path: Path) -> None:
    with model(tmp_path, [shell("echo out"), Reply("Do\x1bne.", reasoning="hm"), Reply("Again.")]) as (fake, start):
        bantam = start(TERM="dumb")
        bantam.prompt()
        bantam.ask("work\x08\x08rk\nmore")  # backspace, and a new line
        assert said(fake) == ["work\nmore"]
        bantam.ask("/list")
        bantam.send("abc\x03")
        bantam.prompt()
        bantam.ask("/cfg")
        bantam.send("\x1b[A\x1b[A\x1b[A")  # Up: /cfg, abc, /list
        bantam.expect("/list")
        bantam.send("\x03")
        bantam.prompt()
        bantam.leave()
        assert "\x1b" not in bantam.all


def test_nothing_that_the_model_writes_acts_on_the_terminal(tmp_path: Path) -> None:
    hostile = "a\x1b]52;c;AAAA\x07b\x1b[2Jc\x1b]0;x\x07d\x9b2Je\rDONE"
    with model(tmp_path, [Reply(hostile, delta_chars=1), shell(f"printf '{hostile}'"), Reply("ok")]) as (_, start):
        bantam = start()
        bantam.prompt()
        shown = [bantam.ask("talk"), bantam.ask("work")]
        bantam.leave()
        for escape in ("\x1b]52", "\x1b[2J", "\x1b]0;", "\x9b", "\x07"):
            assert escape not in bantam.all
        for text in shown:
            assert "a\u241b]52;c;AAAA\u2407b\u241b[2Jc\u241b]0;x\u2407d<9B>2Je\u240dDONE" in text


def test_a_long_line_survives_every_width(tmp_path: Path) -> None:
    line = "".join(f"{number:03}-" for number in range(25))
    with model(tmp_path, [Reply("Fine."), SLOW]) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send(line)
        bantam.expect("023-024-")
        for columns in (79, 20, 200, 1, 7, 40):
            bantam.resize(columns)
            bantam.match(r"\x1b\[J(?s:.)*\x1b\[\?25h")  # painted anew
        bantam.send("\n!\r")
        bantam.expect("Fine.")
        assert said(fake) == [f"{line}\n!"]
        bantam.prompt()
        bantam.send("more\r")
        for columns in (80, 1, 200):
            bantam.expect("one two")
            bantam.resize(columns)
        bantam.send("\x03")
        bantam.prompt(AT_ONCE_S)
        bantam.leave()


def test_the_history_is_private_and_lasts(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        first = start()
        first.prompt()
        first.ask("remember\nthis")
        first.ask("/cfg api_key sk-secret-value")
        first.ask("is sk-secret-value safe?")
        first.leave()
        history = first.home / ".bantam_history"
        assert stat.S_IMODE(history.stat().st_mode) == 0o600
        assert "sk-secret-value" not in history.read_text()
        second = start()
        second.prompt()
        second.send("\x1b[A\x1b[A!\r")
        second.prompt()
        assert said(fake) == ["remember\nthis!"]
        second.leave()


def test_an_editor_writes_the_message(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        editor = tmp_path / "editor"
        editor.write_text('#!/bin/sh\nprintf "%s, edited" "$(cat "$1")" >"$1"\n')
        editor.chmod(0o700)
        bantam = start(EDITOR=str(editor))
        bantam.prompt()
        bantam.send("text\x18\x05")
        bantam.expect(", edited")
        bantam.ask("")
        assert said(fake) == ["text, edited"]
        bantam.leave()


def test_a_terminal_that_never_answers_or_answers_late(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("\x1b[12;40Rhi\x1b[1;1R\r")
        assert bantam.prompt() == "hi\n...requesting...hi\n"  # and no room below
        assert said(fake) == ["hi"]
        bantam.leave()
        assert "\x1b[6n" not in bantam.all
        assert "WARNING" not in bantam.all
        assert "12;40" not in bantam.all


def test_sigint_does_what_ctrl_c_does(tmp_path: Path) -> None:
    with model(tmp_path, [SLOW, Reply("Yes.")]) as (fake, start):
        bantam = start(WATCHED)
        modes = bantam.match(r"modes (\S+)\r")[1]
        pid = int(bantam.match(r"pid (\d+)\r")[1])
        bantam.prompt()
        bantam.send("count\r")
        bantam.expect("one two")
        os.kill(pid, signal.SIGINT)
        bantam.prompt(AT_ONCE_S)
        bantam.send("abc")
        bantam.expect("abc")
        os.kill(pid, signal.SIGINT)
        bantam.prompt()
        bantam.ask("still there?")
        assert said(fake) == ["count", "still there?"]
        bantam.send("\x04")
        assert bantam.match(r"status (\d+), modes (\S+)\r").groups() == ("0", modes)


def test_ctrl_z_stops_the_job_at_the_prompt_and_in_a_turn(tmp_path: Path) -> None:
    waits = "echo begun; while [ ! -e go ]; do sleep 0.02; done"
    with model(tmp_path, [shell(waits), Reply("Done.")]) as (fake, start):
        bantam = start(JOB)
        bantam.prompt()
        bantam.send("wor\x1a")
        bantam.match(r"status 1\d\d\r")
        bantam.prompt()
        bantam.send("k\r")
        bantam.match(BEGUN)
        bantam.send("more\x1a")
        bantam.match(r"status 1\d\d\r")
        (bantam.work / "go").touch()
        bantam.expect("Done.")
        bantam.prompt()
        bantam.ask("?")
        assert said(fake) == ["work", "more?"]
        bantam.send("\x04")
        bantam.expect("status 0")
