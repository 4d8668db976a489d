"""`CallModel` against real servers on loopback: what is sent, what comes, and every way that it can go wrong.

Where a test waits, it waits for something that it can see. No call leaves a connection or a task.
"""

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import CoroutineType
from typing import Any

import pytest

from bantam.core.effects import CallModel
from bantam.core.events import Event, Failure, Fault, ModelChunks, ModelEnded, ModelFailed
from bantam.core.messages import Message, text_of
from bantam.core.rules.redact import Redactor
from bantam.core.wire import chat
from bantam.core.wire.assemble import Partial, finished, merge
from bantam.shell.net import address, http
from bantam.shell.net.model import Model
from scripts.fakemodel import FakeModel, Reply, Script, echo, serving
from tests.loopback import Authority, Proxy, Server, environment, needs_openssl, read_request, says
from tests.root import ROOT

ID = (3, 1)
PATIENCE_S = 20  # for a machine that is busy; nothing takes as long
SHORT_S = 0.3  # what a server that says nothing is given
KEY = "sk-marker-0123456789"
HELLO: Message = {"role": "user", "content": "hello"}
STREAM = {"model": "m", "stream": True}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


def request(
    *messages: Message,
    tools: tuple[Message, ...] = (),
    timeout_s: float = PATIENCE_S,
    id: tuple[int, ...] = ID,
    left_s: float | None = None,
    **parameters: Any,
) -> CallModel:
    return CallModel(id, messages or (HELLO,), tools, {**STREAM, **parameters}, timeout_s, left_s)


@asynccontextmanager
async def model(endpoint: str, key: str | None = None, **more: Any) -> AsyncIterator[Model]:
    """A model that must leave no task."""
    made = Model(endpoint, key, os.environ, time.time, **more)
    try:
        yield made
        assert not strays()
    finally:
        await made.close()


def strays() -> list[Any]:
    """The tasks of this loop that are neither a test's nor a server's."""
    coroutines = [task.get_coro() for task in asyncio.all_tasks()]
    theirs = (str(ROOT / "tests"), str(ROOT / "scripts"))
    files = [(c, c.cr_code.co_filename) for c in coroutines if isinstance(c, CoroutineType)]
    return [c for c, file in files if not file.startswith(theirs) and c.__name__ != "_accept_connection2"]


def descriptors() -> int:
    """How many this process has open."""
    return len(os.listdir("/dev/fd"))


