"""What a draft goes through: whole characters, pastes that fold, vi's mode, another editor, lines for a turn."""

import asyncio
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input.posix_pipe import PosixPipeInput
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.output.plain_text import PlainTextOutput
from wcwidth import iter_graphemes

from bantam.core.base.problem import Problem
from bantam.core.base.settings import Config
from bantam.core.words import config
from bantam.front.terminal import ahead, characters, editor
from bantam.front.terminal.complete import Completions, kind_of
from bantam.host.commands import Completion as Kind
from tests.front.terminal.test_repl import (
    BACKSPACE,
    CTRL_C,
    CTRL_D,
    DOWN,
    ESCAPE,
    LF,
    PLAIN,
    UP,
    Listener,
    Seen,
    history,
    lines,
    repl,
    talk,
)

LEFT, RIGHT, DELETE = "\x1b[D", "\x1b[C", "\x1b[3~"
EXPAND, UNDO = "\x18\x10", "\x1f"
FAMILY, FLAG, WAVE, ACCENT = "👨‍👩‍👧", "🇩🇪", "👋🏽", "e\u0301"
WHOLE = (FAMILY, FLAG, WAVE, ACCENT, "각", "क्षि", "日", "a")
LONG = "".join(f"line {number}\n" for number in range(20))


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


# --- whole characters

wild = st.lists(
    st.sampled_from([*WHOLE, "\r\n", "\n", "\u200d", "\u0301", "🇫", "\u0600"]) | st.characters(), max_size=8
)
wild_texts = wild.map("".join)


@given(wild_texts)
def test_the_boundaries_are_those_of_the_annex_both_ways(text: str) -> None:
    wanted = [0]
    for cluster in iter_graphemes(text):
        wanted.append(wanted[-1] + len(cluster))
    forward, backward = [0], [len(text)]
    while forward[-1] < len(text):
        forward.append(characters.behind(text, forward[-1]))
    while backward[-1] > 0:
        backward.append(characters.before(text, backward[-1]))
    assert forward == backward[::-1] == wanted
    inside = [at for at in range(len(text) + 1) if at not in wanted]
    if "\u0600" not in text and not any(unicodedata.category(char) == "Cf" for char in text if char != "\u200d"):
        assert [at for at in range(len(text) + 1) if characters.start(text, at) != at] == inside


def test_a_count_takes_so_many_and_stops_at_the_ends() -> None:
    text = FAMILY + FLAG + "a"
    assert characters.behind(text, 0, 2) == len(FAMILY + FLAG)
    assert characters.before(text, len(text), 2) == len(FAMILY)
    assert characters.before(text, len(text), 9) == 0
    assert characters.behind(text, 0, 9) == len(text)


def test_a_text_of_any_length_costs_a_key_the_same() -> None:
    text = "\u0301" * 10 * characters.REACH
    assert len(text) - characters.REACH <= characters.before(text, len(text)) < len(text)
    assert 0 < characters.behind(text, 0) <= characters.REACH


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize(
    "keys",
    [
        "x{}" + BACKSPACE + "y",
        "x{}" + LEFT + DELETE + "y",
        "x{}" + LEFT + LEFT + RIGHT + DELETE + "y",
        "x{}\x02\x04y",
        "x{}z" + LEFT + LEFT + RIGHT + BACKSPACE + RIGHT + BACKSPACE + "y",
        "x{}\n12" + UP + DOWN + BACKSPACE + BACKSPACE + BACKSPACE + BACKSPACE + "y",
    ],
)
def test_keys_take_a_whole_character(keys: str, whole: str, tmp_path: Path) -> None:
    assert talk(keys.replace("{}", whole) + "\r", tmp_path) == ["xy"]


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ("xX", "b"),
        ("Xx", "a"),
        ("hldl", "ab"),
        ("ldh", "a{}"),
        ("hlx", "ab"),
        ("2X", "{}"),
        ("0d2l", "{}"),
        ("0ylP", "aab{}"),
    ],
)
def test_so_do_those_of_vi(keys: str, left: str, whole: str, tmp_path: Path) -> None:
    said = talk(f"ab{whole}{ESCAPE}{keys}\r", tmp_path, Config(editing="vi"))
    assert said == [left.replace("{}", whole)]


def test_a_cursor_that_comes_from_another_line_is_between_characters(tmp_path: Path) -> None:
    assert talk(f"{FAMILY}b\n12{UP}-\r", tmp_path) == [f"-{FAMILY}b\n12"]  # two characters in are within the family


