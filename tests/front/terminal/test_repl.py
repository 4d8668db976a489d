"""Editing and turns: keys go in through a pipe, and what counts is what was said; never the bytes painted."""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.posix_pipe import PosixPipeInput
from prompt_toolkit.output import DummyOutput, Output
from prompt_toolkit.output.plain_text import PlainTextOutput

from bantam.core.base.settings import Config
from bantam.front.show.screen import Screen
from bantam.front.terminal.ahead import QUIET_S
from bantam.front.terminal.complete import Completions, History
from bantam.front.terminal.repl import Repl
from bantam.shell.disk.files import StoreError

CTRL_C, CTRL_D, CTRL_R = "\x03", "\x04", "\x12"
UP, DOWN, BACKSPACE, ESCAPE = "\x1b[A", "\x1b[B", "\x7f", "\x1b"
PATIENCE_S = 20
PLAIN, LF = Config(), Config(enter="lf")


class Listener:
    """A chat that notes what it is told. `act` is what a turn does."""

    def __init__(self, config: Config = PLAIN, act: Callable[[str], Awaitable[None]] | None = None) -> None:
        self.config, self.lines = config, list[str]()
        self.interrupted = asyncio.Event()
        self.ask: Callable[[str, str], Awaitable[str]]
        self._act = act
        self.busy, self.told, self.back = False, list[str](), list[str]()

    def is_said(self, line: str) -> bool:
        return not line.startswith(("/", "!"))

    def add(self, text: str) -> None:
        self.told.append(text)

    def take_back(self) -> str:
        return self.told.pop() if self.told else ""

    def returned(self) -> list[str]:
        back, self.back = self.back, []
        return back

    def words_of(self, id: str) -> str:
        return f"about {id}"

    async def line(self, text: str) -> None:
        self.lines.append(text)
        if self._act:
            await self._act(text)

    is_unfinished = False

    async def go_on(self) -> None:
        raise AssertionError

    def interrupt(self) -> None:
        self.interrupted.set()

    def sessions(self) -> list[str]:
        return ["20260808-190038", "20260808-190038-1", "autosave"]

    def clean(self, text: str) -> str:
        return text.replace("sk-secret", "[key]")


async def repl(
    keys: str,
    listener: Listener,
    folder: Path,
    display: Output,
    then: Callable[[PosixPipeInput], Awaitable[None]],
    early: str = "",
) -> int:
    """Run a REPL on `early`, which was typed before it began, on `keys`, and on what `then` sends."""
    loop, painted = asyncio.get_running_loop(), asyncio.Event()

    def behind() -> None:
        loop.call_soon_threadsafe(painted.set)

    with create_pipe_input() as keyboard:
        assert isinstance(keyboard, PosixPipeInput)
        keyboard.send_text(early)
        screen = Screen("transcript", environ={"TERM": "dumb"})
        made = Repl(listener, screen, keyboard, display, str(folder / "history"), behind)
        listener.ask = made.ask_key
        running = asyncio.ensure_future(made.run())
        async with asyncio.timeout(PATIENCE_S):
            await painted.wait()
            keyboard.send_bytes(keys.encode(errors="surrogateescape"))
            await then(keyboard)
            return await running


async def leave(keyboard: PosixPipeInput) -> None:
    keyboard.send_text(CTRL_D)