async def shut(before: int) -> None:
    """Wait until no more descriptors are open than `before`. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_S / 4):
        while descriptors() > before:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def tell(made: Model, asked: CallModel | None = None) -> list[Event]:
    """All events of a call, which must keep the contract: chunks, then one final event, all with its id."""
    asked = asked or request()
    events = [event async for event in made.call(asked)]
    assert [type(event) for event in events[:-1]] == [ModelChunks] * (len(events) - 1)
    assert isinstance(events[-1], (ModelEnded, ModelFailed))
    assert all(getattr(event, "id", None) == asked.id for event in events)
    return events


def message(events: Sequence[Event]) -> Message:
    partial = Partial()
    for event in events:
        for chunk in event.chunks if isinstance(event, ModelChunks) else ():
            partial = merge(partial, chunk)
    return finished(partial)


def failure(events: Sequence[Event]) -> Failure:
    assert isinstance(events[-1], ModelFailed), events[-1]
    return events[-1].failure


def call(script: Script, asked: CallModel | None = None, key: str | None = None) -> tuple[list[Event], FakeModel]:
    """One call to a server that follows a script."""

    async def run() -> tuple[list[Event], FakeModel]:
        async with FakeModel(script) as fake, model(fake.endpoint, key) as made:
            return await tell(made, asked), fake

    with environment():
        return asyncio.run(run())


def fails(endpoint: str, asked: CallModel | None = None, key: str | None = None, **variables: str) -> Failure:
    """How a call fails, without a server or with one that runs elsewhere."""

    async def run() -> Failure:
        async with model(endpoint, key) as made:
            return failure(await tell(made, asked))

    with environment(**variables):
        return asyncio.run(run())


def meets(talk: Callable[..., Awaitable[None]], asked: CallModel | None = None) -> tuple[list[Event], int]:
    """The events of one call to a server that may say anything, and its connections."""

    async def run() -> tuple[list[Event], int]:
        async with Server(talk) as server, model(f"http://{server.address}/v1") as made:
            events = await tell(made, asked)
            await server.closed()
            return events, server.connections

    with environment():
        return asyncio.run(run())


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


# --- what is sent


def test_a_request_is_what_the_core_asked_for() -> None:
    said: Message = {"role": "user", "content": "日本 \U0001d11e", "extra_content": {"x": [1.5, None, True]}}
    tool: Message = {"type": "function", "function": {"name": "shell_exec"}}
    events, fake = call([Reply("hi")], request(HELLO, said, tools=(tool,), temperature=0.7, stop=["\n"]), KEY)
    assert text_of(message(events)) == "hi"
    [sent] = fake.requests
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert sent.headers["user-agent"] == "Mozilla/5.0 (compatible; Bantam/1.0)"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["accept-encoding"] == "identity"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["content-length"] == str(len(sent.raw))
    assert sent.body == {**STREAM, "temperature": 0.7, "stop": ["\n"], "messages": [HELLO, said], "tools": [tool]}
    assert "日本 \U0001d11e".encode() in sent.raw
    assert b'": ' not in sent.raw


def test_without_tools_parameters_or_key_nothing_stands_for_them() -> None:
    _, fake = call([Reply("hi")], CallModel(ID, (HELLO,), (), {}, PATIENCE_S), "")
    assert fake.requests[0].raw == b'{"messages":[{"role":"user","content":"hello"}]}'
    assert "authorization" not in fake.requests[0].headers


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/v1//", "http://h/v1/chat/completions"),
        ("http://h:8080", "http://h:8080/chat/completions"),
        ("HTTPS://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/v1/chat/completions/", "https://h/v1/chat/completions"),
        ("https://h/d?api-version=1#x", "https://h/d/chat/completions?api-version=1"),
        ("https://h/d/chat/completions?api-version=1", "https://h/d/chat/completions?api-version=1"),
        ("http://[::1]:1/v1", "http://[::1]:1/v1/chat/completions"),
        ("http://u:p%40@h/v1", "http://h/v1/chat/completions"),
    ],
)
def test_an_endpoint_is_a_base_or_the_whole(endpoint: str, url: str) -> None:
    target = address.target(endpoint, chat.PATH)
    assert isinstance(target, address.Target)
    assert target.url == url
    assert target.login == ("u:p@" if "@" in endpoint else "")
    assert not any(secret in target.shown for secret in ("u:p", "api-version", "chat/completions"))


BAD_ENDPOINTS = (
    "", "api.example.com/v1", "localhost:1/v1", "ftp://h/v1", "http://", "http:///v1", "http://h:port/v1", "http://h:99999/v1",
    "http://[::1/v1", "http://h\n/v1", "http://h h/v1", "http://h\\@i/v1", f"http://{'a' * 70}.b/v1",
)  # fmt: skip


@pytest.mark.parametrize("endpoint", BAD_ENDPOINTS)
def test_a_bad_endpoint_is_said_in_one_line(endpoint: str) -> None:
    told = fails(endpoint)
    assert told.fault is Fault.REQUEST
    assert "endpoint=" in told.text
    assert "Error" not in told.text


def test_a_user_in_the_endpoint_is_a_login_unless_there_is_a_key() -> None:
    async def run() -> list[str]:
        async with FakeModel([Reply("hi")]) as fake:
            endpoint = fake.endpoint.replace("//", "//me:secret@")
            for key in (None, KEY):
                async with model(endpoint, key) as made:
                    await tell(made)
            return [sent.headers["authorization"] for sent in fake.requests]

    with environment():
        assert asyncio.run(run()) == ["Basic bWU6c2VjcmV0", f"Bearer {KEY}"]


@pytest.mark.parametrize("key", ["sk-äöü", "sk\nX-Evil: 1", "sk-\x00", "日本"])
def test_a_key_that_no_header_carries_is_not_sent_and_not_shown(key: str) -> None:
    told = fails("http://127.0.0.1:9/v1", key=key)
    assert told.fault is Fault.REQUEST
    assert "key" in told.text
    assert key not in told.text


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, b"bytes", "\ud800", object()])
def test_what_json_cannot_say_is_no_crash(bad: Any) -> None:
    told = fails("http://127.0.0.1:9/v1", request({"role": "user", "content": bad}))
    assert told.fault is Fault.REQUEST
    assert "JSON" in told.text
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert fails("http://127.0.0.1:9/v1", request({"role": "user", "content": deep})).fault is Fault.REQUEST


@pytest.mark.parametrize("size", [1, 65_000, 65_536, 65_537, 200_000])
def test_a_long_conversation_arrives_whole(size: int) -> None:
    said: list[Message] = [{"role": "user", "content": f"{number}" * size} for number in range(10)]
    _, fake = call([Reply("hi")], request(*said))
    assert fake.requests[0].body["messages"] == said


def test_endpoint_and_key_are_read_at_each_call() -> None:
    async def run() -> None:
        async with FakeModel([Reply("one")]) as first, FakeModel([Reply("two")]) as second:
            async with model(first.endpoint) as made:
                assert text_of(message(await tell(made))) == "one"
                made.endpoint, made.key = second.endpoint, KEY
                assert text_of(message(await tell(made))) == "two"
            assert "authorization" not in first.requests[0].headers
            assert second.requests[0].headers["authorization"] == f"Bearer {KEY}"

    with environment():
        asyncio.run(run())


def test_a_message_is_encoded_once() -> None:
    """Seen by changing one, which nobody does: its kept bytes are sent again, and a subagent's are its own."""
    said = {"role": "user", "content": "old"}

    async def run() -> list[str]:
        async with FakeModel([Reply("hi")]) as fake, model(fake.endpoint) as made:
            await tell(made, request(said, id=(1,)))
            said["content"] = "new"
            await tell(made, request(said, HELLO, id=(2,)))  # kept
            await tell(made, request(said, id=(2, 1)))  # another agent
            said["content"] = "newer"
            await tell(made, request(said, id=(2, 2)))  # kept
            await tell(made, request(HELLO, id=(3,)))  # forgotten, and the subagent's too
            said["content"] = "newest"
            await tell(made, request(said, id=(4,)))
            await tell(made, request(said, id=(2, 3)))
            return [sent.body["messages"][0]["content"] for sent in fake.requests]

    with environment():
        assert asyncio.run(run()) == ["old", "old", "new", "new", "hello", "newest", "newest"]


