"""Drafts on a real terminal: what a person sees of vi's mode, of long pastes, of an editor that fails, of a queue."""

import os
import re
import time
from pathlib import Path

import pytest

from scripts.fakemodel import Reply, echo
from tests.pty_helpers import Bantam, model, plain, said, shell

BEGUN = r"begun\x1b\[0m"
WAITS = "echo begun; while [ ! -e go ]; do sleep 0.02; done"
TORN_S = 0.3  # between the bytes of one key
CPU_S_MAX = 1.0


@pytest.mark.parametrize("terminal", ["xterm-256color", "dumb"])
def test_vi_s_mode_is_shown_where_keys_are_no_text(terminal: str, tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start(TERM=terminal)
        bantam.prompt()
        bantam.ask("/cfg editing vi")
        bantam.send("ab")
        bantam.expect("b")
        bantam.send("\x1b")
        assert "[normal]" in plain(bantam.expect("[normal]") + "[normal]")
        bantam.send("i-")
        bantam.expect("-")
        bantam.ask("")
        assert said(fake) == ["a-b"]
        bantam.leave()
        if terminal == "dumb":
            assert "\x1b" not in bantam.all


def test_the_bytes_of_a_key_may_come_torn_apart(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("ab")
        bantam.expect("ab")
        for part in ("\x1b", "[", "D"):
            bantam.send(part)
            time.sleep(TORN_S)
        bantam.ask("-")
        assert said(fake) == ["a-b"]
        bantam.leave()


@pytest.mark.parametrize("editor", ["no-such-editor", "false", "sh -c 'rm \"$0\"'"])
def test_an_editor_that_fails_is_one_line_and_the_draft_stays(editor: str, tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start(EDITOR=editor)
        bantam.prompt()
        bantam.send("draft")
        bantam.expect("draft")
        bantam.send("\x18\x05")
        bantam.match(r"editor(?s:.)*stays(?s:.)*as(?s:.)*it(?s:.)*was")  # on two lines
        bantam.prompt()
        bantam.expect("draft")
        bantam.ask("!")
        assert said(fake) == ["draft!"]
        bantam.leave()


def cpu_s(pid: int) -> float:
    """The processor time that a process had (proc_pid_stat(5))."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_paste_of_ten_megabytes_is_quick_and_acts_on_nothing(tmp_path: Path) -> None:
    text = "\x07\x1b[2J a line of it\r" * 500_000
    with model(tmp_path, [Reply("Long.")]) as (fake, start):
        bantam = start("""echo "pid $$"; exec "$@" """)
        pid = int(bantam.match(r"pid (\d+)\r")[1])
        bantam.prompt()
        before = cpu_s(pid)
        bantam.send("see \x1b[200~" + text + "\x1b[201~!")
        bantam.expect("[pasted text 1, 500,000 lines]")
        bantam.expect("!")
        assert cpu_s(pid) - before < CPU_S_MAX
        bantam.send("\r")
        bantam.expect("Long.")
        bantam.prompt()
        assert said(fake) == [f"see {text}!".replace("\r", "\n")]
        bantam.send("\x1b[A")
        bantam.expect("[pasted text 1, 500,000 lines]")
        bantam.send("\x03")
        bantam.prompt()
        bantam.leave()
        assert "\x07" not in bantam.all
        assert "\x1b[2J" not in bantam.all


def test_a_folded_paste_and_vi_s_mode_survive_every_width(tmp_path: Path) -> None:
    text = "line\n" * 19 + "end"
    with model(tmp_path, echo) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.ask("/cfg editing vi")
        bantam.send(f"see \x1b[200~{text}\x1b[201~.\x1b")
        bantam.expect("[normal]")
        for columns in (40, 8, 1, 200, 80):
            bantam.resize(columns)
            bantam.match(r"\x1b\[J(?s:.)*\x1b\[\?25h")  # painted anew
        bantam.send("hx\r")
        bantam.expect("see .\r\n")  # said back: and not the prompt of a late painting
        bantam.prompt()
        assert said(fake) == ["see ."]
        bantam.leave()


def queueing(bantam: Bantam, *keys: str) -> None:
    """Begin a turn that waits for a file, and type in it; each line is seen to be heard."""
    bantam.prompt()
    bantam.send("work\r")
    bantam.match(BEGUN)
    for key in keys:
        bantam.send(key)
        bantam.match(r"(queued|taken back|after this turn): [^\r\n]*\r?\n")


def test_a_queue_is_said_in_the_turn_and_commands_wait_for_its_end(tmp_path: Path) -> None:
    with model(tmp_path, [shell(WAITS), Reply("First."), Reply("Second.")]) as (fake, start):
        bantam = start()
        queueing(bantam, "one\r", "two\r", "three\r", "\x1b[A", "3\r", "/cfg stream\r", "four\r")
        bantam.send("dra")
        (bantam.work / "go").touch()
        bantam.expect("First.")
        bantam.expect("stream=true")
        bantam.expect("Second.")
        bantam.prompt()
        bantam.send("ft")
        bantam.expect("ft")
        bantam.send("\x03")
        bantam.prompt()
        assert said(fake) == ["work", "one", "two", "three3", "four"]
        assert re.findall(r"(?:queued|taken back|after this turn): .*", plain(bantam.all)) == [
            "queued: one",
            "queued: two",
            "queued: three",
            "taken back: three",
            "queued: three3",
            "after this turn: /cfg stream",
            "after this turn: four",
        ]
        bantam.leave()
    history = (bantam.home / ".bantam_history").read_text().split("\n")
    assert [line[1:] for line in history if line.startswith("+")] == [
        *("work", "one", "two", "three3", "/cfg stream", "four")
    ]


def test_what_an_interrupt_left_unsaid_is_the_next_prompt(tmp_path: Path) -> None:
    with model(tmp_path, [shell(WAITS), Reply("Second.")]) as (fake, start):
        bantam = start()
        queueing(bantam, "one\r")
        bantam.send("\x03")
        bantam.expect("Second.")
        bantam.prompt()
        assert said(fake) == ["work", "one"]
        bantam.leave()


def test_the_words_of_a_session_stand_beside_its_id(tmp_path: Path) -> None:
    with model(tmp_path, [Reply("Hello."), Reply("a greeting")]) as (_, start):
        bantam = start()
        bantam.prompt()
        bantam.ask("hi there")
        bantam.ask("/save")
        bantam.send("/load \t")
        bantam.expect("a greeting")
        bantam.send("\x03")
        bantam.prompt()
        bantam.leave()
