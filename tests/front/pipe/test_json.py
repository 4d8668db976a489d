"""`--json` and `--input json`: the real program, and a thousand generated runs of its front end."""

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import tree
from bantam.core.base.problem import Problem
from bantam.core.effects import AskApproval, CallModel, CheckAnswer, Reason, RunShell, Sleep
from bantam.core.events import (
    AnswerChecked,
    Approved,
    CommandEnded,
    Denied,
    Event,
    Interrupted,
    ModelChunks,
    ModelEnded,
    ModelFailed,
    TimerFired,
    ToolProgress,
    UserSaid,
)
from bantam.core.rules.redact import Redactor
from bantam.core.words import input
from bantam.front.pipe import driver
from bantam.front.pipe.driver import Driver
from bantam.front.show.jsonlines import JsonLines
from bantam.shell.runtime import Runtime
from tests import events, servers, world
from tests.events import INPUT, SCHEMA, TYPES, WHOLE, Line
from tests.manual.examples import section
from tests.program import FakeModel, Place, Ran, Reply, place, serving
from tests.servers import Dice, chance, pick
from tests.strategies import json_values
from tests.world import Rolled

HELLO = Reply("pelican", usage={"prompt_tokens": 3, "completion_tokens": 4})
ASK_TWICE = [Reply("Looking. ", reasoning="hm", calls=[("shell_exec", {"command": "printf blue"})]), HELLO]
RUNS_AN_EXAMPLE = 3
DEADLINE_S = 60  # for a program that waits for ever
TICKS = 9  # of the loop that a stopped turn takes to be over
ANSWERS_MAX = 40  # of a generated run, after which the model says something plain


def kinds(lines: list[Line]) -> list[str]:
    return [line["type"] for line in lines]


def only(lines: list[Line], kind: str) -> Line:
    (found,) = (line for line in lines if line["type"] == kind)
    return found


# --- the schema


def test_the_schema_is_one_and_describes_every_type_and_member() -> None:
    type(WHOLE).check_schema(SCHEMA)
    assert set(TYPES) == {
        "run.start", "request", "reasoning", "text", "tool.call", "tool.result", "retry", "usage", "notice", "error",
        "turn.end", "run.end",
    }  # fmt: skip
    for name, kind in TYPES.items():
        assert kind["properties"]["type"] == {"const": name}
        assert kind["description"]
        assert list(kind["properties"])[:3] == ["type", "time", "agent"] == kind["required"][:3]
        assert kind["required"] == list(kind["properties"])
        for member in list(kind["properties"].values())[1:]:
            assert "description" in member or "description" in SCHEMA["$defs"][member["$ref"].split("/")[-1]]


def test_the_manual_has_every_type_and_member() -> None:
    points = re.findall(r"^\* (`[a-z.]+`:.*(?:\n {2}\S.*)*)", section("json-events", "Types"), re.M)
    rows = {point.split(":")[0]: point for point in points}
    for name, kind in TYPES.items():
        row = rows[f"`{name}`"]
        assert not [member for member in list(kind["properties"])[3:] if f"`{member}`" not in row], row


def test_the_driver_of_the_manual_works(tmp_path: Path) -> None:
    script = section("json-events", "A driver").split("```python\n")[1].split("```")[0]
    with serving([Reply("two"), Reply("both")]) as fake:
        here = place(tmp_path, fake)
        (here.home / "bantam").write_text('#!/bin/sh\nexec "$PYTHON" -m bantam "$@"\n')
        (here.home / "bantam").chmod(0o755)
        python = here.command()[0]
        environment = here.environment | {"PATH": f"{here.home}:{here.environment['PATH']}", "PYTHON": python}
        ran = subprocess.run(
            [python, "-c", script], cwd=here.work, env=environment, capture_output=True, check=True, timeout=60
        )
        assert fake.requests[1].body["messages"][-1]["content"] == "And which of them\nis the largest?"
    assert (ran.stdout, ran.stderr) == (b"two\nboth\n", b"")