def talk(keys: str, folder: Path, config: Config = PLAIN, display: Output | None = None) -> list[str]:
    """What was said by these keys."""
    listener = Listener(config)
    assert asyncio.run(repl(keys, listener, folder, display or DummyOutput(), leave)) == 0
    return listener.lines


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("one\r", ["one"]),
        ("one\ntwo\r", ["one\ntwo"]),
        ("one\x1b\rtwo\r", ["one\ntwo"]),
        ("  indented\nsame\r", ["  indented\nsame"]),
        ("one\rtwo\r", ["one", "two"]),
        ("\r \r\n\r\t\r", []),
        ("\x1b[200~a\nb\r\nc\r\rd\x1b[201~\r", ["a\nb\nc\n\nd"]),
        (f"\x1b[200~{'x' * 5000}\r\x1b[201~.\r", ["x" * 5000 + "\n."]),
        (f"first\rone\ntwo{UP}{UP}\r", ["first", "first"]),
        (f"first\rone\ntwo{UP}!\r", ["first", "one!\ntwo"]),
        (f"first\rsecond\r{UP}{UP}{DOWN}\r", ["first", "second", "second"]),
        (f"find me\rother\r{CTRL_R}FIN\r\r", ["find me", "other", "find me"]),
        (f"abc{CTRL_D}\r", ["abc"]),
        (f"abc{CTRL_C}def\r", ["def"]),
        (f"abc{CTRL_C}{UP}\r", ["abc"]),
        (f"{CTRL_C}x{BACKSPACE}{CTRL_C}y\r", ["y"]),
        (f"{CTRL_C}x\r{CTRL_C}y\r", ["x", "y"]),
        (f"{CTRL_C}\r{CTRL_C}y\r", ["y"]),
        (f"{CTRL_C}{CTRL_C}never\r", []),
        ("\x1b[3;1Rhi\x1b[12;40R\r", ["hi"]),
        ("é日\udcff\r", ["é日\udcff"]),
    ],
)
def test_keys_at_the_prompt(keys: str, said: list[str], tmp_path: Path) -> None:
    assert talk(keys, tmp_path) == said


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\rtwo\r", ["one", "two"]),
        ("one\x1b\ntwo\x1b\rthree\n", ["one\ntwo\nthree"]),
        (f"find me\nother\n{CTRL_R}fin\n\n", ["find me", "other", "find me"]),
    ],
)
def test_keys_where_line_feed_is_enter(keys: str, said: list[str], tmp_path: Path) -> None:
    assert talk(keys, tmp_path, LF) == said


def test_the_environment_can_make_line_feed_enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANTAM_ENTER", "lf")
    assert talk("one\ntwo\n", tmp_path) == ["one", "two"]


def test_vi_keys(tmp_path: Path) -> None:
    assert talk(f"one\ntwo{ESCAPE}0xA!\r", tmp_path, Config(editing="vi")) == ["one\nwo!"]
    assert talk("one\x1b\ntwo\n", tmp_path, replace(LF, editing="vi")) == ["one\ntwo"]


def test_the_line_mode_in_which_the_first_words_were_typed_has_made_line_feeds_of_enter(tmp_path: Path) -> None:
    listener = Listener()
    asyncio.run(repl(" two\r", listener, tmp_path, DummyOutput(), leave, early="one\nand"))
    assert listener.lines == ["one", "and two"]


# --- turns


def during(keys: str, after: str, folder: Path) -> Listener:
    """Type `keys`, which end in Ctrl+C, while a turn runs, and `after` when it is over."""

    async def scene() -> Listener:
        begun, over = asyncio.Event(), asyncio.Event()

        async def act(_: str) -> None:
            begun.set()
            await over.wait()

        async def then(keyboard: PosixPipeInput) -> None:
            await begun.wait()
            keyboard.send_text(keys)
            await listener.interrupted.wait()
            over.set()
            keyboard.send_text(after + CTRL_D)

        listener = Listener(act=act)
        assert await repl("work\r", listener, folder, DummyOutput(), then) == 0
        return listener

    return asyncio.run(scene())


def test_what_is_typed_ahead_is_said_afterwards(tmp_path: Path) -> None:
    assert during(f"one\rtwo\nlines\x1b[12;40R\rth{CTRL_C}", "ree\r", tmp_path).lines == [
        "work",
        "one",
        "two\nlines",
        "three",
    ]


def test_the_history_can_be_used_ahead(tmp_path: Path) -> None:
    assert during(f"{UP}\r{CTRL_C}", "", tmp_path).lines == ["work", "work"]


def test_a_paste_may_begin_in_a_turn_and_end_at_the_prompt(tmp_path: Path) -> None:
    assert during(f"x\x1b[200~a\rb\x1b[201~{CTRL_C}\x1b[200~c\r", "d\x1b[201~\r", tmp_path).lines[1:] == ["xa\nbc\nd"]


