"""An OpenAI-shaped server on loopback that says what a script tells it, for tests and for trying things out.

    python scripts/fakemodel.py "Hello."            says that to every request; without a text it repeats the user
    python scripts/fakemodel.py --script FILE.json  a list of replies, one a request, the last one for all others

A reply in the file is an object with members of `Reply`; `calls` are pairs of a name and the arguments.
Prints the endpoint, then (with --log) each request's body as one JSON line.
"""

import argparse
import asyncio
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

End = Literal["keep", "close", "open", "cut", "reset", "hang", "drop"]


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    `text`, `reasoning` and `calls` (name, arguments) are a chat completion, streamed if the request asks for
    that. Instead of them `chunks` are the `data` of a stream's events (objects, or text as it is), or `body`
    is all that is sent. Times are in seconds.
    """

    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    finish: str = ""
    usage: Mapping[str, Any] | None = None
    chunks: Sequence[Mapping[str, Any] | str] | None = None
    body: bytes | str | None = None
    done: bool = True
    """A stream ends with `[DONE]`."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delta_chars: int = 0
    """Characters of text a chunk; 0: all in one."""
    write_bytes: int = 0
    """Bytes a write; 0: a write for each event."""
    wait_s: float = 0
    """Before the status line."""
    pause_s: float = 0
    """Between two writes."""
    end: End = "keep"
    """What happens behind the body.

    keep: the connection waits for the next request. close: it ends in good order. open: the body never ends.
    cut: the connection closes within the body. reset: the same with a TCP reset. hang: nothing more comes,
    not even headers if there is no body. drop: a reset before any byte.
    """


@dataclass(frozen=True)
class Received:
    """A request. Header names are in lower case; `connection` counts from 1; `at` is `time.monotonic()`."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    connection: int
    at: float

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


Script = Sequence[Reply] | Callable[[Any], Reply]
"""Replies one after another (the last one repeats), or what makes one from a request's body."""


def echo(body: Any) -> Reply:
    """The user's last words, said back."""
    said = [message["content"] for message in body["messages"] if message["role"] == "user"]
    return Reply(str(said[-1]) if said else "")