@given(json_values | st.fixed_dictionaries({}, optional={"prompt": json_values, "interrupt": json_values}))
def test_the_schema_takes_the_lines_of_a_driver_that_bantam_takes(value: Any) -> None:
    taken = not isinstance(input.parse(json.dumps(value).encode()), Problem)
    assert INPUT.is_valid(value) == taken


# --- a thousand runs


class Host:
    """A conversation with generated servers, commands and interruptions, around the real runtime."""

    def __init__(self, dice: Dice, lines: JsonLines) -> None:
        self.dice, self.now, self.answers, self.sensible = dice, 0.0, 0, True
        self.lines, self.ended = lines, asyncio.Event()
        self.runtime = Runtime(
            tree.start(replace(world.config(dice), max_al_iterations=pick(dice, (5, 3, 1))), "sys"),
            {
                CallModel: self._call,
                RunShell: self._run,
                Sleep: self._sleep,
                AskApproval: self._ask,
                CheckAnswer: self._check,
            },
            lines.show,
            lambda said: None,
            lines.hear,
            Redactor(()),
            lambda: self.now,
        )

    # what a driver needs

    @property
    def busy(self) -> bool:
        return self.runtime.busy

    async def say(self, text: str) -> Reason:
        return (await self.runtime.turn(UserSaid(text))).reason

    def add(self, text: str) -> None:
        self.runtime.tell(UserSaid(text))

    def interrupt(self) -> None:
        if self.busy:
            self.runtime.tell(Interrupted())

    async def asks(self) -> AsyncIterator[bytes]:
        """The lines of a driver, some in the middle of a turn, some nonsense; perhaps a signal at their end."""
        for _ in range(1 + self.dice.number(3)):
            yield pick(self.dice, (b'{"prompt": "x"}\n', b'{"prompt": "x"}', b'{"interrupt": true}', b"\n", b"no\n"))
            for _ in range(pick(self.dice, (200, 0, 3, 20))):
                await asyncio.sleep(0)
        if chance(self.dice, 20):
            self.ended.set()
            self.interrupt()

    # what the outside answers

    async def _call(self, request: CallModel) -> AsyncGenerator[Event, None]:
        self.answers += 1
        await self._wait()
        if self.answers > ANSWERS_MAX:
            yield ModelChunks(request.id, ({"choices": [{"delta": {"content": "fine"}, "finish_reason": "stop"}]},))
            yield ModelEnded(request.id, True)
        elif chance(self.dice, 15):
            yield ModelFailed(request.id, pick(self.dice, servers.FAILURES))
        else:
            answers, truth = servers.answer(self.dice, request.id, 25)
            self.sensible = self.sensible and (truth is not None or not _ends_well(answers))
            for event in answers:
                yield event
                if chance(self.dice, 20):
                    await self._wait()

    async def _run(self, request: RunShell) -> AsyncGenerator[Event, None]:
        for _ in range(self.dice.number(2)):
            yield ToolProgress(request.id, servers.text(self.dice), self.dice.number(1))
            await self._wait()
        yield CommandEnded(request.id, pick(self.dice, (0, 1, 143)), servers.text(self.dice), 0, "", False, "")

    async def _sleep(self, request: Sleep) -> AsyncGenerator[Event, None]:
        self.now += request.seconds
        await self._wait()
        yield TimerFired(request.id)

    async def _ask(self, request: AskApproval) -> AsyncGenerator[Event, None]:
        await self._wait()
        yield Approved(request.id) if chance(self.dice, 50) else Denied(request.id, chance(self.dice, 50))

    async def _check(self, request: CheckAnswer) -> AsyncGenerator[Event, None]:
        await self._wait()
        yield AnswerChecked(request.id, pick(self.dice, ("", "no JSON")))

    async def _wait(self) -> None:
        self.now += self.dice.number(3) / 7
        await asyncio.sleep(0)


def _ends_well(answers: list[Any]) -> bool:
    return not any(isinstance(event, ModelFailed) for event in answers)


async def one_run(dice: Dice, lines: JsonLines) -> bool:
    """A whole run; gives whether all servers made sense."""
    host = Host(dice, lines)
    lines.start("test")
    reason = await Driver(host, lines).run(host.asks(), host.ended)
    await host.runtime.close()
    lines.end(reason, 0, None)
    return host.sensible