def test_an_interrupt_that_comes_with_enter_is_for_the_turn(tmp_path: Path) -> None:
    async def scene() -> list[str]:
        async def act(_: str) -> None:
            await listener.interrupted.wait()

        listener = Listener(act=act)
        await repl(f"work\r{CTRL_C}more\r", listener, tmp_path, DummyOutput(), leave)
        return listener.lines

    assert asyncio.run(scene()) == ["work", "more"]


def asked(
    early: str, presses: list[str], folder: Path, act: Callable[[Listener], Awaitable[list[str]]]
) -> tuple[list[str], str]:
    """What answers `act` gets, and the line that all other keys make.

    `early` is typed before it asks, and afterwards each of `presses` for itself.
    """

    async def scene() -> tuple[list[str], str]:
        answers, begun, typed = list[str](), asyncio.Event(), asyncio.Event()

        async def turn(_: str) -> None:
            if not begun.is_set():
                begun.set()
                await typed.wait()
                answers.extend(await act(listener))

        async def then(keyboard: PosixPipeInput) -> None:
            await begun.wait()
            keyboard.send_text(early)
            typed.set()
            for press in presses:
                await asyncio.sleep(QUIET_S * 1.1)
                keyboard.send_text(press)
            keyboard.send_text("\r" + CTRL_D)

        listener = Listener(act=turn)
        assert await repl("work\r", listener, folder, DummyOutput(), then) == 0
        return answers, "".join(listener.lines[1:])

    return asyncio.run(scene())


def test_what_was_typed_before_a_question_does_not_answer_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def act(listener: Listener) -> list[str]:
        return [await listener.ask("run it?", "yna")]

    assert asked("y", ["N"], tmp_path, act) == (["n"], "y")
    assert "run it? [y/n/a]\n" in capfd.readouterr().out


def test_only_a_key_of_its_own_answers_a_question(tmp_path: Path) -> None:
    async def act(listener: Listener) -> list[str]:
        return [await listener.ask("run it?", "yna")]

    assert asked("", ["xy", "\x1b[200~y\x1b[201~", "a"], tmp_path, act) == (["a"], "xyy")


def test_questions_are_asked_one_after_another(tmp_path: Path) -> None:
    async def act(listener: Listener) -> list[str]:
        return list(await asyncio.gather(listener.ask("this?", "yn"), listener.ask("and that?", "yn")))

    assert asked("", ["y", "n"], tmp_path, act) == (["y", "n"], "")


def test_a_question_can_be_interrupted(tmp_path: Path) -> None:
    async def act(listener: Listener) -> list[str]:
        question = asyncio.ensure_future(listener.ask("run it?", "yn"))
        await listener.interrupted.wait()
        question.cancel()
        await asyncio.wait([question])
        return []

    assert asked("", [CTRL_C, "y"], tmp_path, act) == ([], "y")


def test_a_bug_costs_one_turn_and_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def scene() -> list[str]:
        async def act(text: str) -> None:
            if text == "break":
                raise ValueError("two\nlines")

        listener = Listener(act=act)
        assert await repl("break\rgo on\r", listener, tmp_path, DummyOutput(), leave) == 0
        assert listener.interrupted.is_set()  # nothing of the turn goes on
        return listener.lines

    assert asyncio.run(scene()) == ["break", "go on"]
    assert capfd.readouterr().err == "bantam: unexpected error: ValueError: two lines\n"


def test_the_end_of_the_input_leaves(tmp_path: Path) -> None:
    async def close(keyboard: PosixPipeInput) -> None:
        keyboard.close()

    async def scene() -> list[str]:
        listener = Listener()
        assert await repl("one\r", listener, tmp_path, DummyOutput(), close) == 0
        return listener.lines

    assert asyncio.run(scene()) == ["one"]


class Seen(StringIO):
    """A terminal that can only append, and whoever waits until it has."""

    def __init__(self) -> None:
        super().__init__()
        self.grown = asyncio.Event()

    def write(self, text: str) -> int:
        self.grown.set()
        return super().write(text)