# --- pastes


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("{}\r", [LONG]),
        ("a{}b\r", [f"a{LONG}b"]),
        (f"a{{}}b{BACKSPACE}{BACKSPACE}\r", ["a"]),
        (f"a{{}}b{LEFT}{LEFT}{DELETE}\r", ["ab"]),
        (f"a{{}}b{LEFT}{LEFT}c{RIGHT}d\r", [f"ac{LONG}db"]),
        ("{} {}\r", [f"{LONG} {LONG}"]),
        (f"{{}}{{}}{BACKSPACE}\r", [LONG]),
        ("{}[pasted text 1, 20 lines]\r", [f"{LONG}[pasted text 1, 20 lines]"]),
        (f"[pasted text 1, 20 lines]{BACKSPACE}\r", ["[pasted text 1, 20 lines"]),
        (f"a{{}}{EXPAND}{BACKSPACE}{BACKSPACE}b\r", [f"a{LONG[:-2]}b"]),
        (f"{EXPAND}a{EXPAND}\r", ["a"]),
        (f"a{{}}{EXPAND}{UNDO}{BACKSPACE}\r", ["a"]),
        ("a{}\x01\x0b\x19 \x19\r", [f"a{LONG} a{LONG}"]),
        (f"a {{}} b\x17\x17{UNDO}{UNDO}\r", [f"a {LONG} b"]),
        (f"{{}}{CTRL_C}{UP}!\r", [f"{LONG}!"]),
        (f"{{}}?\rother\r{UP}{UP}{BACKSPACE}!\r", [f"{LONG}?", "other", f"{LONG}!"]),
        ("\x12{}\x07a\r", ["a"]),
    ],
)
@pytest.mark.parametrize("settings", [PLAIN, Config(editing="vi")], ids=["emacs", "vi"])
def test_a_long_paste_is_one_character_and_is_said_whole(
    keys: str, said: list[str], settings: Config, tmp_path: Path
) -> None:
    if settings.editing == "vi" and any(key in keys for key in (UNDO, "\x19", "\x07")):
        pytest.skip("keys of emacs mode")
    assert talk(keys.replace("{}", pasted(LONG)), tmp_path, settings) == said


def test_a_paste_of_many_control_bytes_is_kept_as_it_is(tmp_path: Path) -> None:
    nasty = "\x1b[2J\x07\x00\x9b" * 5_000
    assert talk(pasted(nasty) + "\r", tmp_path) == [nasty]


def test_the_next_session_has_the_whole_of_a_paste(tmp_path: Path) -> None:
    assert talk(f"see {pasted(LONG)}sk-secret\r", tmp_path) == [f"see {LONG}sk-secret"]
    assert lines(history(tmp_path / "history").load_history_strings()) == [f"see {LONG}[key]"]


def test_a_private_line_that_was_pasted_stays_out_of_the_history(tmp_path: Path) -> None:
    talk(pasted("/cfg api_key abc" + "\n" * 20) + "\r", tmp_path)
    assert not (tmp_path / "history").exists()


# --- what is shown


def shown(keys: tuple[str, ...], folder: Path, settings: Config = PLAIN) -> str:
    """What a terminal that can only append shows of these keys, each seen before the next."""

    async def scene() -> str:
        seen, listener = Seen(), Listener(settings)

        async def one_by_one(keyboard: PosixPipeInput) -> None:
            for key in (*keys, CTRL_C, CTRL_D):
                seen.grown.clear()
                keyboard.send_text(key)
                await seen.grown.wait()

        await repl("", listener, folder, PlainTextOutput(seen), one_by_one)
        return seen.getvalue()

    return asyncio.run(scene())


def test_a_terminal_that_can_only_append_shows_the_mode_and_takes_it_away(tmp_path: Path) -> None:
    painted = shown(("a", ESCAPE, "V", ESCAPE, "A", "b"), tmp_path, Config(editing="vi"))
    normal, gone = "  [normal]", "\b \b" * 10
    assert painted.startswith(f"bantam> a{normal}")
    assert painted.count("[normal]") == 2
    assert "[visual]" in painted
    assert f"{gone}b\n" in painted
    assert all(line.startswith(("bantam> ", "")) for line in painted.split("\n"))


def test_it_shows_what_stands_for_a_paste(tmp_path: Path) -> None:
    label = "[pasted text 1, 20 lines]"
    painted = shown(("a", pasted(LONG), BACKSPACE, "b"), tmp_path)
    assert painted.startswith(f"bantam> a{label}" + "\b \b" * len(label) + "b\n")


# --- another editor