@given(st.integers(0, 2**64))
def test_what_is_promised_holds_for_a_thousand_runs(seed: int) -> None:
    async def runs() -> None:
        for number in range(RUNS_AN_EXAMPLE):
            with tempfile.TemporaryFile() as file:
                sensible = await one_run(Rolled(seed + number), JsonLines(file.fileno()))
                file.seek(0)
                lines = events.read(file.read())
            if sensible:
                events.answers_are_text(lines)
            assert lines[-1]["answer"] == next((t["answer"] for t in lines[::-1] if t["type"] == "turn.end"), None)

    asyncio.run(runs())


# --- the real program


def run_json(here: Place, *arguments: str, piped: str | None = None) -> tuple[Ran, list[Line]]:
    ran = here.run(*arguments, piped=piped)
    lines = events.read(ran.out)
    for line in lines:
        WHOLE.validate(line)
    assert lines[-1]["exit"] == ran.status
    return ran, lines


def test_a_turn_is_told_in_the_order_of_happening(tmp_path: Path) -> None:
    with serving(ASK_TWICE) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("Which?")
        ran, lines = run_json(here, "--json", "prompt.txt")
    assert (ran.status, ran.err) == (0, "")
    assert kinds(lines) == [
        "run.start", "request", "reasoning", "text", "tool.call", "tool.result", "request", "text", "usage", "turn.end",
        "run.end",
    ]  # fmt: skip
    assert (lines[0]["version"], lines[0]["model"]) == (1, "test")
    assert lines[4]["arguments"] == {"command": "printf blue"}
    assert (lines[5]["id"], lines[5]["output"], lines[5]["error"]) == (lines[4]["id"], "blue\n\nexit: 0", False)
    assert lines[-1]["answer"] == "pelican"
    assert lines[-1]["usage"] == {"calls": 2, "tokens_in": 3, "tokens_out": 4, "tokens_cached": 0, "cost_usd": None}
    assert (here.home / f".bantam/logs/{lines[-1]['session']}.jsonl").exists()


@pytest.mark.parametrize("arguments", [["-p", "x", "--json"], ["--json", "-"], ["--json"]])
def test_every_way_to_ask_combines_with_events(tmp_path: Path, arguments: list[str]) -> None:
    with serving([HELLO]) as fake:
        ran, lines = run_json(place(tmp_path, fake), *arguments, piped="one\n")
    assert (ran.status, ran.err, lines[-1]["answer"]) == (0, "", "pelican")


def test_piped_lines_are_turns_and_the_first_failure_is_the_runs(tmp_path: Path) -> None:
    with serving([HELLO, Reply(status=401, body='{"error": {"message": "bad key"}}'), HELLO, HELLO]) as fake:
        ran, lines = run_json(place(tmp_path, fake), "--json", piped="one\ntwo\n/lod\n/save\n")
    assert (ran.status, ran.err, lines[-1]["reason"], lines[-1]["answer"]) == (1, "", "failed", None)
    assert [line["reason"] for line in lines if line["type"] == "turn.end"] == ["done", "failed", "done"]
    assert [line["message"] for line in lines if line["type"] == "error"] == [
        "the API answered 401: bad key",
        "unknown command /lod; did you mean /load?",
    ]
    assert only(lines, "notice")["message"].endswith(": pelican")