class FakeModel:
    """The server: `async with FakeModel([Reply("hi")]) as fake: ... fake.endpoint`."""

    def __init__(self, script: Script, port: int = 0, tls: ssl.SSLContext | None = None, log: bool = False) -> None:
        self.requests: list[Received] = []
        self.connections = 0
        """Accepted so far."""
        self.open = 0
        """Of them, those that neither side has closed."""
        self.port, self.endpoint = port, ""
        self.arrived = asyncio.Event()
        """Set by each request."""
        self._script, self._tls, self._log = script, tls, log
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._quiet = asyncio.Event()

    async def __aenter__(self) -> "FakeModel":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls, limit=2**26)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.endpoint = f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def closed(self, patience_s: float = 5) -> None:
        """Wait until no connection is open. Raises TimeoutError."""
        async with asyncio.timeout(patience_s):
            await self._quiet.wait()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self._quiet.clear()
        task = asyncio.get_running_loop().create_task(self._serve(self.connections, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self._answer(await _received(reader, connection), reader, writer):
                    pass
        finally:
            self.open -= 1
            if not self.open:
                self._quiet.set()
            writer.close()

    async def _answer(self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False when the connection is over."""
        self.requests.append(request)
        self.arrived.set()
        if self._log:
            print(json.dumps(request.body), flush=True)
        reply = self._reply(request)
        await asyncio.sleep(reply.wait_s)
        if reply.end == "drop":
            _reset(writer)
            return False
        for data in _written(reply, request):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(reply.pause_s)
        if reply.end in ("hang", "open"):
            await reader.read()  # until the client closes
        elif reply.end == "reset":
            _reset(writer)
        return reply.end == "keep"

    def _reply(self, request: Received) -> Reply:
        if request.method == "GET":
            return Reply(body='{"object":"list","data":[{"id":"fake","object":"model"}]}')
        if callable(self._script):
            return self._script(request.body)
        return self._script[min(len(self.requests), len(self._script)) - 1]


@contextmanager
def serving(script: Script, port: int = 0) -> Iterator[FakeModel]:
    """The server in a thread of its own, for a caller without a loop."""
    fake, ready, loop = FakeModel(script, port), threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with fake:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    try:
        assert ready.wait(10)
        yield fake
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()


async def _received(reader: asyncio.StreamReader, connection: int) -> Received:
    """The next request. Raises IncompleteReadError when the client has closed."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split()
    return Received(method, path, headers, raw, connection, time.monotonic())


def _written(reply: Reply, request: Received) -> Iterator[bytes]:
    """The bytes of each write."""
    events, kind = _events(reply, request)
    if reply.end == "hang" and not events:
        return
    stream = kind == "text/event-stream"
    # what has a length and is not whole, or has none and no end, was cut
    framing = "Transfer-Encoding: chunked" if stream else f"Content-Length: {_length(reply, events)}"
    phrase = HTTPStatus(reply.status).phrase if reply.status in set(HTTPStatus) else "Unknown"
    lines = [f"HTTP/1.1 {reply.status} {phrase}", f"Content-Type: {kind}", framing]
    lines += ["Connection: close"] if reply.end == "close" else []
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    yield "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")
    for event in events:
        data = b"%x\r\n%b\r\n" % (len(event), event) if stream else event
        size = reply.write_bytes or len(data) or 1
        yield from (data[at : at + size] for at in range(0, len(data), size))
    if stream and reply.end in ("keep", "close"):
        yield b"0\r\n\r\n"


def _length(reply: Reply, events: Sequence[bytes]) -> int:
    return sum(map(len, events)) + (0 if reply.end in ("keep", "close") else 1)


def _events(reply: Reply, request: Received) -> tuple[list[bytes], str]:
    """The pieces of the body, and its type."""
    if reply.body is not None:
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        return ([body] if body else []), "application/json"
    if reply.status != 200:
        return [json.dumps({"error": {"message": reply.text, "code": reply.status}}).encode()], "application/json"
    if reply.chunks is None and not (reply.text or reply.reasoning or reply.calls) and reply.end == "hang":
        return [], ""
    if reply.chunks is None and not request.body.get("stream"):
        return [json.dumps(_completion(reply), ensure_ascii=False).encode()], "application/json"
    chunks = _deltas(reply) if reply.chunks is None else reply.chunks
    payloads = [chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    ended = reply.done and reply.end not in ("cut", "reset", "hang")
    return [f"data: {payload}\n\n".encode() for payload in [*payloads, *(["[DONE]"] if ended else [])]], (
        "text/event-stream"
    )


def _message(reply: Reply) -> dict[str, Any]:
    calls = [
        {
            "index": index,
            "id": f"call_fake_{index}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
            },
        }
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    return {
        **({"reasoning_content": reply.reasoning} if reply.reasoning else {}),
        **({"content": reply.text} if reply.text or not calls else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def _completion(reply: Reply) -> dict[str, Any]:
    """An answer that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", **_message(reply)}, "finish_reason": _finish(reply)}
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "choices": [choice],
        **({"usage": reply.usage} if reply.usage else {}),
    }


def _deltas(reply: Reply) -> list[Mapping[str, Any]]:
    """The same answer as the chunks of a stream."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for key, value in _message(reply).items():
        size = reply.delta_chars or len(value) or 1
        pieces = [value] if key == "tool_calls" else [value[at : at + size] for at in range(0, len(value), size)]
        deltas += [{key: piece} for piece in pieces]
    chunks: list[Mapping[str, Any]] = [_chunk({"index": 0, "delta": d, "finish_reason": None}) for d in deltas]
    if reply.end not in ("cut", "reset", "hang"):
        chunks.append(_chunk({"index": 0, "delta": {}, "finish_reason": _finish(reply)}))
    return [*chunks, {**_chunk(), "usage": reply.usage}] if reply.usage else chunks


def _chunk(*choices: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "choices": list(choices)}


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _main() -> None:
    parser = argparse.ArgumentParser(description="An OpenAI-shaped server on loopback that says what it is told.")
    parser.add_argument("text", nargs="*", help="what to say, one text a request; nothing: the user's own words")
    parser.add_argument("--script", type=Path, help="a JSON file with a list of replies")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", action="store_true", help="print each request's body")
    options = parser.parse_args()
    script: Script = [Reply(text) for text in options.text] or echo
    if options.script:
        script = [Reply(**reply) for reply in json.loads(options.script.read_text())]
    async with FakeModel(script, options.port, log=options.log) as fake:
        print(fake.endpoint, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
