"""What terminals, shells and signals can do to the program, in scenes on real ones."""

import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from scripts.fakemodel import Reply, echo
from tests.program import Place, place, serving
from tests.pty_helpers import (
    AT_ONCE_S,
    BASH,
    ERRORS_APART,
    PATIENCE_S,
    SLOW,
    WATCHED,
    Bantam,
    Window,
    autosaved,
    hung_up,
    model,
    needs_bash,
    plain,
    results,
    said,
    shell,
)
from tests.shell.run.test_process import living

WAITS = "echo begun $$; while [ ! -e go ]; do sleep 0.02; done"
BEGUN = r"begun (\d+)\x1b"
# a shell with job control that leaves the terminal to its jobs
CAREFUL = """set -m; echo "modes $(stty -g)"; sh -c 'echo "pid $$"; exec "$@"' sh "$@"
echo "stopped, modes $(stty -g)"; read line; fg; echo "status $?, modes $(stty -g)"
"""
MARKED, UNMARKED, SHOWN, HIDDEN = "\x1b[?2004h", "\x1b[?2004l", "\x1b[?25h", "\x1b[?25l"


def watched(bantam: Bantam) -> tuple[str, int]:
    """The terminal's modes before the program, and its process id."""
    modes = bantam.match(r"modes (\S+)\r")[1]
    return modes, int(bantam.match(r"pid (\d+)\r")[1])


def ended(bantam: Bantam, modes: str) -> int:
    """Wait for the end, with the terminal as it was; returns the status."""
    status, after = bantam.match(r"status (\d+), modes (\S+)\r").groups()
    bantam.end()
    assert after == modes
    assert bantam.all.rindex(SHOWN) > bantam.all.rindex(HIDDEN)
    assert bantam.all.rindex(UNMARKED) > bantam.all.rindex(MARKED)
    assert "unexpected" not in bantam.all
    return int(status)


# --- stopped and gone on with


@needs_bash
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_a_job_stopped_from_outside_goes_on_where_it_was(tmp_path: Path, number: int) -> None:
    with model(tmp_path, [shell(WAITS), Reply("Done.")]) as (fake, start):
        bantam = start(BASH)
        bantam.expect("shell> ")
        bantam.send("""sh -c 'echo "pid $$"; exec "$@"' sh $PROGRAM\r""")
        pid = int(bantam.match(r"pid (\d+)\r")[1])

        def stop() -> None:
            os.kill(pid, number)
            bantam.expect("Stopped")
            bantam.expect("shell> ")
            bantam.send("stty sane; fg\r")
            bantam.match(r"\rsh -c [^\r]*\r\n")  # what goes on
            bantam.expect(MARKED)

        bantam.prompt()
        bantam.send("one\ntw")
        bantam.expect("tw")
        stop()
        bantam.prompt()
        bantam.expect("tw")
        bantam.send("o\x1b[200~\r\x1b[201~.\r")
        bantam.match(BEGUN)
        assert said(fake) == ["one\ntwo\n."]
        stop()
        bantam.send("ahead\r")
        bantam.expect("queued: ahead")
        (bantam.work / "go").touch()
        assert "ahead" not in bantam.expect("Done.")
        bantam.prompt()
        assert said(fake) == ["one\ntwo\n.", "ahead"]
        bantam.send("\x04")
        bantam.expect("shell> ")
        bantam.send('echo "status $?"; exit\r')
        bantam.match("status 0\r")


@pytest.mark.parametrize("scene", ["prompt", "command"])
def test_whoever_continues_it_gets_the_terminal_that_it_needs(tmp_path: Path, scene: str) -> None:
    with model(tmp_path, [shell(WAITS), Reply("Done.")] if scene == "command" else echo) as (fake, start):
        bantam = start(WATCHED)
        modes, pid = watched(bantam)
        bantam.prompt()
        if scene == "command":
            bantam.send("work\r")
            bantam.match(BEGUN)
        else:
            bantam.send("abc")
            bantam.expect("abc")
        raw = bantam.modes()
        os.kill(pid, signal.SIGSTOP)
        bantam.cook()
        os.kill(pid, signal.SIGCONT)
        bantam.expect(MARKED)
        assert bantam.modes() == raw
        (bantam.work / "go").touch()
        if scene == "command":
            bantam.expect("Done.")
            bantam.prompt()
        else:
            bantam.prompt()
            bantam.expect("abc")
            bantam.ask("\ndef")
            assert said(fake) == ["abc\ndef"]
        bantam.send("\x04")
        assert ended(bantam, modes) == 0


