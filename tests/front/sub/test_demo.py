"""The guided tour: its script as a pure function, and the real program through a pipe and on a terminal."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.messages import Message, assistant, calls_of, is_valid, normalised, system, text_of, tool_result, user
from bantam.core.window import context
from bantam.core.wire import assemble
from bantam.front.sub import script
from tests.pty_helpers import PATIENCE_S, ROOT, Bantam

HASTE = {"BANTAM_DEMO_SPEED": "4"}
KEY = "sk-not-to-be-used"
HEADS = [head.strip() for head in script.HEADS.values()]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
words = st.sampled_from(
    [
        *(head + end for head in script.HEADS.values() for end in ("", *script.ENDS.values())),
        *(script.COUNTING, script.COUNTING + " 1 2 3", script.OVER, script.CHILD, "x\n\nexit: 0", "\n\nexit: 1"),
        *(context.COMPACT_PROMPT, context.SUMMARY_PROMPT, context.SUMMARY_INTRODUCTION + "9 of 6 steps done"),
        *script.QUESTIONS,
    ]
)
contents = words | st.text() | json_values
roles = st.sampled_from(["system", "user", "assistant", "tool", "developer"]) | json_values
any_message = st.fixed_dictionaries(
    {}, optional={"role": roles, "content": contents, "tool_call_id": json_values, "tool_calls": json_values}
)
bodies = json_values | st.fixed_dictionaries(
    {"messages": json_values | st.lists(any_message | json_values, max_size=8)}, optional={"stream": json_values}
)


# --- the script


def heard(body: Any) -> Message:
    """The message that a client makes of the stream."""
    partial = assemble.Partial()
    for wait_s, chunk in script.chunks(body):
        assert 0 <= wait_s < 1
        partial = assemble.merge(partial, json.loads(json.dumps(chunk)))
    assert partial.finish
    assert partial.usage
    return assemble.finished(partial)


@given(bodies)
def test_any_request_has_a_valid_answer_and_always_the_same(body: Any) -> None:
    message = heard(body)
    assert is_valid(messages.close((system(""), normalised(message))))
    assert {**normalised(message), "content": text_of(message)} == {"content": "", **message}
    assert heard(body) == message


@given(bodies)
def test_an_answer_is_the_same_without_a_stream(body: Any) -> None:
    answer = script.whole(body)
    whole = assemble.finished(assemble.merge(assemble.Partial(), json.loads(json.dumps(answer))))
    streamed = heard(body)
    assert text_of(whole) == text_of(streamed)
    assert calls_of(normalised(whole)) == calls_of(normalised(streamed))
    assert whole.get("reasoning_content") == streamed.get("reasoning_content")


def turn(said: list[Message], text: str, result: str) -> list[Message]:
    """One turn, in which each call gives `result`."""
    said = [*said, user(text)]
    while calls := calls_of(message := normalised(heard({"messages": said}))):
        said += [message, *(tool_result(call["id"], result) for call in calls)]
        assert is_valid(tuple(said))
    return [*said, message]


def steps(said: list[Message]) -> list[str]:
    told = [text_of(message).partition("\n")[0] for message in said if message["role"] == "assistant"]
    return [line for line in told if line.startswith("Step ")]


@given(st.lists(st.text(min_size=1) | words.filter(bool), min_size=6, max_size=6), contents.filter(bool).map(str))
def test_whatever_is_typed_the_tour_goes_on(typed: list[str], result: str) -> None:
    own = context.COMPACT_PROMPT, context.SUMMARY_PROMPT, context.SUMMARY_INTRODUCTION
    said: list[Message] = [system("")]
    for text in typed:
        said = turn(said, "x" if text.startswith(own) else text, result)
    assert steps(said) == HEADS
    assert text_of(turn(said, "more", "")[-1]) == script.OVER


@given(st.data())
def test_whoever_interrupts_an_answer_gets_it_again_or_goes_on(data: st.DataObject) -> None:
    said: list[Message] = [system("")]
    for _ in range(data.draw(st.integers(0, 5))):
        said = turn(said, "go on", "7\n\nexit: 0")
    done = len(steps(said))
    whole = text_of(turn(said, "go on", "7\n\nexit: 0")[-1])
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    said = [*said, user("go on"), *([assistant(cut)] if cut.strip() else [])]
    told = text_of(turn(said, "and now?", "7\n\nexit: 0")[-1])
    if done + 1 == script.INTERRUPT and cut.startswith(script.HEADS[script.INTERRUPT]):
        assert told.startswith(HEADS[5])
        count = script.counted(cut)
        assert f"stopped me at {count}." in told if count else "is left" in told
    else:
        assert told.startswith(HEADS[done])


def test_the_tour_goes_on_after_a_compaction_and_begins_again_after_a_clear() -> None:
    said: list[Message] = [system("")]
    for _ in range(3):
        said = turn(said, "go on", "7\n\nexit: 0")
    summary = text_of(heard({"messages": [*said, user(context.COMPACT_PROMPT)]}))
    assert "3 of 6" in summary
    assert "\n" not in summary
    assert text_of(heard({"messages": [*said, user(context.SUMMARY_PROMPT)]})) == summary
    compacted = list(context.compacted(tuple(said), summary, whole=True))
    assert HEADS[3] in text_of(turn(compacted, "go on", "")[-1])
    assert HEADS[0] in text_of(turn(said[:1], "go on", "")[-1])


def test_the_user_is_told_how_many_lines_came() -> None:
    said = turn(turn([system("")], "one", ""), "two", "")
    assert "\n2 lines arrived" in text_of(turn(said, "a\nb", "")[-1])
    assert "\nOne line arrived" in text_of(turn(said, "a", "")[-1])


# --- by itself


@dataclass
class Run:
    code: int
    out: str
    errors: str
    kept: list[Path]
    """What is left in the home and in the folder for temporary files."""


class Tour:
    """`bantam demo` without a terminal."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.home, self.temporary = folder / "home", folder / "temporary"
        for made in (self.home, self.temporary):
            made.mkdir(exist_ok=True)
        own = {"HOME": str(self.home), "TMPDIR": str(self.temporary), "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bantam", "demo"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={"PATH": os.environ["PATH"], **own, **HASTE, **environment},
        )

    def until(self, text: str) -> None:
        assert self.process.stdout is not None
        while text not in self.process.stdout.readline():
            assert self.process.poll() is None

    def end(self) -> Run:
        out, errors = self.process.communicate(timeout=PATIENCE_S)
        kept = [*self.home.iterdir(), *self.temporary.iterdir()]
        return Run(self.process.returncode, out, errors, kept)