# --- what comes


def test_a_stream_comes_as_it_is_sent() -> None:
    async def run() -> None:
        async with FakeModel([Reply("one two", delta_chars=4, end="hang")]) as fake, model(fake.endpoint) as made:
            async with aclosing(made.call(request())) as events:
                told: list[Event] = []
                async for event in events:  # the stream has no end, so what comes has come early
                    told.append(event)
                    if text_of(message(told)) == "one two":
                        break
            await fake.closed()

    with environment():
        asyncio.run(run())


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_call_arrives_whole(stream: bool) -> None:
    reply = Reply(
        "look:", "hm", calls=[("shell_exec", {"command": "echo é"})], delta_chars=1, usage={"total_tokens": 3}
    )
    events, _ = call([reply], request(stream=stream))
    assert events[-1] == ModelEnded(ID, marked=True)
    told = message(events)
    assert (told["content"], told["reasoning_content"]) == ("look:", "hm")
    assert json.loads(told["tool_calls"][0]["function"]["arguments"]) == {"command": "echo é"}


def test_bytes_may_come_one_by_one() -> None:
    """Half a character too, also where secrets are looked for."""

    async def run() -> list[Event]:
        reply = Reply("日本é", write_bytes=1, delta_chars=1)
        async with FakeModel([reply]) as fake, model(fake.endpoint, redactor=Redactor([KEY])) as made:
            return await tell(made)

    with environment():
        assert text_of(message(asyncio.run(run()))) == "日本é"


def test_a_key_in_two_reads_is_taken_out() -> None:
    async def run() -> list[Event]:
        reply = Reply(f"it is {KEY}, é", write_bytes=3)
        async with FakeModel([reply]) as fake, model(fake.endpoint, redactor=Redactor([KEY])) as made:
            return await tell(made)

    with environment():
        assert text_of(message(asyncio.run(run()))) == "it is [key], é"


@pytest.mark.parametrize(
    "reply", [Reply("word " * 400, delta_chars=5, pause_s=0.02), Reply(wait_s=20), Reply(end="hang")]
)
def test_the_time_of_the_turn_ends_a_call_whatever_comes(reply: Reply) -> None:
    async def run() -> list[Event]:
        async with FakeModel([reply]) as fake, model(fake.endpoint) as made:
            return [event async for event in made.call(request(left_s=0.2))]

    with environment():
        *_, last = asyncio.run(run())
    assert last == ModelFailed(ID, Failure(Fault.TIME, "the time of the turn is over"))


def test_headers_may_be_long() -> None:
    events, _ = call([Reply("hi", headers={"Content-Security-Policy": "x" * 50_000})])
    assert text_of(message(events)) == "hi"


def test_a_line_may_be_long() -> None:
    long = "é" * 100_000
    events, _ = call([Reply(long)])
    assert text_of(message(events)) == long


def test_a_compressed_answer_is_read() -> None:
    body = gzip.compress(event("zipped") + b"data: [DONE]\n\n")
    events, _ = meets(says(answer(body, "Content-Encoding: gzip")))
    assert text_of(message(events)) == "zipped"


def test_a_body_without_length_ends_with_the_connection() -> None:
    events, _ = meets(says(b"HTTP/1.0 200 OK\r\n\r\n" + event("old")))
    assert text_of(message(events)) == "old"
    assert events[-1] == ModelEnded(ID)


def test_an_error_inside_a_200_ends_the_stream() -> None:
    events, fake = call([Reply(chunks=[{"choices": []}, {"error": {"message": "no", "code": 503}}], done=False)])
    assert (failure(events).fault, failure(events).status) == (Fault.ANSWER, 503)
    assert fake.open == 0


def test_a_web_page_is_no_answer() -> None:
    events, _ = call([Reply(body="<html>hi</html>")])
    assert failure(events).fault is Fault.ANSWER


def test_what_a_server_echoes_of_the_key_is_taken_out() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        data = json.dumps({"choices": [{"delta": {"content": f"it is {KEY}, é"}}]}, ensure_ascii=False).encode()
        half = data.index("é".encode()) + 1
        writer.write(b"HTTP/1.1 200 OK\r\n\r\ndata: " + data[:half])
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(data[half:])

    async def run() -> tuple[list[Event], list[Event]]:
        refusal = Reply(f"bad {KEY}", status=401)
        async with (
            FakeModel([refusal]) as fake,
            Server(talk) as server,
            model("", KEY, redactor=Redactor([KEY])) as made,
        ):
            made.endpoint = f"http://{server.address}"
            told = await tell(made)
            made.endpoint = fake.endpoint
            return told, await tell(made)

    with environment():
        told, refused = asyncio.run(run())
    assert text_of(message(told)) == "it is [key], é"
    assert json.loads(failure(refused).text)["error"]["message"] == "bad [key]"


# --- connections