def test_what_came_of_a_retried_answer_does_not_count(tmp_path: Path) -> None:
    with serving([Reply("half of ", end="cut"), HELLO]) as fake:
        _, lines = run_json(place(tmp_path, fake), "--json", "-p", "x")
    assert [line.get("text", line["type"]) for line in lines[1:6]] == [
        "request",
        "half of ",
        "retry",
        "request",
        "pelican",
    ]
    retry = only(lines, "retry")
    assert (retry["seconds"], retry["attempt"], retry["attempts_max"]) == (1, 1, 9)
    assert lines[-1]["answer"] == "pelican"


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Reply(status=404, body='{"error": {"message": "no such model"}}'), 1, "failed"),
        (Reply(status=503, body="busy"), 75, "transient"),
        (Reply(calls=[("shell_exec", {"command": "true"})]), 3, "iterations"),
    ],
)
def test_the_last_line_says_how_it_ended(tmp_path: Path, reply: Reply, status: int, reason: str) -> None:
    with serving([reply]) as fake:
        ran, lines = run_json(place(tmp_path, fake, max_al_iterations="2"), "--json", "-p", "x")
    assert (ran.status, ran.err) == (status, "")
    assert (lines[-1]["reason"], lines[-1]["answer"]) == (reason, None)
    assert kinds(lines)[-4:] == ["error", "usage", "turn.end", "run.end"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json", "--nonsense"], "unknown option --nonsense"),
        (["--nonsense", "--json"], "unknown option --nonsense"),
        (["--json", "-q"], "-q and --json exclude each other"),
        (["--json", "-p"], "-p"),
        (["--json", "missing.txt"], "missing.txt: No such file"),
        (["--json", "-c", "timeout=x", "-p", "x"], "timeout must be a number of seconds"),
        (["--json", "demo"], "demo takes no --json"),
        (["--input", "xml"], "invalid choice"),
        (["--input=json", "prompt.txt"], "neither -p nor FILE"),
        (["--input", "json", "-p", "x"], "neither -p nor FILE"),
    ],
)
def test_wrong_usage_and_configuration_are_events_too(tmp_path: Path, arguments: list[str], words: str) -> None:
    ran, lines = run_json(Place(tmp_path), *arguments)
    assert kinds(lines) == ["run.start", "error", "run.end"]
    assert words in lines[1]["message"]
    assert (ran.status, lines[-1]["reason"], lines[-1]["session"]) == (2, "usage", None)
    assert ran.err == f"bantam: {lines[1]['message']}\n"


def test_help_is_no_run(tmp_path: Path) -> None:
    ran = Place(tmp_path).run("--json", "--help")
    assert (ran.status, ran.out.startswith("usage: "), ran.err) == (0, True, "")


def test_what_goes_wrong_beside_the_conversation_is_told_in_events(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake, colour="never")
        (here.home / ".bantam").write_text("in the way")
        (here.work / "prompt.txt").write_bytes(b"caf\xe9?")
        ran, lines = run_json(here, "--json", "prompt.txt")
    assert (ran.status, ran.err, lines[-1]["session"]) == (0, "", None)
    told = [(line["type"], line["message"]) for line in lines if "message" in line]
    assert ("notice", "the input is not UTF-8; what could not be read was replaced") in told
    assert any(kind == "error" and "goes on unsaved" in message for kind, message in told)
    assert any("did you mean color?" in message for _, message in told)


def test_data_is_utf8_under_any_locale_and_nothing_that_a_terminal_acts_on(tmp_path: Path) -> None:
    text = "✓ 🦀 é \x1b[2J \x9b2J \u202e \u2028 end"
    with serving([Reply(text, delta_chars=1)]) as fake:
        here = place(tmp_path, fake)
        here.environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp1252"}
        ran, lines = run_json(here, "--json", "-p", "x")
    assert lines[-1]["answer"] == "".join(line["text"] for line in lines if line["type"] == "text") == text
    assert "✓ 🦀 é" in ran.out
    assert not {"\x1b", "\x9b", "\u202e", "\u2028"} & {*ran.out}


def test_subagents_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    def model(body: Any) -> Reply:
        said = body["messages"]
        if said[-1]["role"] == "tool":
            return HELLO
        if "child agent" in said[0]["content"]:
            return Reply(f"did {said[-1]['content']}")
        return Reply(calls=[("run_subagent", {"prompt": name}) for name in "ab"])

    with serving(model) as fake:
        _, lines = run_json(place(tmp_path, fake), "--json", "-p", "x")
    told = {tuple(line["agent"]): line["text"] for line in lines if line["type"] == "text"}
    assert told == {(2,): "did a", (3,): "did b", (): "pelican"}
    assert {line["output"] for line in lines if line["type"] == "tool.result"} == {"did a", "did b"}
    assert lines[-1]["usage"]["calls"] == 4


# --- ends from outside