@pytest.fixture
def tour(tmp_path: Path) -> Iterator[Tour]:
    begun = Tour(tmp_path)
    yield begun
    with begun.process:
        begun.process.kill()


def test_by_itself_the_tour_shows_all_steps_and_leaves_nothing_behind(tour: Tour) -> None:
    run = tour.end()
    assert (run.code, run.errors, run.kept) == (0, "", [])
    assert [line for line in run.out.splitlines() if line.startswith("Step ")] == HEADS
    assert "\x1b" not in run.out
    assert max(map(len, run.out.splitlines())) <= 80
    assert KEY not in run.out
    shown = (
        '--- reasoning start ---\nThe user says "Hello!".',
        "--- reasoning end ---\nStep 1",
        "[tool result: shell_exec]\nbirds.txt\nmodel.cfg\nnotes.txt\n",
        "bantam 900\n",
        "bantam> The first line,\n        and the second.\n",
        "2 lines arrived",
        "| [tool call: shell_exec(",
        "[tool result: run_subagent]\n",
        "1 2 3 4 5 6 7 8",
        "(Ctrl+C)\n",
        "You stopped me at ",
        "/quit",
        "model.cfg",
    )
    at = 0
    for text in shown:
        at = run.out.index(text, at)
    for text in ("There are 7 birds.\n", "The heaviest is: ostrich 120000\n"):  # whichever subagent ends first
        assert "[tool result: run_subagent]\n" + text in run.out


def test_a_signal_ends_the_tour_and_removes_the_folder(tour: Tour) -> None:
    tour.until("Step 2")
    tour.process.send_signal(signal.SIGTERM)
    run = tour.end()
    assert (run.code, run.errors, run.kept) == (143, "", [])
    assert "Step 3" not in run.out


def test_the_tour_ends_when_nobody_reads_it(tour: Tour) -> None:
    assert tour.process.stdout is not None
    tour.until("Step 1")
    tour.process.stdout.close()
    assert tour.process.stderr is not None
    assert tour.process.stderr.read() == ""
    assert tour.process.wait(PATIENCE_S) == 141
    assert not list(tour.temporary.iterdir())


def test_where_no_folder_can_be_made_one_line_says_so(tmp_path: Path) -> None:
    nowhere = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'gone')!r}"
    run = subprocess.run(
        [sys.executable, "-c", f"{nowhere}; from bantam.front.sub import demo; raise SystemExit(demo.run())"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "bantam: demo: No such file or directory\n"


# --- on a terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Bantam]:
    (tmp_path / "temporary").mkdir()
    environment = {**HASTE, "TMPDIR": str(tmp_path / "temporary"), "OPENAI_API_KEY": KEY}
    bantam = Bantam(tmp_path, "http://127.0.0.1:1/v1", through='exec "$@" demo', **environment)
    yield bantam
    bantam.stop()


def test_on_a_terminal_the_user_takes_the_tour(terminal: Bantam, tmp_path: Path) -> None:
    assert "Type something" in terminal.prompt()
    assert "--- reasoning end ---\nStep 1" in terminal.ask("hello")
    assert "api_key=(none)" in terminal.ask("/cfg api_key")
    assert "bantam 900" in terminal.ask("x")
    assert "2 lines arrived" in terminal.ask("one\ntwo")
    assert "A guided tour of Bantam, 3 of 6 steps done" in terminal.ask("/save")
    assert "The heaviest is: ostrich 120000" in terminal.ask("x")
    terminal.send("x\r")
    terminal.expect(" 4 5 6")
    terminal.send("\x03")
    terminal.prompt()
    assert "You stopped me at " in terminal.ask("x")
    assert script.OVER in terminal.ask("x")
    terminal.ask("/clear")
    assert "Step 1" in terminal.ask("x")
    terminal.leave()
    assert KEY not in terminal.all
    assert not list((tmp_path / "temporary").iterdir())
    assert not list(terminal.home.iterdir())
    assert [path.name for path in terminal.work.iterdir()] == ["model.cfg"]
