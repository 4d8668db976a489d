"""The real program as a filter: `-o`, `--stdin`, input of any size, readers of any patience, signals at any moment."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.program import Place, Reply, place, serving
from tests.shell.run.test_process import living

HELLO = Reply("pelican")
REFUSED = Reply(status=401, body='{"error": {"message": "bad key"}}')
PATIENCE_S = 20  # for a machine that is busy; nothing takes as long
PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to look at")


def until(condition: Callable[[], Any]) -> None:
    """Wait until the condition holds."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.01)


def logged(here: Place) -> str:
    """The event log of the only run, as far as it is written."""
    return "".join(path.read_text() for path in here.home.glob(".bantam/logs/*"))


def run_command(command: str) -> Reply:
    return Reply(calls=[("shell_exec", {"command": command})])


@contextmanager
def started(here: Place, *arguments: str, **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A run that is over at the end of the block, whatever happens."""
    process = here.start(*arguments, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


# --- the answer in a file


@pytest.mark.parametrize(
    ("arguments", "piped"), [(["-p", "x"], None), (["-q", "prompt.txt"], None), (["prompt.txt"], None), (["-"], "x")]
)
def test_the_answer_is_also_in_the_file(tmp_path: Path, arguments: list[str], piped: str | None) -> None:
    with serving([Reply("Looking.", calls=[("shell_exec", {"command": "true"})]), Reply("a ✓\nb")]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        ran = here.run(*arguments, "-o", "out.txt", piped=piped)
    assert (ran.status, (here.work / "out.txt").read_text()) == (0, "a ✓\nb\n")
    assert ran.out.endswith("a ✓\nb\n")


def test_of_piped_lines_the_file_gets_the_last_turns_answer(tmp_path: Path) -> None:
    with serving([REFUSED, Reply("second\n"), Reply("about"), Reply("third")]) as fake:
        here = place(tmp_path, fake)
        ran = here.run("-o", "out.txt", piped="one\ntwo\n/save\n/list\n/clear\n")
        assert (ran.status, (here.work / "out.txt").exists()) == (1, False)
        ran = here.run("-o", "out.txt", piped="three\n/list\n/clear\n")
    assert (ran.status, (here.work / "out.txt").read_text()) == (0, "third\n")


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_new_file_follows_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    with serving([HELLO]) as fake, started(place(tmp_path, fake), "-p", "x", "-o", "new.txt", umask=mask) as process:
        assert ended(process)[0] == 0
    assert (tmp_path / "work/new.txt").stat().st_mode & 0o7777 == mode


def test_a_file_that_is_there_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        (tmp_path / "there.txt").write_text("old, and much longer than the answer")
        (tmp_path / "there.txt").chmod(0o604)
        (here.work / "out.txt").symlink_to(tmp_path / "there.txt")
        assert here.run("-p", "x", "-o", "out.txt").status == 0
    assert (here.work / "out.txt").is_symlink()
    assert (tmp_path / "there.txt").read_text() == "pelican\n"
    assert (tmp_path / "there.txt").stat().st_mode & 0o7777 == 0o604


@pytest.mark.parametrize(
    ("replies", "piped", "status"),
    [
        ([REFUSED], None, 1),
        ([Reply(status=503, body="busy")], None, 75),
        ([run_command("true")], None, 3),
        ([HELLO, REFUSED], "one\ntwo\n", 1),
        ([run_command("kill -TERM $PPID; sleep 60")], None, 143),
        ([HELLO, run_command("kill -INT $PPID; sleep 60")], "one\ntwo\n", 130),
    ],
)
def test_after_a_failure_the_file_is_untouched(
    tmp_path: Path, replies: list[Reply], piped: str | None, status: int
) -> None:
    with serving(replies) as fake:
        here = place(tmp_path, fake, max_al_iterations="2")
        (here.work / "out.txt").write_text("old")
        before = set(os.listdir(here.work))
        ran = here.run(*(["-p", "x"] if piped is None else []), "-o", "out.txt", piped=piped)
    assert (ran.status, (here.work / "out.txt").read_text()) == (status, "old")
    assert set(os.listdir(here.work)) == before


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path) -> None:
    with serving([Reply("x" * 100_000)]) as fake:
        here = place(tmp_path, fake, save="false")
        (here.work / "out.txt").write_text("old")
        before = set(os.listdir(here.work))
        limited = ["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", *here.command("-p", "x", "-o", "out.txt")]
        ran = subprocess.run(limited, cwd=here.work, env=here.environment, capture_output=True, check=False, timeout=30)
    assert ran.returncode == 1
    assert ran.stderr.endswith(b"\nbantam: cannot write out.txt: File too large\n")
    assert (here.work / "out.txt").read_text() == "old"
    assert set(os.listdir(here.work)) == before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing/out.txt", "there is no folder"),
        ("model.cfg/out.txt", "there is no folder"),
        (".", "Is a directory"),
        ("new/", "Is a directory"),
        ("", "a file name is missing"),
        ("-", "a file name is missing"),
        ("/dev/fd/77", "No such file"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_file_that_can_never_be_written_is_wrong_usage(tmp_path: Path, name: str, words: str) -> None:
    with serving([HELLO]) as fake:
        ran = place(tmp_path, fake).run("-p", "x", "-o", name)
        assert fake.requests == []
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"bantam: -o {name}: ")
    assert words in ran.err


def test_the_chat_has_no_final_answer_for_a_file(tmp_path: Path) -> None:
    here = Place(tmp_path)
    environment: Any = here.environment
    chat = pexpect.spawn(sys.executable, ["-m", "bantam", "-o", "x"], cwd=here.work, env=environment, encoding="utf-8")
    chat.expect("-o needs a prompt")
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 2


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        assert here.run("-p", "x", "-o", "/dev/stdout").out == "pelican\n" * 2
        with open(here.work / "all.txt", "wb") as out, started(here, "-p", "x", "-o", "/dev/stdout", stdout=out) as run:
            assert run.wait(PATIENCE_S) == 0
        assert (here.work / "all.txt").read_text() == "pelican\n" * 2
        os.mkfifo(here.work / "queue")
        with started(here, "-p", "x", "-o", "queue") as run:
            assert (here.work / "queue").read_text() == "pelican\n"
            assert ended(run)[0] == 0
        ran = here.run("-q", "-p", "x", "-o", "/dev/full")
        assert (ran.status, ran.err) == (1, "bantam: cannot write /dev/full: No space left on device\n")


# --- what is piped into print mode


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--stdin", "ignore", "-"], "--stdin is for -p"),
        (["--stdin", "require", "prompt.txt"], "--stdin is for -p"),
        (["--stdin", "auto"], "--stdin is for -p"),
        (["--stdin", "perhaps", "-p", "x"], "invalid choice: 'perhaps'"),
        (["-p", "x", "--stdin", "require"], "standard input is empty, and --stdin require needs it"),
    ],
)
def test_a_wish_for_standard_input_that_makes_no_sense_is_wrong_usage(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    ran = Place(tmp_path).run(*arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


def test_standard_input_that_is_ignored_is_not_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    with serving([HELLO]) as fake, started(place(tmp_path, fake), "-p", "x", "--stdin", "ignore", stdin=read) as run:
        status, out, err = ended(run)
        assert fake.requests[0].body["messages"][-1]["content"] == "x"
    os.write(write, b"left")
    assert os.read(read, 10) == b"left"
    os.close(read)
    os.close(write)
    assert (status, out, "standard input" in err) == (0, "pelican\n", False)


def test_what_has_begun_is_read_to_its_end_and_what_is_required_is_waited_for(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("auto", "require")]
    for folder in folders:
        folder.mkdir()
    with serving([HELLO]) as fake:
        begun, required = (place(folder, fake) for folder in folders)
        with (
            started(begun, "-p", "x", "--stdin", "auto", stdin=subprocess.PIPE) as first,
            started(required, "-p", "y", "--stdin", "require", stdin=subprocess.PIPE) as second,
        ):
            assert first.stdin is not None
            first.stdin.write(b"a")
            first.stdin.flush()
            time.sleep(3.3)  # more than the grace of 3 s
            assert fake.requests == []
            assert first.communicate(b"b", PATIENCE_S)[0] == second.communicate(b"c", PATIENCE_S)[0] == b"pelican\n"
        said = [request.body["messages"][-1]["content"] for request in fake.requests]
    assert said == ["x\n\n<stdin>\nab\n</stdin>", "y\n\n<stdin>\nc\n</stdin>"]


# --- input of any size and kind


@pytest.mark.parametrize("arguments", [["/dev/zero"], ["-"], ["-p", "x"], []])
def test_endless_input_is_refused_in_one_line(tmp_path: Path, arguments: list[str]) -> None:
    here = Place(tmp_path)
    limited = ["sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", *here.command(*arguments)]
    with open("/dev/zero", "rb") as zero:
        ran = subprocess.run(
            limited, cwd=here.work, env=here.environment, stdin=zero, capture_output=True, check=False, timeout=30
        )
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.count(b"\n") == 1
    assert b"is longer than 128 MB, which is more than one prompt may be" in ran.stderr


def test_a_prompt_of_some_megabytes_is_taken(tmp_path: Path) -> None:
    text = "0123456789 é\n" * 400_000
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        assert here.run("-", piped=text).status == 0
        assert fake.requests[0].body["messages"][-1]["content"] == text
    assert here.autosave()[1]["content"] == text


def test_piped_lines_are_not_read_far_ahead(tmp_path: Path) -> None:
    with serving([run_command("sleep 0.3"), HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.work / "lines").write_text("one\n/quit\n" + ("x" * 1000 + "\n") * 50_000)
        with open(here.work / "lines", "rb") as lines:
            with started(here, stdin=lines) as run:
                assert ended(run)[0] == 0
            assert os.lseek(lines.fileno(), 0, os.SEEK_CUR) < 100_000


def test_a_prompt_file_of_another_system_is_read_as_meant(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo \xe2\x9c\x93\r\n")
        assert here.run("prompt.txt").err == ""
        assert fake.requests[0].body["messages"][-1]["content"] == "one\n\ntwo ✓\n"
        (here.work / "prompt.txt").write_bytes(b"caf\xe9\r\n")
        assert here.run("prompt.txt").err == "bantam: the input is not UTF-8; what could not be read was replaced\n"
        assert fake.requests[1].body["messages"][-1]["content"] == "caf\ufffd\n"


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp1252"},
    ],
)
def test_commands_and_files_are_utf_8_under_any_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    with serving([run_command("echo é ✓ > 'ü'; cat 'ü'"), Reply("🦀 é")]) as fake:
        here = place(tmp_path, fake)
        here.environment |= locale
        ran = here.run("-p", "x", "-o", "out.txt")
        assert fake.requests[1].body["messages"][-1]["content"] == "é ✓\n\n\nexit: 0"
    assert (ran.status, ran.out, (here.work / "out.txt").read_text()) == (0, "🦀 é\n", "🦀 é\n")
    assert (here.work / "ü").exists()


def test_commands_eat_no_piped_lines(tmp_path: Path) -> None:
    with serving([run_command("cat > eaten.txt; head -c 1 | wc -c"), HELLO, HELLO]) as fake:
        here = place(tmp_path, fake)
        ran = here.run(piped="one\ntwo\n")
        assert [m["content"] for m in fake.requests[2].body["messages"] if m["role"] == "user"] == ["one", "two"]
    assert (ran.status, (here.work / "eaten.txt").read_bytes()) == (0, b"")


@pytest.mark.parametrize("arguments", [["prompt.txt"], ["-"], []])
def test_a_command_sees_no_input_where_bantams_is_open_and_silent(tmp_path: Path, arguments: list[str]) -> None:
    with serving([run_command("cat; echo end"), HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with started(here, *arguments, stdin=subprocess.PIPE) as run:
            assert run.stdin is not None
            run.stdin.write(b"x\n")
            run.stdin.flush()
            if arguments == ["-"]:
                run.stdin.close()
            until(lambda: len(fake.requests) == 2)
            assert fake.requests[1].body["messages"][-1]["content"] == "end\n\n\nexit: 0"


# --- readers


@pytest.mark.parametrize("arguments", [["-p", "x"], ["-q", "prompt.txt"], ["prompt.txt"]])
def test_a_reader_who_comes_late_gets_every_byte(tmp_path: Path, arguments: list[str]) -> None:
    answer = "".join(f"line {number} ✓\n" for number in range(20_000))
    with serving([Reply(answer, delta_chars=1000)]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with started(here, *arguments) as run:
            assert run.stdout is not None
            first = os.read(run.stdout.fileno(), 1)
            until(lambda: "line 5000" in logged(here))  # it may write no more than a pipe holds
            out = first + run.stdout.read()
            assert run.wait(PATIENCE_S) == 0
    assert out.decode().endswith(answer)


@pytest.mark.parametrize(("arguments", "piped"), [(["-q", "prompt.txt"], b""), (["-q"], b"one\ntwo\n"), (["-"], b"x")])
def test_a_reader_who_goes_ends_it_quietly_in_every_mode(tmp_path: Path, arguments: list[str], piped: bytes) -> None:
    with serving([Reply("a line of text\n" * 20_000, delta_chars=500)]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with started(here, *arguments, stdin=subprocess.PIPE) as run:
            assert run.stdin is not None
            assert run.stdout is not None
            assert run.stderr is not None
            run.stdin.write(piped)
            run.stdin.close()
            os.read(run.stdout.fileno(), 1)
            run.stdout.close()
            assert run.stderr.read() == b""
            assert run.wait(PATIENCE_S) == 141
        assert len(fake.requests) == 1
    assert [message["role"] for message in here.autosave()] == ["system", "user", "assistant"]


def test_a_reader_who_goes_does_not_cost_the_file_a_whole_answer(tmp_path: Path) -> None:
    with serving([HELLO, Reply("a line of text\n" * 20_000, delta_chars=500)]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        for arguments in (["-p", "x"], ["prompt.txt"]):
            with started(here, *arguments, "-o", "out.txt") as run:
                assert run.stdout is not None
                run.stdout.close()
                assert run.wait(PATIENCE_S) == 141
    assert (here.work / "out.txt").read_text() == "pelican\n"


@pytest.mark.parametrize("arguments", [["prompt.txt"], ["-p", "x"], ["-q", "prompt.txt"]])
def test_no_escape_byte_goes_where_no_terminal_is(tmp_path: Path, arguments: list[str]) -> None:
    hello = Reply("pelican", reasoning="hm \x1b[2J")
    with serving([Reply(status=503, body="busy \x1b[1m"), run_command("printf '\\033[31mred'"), hello]) as fake:
        here = place(tmp_path, fake)
        here.environment["TERM"] = "xterm-256color"
        (here.work / "prompt.txt").write_text("x")
        ran = here.run(*arguments)
    assert (ran.status, "\x1b" in ran.out + ran.err) == (0, False)


# --- signals

PHASES = {
    "requesting": (Reply(end="hang"), "UserSaid"),
    "streaming": (Reply("half an answer", delta_chars=4, end="hang"), "answ"),
    "in a tool": (run_command("echo $$ > pid; echo be''gun; sleep 300"), "begun"),
    "backing off": (Reply(status=503, body="busy", headers={"Retry-After": "60"}), "busy"),
}
MODES = {"FILE": ["prompt.txt"], "-": ["-"], "lines": [], "-p": ["-p", "x"], "-q": ["-q", "prompt.txt"]}
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("mode", MODES)
def test_a_signal_ends_every_mode_in_every_phase(tmp_path: Path, mode: str, phase: str) -> None:
    number = NUMBERS[(list(PHASES).index(phase) + list(MODES).index(mode)) % 3]
    reply, sign = PHASES[phase]
    with serving([reply]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with started(here, *MODES[mode], stdin=subprocess.PIPE) as run:
            assert run.stdin is not None
            run.stdin.write(b"one\ntwo\n")
            run.stdin.flush()
            if mode != "lines":
                run.stdin.close()
                run.stdin = None
            until(lambda: sign in logged(here) and fake.requests)
            begin_s = time.monotonic()
            run.send_signal(number)
            status, _, err = ended(run)
            assert time.monotonic() - begin_s < 5
        assert len(fake.requests) == 1
        until(lambda: fake.open == 0)
    assert (status, "Traceback" in err, "unexpected" in err) == (128 + number, False, False)
    if phase == "in a tool":
        assert living(int((here.work / "pid").read_text())) == []
    if mode == "-p":
        assert not (here.home / ".bantam/sessions/autosave.json").exists()
    else:
        assert here.autosave()[1]["role"] == "user"


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("arguments", [["-"], ["-p", "x", "--stdin", "require"], ["-p", "x"], []])
def test_a_signal_ends_the_wait_for_input(tmp_path: Path, number: int, arguments: list[str]) -> None:
    read, write = os.pipe()
    os.write(write, b"\n")
    with started(Place(tmp_path), *arguments, stdin=read) as run:
        until(lambda: not select.select([read], [], [], 0)[0])  # it has taken that, and waits for more
        run.send_signal(number)
        assert ended(run) == (128 + number, "", "")
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_reader_who_takes_nothing_does_not_hold_up_a_signal(tmp_path: Path, number: int) -> None:
    with serving([Reply("a line of text\n" * 20_000, delta_chars=500)]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with started(here, "prompt.txt") as run:
            assert run.stdout is not None
            assert run.stderr is not None
            os.read(run.stdout.fileno(), 1)
            size = -1
            while size != (size := len(logged(here))):  # it stands still
                time.sleep(0.2)
            run.send_signal(number)
            assert run.wait(PATIENCE_S) == 128 + number
            assert run.stderr.read() == b""
    assert here.autosave()[-1]["content"].startswith("a line of text\n")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_ends_the_wait_for_the_reader_of_a_named_pipe(tmp_path: Path, number: int) -> None:
    with serving([Reply("a line of text\n" * 20_000)]) as fake:
        here = place(tmp_path, fake)
        os.mkfifo(here.work / "queue")
        reader = os.open(here.work / "queue", os.O_RDONLY | os.O_NONBLOCK)
        with started(here, "-q", "-p", "x", "-o", "queue", stdout=subprocess.DEVNULL) as run:
            until(lambda: select.select([reader], [], [], 0)[0])  # it has begun, and a pipe does not hold all of it
            run.send_signal(number)
            assert run.wait(PATIENCE_S) == 128 + number
        os.close(reader)


def test_nohup_means_what_it_says(tmp_path: Path) -> None:
    with serving([Reply("pelican", wait_s=0.3)]) as fake:
        here = place(tmp_path, fake)
        command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *here.command("-p", "x")]
        with subprocess.Popen(
            command, cwd=here.work, env=here.environment, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1
        ) as run:
            until(lambda: fake.requests)
            run.send_signal(signal.SIGHUP)
            assert ended(run)[:2] == (0, "pelican\n")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_in_the_first_moments_is_quiet(tmp_path: Path, number: int) -> None:
    here = Place(tmp_path)
    here.environment["PYTHONPROFILEIMPORTTIME"] = "1"  # shows how far it has come
    for module in ("signal", "argparse", "bantam.core.words.config", "asyncio", "bantam.front.pipe.pipe", "aiohttp"):
        with started(here, "-p", "x") as run:
            assert run.stderr is not None
            for line in run.stderr:
                if line.split(b"|")[-1].strip() == module.encode():
                    break
            run.send_signal(number)
            status, out, err = ended(run)
        errors = [line for line in err.splitlines() if not line.startswith("import time:")]
        assert (module, status in (128 + number, -number), out, errors) == (module, True, "", [])


# --- what outlives it, and what it holds


@pytest.mark.parametrize("end", ["normal", "SIGTERM", "SIGKILL"])
def test_a_writer_in_the_background_outlives_bantam(tmp_path: Path, end: str) -> None:
    writes = "(echo $$ > pid; while ! [ -e stop ]; do echo noise; echo x >> own.txt; sleep 0.02; done) & echo started"
    with serving([run_command(writes), HELLO if end == "normal" else Reply(end="hang")]) as fake:
        here = place(tmp_path, fake)
        own = here.work / "own.txt"
        with started(here, "-p", "x") as run:
            until(lambda: len(fake.requests) == 2)
            if end != "normal":
                run.send_signal(getattr(signal, end))
            status = ended(run)[0]
        size = own.stat().st_size if own.exists() else 0
        until(lambda: own.exists() and own.stat().st_size > size + 20)
        (here.work / "stop").touch()
        group = int((here.work / "pid").read_text())
        until(lambda: not living(group))
        assert fake.requests[1].body["messages"][-1]["content"].startswith("started\n")
    assert status == {"normal": 0, "SIGTERM": 143, "SIGKILL": -9}[end]


@PROC
@pytest.mark.parametrize("command", ["timeout 1 yes", "head -c 200000000 /dev/zero | tr '\\0' a"])
def test_memory_is_bounded_whatever_a_command_prints(tmp_path: Path, command: str) -> None:
    with serving([run_command(command), Reply(end="hang")]) as fake:
        with started(place(tmp_path, fake), "-p", "x", stderr=subprocess.DEVNULL) as run:
            until(lambda: len(fake.requests) == 2)
            lines = Path(f"/proc/{run.pid}/status").read_text().splitlines()
        result = fake.requests[1].body["messages"][-1]["content"]
    peak_kb = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    assert peak_kb < 150_000
    assert 100_000 < len(result) < 101_000
    assert "left out" in result


def test_a_long_command_of_the_model_runs(tmp_path: Path) -> None:
    with serving([run_command("wc -c <<'END'\n" + "0123456789\n" * 20_000 + "END\nexit 3"), HELLO]) as fake:
        ran = place(tmp_path, fake).run("-p", "x")
        assert fake.requests[1].body["messages"][-1]["content"] == "220000\n\n\nexit: 3"
    assert (ran.status, ran.out) == (0, "pelican\n")


def test_commands_get_the_whole_environment_but_the_key_under_any_name(tmp_path: Path) -> None:
    with serving([run_command("env"), HELLO]) as fake:
        here = place(tmp_path, fake, api_key="sk-marker-123")
        here.environment |= {"MY_SECRET": "sk-marker-123", "SSH_AUTH_SOCK": "/tmp/agent", "EDITOR": "ed"}
        here.run("-p", "x")
        words = fake.requests[1].body["messages"][-1]["content"].split("\n")
    kept = {name: here.environment[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK", "EDITOR")}
    assert kept.items() <= dict(word.partition("=")[::2] for word in words).items()
    assert not [word for word in words if "MY_SECRET" in word or "marker" in word or "[key]" in word]