def test_a_terminal_that_can_only_append_sees_the_edits(tmp_path: Path) -> None:
    async def scene() -> str:
        seen, listener = Seen(), Listener()

        async def one_by_one(keyboard: PosixPipeInput) -> None:
            for key in ("a", "b", BACKSPACE, "日", BACKSPACE, "c", "\n", "d", "\x01x", "\r", CTRL_D):
                seen.grown.clear()
                keyboard.send_text(key)
                await seen.grown.wait()

        await repl("", listener, tmp_path, PlainTextOutput(seen), one_by_one)
        assert listener.lines == ["ac\nxd"]
        return seen.getvalue()

    painted = "bantam> ab\b \b日\b \b\b \bc\n        d\nbantam> ac\n        xd\nbantam> \n"
    assert asyncio.run(scene()) == painted


# --- completion


def completed(text: str) -> list[str]:
    """What Tab offers, as the whole text."""
    made = Completions(lambda: ["20260808-190038", "20260809-1", "autosave"], lambda: ["model", "max_al_iterations"])
    found = made.get_completions(Document(text), CompleteEvent(completion_requested=True))
    return [text[: len(text) + completion.start_position] + completion.text for completion in found]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("/l", ["/list", "/load"]),
        ("/L", ["/list", "/load"]),
        ("/load", ["/load"]),
        ("/load ", ["/load 20260808-190038", "/load 20260809-1", "/load autosave"]),
        ("/load 20260809", ["/load 20260809-1"]),
        ("/load nothing", []),
        ("/cfg m", ["/cfg model", "/cfg max_al_iterations"]),
        ("/cfg model ", ["/cfg model notes.txt", "/cfg model sub/"]),
        ("read no", ["read notes.txt"]),
        ("one\nread no", ["one\nread notes.txt"]),
        ("read sub/", ["read sub/in it"]),
        ("/sub", []),
    ],
)
def test_tab(text: str, offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/in it").touch()
    monkeypatch.chdir(tmp_path)
    assert completed(text) == offered


def test_tab_completes_any_path(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert completed(f"{tmp_path}/no") == [f"{tmp_path}/notes.txt"]


# --- history


def history(path: Path, complaints: list[str] | None = None, keeps: bool = True) -> History:
    def complain(problem: StoreError) -> None:
        assert complaints is not None, problem
        complaints.append(str(problem))

    return History(str(path), lambda text: text.replace("sk-secret", "[key]"), lambda: keeps, complain)


def lines(made: Iterable[str]) -> list[str]:
    """Oldest first."""
    return list(made)[::-1]


def test_the_history_holds_what_was_typed_and_no_key(tmp_path: Path) -> None:
    path = tmp_path / "history"
    for line in ("one", "two\nlines", "/cfg api_key abc", " ", "my key is sk-secret", "\udcff\x00é"):
        history(path).append_string(line)
    assert lines(history(path).load_history_strings()) == ["one", "two\nlines", "my key is [key]", "?\x00é"]


@pytest.mark.parametrize("before", [None, 0o644, 0o400 | 0o200])
def test_the_history_is_for_the_user_alone(tmp_path: Path, before: int | None) -> None:
    path = tmp_path / "history"
    if before is not None:
        path.touch()
        path.chmod(before)
    old = os.umask(0)
    try:
        history(path).append_string("one")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_history_that_is_no_file_is_left_alone() -> None:
    mode = os.stat(os.devnull).st_mode
    history(Path(os.devnull)).append_string("one")
    assert os.stat(os.devnull).st_mode == mode


def test_a_history_that_cannot_be_used_stops_nothing_and_is_said_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "history").mkdir()
    assert talk(f"one\rtwo\r{UP}{UP}\r", tmp_path) == ["one", "two", "one"]
    assert capfd.readouterr().err == f"cannot read {tmp_path}/history: Is a directory\n"


def test_a_history_that_cannot_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    complaints: list[str] = []
    made = history(tmp_path / "nowhere/history", complaints)
    made.append_string("one")
    assert made.get_strings() == ["one"]
    (complaint,) = complaints
    assert complaint.startswith(f"cannot write {tmp_path}/nowhere/history: ")


def test_nothing_is_written_with_save_off(tmp_path: Path) -> None:
    assert talk(f"one\r{UP}\r", tmp_path, Config(save=False)) == ["one", "one"]
    assert not (tmp_path / "history").exists()