def test_the_user_s_own_editor_comes_first_be_it_wrong() -> None:
    assert editor.command({"VISUAL": "code -w", "EDITOR": "vi"}) == ["code", "-w"]
    assert editor.command({"VISUAL": " ", "EDITOR": "vi 'a b'"}) == ["vi", "a b"]
    assert editor.command({"PATH": ""}) == Problem("there is no editor: EDITOR names one; the text stays as it was")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "cannot start the editor {}: No such file or directory"),
        ("exit 3", "the editor {} ended with status 3"),
        ("kill -9 $$", "the editor {} was ended by signal 9"),
        ('rm "$1"', "the editor left no text: No such file or directory"),
        ("printf '\\377' >\"$1\"", "the editor left a text that is not UTF-8"),
    ],
)
def test_an_editor_that_fails_is_one_line(script: str | None, why: str, tmp_path: Path) -> None:
    path = tmp_path / "editor"
    if script is not None:
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
    found = editor.edit("text", {"EDITOR": str(path)})
    assert found == Problem(why.format(path) + "; the text stays as it was")


def test_a_command_that_cannot_be_read_is_one_line() -> None:
    found = editor.edit("text", {"EDITOR": "vi 'a"})
    assert found == Problem("EDITOR=vi 'a cannot be read: No closing quotation; the text stays as it was")


@pytest.mark.parametrize("text", ["", "a\n", "bad \udcff byte", "a\r\nb"])
def test_what_was_not_changed_is_what_it_was(text: str) -> None:
    assert editor.edit(text, {"EDITOR": "true"}) == text


def test_an_editor_gets_a_paste_whole_and_what_stays_of_it_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\ncp "$1" seen; printf "%s" "now $(cat "$1")!" >"$1"\n')
    script.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(script))
    monkeypatch.chdir(tmp_path)

    async def scene() -> list[str]:
        seen, listener = Seen(), Listener()

        async def then(keyboard: PosixPipeInput) -> None:
            while "now" not in seen.getvalue():
                seen.grown.clear()
                await seen.grown.wait()
            keyboard.send_text(f"{BACKSPACE}{BACKSPACE}\r{CTRL_D}")  # the sign, and the whole paste

        await repl(f"see {pasted(LONG)}end\x18\x05", listener, tmp_path, PlainTextOutput(seen), then)
        return listener.lines

    assert asyncio.run(scene())[0].startswith("now see line 0\n")
    assert (tmp_path / "seen").read_text() == f"see {LONG}end"


# --- lines for a running turn


class Busy(Listener):
    """A conversation that is in a turn as long as one of its lines is at work."""

    async def line(self, text: str) -> None:
        self.busy = True
        try:
            await super().line(text)
        finally:
            self.busy = False


def during(keys: str, folder: Path, settings: Config = PLAIN, unsaid: int = 0) -> Busy:
    """Type `keys` and Ctrl+C while a turn runs; at its end the last `unsaid` lines that it was told come back."""

    async def scene() -> Busy:
        begun = asyncio.Event()

        async def act(_: str) -> None:
            if not begun.is_set():
                begun.set()
                await listener.interrupted.wait()
                listener.back = listener.told[len(listener.told) - unsaid :]

        async def then(keyboard: PosixPipeInput) -> None:
            await begun.wait()
            keyboard.send_text(keys + CTRL_C)
            await listener.interrupted.wait()
            keyboard.send_text("\r" + CTRL_D)

        listener = Busy(settings, act)
        assert await repl("work\r", listener, folder, DummyOutput(), then) == 0
        return listener

    return asyncio.run(scene())


@pytest.mark.parametrize(
    ("keys", "told", "after"),
    [
        ("one\rtwo\nlines\r", ["one", "two\nlines"], []),
        ("one\rdraft", ["one"], ["draft"]),
        (" \r\r \n\r", [], []),
        (f"on{FAMILY}{BACKSPACE}e\r", ["one"], []),
        (pasted(LONG) + "?\r", [f"{LONG}?"], []),
        (pasted("a\rb") + "\r", ["a\nb"], []),
        ("/cfg\rone\r!ls\r", [], ["/cfg", "one", "!ls"]),
        ("one\r/cfg\rtwo\r", ["one"], ["/cfg", "two"]),
        (f"one\rtwo\r{UP}", ["one"], ["two"]),
        (f"one\rtwo\r{UP}!\r", ["one", "two!"], []),
        (f"/cfg\r{UP}{BACKSPACE}x\r", [], ["/cfx"]),
        (f"onf{LEFT}x\r", [], ["onxf"]),
        (f"one{LEFT}\rtwo\r", [], ["one", "two"]),
        (f"{UP}\r", [], ["work"]),
        (f"one\r{UP}{UP}\r", [], ["work"]),
    ],
)
def test_a_line_that_is_entered_during_a_turn_is_told_to_it(
    keys: str, told: list[str], after: list[str], tmp_path: Path
) -> None:
    listener = during(keys, tmp_path)
    assert (listener.told, listener.lines) == (told, ["work", *after])