def test_the_connection_is_used_again() -> None:
    async def run(replies: Sequence[Reply], **parameters: Any) -> tuple[int, int]:
        async with FakeModel(replies) as fake, model(fake.endpoint) as made:
            for _ in replies:
                await tell(made, request(**parameters))
            return len(fake.requests), fake.connections

    with environment():
        assert asyncio.run(run([Reply("hi")] * 5)) == (5, 1)
        assert asyncio.run(run([Reply("hi")] * 3, stream=False)) == (3, 1)
        assert asyncio.run(run([Reply("busy", status=503), Reply("hi"), Reply(body="", status=429), Reply("hi")])) == (
            4,
            1,
        )
        assert asyncio.run(run([Reply("hi", end="close"), Reply("hi")])) == (2, 2)


def test_an_end_that_comes_right_behind_the_last_event_is_waited_for() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await read_request(reader)
            body = event("hi") + b"data: [DONE]\n\n"
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(body), body))
            await writer.drain()
            await asyncio.sleep(0.005)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        await reader.read()

    async def run() -> int:
        async with Server(talk) as server, model(f"http://{server.address}") as made:
            for _ in range(2):
                assert text_of(message(await tell(made))) == "hi"
            return server.connections

    with environment():
        assert asyncio.run(run()) == 1


def test_an_end_that_does_not_come_is_not_waited_for() -> None:
    async def run() -> float:
        async with FakeModel([Reply("hi", end="open")]) as fake, model(fake.endpoint) as made:
            start = time.monotonic()
            for _ in range(2):
                assert text_of(message(await tell(made))) == "hi"
            took_s = time.monotonic() - start
            await fake.closed()
            assert fake.connections == 2
            return took_s

    with environment():
        assert asyncio.run(run()) < PATIENCE_S / 2


@pytest.mark.parametrize("stale", [1, 3])
def test_a_kept_connection_that_is_dead_costs_no_failure(stale: int) -> None:
    """As many as were kept: subagents leave several."""
    asked = 0

    def script(body: Any) -> Reply:
        nonlocal asked
        asked += 1
        return Reply("hi", wait_s=0.05) if asked <= stale or asked > 2 * stale else Reply(end="drop")

    async def run() -> tuple[int, int]:
        async with FakeModel(script) as fake, model(fake.endpoint) as made:
            await asyncio.gather(*[tell(made) for _ in range(stale)])
            assert text_of(message(await tell(made))) == "hi"
            return len(fake.requests), fake.connections

    with environment():
        assert asyncio.run(run()) == (2 * stale + 1, stale + 1)


def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    async def run() -> int:
        async with FakeModel([Reply("hi"), Reply("hi")]) as fake, model(fake.endpoint) as made:
            await tell(made)
            for task in fake._tasks:
                task.cancel()
            await fake.closed()
            assert text_of(message(await tell(made))) == "hi"
            return fake.connections

    with environment():
        assert asyncio.run(run()) == 2


def test_a_new_connection_that_is_dropped_is_a_failure_and_not_tried_again() -> None:
    events, fake = call([Reply(end="drop")])
    assert failure(events).fault is Fault.NETWORK
    assert len(fake.requests) == 1
    events, connections = meets(says(b""))
    assert failure(events) == Failure(Fault.NETWORK, "the connection broke off")
    assert connections == 1


def test_calls_run_side_by_side() -> None:
    async def run() -> None:
        async with FakeModel([Reply("hi", wait_s=0.1)]) as fake, model(fake.endpoint) as made:
            told = await asyncio.gather(*[tell(made, request(id=(1, n))) for n in range(20)])
            assert [text_of(message(events)) for events in told] == ["hi"] * 20
            assert fake.connections == 20

    with environment():
        asyncio.run(run())


def test_after_close_a_call_opens_a_new_connection() -> None:
    async def run() -> None:
        async with FakeModel([Reply("hi")]) as fake, model(fake.endpoint) as made:
            for _ in range(2):
                await tell(made)
                await made.close()
                await fake.closed()
            assert fake.connections == 2

    with environment():
        asyncio.run(run())


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("reply", [Reply("one", end="hang"), Reply(end="hang"), Reply("hi")])
@needs_openssl
def test_a_call_that_runs_while_all_is_closed_fails(reply: Reply, secure: bool, authority: Authority) -> None:
    tls = authority.server() if secure else None

    async def run() -> None:
        async with FakeModel([Reply("hi"), reply], tls=tls) as fake, model(fake.endpoint) as made:
            await tell(made)
            fake.arrived.clear()
            running = asyncio.create_task(tell(made))
            await fake.arrived.wait()
            await asyncio.sleep(0.02)
            await made.close()
            events = await running
            assert reply.end == "keep" or failure(events).fault is Fault.NETWORK
            await fake.closed()

    with environment(SSL_CERT_FILE=str(authority.file)):
        asyncio.run(run())


# --- cancelled


async def cancel(made: Model, asked: CallModel, arrived: asyncio.Event) -> None:
    """Begin a call and cancel it once the server has noticed it."""
    running = asyncio.create_task(tell(made, asked))
    await arrived.wait()
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not strays()