@contextmanager
def running(here: Place, *arguments: str, **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    process = here.start(*arguments, **options)
    deadline = threading.Timer(DEADLINE_S, process.kill)
    deadline.start()
    try:
        yield process
    finally:
        deadline.cancel()
        process.kill()
        process.communicate()


def read_until(process: "subprocess.Popen[bytes]", kind: str) -> list[bytes]:
    """The lines up to the first of a type."""
    assert process.stdout is not None
    read = [process.stdout.readline()]
    while json.loads(read[-1])["type"] != kind:
        read.append(process.stdout.readline())
    return read


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("busy", ["answer", "command", "lines", "prompt"])
def test_a_signal_ends_the_run_and_the_last_line_says_so(tmp_path: Path, number: signal.Signals, busy: str) -> None:
    answer = Reply("half an answer", end="hang")
    command = Reply(calls=[("shell_exec", {"command": "exec sleep 300"})])
    arguments = {"lines": ["--json"], "prompt": ["--json", "-"]}.get(busy, ["--json", "prompt.txt"])
    seen = {"answer": "text", "command": "tool.call"}.get(busy, "run.start")
    with serving([answer if busy == "answer" else command]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with running(here, *arguments, stdin=subprocess.PIPE) as process:
            first = read_until(process, seen)
            process.send_signal(number)
            assert process.wait(30) == 128 + number
            assert process.stdout is not None
            assert process.stderr is not None
            lines = events.read(b"".join([*first, process.stdout.read()]))
            assert process.stderr.read() == b""
    assert (lines[-1]["reason"], lines[-1]["exit"]) == ("interrupted", 128 + number)
    if busy in ("answer", "command"):
        assert lines[-2]["reason"] == "interrupted"


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path) -> None:
    with serving([Reply("a line of text\n" * 20_000, delta_chars=500)]) as fake:
        here = place(tmp_path, fake)
        with running(here, "--json", "-p", "x") as process:
            read_until(process, "text")
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(30) == 141
            process.stdout = None


@pytest.mark.parametrize("arguments", [["--json", "-p", "x"], ["--json", "prompt.txt"]])
def test_a_full_disk_is_an_error(tmp_path: Path, arguments: list[str]) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("x")
        with open("/dev/full", "wb") as full, running(here, *arguments, stdout=full) as process:
            _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err == b"bantam: cannot write to standard output: No space left on device\n"


def test_a_terminal_gets_lines_too_and_gives_them(tmp_path: Path) -> None:
    with serving([Reply("\x9b2J red")]) as fake:
        here = place(tmp_path, fake)
        main, other = pty.openpty()
        with running(here, "--json", stdin=other, stdout=other) as process:
            os.close(other)
            os.write(main, b"hello\n\x04")
            assert process.wait(30) == 0
            seen = b""
            while b'"run.end"' not in seen:
                seen += os.read(main, 10_000)
        os.close(main)
    assert b'"text":"\\u009b2J red"' in seen
    assert b"bantam>" not in seen


def test_a_signal_between_two_turns_is_the_reason_of_the_run(tmp_path: Path) -> None:
    with serving([HELLO]) as fake, running(place(tmp_path, fake), "--json", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        first = read_until(process, "turn.end")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
        assert process.stdout is not None
        lines = events.read(b"".join([*first, process.stdout.read()]))
    assert (lines[-1]["reason"], lines[-1]["exit"], lines[-1]["answer"]) == ("interrupted", 143, "pelican")


def test_a_bug_is_an_error_and_the_last_line_still_comes() -> None:
    script = "from bantam.front.show.jsonlines import *; sys.exit(guarded(JsonLines(), lambda: 1 // 0))"
    ran = subprocess.run([sys.executable, "-c", f"import sys; {script}"], capture_output=True, check=False, timeout=60)
    lines = events.read(ran.stdout)
    assert (ran.returncode, ran.stderr, kinds(lines)) == (1, b"", ["run.start", "error", "run.end"])
    assert "unexpected error: ZeroDivisionError" in lines[1]["message"]
    assert (lines[-1]["reason"], lines[-1]["exit"]) == ("failed", 1)


def test_nothing_follows_the_last_line() -> None:
    with tempfile.TemporaryFile() as file:
        told = JsonLines(file.fileno())
        told.start("test")
        told.end("done", 0, None)
        told.say("too late", error=True)
        told.end("failed", 1, None)
        file.seek(0)
        assert kinds(events.read(file.read())) == ["run.start", "run.end"]


# --- a driver


class Turns:
    """A conversation that does nothing, and notes what it is asked for. `looked` is called before it says how it is."""

    def __init__(self, looked: Callable[[], object] = lambda: None) -> None:
        self.asked: list[str] = []
        self.runs = False
        self._looked, self._stopped = looked, asyncio.Event()

    @property
    def busy(self) -> bool:
        self._looked()
        return self.runs

    async def say(self, text: str) -> Reason:
        self.asked.append(f"say {text}")
        self.runs = True
        self._stopped.clear()
        await self._stopped.wait()
        for _ in range(TICKS):  # as a command takes its time to end
            await asyncio.sleep(0)
        self.asked.append("over")
        return Reason.INTERRUPTED

    def add(self, text: str) -> None:
        self.asked.append(f"add {text}")

    def interrupt(self) -> None:
        self.asked.append("interrupt")
        self.runs = False
        self._stopped.set()


async def drive(turns: Turns, *lines: bytes, ended: bool = False) -> Reason:
    """What becomes of these lines, behind which a signal comes; or it has come already."""
    over = asyncio.Event()

    async def feed() -> AsyncIterator[bytes]:
        if ended:
            over.set()
        for line in lines:
            yield line
        over.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(30):
        return await Driver(turns, JsonLines()).run(feed(), over)


def test_a_prompt_that_comes_with_a_signal_begins_no_turn() -> None:
    turns = Turns()
    asyncio.run(drive(turns, b'{"prompt": "a"}', ended=True))
    assert turns.asked == ["interrupt"]


def test_a_signal_that_comes_just_before_a_turn_begins_stops_it() -> None:
    async def scene() -> list[str]:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        turns = Turns(lambda: loop.call_soon(over.set))

        async def feed() -> AsyncIterator[bytes]:
            yield b'{"prompt": "a"}'
            await asyncio.Event().wait()

        async with asyncio.timeout(30):
            await Driver(turns, JsonLines()).run(feed(), over)
        return turns.asked

    assert asyncio.run(scene()) == ["say a", "interrupt", "over"]


def test_two_prompts_that_come_at_once_are_one_turn() -> None:
    turns = Turns()
    asyncio.run(drive(turns, b'{"prompt": "a"}', b'{"prompt": "b"}'))
    assert turns.asked == ["say a", "add b", "interrupt", "over"]


def test_a_turn_that_the_driver_stops_is_no_failure_and_one_that_a_signal_stops_is() -> None:
    stop, say = b'{"interrupt": true}', b'{"prompt": "a"}'
    assert asyncio.run(drive(Turns(), say, stop, stop)) is Reason.DONE
    assert asyncio.run(drive(Turns(), stop, say)) is Reason.INTERRUPTED


def test_a_prompt_behind_an_interrupt_waits_until_the_stopped_turn_is_over() -> None:
    turns = Turns()
    asyncio.run(drive(turns, b'{"prompt": "a"}', b'{"interrupt": true}', b'{"prompt": "b"}'))
    assert turns.asked == ["say a", "interrupt", "over", "say b", "interrupt", "over"]


def test_many_lines_are_read() -> None:
    async def count() -> int:
        with tempfile.TemporaryFile() as file:
            file.write(b"\n" * 3 * driver.LINES_AHEAD_MAX)
            file.seek(0)
            async with asyncio.timeout(30):
                return len([line async for line in driver.read(file.fileno())])

    assert asyncio.run(count()) == 3 * driver.LINES_AHEAD_MAX


class Talk:
    """The other end of `--input json`, as a driver would write it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process, self.read = process, b""

    def send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def until(self, kind: str) -> Line:
        got = read_until(self._process, kind)
        self.read += b"".join(got)
        line: Line = json.loads(got[-1])
        return line

    def end(self) -> list[Line]:
        """Close the input, and give all lines of the run."""
        out, err = self._process.communicate(timeout=30)
        assert err == b""
        lines = events.read(self.read + out)
        assert lines[-1]["exit"] == self._process.returncode
        return lines


@contextmanager
def talking(folder: Path, fake: FakeModel, *arguments: str) -> Iterator[Talk]:
    with running(place(folder, fake), "--input", "json", *arguments, stdin=subprocess.PIPE) as process:
        yield Talk(process)


def test_a_driver_holds_a_conversation(tmp_path: Path) -> None:
    with serving([Reply("first"), Reply("second")]) as fake, talking(tmp_path, fake, "--json") as talk:
        talk.send(prompt="one\nline")
        assert talk.until("turn.end")["answer"] == "first"
        talk.send(prompt="/clear")
        assert talk.until("turn.end")["answer"] == "second"
        lines = talk.end()
        said = [m["content"] for m in fake.requests[1].body["messages"][1:]]
    assert said == ["one\nline", "first", "/clear"]
    assert (lines[-1]["reason"], lines[-1]["answer"], lines[-1]["usage"]["calls"]) == ("done", "second", 2)


def test_what_a_driver_says_during_a_turn_is_heard_with_the_next_request(tmp_path: Path) -> None:
    wait = Reply(calls=[("shell_exec", {"command": "until [ -e go ]; do sleep 0.01; done"})])
    with serving([wait, HELLO]) as fake, talking(tmp_path, fake) as talk:
        talk.send(prompt="one")
        talk.until("tool.call")
        talk.send(prompt="two")
        talk.send(nonsense=1)  # answered at once, and what came before it was taken
        assert "line 3: unknown member 'nonsense'" in talk.until("error")["message"]
        (tmp_path / "work/go").touch()
        lines = talk.end()
        assert [m["role"] for m in fake.requests[1].body["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert kinds(lines).count("turn.end") == 1
    assert (lines[-1]["reason"], lines[-1]["exit"], lines[-1]["answer"]) == ("failed", 1, "pelican")


def test_a_driver_stops_a_turn_and_gets_back_what_was_not_heard(tmp_path: Path) -> None:
    with serving([Reply("half", end="hang"), HELLO]) as fake, talking(tmp_path, fake) as talk:
        talk.send(prompt="one")
        talk.until("text")
        talk.send(prompt="two")
        talk.send(interrupt=True)
        talk.send(interrupt=True)
        ended = talk.until("turn.end")
        assert (ended["reason"], ended["answer"], ended["returned"]) == ("interrupted", None, ["two"])
        talk.send(prompt="three")
        assert talk.until("turn.end")["answer"] == "pelican"
        lines = talk.end()
        assert [m["content"] for m in fake.requests[1].body["messages"][1:]] == ["one", "half", "three"]
    assert (lines[-1]["reason"], lines[-1]["exit"]) == ("done", 0)  # the driver wanted it so


def test_the_end_of_the_input_waits_for_the_turn(tmp_path: Path) -> None:
    with serving([Reply("slow", wait_s=0.3)]) as fake, talking(tmp_path, fake) as talk:
        talk.send(prompt="one")
        assert talk.end()[-1]["answer"] == "slow"


def test_a_line_that_is_too_long_is_an_error_and_the_next_is_taken(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        long = '{"prompt": "' + "x" * input.LINE_BYTES_MAX + '"}\n'
        _, lines = run_json(place(tmp_path, fake), "--input", "json", piped=long + '{"prompt": "hi"}\n')
        assert fake.requests[0].body["messages"][-1]["content"] == "hi"
    assert only(lines, "error")["message"] == "standard input, line 1: longer than 16,000,000 bytes"
    assert lines[-1]["answer"] == "pelican"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_conversation_too(tmp_path: Path, number: signal.Signals) -> None:
    with serving([Reply("half", end="hang")]) as fake:
        here = place(tmp_path, fake)
        with running(here, "--input", "json", stdin=subprocess.PIPE) as process:
            talk = Talk(process)
            talk.send(prompt="one")
            talk.until("text")
            process.send_signal(number)
            lines = talk.end()
    assert (lines[-2]["reason"], lines[-1]["reason"], lines[-1]["exit"]) == ("interrupted", "interrupted", 128 + number)