def test_where_line_feed_is_enter_it_is_enter_here_too(tmp_path: Path) -> None:
    listener = during("one\ntwo\r", tmp_path, LF)
    assert listener.told == ["one", "two"]


@pytest.mark.parametrize("keys", ["one\rtwo\r", "one\rtwo\rdraft", "one\rtwo\r/cfg\r"])
def test_what_was_not_said_is_entered_at_the_next_prompts(keys: str, tmp_path: Path) -> None:
    listener = during(keys, tmp_path, unsaid=1)
    assert listener.told == ["one", "two"]
    assert listener.lines[:2] == ["work", "two"]
    assert lines(history(tmp_path / "history").load_history_strings())[:3] == ["work", "one", "two"]


def test_a_line_for_the_turn_is_told_of_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    during(f"one\r{'x' * 99}\r{pasted('a' * 9 + chr(13) + 'b')}\r{UP}\x15/cfg\r", tmp_path)
    told = capfd.readouterr().out.split("\n")[1:]
    assert told[:4] == [
        "queued: one",
        f"queued: {'x' * 49}…",
        "queued: aaaaaaaaa b (2 lines)",
        "taken back: aaaaaaaaa b (2 lines)",
    ]
    assert told[4] == "what is typed now waits for the prompt"


def test_only_plain_keys_make_a_line() -> None:
    def press(*keys: str) -> list[KeyPress]:
        return [KeyPress(key) for key in keys]

    assert ahead.line([]) == ""
    assert ahead.line(press("a", "b", Keys.Backspace, Keys.ControlJ, "c")) == "a\nc"
    assert ahead.line(press(Keys.Backspace)) == ""
    assert ahead.line(press("a", Keys.Left)) is None
    assert ahead.line(press(Keys.Escape, Keys.ControlM)) is None


# --- completion


def offered(text: str, made: Completions) -> list[str]:
    """What Tab makes of a text."""
    found = made.get_completions(Document(text), CompleteEvent(completion_requested=True))
    return [text[: len(text) + completion.start_position] + completion.text for completion in found]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/cfg color al", ["/cfg color always"]),
        ("/cfg color=a", ["/cfg color=auto", "/cfg color=always"]),
        ("/cfg stream ", ["/cfg stream true", "/cfg stream false"]),
        ("/cfg editing ", ["/cfg editing emacs", "/cfg editing vi"]),
        ("/CFG save t", ["/CFG save true"]),
        ("/cfg model g", ["/cfg model gpt-x"]),
        ("/help ", ["/help chat", "/help keys"]),
        ("/model gp", ["/model gpt-x"]),
        ("/load 2", ["/load 2026-b", "/load 2026-a"]),
        ("/attach ma", ["/attach main.py"]),
        ("/attach my f", ["/attach my file.txt"]),
        ("see @ma", ["see @main.py"]),
        ("@s", ["@src/"]),
        ("one\n@src/", ["one\n@src/in it.txt".replace("@src/in it.txt", '@"src/in it.txt"')]),
        ("@m", ["@main.py", '@"my file.txt"']),
        ('see @"my f', ['see @"my file.txt"']),
        ('see @"sr', ['see @"src/']),
        ("me@ma", []),
        ("/clear ma", ["/clear main.py"]),
        ("", ["main.py", "my file.txt", "src/"]),
    ],
)
def test_tab_knows_what_stands_there(
    text: str, wanted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    for name in ("main.py", "my file.txt", "src/in it.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    made = Completions(
        lambda: ["2026-b", "2026-a"],
        config.names,
        topics=lambda: ("chat", "keys"),
        models=lambda: ("gpt-x", "other"),
        kind=lambda name: {"/model": Kind.MODEL, "/attach": Kind.PATH}.get(name) or kind_of(name),
    )
    assert offered(text, made) == wanted


def test_the_words_of_a_session_are_read_one_by_one_and_not_of_all() -> None:
    read: list[str] = []

    def read_words(id: str) -> str:
        read.append(id)
        return id

    made = Completions(lambda: [f"s{number}" for number in range(500)], tuple, summary=read_words)
    found = iter(made.get_completions(Document("/load s"), CompleteEvent(completion_requested=True)))
    assert next(found).display_meta_text == "s0"
    assert read == ["s0"]
    assert len(list(found)) == 499
    assert len(read) == 50


def test_a_value_that_tab_offers_is_one_that_can_be_set() -> None:
    some = 0
    for key in config.names():
        for value in config.values(key):
            found = config.entry_of(f"{key}={value}", "here")
            assert not isinstance(found, Problem)
            assert not isinstance(config.parse([found]), Problem), (key, value)
            some += 1
    assert some > 15
    assert config.values("nonsense") == ()