@pytest.mark.parametrize("reply", [Reply("one", end="hang"), Reply(end="hang")])
def test_a_cancelled_call_leaves_nothing(reply: Reply) -> None:
    async def run() -> None:
        async with FakeModel([reply]) as fake, model(fake.endpoint) as made:
            before = descriptors()
            await cancel(made, request(), fake.arrived)
            await fake.closed()
            await shut(before)

    with environment():
        asyncio.run(run())


@needs_openssl
@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n\r\n" + event("one")])
def test_a_cancelled_call_does_not_wait_for_the_goodbye_of_tls(said: bytes, authority: Authority) -> None:
    arrived, over = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(said)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        arrived.set()
        await over.wait()

    async def run() -> None:
        async with Server(talk, authority.server()) as server, model(f"https://{server.address}/v1") as made:
            before = descriptors()
            await cancel(made, request(), arrived)
            await shut(before + 1)  # the server's
            over.set()

    with environment(SSL_CERT_FILE=str(authority.file)):
        asyncio.run(run())


def test_a_lookup_that_nobody_waits_for_ends_quietly() -> None:
    async def run() -> None:
        problems: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
        threads = threading.active_count()
        lookup = asyncio.create_task(http.Resolver().resolve("localhost"))
        await asyncio.sleep(0)
        lookup.cancel()
        while threading.active_count() > threads:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.005)
        assert lookup.cancelled()
        assert not problems

    asyncio.run(run())


@pytest.mark.parametrize("way", ["cancelled", "silent"])
def test_an_upload_that_is_stuck_leaves_nothing(way: str) -> None:
    """Closing in good order would wait until the server reads the rest."""
    over = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        arrived.set()
        await over.wait()

    async def run() -> None:
        async with Server(talk) as server, model(f"http://{server.address}") as made:
            before = descriptors()
            large: Message = {"role": "user", "content": "x" * 30_000_000}
            if way == "silent":
                events = await tell(made, request(large, timeout_s=SHORT_S))
                assert failure(events) == Failure(Fault.SILENCE, "nothing came for 0.3 s")
            else:
                await cancel(made, request(large), arrived)
            await shut(before + 1)  # the server's
            over.set()

    arrived = asyncio.Event()
    with environment():
        asyncio.run(run())


def test_a_connect_that_is_stuck_leaves_nothing() -> None:
    async def run() -> None:
        with no_room() as port:
            before = descriptors()
            async with model(f"http://127.0.0.1:{port}") as made:
                running = asyncio.create_task(tell(made))
                await asyncio.sleep(0.1)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                assert not strays()
                assert failure(await tell(made, request(timeout_s=SHORT_S))).fault is Fault.SILENCE
            assert descriptors() == before

    with environment():
        asyncio.run(run())