@pytest.mark.parametrize("scene", ["prompt", "command"])
@pytest.mark.parametrize("how", ["key", "signal"])
def test_a_shell_gets_its_terminal_as_it_was(tmp_path: Path, scene: str, how: str) -> None:
    with model(tmp_path, [shell(WAITS), Reply("Done.")]) as (_, start):
        bantam = start(CAREFUL)
        modes, pid = watched(bantam)
        bantam.prompt()
        if scene == "command":
            bantam.send("work\r")
            bantam.match(BEGUN)
        raw = bantam.modes()
        if how == "key":
            bantam.send("\x1a")
        else:
            os.kill(pid, signal.SIGTSTP)
        assert bantam.match(r"stopped, modes (\S+)\r")[1] == modes
        assert bantam.all.rindex(UNMARKED) > bantam.all.rindex(MARKED)
        bantam.send("\n")
        bantam.expect(MARKED)
        assert bantam.modes() == raw
        if scene == "command":
            (bantam.work / "go").touch()
            bantam.expect("Done.")
        bantam.prompt()
        bantam.send("\x04")
        assert ended(bantam, modes) == 0


def test_an_editor_that_is_stopped_keeps_the_terminal(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nstty -g >before; kill -TSTP 0; stty -g >after; printf edited >"$1"\n')
    editor.chmod(0o700)
    with model(tmp_path, echo) as (fake, start):
        bantam = start(CAREFUL, EDITOR=str(editor))
        modes, _ = watched(bantam)
        bantam.prompt()
        bantam.send("\x18\x05")
        bantam.expect("stopped, modes")
        bantam.send("\n")
        bantam.expect("edited")
        bantam.ask("")
        assert said(fake) == ["edited"]
        assert (bantam.work / "before").read_text() == (bantam.work / "after").read_text()
        bantam.send("\x04")
        assert ended(bantam, modes) == 0


@needs_bash
def test_ctrl_z_gives_a_shell_its_terminal_and_takes_it_back(tmp_path: Path) -> None:
    with model(tmp_path, [shell(WAITS), Reply("Done.")]) as (fake, start):
        bantam = start(BASH)
        bantam.expect("shell> ")
        bantam.send("$PROGRAM\r")
        bantam.prompt()
        bantam.send("wor\x1a")
        bantam.expect("Stopped")
        bantam.expect("shell> ")
        bantam.send('bg; until [ "$(jobs -s)" ]; do :; done\r')  # it wants its terminal, and so it stops again
        bantam.expect("shell> ")
        bantam.send("fg\r")
        bantam.prompt()
        bantam.send("k\r")
        bantam.match(BEGUN)
        bantam.send("mo\x1a")
        bantam.expect("Stopped")
        bantam.expect("shell> ")
        bantam.send("fg\r")
        bantam.expect(MARKED)
        bantam.send("re")
        (bantam.work / "go").touch()
        assert "re" not in bantam.expect("...requesting...")
        bantam.expect("Done.")
        bantam.prompt()
        bantam.ask("?")
        assert said(fake) == ["work", "more?"]
        bantam.send("\x04")
        bantam.expect("shell> ")


# --- a terminal that is small, slow or strange


@pytest.mark.parametrize("rows", [2, 10])
def test_a_text_taller_than_the_window_can_be_read_by_scrolling_back(tmp_path: Path, rows: int) -> None:
    lines = [f"line {number}" for number in range(30)]
    lines[7] += "-" * 60
    with model(tmp_path, [Reply("Fine.")]) as (fake, start):
        bantam = start()
        bantam.prompt()
        size_known = len(bantam.all)
        bantam.resize(40, rows)
        bantam.match(r"\x1b\[J(?s:.)*\x1b\[\?25h")  # painted anew
        bantam.send("\n".join(lines))
        bantam.expect("29")
        before = len(bantam.all)
        bantam.send("\r")
        bantam.expect("Fine.")
        assert bantam.prompt() == "\n"
        assert said(fake) == ["\n".join(lines)]
        bantam.leave()
    assert "bantam> " not in bantam.all[before:].partition("Fine.")[0]  # whoever waits for a prompt waits for the next
    shown = Window(rows, 40).feed(bantam.all[size_known:]).text()
    text = shown[shown.index("bantam> line 0") : shown.index("Fine.")]
    assert text == ["bantam> line 0", *wrapped(lines[1:])]
    assert [shown.count(line) for line in (text[0], text[-1])] == [1, 1]


def wrapped(lines: list[str]) -> list[str]:
    """The lines as a terminal of 40 columns has them, indented by the prompt's width."""
    indented = " " * 8 + ("\n" + " " * 8).join(lines)
    return [piece for line in indented.split("\n") for piece in re.findall(".{1,40}", line)]


def test_a_command_that_changes_the_terminal_changes_it_for_its_turn_only(tmp_path: Path) -> None:
    with model(tmp_path, [shell("stty raw -echo <$TERMINAL; kill -9 $$"), Reply("Odd.")]) as (fake, start):
        bantam = start(WATCHED)
        modes, _ = watched(bantam)
        bantam.prompt()
        bantam.send("break it")
        bantam.expect("break it")
        raw = bantam.modes()
        bantam.ask("")
        (result,) = results(fake)
        assert "137" in result
        assert bantam.modes() == raw
        bantam.send("\x04")
        assert ended(bantam, modes) == 0


def test_an_end_of_file_that_a_terminal_makes_of_ctrl_d_is_ctrl_d(tmp_path: Path) -> None:
    with model(tmp_path, [shell(WAITS), Reply("Done.")]) as (_, start):
        bantam = start(WATCHED)
        modes, _ = watched(bantam)
        bantam.prompt()
        bantam.send("work\r")
        bantam.match(BEGUN)
        bantam.cook()
        bantam.send("\x04")
        (bantam.work / "go").touch()
        bantam.expect("Done.")
        assert ended(bantam, modes) == 0


def test_a_paste_whose_end_was_lost_is_ended_by_ctrl_c(tmp_path: Path) -> None:
    with model(tmp_path, [SLOW, Reply("Fine.")]) as (fake, start):
        bantam = start()
        bantam.prompt()
        bantam.send("\x1b[200~lost")
        press_until_prompt(bantam, "\x03")
        bantam.send("count\r")
        bantam.expect("one two")
        bantam.send("\x1b[200~lost again")
        press_until_prompt(bantam, "\x03")
        bantam.expect("lost again")
        bantam.ask("!")
        assert [text.replace("\x03", "") for text in said(fake)] == ["count", "lost again!"]
        bantam.leave()


def press_until_prompt(bantam: Bantam, key: str) -> None:
    """A key that is read together with what was sent before is part of that, unlike one that a person presses."""
    bantam.send(key)
    try:
        bantam.prompt(0.5)
    except pexpect.TIMEOUT:
        bantam.send(key)
        bantam.prompt()


def test_standard_output_in_a_file_gets_no_escape_byte(tmp_path: Path) -> None:
    with model(tmp_path, [Reply("a\x1b[2Jb"), shell("echo out"), Reply("Done.")]) as (_, start):
        bantam = start('exec "$@" >out')
        bantam.send("one\n")
        bantam.send("two\n\x04")
        assert bantam.end() == 0
        out = (bantam.work / "out").read_text()
        assert "\x1b" not in out
        assert "a\u241b[2Jb" in out
        assert out.endswith("Done.\n")


# --- signals and the end of the terminal


@pytest.mark.parametrize(
    ("keys", "rest"),
    [("\x12", "\x15"), ("\x12abc", "\x15"), ("\x11", "\x15"), ("\x1b", "\x15"), ("\x1b[200~x", "\x1b[201~\x15")],
)
def test_sigint_in_the_middle_of_a_search_or_a_key_leaves_a_prompt_that_works(
    tmp_path: Path, keys: str, rest: str
) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start(WATCHED)
        modes, pid = watched(bantam)
        bantam.prompt()
        bantam.send("before" + keys)
        bantam.expect("before")
        os.kill(pid, signal.SIGINT)
        bantam.prompt()
        bantam.send(rest)
        bantam.ask("after")
        assert said(fake) == ["after"]
        bantam.send("\x04")
        assert ended(bantam, modes) == 0


def test_sigint_stops_a_command_and_is_no_end(tmp_path: Path) -> None:
    script = [shell("stty sane <$TERMINAL; echo begun $$; sleep 300"), Reply("Stopped.")]
    with model(tmp_path, script) as (fake, start):
        bantam = start(WATCHED)
        modes, pid = watched(bantam)
        bantam.prompt()
        bantam.send("wait\r")
        group = int(bantam.match(BEGUN)[1])
        os.kill(pid, signal.SIGINT)
        bantam.prompt(AT_ONCE_S)
        assert not living(group)
        bantam.ask("and now?")
        (result,) = results(fake)
        assert result.startswith(f"begun {group}")
        assert "interrupted" in result
        bantam.send("\x04")
        assert ended(bantam, modes) == 0


SCENES = {
    "prompt": ([Reply("Hello.")], ""),
    "answer": ([Reply("Hello."), SLOW], "one two"),
    "silence": ([Reply("Hello."), Reply("One word", end="hang")], "One word"),
    "command": ([Reply("Hello."), shell("echo $$ >group; echo $((6 * 7)); sleep 300")], "42"),
}


@pytest.mark.parametrize("scene", SCENES)
def test_a_terminal_that_hangs_up_ends_it(tmp_path: Path, scene: str) -> None:
    script, sign = SCENES[scene]
    with model(tmp_path, script) as (fake, start):
        bantam = start(ERRORS_APART)
        bantam.prompt()
        bantam.ask("hello")
        if sign:
            bantam.send("more\r")
            bantam.expect(sign)
        assert bantam.hang_up() == 128 + signal.SIGHUP
        assert (bantam.work / "errors").read_text() == ""
        saved = autosaved(bantam.home)
        hung_up(fake)
    assert "Hello." in saved
    assert ("one two" in saved) == (scene == "answer")
    nothing_runs(bantam.work)


@pytest.mark.parametrize("scene", SCENES)
def test_a_terminal_that_goes_away_without_a_signal_ends_it_as_well(tmp_path: Path, scene: str) -> None:
    script, sign = SCENES[scene]
    with serving(script) as fake, on_a_terminal(place(tmp_path, fake)) as (bantam, terminal):
        await_text(terminal, "bantam> ")
        os.write(terminal, b"hello\r")
        await_text(terminal, "bantam> ")
        if sign:
            os.write(terminal, b"more\r")
            await_text(terminal, sign)
        os.close(terminal)
        assert bantam.wait(PATIENCE_S) == 128 + signal.SIGHUP
        hung_up(fake)
    assert (tmp_path / "errors").read_text() == ""
    assert "Hello." in autosaved(tmp_path / "home")
    nothing_runs(tmp_path / "work")


def test_a_terminal_that_goes_away_while_it_is_resized_is_no_bug(tmp_path: Path) -> None:
    with serving(echo) as fake, on_a_terminal(place(tmp_path, fake)) as (bantam, terminal):
        await_text(terminal, "bantam> ")
        for number in (signal.SIGSTOP, signal.SIGWINCH):
            bantam.send_signal(number)
        os.close(terminal)
        bantam.send_signal(signal.SIGCONT)
        assert bantam.wait(PATIENCE_S) == 128 + signal.SIGHUP
    assert (tmp_path / "errors").read_text() == ""


@contextmanager
def on_a_terminal(here: Place) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The program on a terminal from which it gets no signals, and the other end of that. Its errors are in a file."""
    here.environment["TERM"] = "xterm-256color"
    ours, its = os.openpty()
    with (here.work.parent / "errors").open("wb") as errors:
        bantam = here.start(stdin=its, stdout=its, stderr=errors, start_new_session=True)
    os.close(its)
    try:
        yield bantam, ours
    finally:
        bantam.kill()
        bantam.wait()


def await_text(terminal: int, text: str) -> None:
    """Read until the text comes. Raises AssertionError."""
    seen = ""
    while text not in plain(seen):
        assert select.select([terminal], [], [], PATIENCE_S)[0], seen
        seen += os.read(terminal, 65_536).decode(errors="replace")


def nothing_runs(work: Path) -> None:
    """The command that was begun, if one was, is gone."""
    group = work / "group"
    assert not (group.exists() and living(int(group.read_text())))


# --- the question about a command


def test_a_command_that_asks_runs_when_the_user_says_so(tmp_path: Path) -> None:
    def asks(command: str) -> Reply:
        return Reply(calls=[("shell_exec", {"command": command})])

    script = [asks("echo one > a"), asks("echo two > b"), asks("echo two > b"), Reply(text="done")]
    (tmp_path / "work").mkdir()
    with serving(script) as fake:
        (tmp_path / "work" / "model.cfg").write_text(
            f"endpoint={fake.endpoint}\nmodel=x\napprove=allow ls; deny rm *\n"
        )
        chat = Bantam(tmp_path, fake.endpoint)
        chat.prompt()
        chat.send("do it\r")
        chat.expect("run echo one > a?")
        chat.expect("[y/n/a]")
        chat.send("n")
        chat.expect("run echo two > b?")
        chat.expect("[y/n/a]")
        assert not (chat.work / "b").exists()
        chat.send("a")  # always: the same command does not ask again
        chat.expect("done")
        chat.prompt()
        chat.leave()
        results = [m["content"] for m in fake.requests[-1].body["messages"] if m["role"] == "tool"]
    assert results == ["not run: the user denied it", "\n\nexit: 0", "\n\nexit: 0"]
    assert not (chat.work / "a").exists()
    assert (chat.work / "b").read_text() == "two\n"
    assert "approve=allow ls; deny rm *\n" in (chat.work / "model.cfg").read_text()


def test_ctrl_c_takes_a_question_back_and_the_chat_goes_on(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with serving([Reply(calls=[("shell_exec", {"command": "touch a"})]), Reply(text="fine")]) as fake:
        (tmp_path / "work" / "model.cfg").write_text(f"endpoint={fake.endpoint}\nmodel=x\napprove=ask\n")
        chat = Bantam(tmp_path, fake.endpoint)
        chat.prompt()
        chat.send("do it\r")
        chat.expect("[y/n/a]")
        chat.send("\x03")
        chat.prompt()
        assert "fine" in chat.ask("never mind")
        chat.leave()
    assert not (chat.work / "a").exists()
