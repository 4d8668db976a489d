"""What servers really send, a test a kind: bytes on loopback through the real handler into the real loop.

The rules are proven in the leaves' own tests. Here each kind of oddity goes the whole way once, and what counts is
what the user has at its end, and what the server was asked.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from bantam.core import messages, tree
from bantam.core.base import texts
from bantam.core.base.settings import Config
from bantam.core.effects import (
    CallModel,
    Emit,
    Notice,
    Output,
    Reason,
    ResultEnded,
    Retrying,
    RunShell,
    Sleep,
    TextDelta,
    ThoughtDelta,
)
from bantam.core.events import CommandEnded, Event, TimerFired, UserSaid
from bantam.core.messages import Messages
from bantam.core.rules.redact import Redactor
from bantam.shell.net.model import Model
from bantam.shell.runtime import Runtime
from scripts.fakemodel import FakeModel, Received, Reply, Script
from tests import servers
from tests.invariants import complaint
from tests.loopback import environment
from tests.servers import Call, Json, Style
from tests.world import Rolled

TEXT = "pelican é 日本 \U0001d11e"
GOOD = Reply(TEXT)
PATIENCE_S = 30.0
SOON_S = 0.6  # for servers whose silence is waited for


@dataclass
class Told:
    """A conversation that is over."""

    reason: Reason
    outputs: list[Output]
    messages: Messages
    requests: list[Received]
    commands: list[str]
    slept_s: list[float]

    @property
    def text(self) -> str:
        return messages.text_of(self.messages[-1]) if messages.role_of(self.messages[-1]) == "assistant" else ""

    def shown(self, kind: type[TextDelta | ThoughtDelta]) -> str:
        return "".join(output.text for output in self.outputs if isinstance(output, kind))

    @property
    def retries(self) -> list[str]:
        return [output.why for output in self.outputs if isinstance(output, Retrying)]

    @property
    def notices(self) -> list[str]:
        return [output.text for output in self.outputs if isinstance(output, Notice)]

    @property
    def results(self) -> list[ResultEnded]:
        return [output for output in self.outputs if isinstance(output, ResultEnded)]


def told(
    script: Script, *turns: str, path: str = "", key: str | None = None, timeout: float = PATIENCE_S, **config: Any
) -> Told:
    """A session with a server that follows a script: commands print their own text, and sleeps take no time."""
    outputs: list[Output] = []
    commands: list[str] = []
    slept_s: list[float] = []

    async def run(request: RunShell) -> AsyncGenerator[Event, None]:
        commands.append(request.command)
        yield CommandEnded(request.id, 0, request.command)

    async def sleep(request: Sleep) -> AsyncGenerator[Event, None]:
        slept_s.append(request.seconds)
        yield TimerFired(request.id)

    async def play() -> Told:
        async with FakeModel(script) as fake:
            model = Model(fake.endpoint + path, key, os.environ, time.time)
            session = tree.start(Config(timeout=timeout, model="m", **config), "You are Bantam.")

            def show(emit: Emit) -> None:
                outputs.append(emit.output)

            runtime = Runtime(
                session,
                {CallModel: model.call, RunShell: run, Sleep: sleep},
                show,
                lambda said: None,
                lambda now, event: None,
                Redactor(()),
                lambda: 0.0,
            )
            try:
                for text in turns or ("hello",):
                    ended = await runtime.turn(UserSaid(text))
            finally:
                await runtime.close()
                await model.close()
            said = tree.conversation(runtime.session)
            for list_ in (said, *(request.body["messages"] for request in fake.requests)):
                assert complaint(tuple(list_)) == ""
            return Told(ended.reason, outputs, said, fake.requests, commands, slept_s)

    with environment():
        return asyncio.run(play())


def chunk(delta: Json, finish: str | None = None) -> dict[str, Json]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def data(value: Json, end: str = "\n") -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}{end}{end}".encode()


def finished(text: str = TEXT) -> dict[str, Json]:
    return chunk({"content": text}, "stop")


DONE = b"data: [DONE]\n\n"
LAST = data(chunk({}, "stop"))
PLAIN = data(chunk({"content": TEXT})) + LAST + DONE
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}]}


# --- framing

FRAMINGS = {
    "CRLF": PLAIN.replace(b"\n", b"\r\n"),
    "CR": PLAIN.replace(b"\n", b"\r"),
    "a byte order mark": b"\xef\xbb\xbf" + PLAIN,
    "comments": b": hello\n\n" + PLAIN.replace(b"data", b": alive\n\n: alive\ndata"),
    "no blank": PLAIN.replace(b"data: ", b"data:"),
    "other fields": PLAIN.replace(b"data", b"id: 7\nretry: 9\nevent: message\ndatabase: x\nnothing\ndata"),
    "events without data": b"data:\n\ndata\n\n" + PLAIN.replace(b"\n\n", b"\n\ndata: \n\nevent: ping\n\n"),
    "data of several lines": PLAIN.replace(b', "choices"', b',\ndata: "choices"'),
    "indented JSON": b"data: " + json.dumps(finished(), indent=1).replace("\n", "\ndata: ").encode() + b"\n\n" + DONE,
    "a long line": data(chunk({"content": TEXT, "x": "y" * 200_000})) + LAST + DONE,
    "blanks behind the mark": PLAIN.removesuffix(b"\n\n") + b"  \t\n\n",
    "blank lines": b"\n\n\n" + PLAIN.replace(b"\n\n", b"\n\n\n\n\n"),
    "escapes": data(chunk({"content": TEXT})).decode().replace(TEXT, json.dumps(TEXT)[1:-1]).encode() + LAST + DONE,
    "halves of a character in two chunks": data(chunk({"content": TEXT[:-1]}))
    + b'data: {"choices": [{"delta": {"content": "\\ud834"}}]}\n\n'
    + b'data: {"choices": [{"delta": {"content": "\\udd1e"}}]}\n\n' + LAST,
}  # fmt: skip


@pytest.mark.parametrize("kind", FRAMINGS)
@pytest.mark.parametrize("write_bytes", [0, 1, 7])
def test_framing(kind: str, write_bytes: int) -> None:
    body = FRAMINGS[kind]
    one = told([Reply(body=body, write_bytes=write_bytes if len(body) < 100_000 else 50_000)])
    assert (one.reason, one.text, len(one.requests)) == (Reason.DONE, TEXT, 1)
    assert texts.paired(one.shown(TextDelta)) == TEXT


def test_framing_as_dice_decide() -> None:
    """Many servers one after another, as the simulator makes them: each reply is what its model meant."""
    dice = Rolled(1)
    meant = [servers.Reply(f"{n}" + servers.text(dice), usage=(n, n)) for n in range(60)]
    bodies = [
        servers.sse(dice, servers.chunks(dice, reply, servers.style(dice)), marked=n % 3 > 0)
        for n, reply in enumerate(meant)
    ]
    script = [Reply(body=body, write_bytes=(0, 5, 1, 64)[n % 4]) for n, body in enumerate(bodies)]
    all_ = told(script, *["go on"] * len(meant))
    said = [message["content"] for message in all_.messages if messages.role_of(message) == "assistant"]
    assert said == [texts.clean(reply.text) for reply in meant]
    assert all_.retries == []


# --- the end

OPEN_END = data(chunk({"content": "half"}))
WHOLE_ENDS: dict[str, Reply] = {
    "a finish_reason and the mark": Reply(body=PLAIN),
    "a finish_reason and no mark": Reply(body=data(finished())),
    "a finish_reason in an event without its blank line": Reply(body=data(finished()).rstrip()),
    "the mark and no finish_reason": Reply(body=data(chunk({"content": TEXT})) + DONE),
    "the mark without its blank line": Reply(body=data(chunk({"content": TEXT})) + DONE.rstrip()),
    "a mark and more": Reply(body=PLAIN + data(chunk({"content": "no"})) + b"data: {"),
    "usage behind the finish_reason": Reply(body=data(finished()) + data({"choices": [], "usage": {"x": 1}})),
    "half a chunk behind the finish_reason": Reply(body=data(finished()) + b'data: {"choi'),
    "a broken chunk behind the finish_reason": Reply(chunks=[finished(), "{}}", chunk({"content": "no"})]),
    "an error behind the finish_reason": Reply(chunks=[finished(), {"error": {"message": "late", "code": 500}}]),
    "a reset behind the finish_reason": Reply(chunks=[finished()], end="reset", pause_s=0.05),
    "a cut behind the finish_reason": Reply(chunks=[finished()], end="cut"),
    "a cut in the middle of usage": Reply(chunks=[finished(), '{"choices": [], "us'], end="cut"),
    "silence behind the finish_reason": Reply(chunks=[finished()], done=False, end="open"),
    "silence in the middle of usage": Reply(body=data(finished()) + b'data: {"choices": [], "us', end="open"),
    "silence behind usage": Reply(chunks=[finished(), {"choices": [], "usage": {"x": 1}}], done=False, end="open"),
    "silence behind one object": Reply(body=json.dumps(WHOLE), end="open"),
}  # fmt: skip
BROKEN_ENDS: dict[str, Reply] = {
    "a good end without finish_reason or mark": Reply(body=OPEN_END),
    "no body": Reply(body=""),
    "only comments": Reply(body=": alive\n\n: alive\n\n"),
    "only the mark": Reply(body=DONE),
    "a cut": Reply(chunks=[chunk({"content": "half"})], end="cut"),
    "a reset": Reply(chunks=[chunk({"content": "half"})], end="reset", pause_s=0.05),
    "a cut within a chunk": Reply(chunks=[chunk({"content": "half"})], end="cut", write_bytes=30),
    "no answer at all": Reply(end="drop"),
    "silence without headers": Reply(end="hang"),
    "silence within the text": Reply(chunks=[chunk({"content": "half"})], done=False, end="open"),
    "half an object": Reply(body=json.dumps(WHOLE)[:-2]),
    "silence within an object": Reply(body=json.dumps(WHOLE)[:-1], end="open"),
    "neither text nor calls": Reply(body=LAST + DONE),
    "blanks": Reply(body=data(finished(" \n")) + DONE),
    "a finish_reason of another choice": Reply(
        body=data({"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]})
    ),
}


@pytest.mark.parametrize("kind", WHOLE_ENDS)
def test_an_end_that_makes_an_answer_whole(kind: str) -> None:
    one = told([WHOLE_ENDS[kind], Reply("asked twice")], timeout=SOON_S)
    assert (one.reason, one.text, one.retries, len(one.requests)) == (Reason.DONE, TEXT, [], 1)


@pytest.mark.parametrize("kind", BROKEN_ENDS)
def test_an_end_that_makes_it_no_answer(kind: str) -> None:
    """It is asked for again, and nothing of the first attempt is kept."""
    one = told([BROKEN_ENDS[kind], GOOD], timeout=SOON_S)
    assert (one.reason, one.text, len(one.requests), len(one.retries)) == (Reason.DONE, TEXT, 2, 1)
    assert one.requests[0].raw == one.requests[1].raw
    assert len(one.messages) == 3


def test_comments_that_keep_a_connection_alive_are_no_reason_to_wait() -> None:
    events = [data(finished()), *[b": alive\n\n"] * 400]
    began = time.monotonic()
    one = told([Reply(body=b"".join(events), write_bytes=len(events[0]), pause_s=1, end="open")], timeout=3)
    assert time.monotonic() - began < 10  # of more than 30
    assert (one.reason, one.text) == (Reason.DONE, TEXT)


# --- chunks


@pytest.mark.parametrize("empty", servers.EMPTY_CHUNKS, ids=str)
def test_chunks_that_say_nothing(empty: Json) -> None:
    pieces = [
        chunk({"role": "assistant"}),
        chunk({"content": TEXT[:3]}),
        chunk({"content": TEXT[3:]}),
        chunk({}, "stop"),
    ]
    mixed = [part for piece in pieces for part in (empty, piece)] + [empty]
    one = told([Reply(chunks=mixed)])
    assert (one.reason, one.text, len(one.requests)) == (Reason.DONE, TEXT, 1)


@pytest.mark.parametrize(
    "broken", ['{"choices": [{"delta": {"content": "hal', "[1, 2]", "{]", '{"a": 1} and', "[", '[{"choices"']
)
def test_a_broken_chunk_is_named_and_the_call_made_again(broken: str) -> None:
    one = told([Reply(chunks=[chunk({"content": "half"}), broken, finished("no")]), GOOD])
    assert (one.reason, one.text) == (Reason.DONE, TEXT)
    (why,) = one.retries
    assert why.startswith("a chunk of the answer is no")
    assert why.endswith(broken)


@pytest.mark.parametrize("word", servers.NOISE, ids=repr)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_event_that_is_no_json_is_nobodys_answer(word: bytes, end: bytes) -> None:
    """Wherever it stands: a gateway has rewrapped a keep-alive as data."""
    pieces = [data(chunk({"content": TEXT[:3]})), data(chunk({"content": TEXT[3:]})), LAST, DONE]
    body = b"".join(word + b"\n\n" + piece for piece in pieces).replace(b"\n", end)
    one = told([Reply(body=body, write_bytes=11), Reply("asked twice")])
    assert (one.reason, one.text, one.retries, len(one.requests)) == (Reason.DONE, TEXT, [], 1)


@pytest.mark.parametrize("before", [b"", OPEN_END])
@pytest.mark.parametrize("name", [b"", b"event: error\n"])
@pytest.mark.parametrize("end", [b"", b"\n\n"])
def test_words_in_place_of_an_answer_are_quoted_and_the_call_made_again(before: bytes, name: bytes, end: bytes) -> None:
    one = told([Reply(body=before + name + b"data: Internal Server Error" + end), GOOD])
    assert (one.reason, one.text, len(one.requests)) == (Reason.DONE, TEXT, 2)
    assert "Internal Server Error" in one.retries[0]


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


BEYOND: dict[str, Reply] = {  # a megabyte a write, or the server needs longer than Bantam
    "an event": Reply(body=b"data: " + b"a" * 65_000_000, write_bytes=1_000_000),
    "an event in its middle": Reply(body=OPEN_END + b"data: " + b"a" * 65_000_000, write_bytes=1_000_000),
    "an object": Reply(body=b'{"choices": "' + b"a" * 65_000_000, write_bytes=1_000_000),
    "levels of an event": Reply(body=OPEN_END + b"data: " + deep(101) + b"\n\n" + DONE),
    "levels of an object": Reply(body=deep(101)),
    "levels beyond what can be read": Reply(body=b"data: " + deep(200_000) + b"\n\n" + DONE),
}


@pytest.mark.parametrize("kind", BEYOND)
def test_an_answer_beyond_a_bound_is_told_once(kind: str) -> None:
    """Asked for again, it would be the same at the same price."""
    one = told([BEYOND[kind], Reply("asked twice")])
    assert (one.reason, one.slept_s, len(one.requests), len(one.messages)) == (Reason.FAILED, [], 1, 2)
    (words,) = one.notices
    assert "larger than 64 MB" in words or "more than 100 levels deep" in words


# --- errors behind the status line


@pytest.mark.parametrize("error", servers.ERRORS, ids=str)
@pytest.mark.parametrize("before", [0, 1])
def test_an_error_inside_a_200(error: Json, before: int) -> None:
    """It counts as the status that it names, and as one that may pass without."""
    inside = Reply(chunks=[chunk({"content": "half"})] * before + [error, finished("no")])
    one = told([inside, GOOD], forwarded={"temperature": 0.7})
    code = json.dumps(error)
    stays = any(word in code for word in ("404", "insufficient_quota", "context_length"))
    if stays:
        assert (one.reason, len(one.requests), len(one.messages)) == (Reason.FAILED, 1, 2)
    else:
        assert (one.reason, one.text, len(one.requests), len(one.messages)) == (Reason.DONE, TEXT, 2, 3)
    words = [*one.retries, *one.notices]
    assert len(words) == 1
    for own in (
        "overloaded",
        "too many requests",
        "rate limit",
        "went away",
        "no such model",
        "used up",
        "temperature",
    ):
        assert own not in code or own in words[0]


def test_a_named_event_of_an_error() -> None:
    body = b'event: error\ndata: {"error": {"code": "1302", "message": "slow down"}}\n\n' + DONE
    one = told([Reply(body=body), GOOD])
    assert one.text == TEXT
    assert "slow down" in one.retries[0]


# --- the shape of a body


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("body", [PLAIN, json.dumps(WHOLE).encode(), json.dumps([WHOLE], indent=1).encode()])
def test_events_or_an_object_whatever_was_asked_for(stream: bool, body: bytes) -> None:
    one = told([Reply(body=b"\n" + body, write_bytes=9)], stream=stream)
    assert one.requests[0].body["stream"] is stream
    assert (one.text, one.shown(TextDelta), len(one.requests)) == (TEXT, TEXT, 1)


PAGES = (
    "<!DOCTYPE html>\n<html><title>Sign in</title></html>",
    '{"object": "list", "data": []}',
    "[]",
    "It works!",
    "3",
)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("stream", [True, False])
def test_what_some_other_program_says_is_a_wrong_endpoint(page: str, stream: bool) -> None:
    one = told([Reply(body=page)], stream=stream)
    assert (one.reason, len(one.requests), one.slept_s) == (Reason.FAILED, 3, [1, 1])
    assert "is the endpoint right?" in one.notices[-1]
    assert page.split("\n")[0][:20] in one.notices[-1]
    assert told([Reply(body=page), Reply(body=page), GOOD], stream=stream).text == TEXT


@pytest.mark.parametrize("body", ["", " \n", ": alive\n\n"])
def test_nothing_is_waited_for_as_a_server_that_went_away(body: str) -> None:
    one = told([Reply(body=body)])
    assert (one.reason, len(one.requests), sum(one.slept_s)) == (Reason.TRANSIENT, 10, 88)


# --- tool calls

TWO = (Call("shell_exec", '{"command": "echo 1"}', "call_a"), Call("shell_exec", '{"command": "echo 2"}', "call_b"))
STYLES = [
    Style(index, first, ids, whole, together)
    for index in ("own", "zero", "none")
    for first in (0, 1)
    for ids in ("own", "repeated", "none", "same", "empty")
    for whole, together in ((False, False), (True, False), (True, True))
    if index == "own" or not first
]


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_two_calls_however_a_server_writes_them(style: Style) -> None:
    reply = servers.Reply("so: ", calls=TWO, finish="tool_calls", extra={"extra_content": {"x": [1]}})
    assert style.keeps_calls_apart(reply)
    script = [Reply(chunks=servers.chunks(Rolled(seed), reply, style)) for seed in range(5)]
    rounds = len(script)
    all_ = told([*script, GOOD])
    assert all_.commands == ["echo 1", "echo 2"] * rounds
    assert all_.text == TEXT
    for at in range(2, 2 + 3 * rounds, 3):
        asked, *results = all_.messages[at : at + 3]
        ids = [call["id"] for call in asked["tool_calls"]]
        assert [result["tool_call_id"] for result in results] == ids
        assert (asked["content"], asked["extra_content"]) == ("so: ", {"x": [1]})
        assert all(set(call) == {"id", "type", "function"} for call in asked["tool_calls"])


@pytest.mark.parametrize("first", [{}, {"index": 0}, {"index": 1}])
def test_calls_that_grow_side_by_side(first: dict[str, Json]) -> None:
    places = ({"index": first["index"]}, {"index": first["index"] + 1}) if first else ({"id": "a"}, {"id": "b"})
    deltas: list[Json] = []
    for at, call in enumerate(TWO):
        own: dict[str, Json] = {**places[at], "id": "ab"[at], "function": {"name": call.name, "arguments": ""}}
        deltas.append(own)
    for at in range(0, len(TWO[0].arguments), 4):
        deltas += [
            {**place, "function": {"arguments": call.arguments[at : at + 4]}}
            for place, call in zip(places, TWO, strict=True)
        ]
    one = told([Reply(chunks=[*(chunk({"tool_calls": [delta]}) for delta in deltas), chunk({}, "tool_calls")]), GOOD])
    assert one.commands == ["echo 1", "echo 2"]


def test_ids_may_come_again_in_a_later_answer() -> None:
    again = Reply(
        chunks=[
            chunk(
                {
                    "tool_calls": [
                        {"index": 0, "id": "x", "function": {"name": "shell_exec", "arguments": '{"command": "ls"}'}}
                    ]
                },
                "tool_calls",
            )
        ]
    )
    one = told([again, again, again, GOOD])
    assert (one.commands, one.text) == (["ls"] * 3, TEXT)
    ids = [message["tool_call_id"] for message in one.messages if messages.role_of(message) == "tool"]
    asked = [call["id"] for message in one.messages for call in messages.calls_of(message)]
    assert ids == asked


def test_a_signature_that_comes_late_goes_back_with_its_call() -> None:
    call = {
        "index": 0,
        "id": "x",
        "type": "function",
        "function": {"name": "shell_exec", "arguments": '{"command": "ls"}'},
    }
    late = {"index": 0, "extra_content": {"google": {"thought_signature": "s"}}}
    one = told([Reply(chunks=[chunk({"tool_calls": [call]}), chunk({"tool_calls": [late]}), chunk({}, "stop")]), GOOD])
    (sent,) = one.requests[1].body["messages"][2]["tool_calls"]
    assert sent == {"id": "x", "type": "function", "function": call["function"], "extra_content": late["extra_content"]}


# --- arguments

GOOD_ARGUMENTS: Sequence[Json] = (
    '{"command": "ls"}',
    '\n{ "command" : "ls" }  ',
    '{"command": "ls", "extra": [1]}',
    '{"command": "l\\u0073"}',
    {"command": "ls"},
    {"command": "ls", "extra": None},
)
BAD_ARGUMENTS: Sequence[Json] = (
    "", "{", "null", "[]", '["ls"]', "3", "{}", '{"command": 3}', '{"command": null}', '{"command": ["ls"]}',
    "[" * 2000, None, {}, [], ["ls"], 3, '{"command": "ls"', '{"command": "ls",}', '{"command": "ls"}}', "ls",
    '{command: "ls"}', '{"cmd": "ls"}', '{"command": "a\\u0000b"}',
)  # fmt: skip


def asks(arguments: Json, name: str = "shell_exec") -> Reply:
    call = {"index": 0, "id": "x", "type": "function", "function": {"name": name, "arguments": arguments}}
    return Reply(chunks=[chunk({"tool_calls": [call]}), chunk({}, "tool_calls")])


@pytest.mark.parametrize("arguments", GOOD_ARGUMENTS, ids=str)
def test_arguments_that_can_be_read_run(arguments: Json) -> None:
    one = told([asks(arguments), GOOD])
    assert (one.commands, one.text) == (["ls"], TEXT)


def test_arguments_that_cannot_be_used_are_answered_and_nothing_runs() -> None:
    """In one conversation, which stays valid throughout."""
    one = told([*(asks(arguments) for arguments in BAD_ARGUMENTS), asks('{"command": "ls"}', "rm_rf"), GOOD])
    assert (one.commands, one.text) == ([], TEXT)
    assert len(one.results) == len(BAD_ARGUMENTS) + 1
    assert all(result.error and result.text.strip() for result in one.results)
    assert "rm_rf" in one.results[-1].text


# --- finish reasons


@pytest.mark.parametrize("finish", servers.FINISHES)
def test_a_finish_reason_decides_nothing_but_a_cut(finish: str) -> None:
    words = told([Reply(chunks=[chunk({"content": TEXT}), chunk({}, finish)], done=False)])
    assert (words.reason, words.text, len(words.requests)) == (Reason.DONE, TEXT, 1)
    assert (words.notices != []) == (finish == "length")
    call = {"index": 0, "id": "x", "function": {"name": "shell_exec", "arguments": '{"command": "ls"}'}}
    acts = told([Reply(chunks=[chunk({"tool_calls": [call]}), chunk({}, finish)], done=False), GOOD])
    assert (acts.commands, acts.text) == (["ls"], TEXT)
    half = {**call, "function": {"name": "shell_exec", "arguments": '{"command": "rm -r /tmp'}}
    cut = told([Reply(chunks=[chunk({"tool_calls": [half]}), chunk({}, finish)], done=False), GOOD])
    assert cut.commands == []
    assert ("token limit" in cut.results[0].text) == (finish == "length")


# --- reasoning


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("names", [("reasoning_content",), ("reasoning",), ("reasoning", "reasoning_content")])
def test_a_thought_is_shown_and_goes_back_under_its_name(names: tuple[str, ...], stream: bool) -> None:
    thought = "жѫщ"
    reply = servers.Reply("so: ", thought, TWO[:1], thought_keys=names, finish="tool_calls")
    body = (
        Reply(chunks=servers.chunks(Rolled(3), reply, Style()))
        if stream
        else Reply(body=json.dumps(servers.whole(reply)))
    )
    one = told([body, GOOD, GOOD], "hello", "and?", stream=stream)
    assert one.shown(ThoughtDelta) == thought
    assert one.shown(TextDelta) == "so: " + TEXT * 2
    for request in one.requests[1:]:
        said = request.body["messages"][2]
        assert {name: said[name] for name in names} == dict.fromkeys(names, thought)
        assert said["content"] == "so: "
    assert not any(set(thought) & set(str(message["content"])) for message in one.messages)


def test_tags_of_a_thought_in_the_text_are_text() -> None:
    said = "<think>hm</think>fine"
    assert told([Reply(said)]).text == said


def test_a_thought_alone_is_no_answer() -> None:
    one = told([Reply(chunks=[chunk({"reasoning_content": "hm"}), chunk({}, "stop")]), GOOD])
    assert (one.text, len(one.requests)) == (TEXT, 2)
    assert "hm" not in one.requests[1].raw.decode()


# --- statuses


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
@pytest.mark.parametrize("words", ["", "<html>busy</html>", '{"error": {"message": "busy"}}'])
def test_a_status_that_may_pass_is_waited_for(status: int, words: str) -> None:
    one = told([Reply(body=words, status=status)] * 3 + [GOOD])
    assert (one.text, len(one.requests), one.slept_s) == (TEXT, 4, [1, 1, 2])
    assert all(str(status) in why and ("busy" in why or not words) for why in one.retries)


PERMANENT = [
    *((status, '{"error": {"message": "no, never"}}') for status in (400, 401, 402, 403, 404, 405, 410, 422)),
    (400, '{"error": "no, never"}'),
    (422, '{"detail": [{"loc": ["body", "messages"], "msg": "no, never"}]}'),
    (403, "no, never (error code: 1010)"),
    (404, '{"message": "no, never"}'),
    (429, '{"error": {"code": "insufficient_quota", "message": "no, never"}}'),
    (429, '{"error": {"message": "no, never: credit balance is too low"}}'),
]


@pytest.mark.parametrize(("status", "words"), PERMANENT)
def test_a_status_that_stays_is_said_at_once_in_the_servers_words(status: int, words: str) -> None:
    one = told([Reply(body=words, status=status), GOOD])
    assert (one.reason, len(one.requests), one.retries, len(one.messages)) == (Reason.FAILED, 1, [], 2)
    assert f"the API answered {status}: no, never" in one.notices[-1]


def test_a_status_without_a_word_is_said() -> None:
    assert told([Reply(body="", status=400)]).notices == ["the API answered 400: without a word"]


@pytest.mark.parametrize(
    ("after", "seconds"), [("7", 7), ("0", 1), ("1.5", 1.5), ("soon", 1), ("-3", 1), ("", 1), ("120", 120)]
)
def test_a_server_may_say_how_long_to_wait(after: str, seconds: float) -> None:
    assert told([Reply(status=429, headers={"Retry-After": after}), GOOD]).slept_s == [seconds]


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for() -> None:
    one = told([Reply("later", status=429, headers={"Retry-After": "121"}), GOOD])
    assert (one.reason, len(one.requests)) == (Reason.TRANSIENT, 1)
    assert "121 s" in one.notices[-1]


# --- parameters and recovery

REFUSALS = (
    '{"error": {"message": "Unsupported value", "param": "NAME", "code": "unsupported_value"}}',
    '{"error": {"message": "Unrecognized request argument supplied: NAME"}}',
    '{"detail": [{"type": "extra_forbidden", "loc": ["body", "NAME"], "msg": "Extra inputs are not permitted"}]}',
    "'NAME' is not supported with this model",
    '{"error": "unknown field \\"NAME\\""}',
    '{"object": "error", "message": "NAME: unexpected keyword argument"}',
)


@pytest.mark.parametrize("name", ["stream_options", "temperature", "reasoning_effort"])
@pytest.mark.parametrize("words", REFUSALS)
def test_a_parameter_that_is_refused_by_name_is_left_out_from_then_on(name: str, words: str) -> None:
    def script(body: Any) -> Reply:
        return Reply(body=words.replace("NAME", name), status=400) if name in body else GOOD

    one = told(script, "one", "two", forwarded={"temperature": 0.7, "reasoning_effort": "high"})
    assert (one.reason, one.text, len(one.requests), one.slept_s) == (Reason.DONE, TEXT, 3, [])
    assert one.requests[0].body.keys() - one.requests[1].body.keys() == {name}
    assert one.requests[2].body.keys() == one.requests[1].body.keys()
    assert any(name in notice for notice in one.notices)


def test_a_server_may_refuse_several_parameters_one_by_one() -> None:
    def script(body: Any) -> Reply:
        known = body.keys() & {"stream_options", "temperature", "top_k"}
        return Reply(body=f"unknown field {min(known)}", status=422) if known else GOOD

    one = told(script, forwarded={"temperature": 0.7, "top_k": 3})
    assert (one.text, len(one.requests)) == (TEXT, 4)


def test_a_server_that_refuses_its_own_message_gets_the_list_without_it() -> None:
    words = "Invalid assistant message: content or tool_calls must be set"

    def script(body: Any) -> Reply:
        if any(message["role"] == "assistant" for message in body["messages"]):
            return Reply(words, status=400)
        return asks('{"command": "ls"}') if len(sent) == 0 else GOOD

    sent: list[int] = []

    def counted(body: Any) -> Reply:
        reply = script(body)
        sent.append(1)
        return reply

    one = told(counted)
    assert (one.reason, one.text, len(one.requests)) == (Reason.DONE, TEXT, 3)
    assert [message["role"] for message in one.requests[2].body["messages"]] == ["system", "user"]


def test_reasoning_that_is_refused_stays_away() -> None:
    def script(body: Any) -> Reply:
        if any("reasoning_content" in message for message in body["messages"]):
            return Reply("property 'messages.2.reasoning_content' is unsupported", status=400)
        return (
            GOOD
            if len(body["messages"]) > 2
            else Reply("so", reasoning="hm", calls=[("shell_exec", {"command": "ls"})])
        )

    one = told(script)
    assert (one.text, len(one.requests), one.commands) == (TEXT, 3, ["ls"])


def test_an_answer_that_says_nothing_behind_a_result_is_asked_for_again() -> None:
    one = told([asks('{"command": "ls"}'), Reply(body=LAST + DONE), GOOD])
    assert (one.text, len(one.requests), one.commands) == (TEXT, 3, ["ls"])
    assert one.requests[1].raw == one.requests[2].raw


def test_a_conversation_that_is_too_long_is_compacted_once() -> None:
    words = '{"error": {"code": "context_length_exceeded", "message": "maximum context length is 10"}}'

    def script(body: Any) -> Reply:
        if "tools" not in body:
            return Reply("a summary")
        return Reply(body=words, status=400) if "first" in str(body["messages"]) and len(body["messages"]) > 3 else GOOD

    one = told(script, "the first", "the second")
    assert (one.reason, one.text) == (Reason.DONE, TEXT)
    assert "a summary" in str(one.messages)


def test_a_single_turn_that_is_too_long_goes_on_from_a_summary_of_its_work() -> None:
    words = '{"error": {"code": "context_length_exceeded", "message": "maximum context length is 10"}}'

    def script(body: Any) -> Reply:
        if "tools" not in body:
            return Reply("listed them") if len(str(body)) < 3_000 else Reply(body=words, status=400)
        if len(body["messages"]) == 2:
            return asks('{"command": "ls"}')
        return Reply(body=words, status=400) if any(m["role"] == "tool" for m in body["messages"]) else GOOD

    one = told(script, "x" * 1000)
    assert (one.reason, one.text, one.commands) == (Reason.DONE, TEXT, ["ls"])
    assert "listed them" in str(one.messages[2])
    assert one.messages[1]["content"] == "x" * 1000


# --- endpoints and redirects


@pytest.mark.parametrize("path", ["", "/", "//", "/chat/completions", "/chat/completions/"])
def test_an_endpoint_is_a_base_or_the_whole(path: str) -> None:
    one = told([GOOD], path=path)
    assert (one.text, one.requests[0].path) == (TEXT, "/v1/chat/completions")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location", ["/v2/chat/completions", "/v1/chat/completions/", "https://other.invalid/v1", "?x=1"]
)
def test_a_redirect_is_followed_within_the_origin_if_it_keeps_the_request(status: int, location: str) -> None:
    one = told([Reply(body="", status=status, headers={"Location": location}), GOOD], key="sk-marker")
    followed = status in (307, 308) and "other" not in location
    assert (one.reason is Reason.DONE, len(one.requests)) == (followed, 1 + followed)
    if followed:
        assert one.requests[0].raw == one.requests[1].raw
        assert {request.headers["authorization"] for request in one.requests} == {"Bearer sk-marker"}
    else:
        assert "it redirects to http" in one.notices[-1]
        assert ("set endpoint to that" in one.notices[-1]) == ("v2" in location or "other" in location)