@contextmanager
def no_room() -> Iterator[int]:
    """The port of a server that accepts nobody, and has no place left to wait in."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(server.getsockname())
        yield server.getsockname()[1]


# --- silence


@pytest.mark.parametrize("reply", [Reply(end="hang"), Reply("one", end="hang"), Reply("late", wait_s=9)])
def test_silence_has_a_limit(reply: Reply) -> None:
    start = time.monotonic()
    events, _ = call([reply], request(timeout_s=SHORT_S))
    assert failure(events) == Failure(Fault.SILENCE, "nothing came for 0.3 s")
    assert time.monotonic() - start >= SHORT_S


def test_a_stream_may_take_longer_than_the_limit_between_two_bytes() -> None:
    start = time.monotonic()
    events, _ = call([Reply("0123456789", delta_chars=1, pause_s=0.1)], request(timeout_s=0.5))
    assert text_of(message(events)) == "0123456789"
    assert time.monotonic() - start > 1


# --- refused


def test_a_status_comes_with_the_servers_words() -> None:
    events, _ = call([Reply("slow down", status=429, headers={"Retry-After": "7"})])
    told = failure(events)
    assert (told.fault, told.status, told.retry_after_s) == (Fault.HTTP, 429, 7.0)
    assert json.loads(told.text)["error"]["message"] == "slow down"


def test_only_the_beginning_of_an_errors_body_is_read() -> None:
    events, _ = call([Reply(body="é" * 1_000_000, status=500)])
    assert failure(events).text == "é" * 2048


def test_an_errors_body_may_have_no_end() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 500 No\r\n\r\n")
        while True:
            writer.write(b"x" * 1000)
            await writer.drain()

    start = time.monotonic()
    events, _ = meets(talk)
    assert failure(events).text == "x" * 4096
    assert time.monotonic() - start < PATIENCE_S / 2


def test_an_errors_body_may_not_take_longer_than_silence() -> None:
    reply = Reply(body="x" * 1000, status=500, write_bytes=1, pause_s=0.02)
    events, _ = call([reply], request(timeout_s=SHORT_S))
    assert failure(events).status == 500
    assert 1 <= len(failure(events).text) <= SHORT_S / 0.02


@pytest.mark.parametrize("end", ["cut", "reset", "hang"])
def test_a_status_counts_even_if_the_words_break_off(end: Any) -> None:
    events, _ = call([Reply(body="half", status=503, end=end)], request(timeout_s=SHORT_S))
    assert (failure(events).status, failure(events).text) == (503, "half")


@pytest.mark.parametrize("then", ["hang", "close"])
def test_a_server_may_refuse_before_it_has_read_all(then: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(answer(b"too large", status="413 Too Large"))
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        if then == "hang":
            await reader.read()

    events, _ = meets(talk, request({"role": "user", "content": "x" * 20_000_000}))
    assert (failure(events).status, failure(events).text) == (413, "too large")


def test_another_success_than_200_is_no_answer() -> None:
    events, _ = call([Reply(body="", status=204)])
    assert failure(events) == Failure(Fault.HTTP, "", 204)


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 -0000"}, 30.0),
    ]
    + [({"retry-after": text}, None) for text in ("", "soon", "-1", "nan", "inf", "1e9", "9" * 400, "٣", "1;2", "0x9")]
    + [({"retry-after": text}, None) for text in ("Thu, 99 Jan 2026 12:00:30 GMT", "Thu, 01 Jan")],
)
def test_retry_after(headers: Mapping[str, str], seconds: float | None) -> None:
    assert http.retry_after_s(headers, NOW.timestamp()) == seconds


# --- broken


def test_nobody_listens() -> None:
    told = fails("http://127.0.0.1:9/v1")
    assert told == Failure(Fault.NETWORK, "could not connect to http://127.0.0.1:9/v1: connection refused")
    assert fails("http://me:secret@localhost:9/v1?key=x").text == (
        "could not connect to http://localhost:9/v1: connection refused"
    )


def test_a_host_that_does_not_exist() -> None:
    told = fails("http://no-such-host.invalid/v1")
    assert told.fault is Fault.NETWORK
    assert "the host no-such-host.invalid cannot be found" in told.text


@pytest.mark.parametrize("end", ["cut", "reset"])
def test_a_stream_that_breaks_off(end: Any) -> None:
    events, _ = call([Reply("one", end=end)])
    assert text_of(message(events)) == "one"
    assert failure(events).fault is Fault.NETWORK
    assert "the connection broke off" in failure(events).text


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxx",
        answer(b"not gzip", "Content-Encoding: gzip"),
        answer(gzip.compress(event("x") * 100)[:-20], "Content-Encoding: gzip"),
        answer(b"xx", "Content-Encoding: br"),
        answer(b"xx", "Content-Encoding: zstd"),
        answer(b"", "Set-Cookie: \x00=\xff; a=b"),
        answer(b"", "Upgrade: websocket", "Connection: upgrade", status="101 Switching Protocols"),
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"\x00" * 1000,
        os.urandom(1000),
    ],
)
@pytest.mark.parametrize("then", ["close", "reset"])
def test_nonsense_is_a_failure_and_no_crash(data: bytes, then: str) -> None:
    events, _ = meets(says(data, then))
    told = failure(events)
    assert told.fault in (Fault.NETWORK, Fault.ANSWER, Fault.HTTP)
    assert not any(word in told.text for word in ("Error", "Errno", "object at", "b'"))
    assert told.fault is not Fault.HTTP or told.status == 101


# --- redirects


def test_a_redirect_within_the_origin_is_followed_with_body_and_key() -> None:
    replies = [Reply(body="", status=307, headers={"Location": "/v2/x?y=1"})]
    replies += [
        Reply(body="moved", status=308, headers={"Location": "z"}, write_bytes=2, pause_s=0.005),
        Reply("there"),
    ]
    events, fake = call(replies, key=KEY)
    assert text_of(message(events)) == "there"
    assert [sent.path for sent in fake.requests] == ["/v1/chat/completions", "/v2/x?y=1", "/v2/z"]
    assert {sent.method for sent in fake.requests} == {"POST"}
    assert len({sent.raw for sent in fake.requests}) == 1
    assert {sent.headers["authorization"] for sent in fake.requests} == {f"Bearer {KEY}"}
    assert fake.connections == 1


@pytest.mark.parametrize("status", [307, 308, 302])
def test_a_redirect_to_another_origin_is_told_and_gets_nothing(status: int) -> None:
    async def run() -> tuple[Failure, str]:
        async with FakeModel([Reply("mine")]) as other:
            there = f"{other.endpoint}/chat/completions".replace("//", "//me:pw@")
            reply = Reply(body="", status=status, headers={"Location": there})
            async with FakeModel([reply]) as fake, model(fake.endpoint, KEY) as made:
                told = failure(await tell(made))
            assert other.connections == 0
            return told, other.endpoint

    with environment():
        told, endpoint = asyncio.run(run())
    assert told == Failure(Fault.HTTP, f"it redirects to {endpoint}; set endpoint to that", status)


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_change_the_method_is_told(status: int) -> None:
    events, fake = call([Reply(body="", status=status, headers={"Location": "/v2"})])
    assert failure(events).text == f"it redirects to {fake.endpoint[:-1]}2; set endpoint to that"
    assert len(fake.requests) == 1


@pytest.mark.parametrize("end", ["open", "reset"])
def test_a_redirects_body_is_not_waited_for(end: Any) -> None:
    async def run() -> tuple[list[Event], int]:
        away = Reply(body="moved", status=307, headers={"Location": "/v2"}, end=end)
        async with FakeModel([away, Reply("there")]) as fake, model(fake.endpoint) as made:
            events = await tell(made)
            return events, fake.open

    with environment():
        events, connections = asyncio.run(run())
    assert text_of(message(events)) == "there"
    assert connections == 1


def test_redirects_end() -> None:
    events, fake = call([Reply(body="", status=307, headers={"Location": "/again"})])
    assert failure(events).status == 307
    assert "more than 5 redirects" in failure(events).text
    assert len(fake.requests) == 6


@pytest.mark.parametrize("location", ["", "http://[", "ftp://h/x", "javascript:alert(1)", "http://h:x/"])
def test_a_redirect_to_nowhere_is_the_status(location: str) -> None:
    events, _ = call([Reply(body="gone", status=308, headers={"Location": location})])
    assert (failure(events).fault, failure(events).status) == (Fault.HTTP, 308)


# --- proxies


@pytest.mark.parametrize(
    ("url", "variables", "proxy"),
    [
        ("http://h/", {}, ""),
        ("http://h/", {"http_proxy": "http://p:1"}, "http://p:1"),
        ("http://h/", {"HTTP_PROXY": "http://p:1/"}, "http://p:1"),
        ("http://h/", {"HTTP_PROXY": "http://p:1", "http_proxy": ""}, ""),
        ("http://h/", {"http_proxy": "p:1"}, "http://p:1"),
        ("http://h/", {"https_proxy": "http://p:1"}, ""),
        ("https://h/", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://h/", {"ALL_PROXY": "https://p:1"}, "https://p:1"),
        ("http://h/", {"http_proxy": "http://p", "no_proxy": "*"}, ""),
        ("http://h/", {"http_proxy": "http://p", "NO_PROXY": "x, h"}, ""),
        ("http://api.h/", {"http_proxy": "http://p", "no_proxy": ".H"}, ""),
        ("http://api.h/", {"http_proxy": "http://p", "no_proxy": "h"}, ""),
        ("http://api.h/", {"http_proxy": "http://p", "no_proxy": "*.h"}, ""),
        ("http://apih/", {"http_proxy": "http://p", "no_proxy": "h"}, "http://p"),
        ("http://h/", {"http_proxy": "http://p", "no_proxy": "h:80"}, ""),
        ("http://h:81/", {"http_proxy": "http://p", "no_proxy": "h:80"}, "http://p"),
        ("http://10.1.2.3/", {"http_proxy": "http://p", "no_proxy": "10.0.0.0/8"}, ""),
        ("http://11.1.2.3/", {"http_proxy": "http://p", "no_proxy": "10.0.0.0/8"}, "http://p"),
        ("http://[fe80::1]/", {"http_proxy": "http://p", "no_proxy": "fe80::1"}, ""),
        ("http://[fe80::1]:8/", {"http_proxy": "http://p", "no_proxy": "[fe80::1]:8"}, ""),
        ("http://localhost:1/", {"http_proxy": "http://p"}, ""),
        ("http://127.0.0.9/", {"all_proxy": "http://p"}, ""),
        ("http://[::1]:1/", {"all_proxy": "http://p"}, ""),
    ],
)
def test_which_proxy(url: str, variables: Mapping[str, str], proxy: str) -> None:
    found = address.proxy_for(url, variables)
    assert not isinstance(found, Failure)
    assert (found.url if found else "") == proxy


@pytest.mark.parametrize("proxy", ["socks5://me:secret@p:1", "http://me:secret@p:port", "http://", "me:secret@:1"])
def test_a_proxy_of_another_kind_is_named_without_its_password(proxy: str) -> None:
    told = fails("http://api.invalid/v1", HTTP_PROXY=proxy)
    assert told.fault is Fault.REQUEST
    assert "proxy" in told.text
    assert "secret" not in told.text


def test_a_request_goes_through_the_proxy() -> None:
    async def run() -> None:
        async with (
            FakeModel([Reply("hi")]) as fake,
            Proxy(fake.port) as proxy,
            model("http://api.invalid/v1", KEY) as made,
        ):
            with environment(HTTP_PROXY=f"http://me:s%40cret@{proxy.address}"):
                assert text_of(message(await tell(made))) == "hi"
            [(first, headers)] = proxy.asked
            assert first == "POST http://api.invalid/v1/chat/completions HTTP/1.1"
            assert headers["proxy-authorization"] == "Basic bWU6c0BjcmV0"
            assert fake.requests[0].headers["host"] == "api.invalid"
            with environment(HTTP_PROXY=f"http://{proxy.address}"):
                made.endpoint = fake.endpoint
                assert text_of(message(await tell(made))) == "hi"
            assert len(proxy.asked) == 1

    asyncio.run(run())


@needs_openssl
def test_tls_goes_through_the_proxy_in_a_tunnel(authority: Authority) -> None:
    async def run() -> None:
        async with FakeModel([Reply("hi")], tls=authority.server()) as fake, Proxy(fake.port) as proxy:
            with environment(HTTPS_PROXY=f"http://me:s%40cret@{proxy.address}", SSL_CERT_FILE=str(authority.file)):
                async with model("https://api.invalid/v1", KEY) as made:
                    for _ in range(2):
                        assert text_of(message(await tell(made))) == "hi"
            [(first, headers)] = proxy.asked  # the tunnel is kept
            assert first == "CONNECT api.invalid:443 HTTP/1.1"
            assert headers["proxy-authorization"] == "Basic bWU6c0BjcmV0"
            assert "authorization" not in headers
            assert "proxy-authorization" not in fake.requests[0].headers
            assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"

    asyncio.run(run())


def test_a_proxy_that_is_not_there_or_refuses() -> None:
    async def run() -> list[Failure]:
        told = []
        async with Proxy(1, "407 Who are you") as proxy, model("https://api.invalid/v1") as made:
            for address in ("127.0.0.1:9", proxy.address):
                with environment(ALL_PROXY=f"http://me:secret@{address}"):
                    told.append(failure(await tell(made)))
            with environment(ALL_PROXY=f"http://me:secret@{proxy.address}"):
                made.endpoint = "http://api.invalid/v1"
                told.append(failure(await tell(made)))
        return told

    absent, tunnel, plain = asyncio.run(run())
    assert absent == Failure(Fault.NETWORK, "could not connect to the proxy http://127.0.0.1:9: connection refused")
    assert (tunnel.fault, tunnel.status) == (Fault.HTTP, 407)
    assert "Who are you" in tunnel.text
    assert "secret" not in tunnel.text
    assert (plain.fault, plain.status) == (Fault.HTTP, 407)


# --- TLS


def over_tls(authority: Authority, names: str = "IP:127.0.0.1", **variables: str) -> list[Event]:
    async def run() -> list[Event]:
        async with FakeModel([Reply("hi")], tls=authority.server(names)) as fake, model(fake.endpoint) as made:
            events = await tell(made)
            if isinstance(events[-1], ModelEnded):
                await tell(made)
                assert fake.connections == 1
            return events

    with environment(**variables):
        return asyncio.run(run())


@needs_openssl
def test_an_unknown_authority_is_refused_with_a_hint(authority: Authority) -> None:
    told = failure(over_tls(authority))
    assert told.fault is Fault.CERTIFICATE
    assert "certificate" in told.text
    assert "unable to get local issuer certificate" in told.text
    assert "SSL_CERT_FILE" in told.text


@needs_openssl
def test_an_authority_can_be_named(authority: Authority) -> None:
    assert text_of(message(over_tls(authority, SSL_CERT_FILE=str(authority.file)))) == "hi"


@needs_openssl
def test_a_certificate_for_another_host_is_refused(authority: Authority) -> None:
    told = failure(over_tls(authority, "DNS:other", SSL_CERT_FILE=str(authority.file)))
    assert told.fault is Fault.CERTIFICATE
    assert "127.0.0.1" in told.text


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_of_authorities_that_is_none_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_text(content)
    told = fails("https://127.0.0.1:9/v1", SSL_CERT_FILE=str(file))
    assert told.fault is Fault.CERTIFICATE
    assert f"SSL_CERT_FILE={file}" in told.text


def test_https_to_a_server_without_tls_is_said() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer(b"what?", status="400 Bad Request"))
        await writer.drain()
        await reader.read()

    async def run() -> Failure:
        async with Server(talk) as server, model(f"https://{server.address}/v1") as made:
            return failure(await tell(made))

    with environment():
        told = asyncio.run(run())
    assert told.fault is Fault.REQUEST
    assert "no TLS connection" in told.text


def test_a_server_that_breaks_off_the_greeting_of_tls() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)

    async def run() -> Failure:
        async with Server(talk) as server, model(f"https://{server.address}/v1") as made:
            return failure(await tell(made))

    with environment():
        assert asyncio.run(run()).fault is Fault.NETWORK


# --- importing, and the fake model by hand

LOAD = """
import gc, os, ssl, sys, threading
from bantam.shell.net import model
assert "aiohttp" not in sys.modules and "asyncio" not in sys.modules
before = dict(os.environ)
threads = [threading.Thread(target=model.load) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert "aiohttp" in sys.modules and gc.isenabled() and gc.get_freeze_count()
assert dict(os.environ) == before
assert "set_default_verify_paths" not in vars(ssl.SSLContext)
from aiohttp import connector
print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"], end=" ")
from bantam.shell.net import http
print(http.tls_context(os.environ).cert_store_stats()["x509"])
"""


@needs_openssl
def test_loading_fills_no_context_and_changes_nothing(authority: Authority) -> None:
    with environment(SSL_CERT_FILE=str(authority.file)):
        run = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, timeout=PATIENCE_S)
    assert run.stderr == ""
    assert run.stdout == "0 1\n"


def test_the_fake_model_can_be_used_without_a_loop_and_by_hand(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "one"}, {"status": 503, "body": "busy"}]))
    program = [sys.executable, str(ROOT / "scripts" / "fakemodel.py"), "--script", str(script)]

    async def run(endpoint: str) -> list[list[Event]]:
        async with model(endpoint) as made:
            return [await tell(made) for _ in range(3)]

    with environment(), subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            one, *others = asyncio.run(run(server.stdout.readline().strip()))
        finally:
            server.kill()
        assert text_of(message(one)) == "one"
        assert [failure(events).status for events in others] == [503, 503]
    with environment(), serving(echo) as fake:
        assert text_of(message(asyncio.run(run(fake.endpoint))[2])) == "hello"
