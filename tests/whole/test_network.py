"""The real program on networks that are not plain: proxies, authorities, redirects, servers that fall silent.

Everything is on loopback. `api.invalid` is a name that no resolver knows, so whoever reaches it went by the proxy.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bantam.core.effects import CallModel
from bantam.core.events import Event, Fault, ModelEnded, ModelFailed
from bantam.shell.net.model import Model
from scripts.fakemodel import FakeModel, Reply
from tests.loopback import Authority, Proxy, Server, environment, needs_openssl, read_request
from tests.program import Place, Ran, place, serving

AGENT = "Mozilla/5.0 (compatible; Bantam/1.0)"
KEY = "sk-marker-0123456789"
SECRET = "s%40cret-word"
HELLO = Reply("pelican")
DEADLINE_S = 40.0  # generous: nothing takes as long unless a retry or a wait is too many


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


async def ask(here: Place, *arguments: str, **variables: str) -> Ran:
    """The program's answer, while the servers of this loop go on serving."""
    here.environment.update(variables)
    return await asyncio.to_thread(here.run, *arguments, "-p", "hello")


def kept(here: Place) -> Iterator[str]:
    """All files that a run left."""
    for folder in (here.home, here.work):
        yield from (path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


# --- proxies


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_the_program_goes_through_the_proxy_and_tells_nobody_its_password(tmp_path: Path, variable: str) -> None:
    async def run() -> None:
        async with FakeModel([Reply("no", status=503), HELLO]) as fake, Proxy(fake.port) as proxy:
            here = Place(tmp_path, "http://api.invalid/v1", api_key=KEY)
            ran = await ask(here, **{variable: f"http://me:{SECRET}@{proxy.address}"})
            assert (ran.status, ran.out) == (0, "pelican\n"), ran.err
            [(first, headers)] = proxy.asked  # the connection is kept
            assert first == "POST http://api.invalid/v1/chat/completions HTTP/1.1"
            assert headers["user-agent"] == AGENT
            assert headers["proxy-authorization"] == "Basic bWU6c0BjcmV0LXdvcmQ="
            assert headers["authorization"] == f"Bearer {KEY}"
            assert [request.headers["host"] for request in fake.requests] == ["api.invalid"] * 2
            for text in (ran.out, ran.err, *kept(here)):
                assert "cret-word" not in text
                assert "bWU6c0" not in text

    asyncio.run(run())


@needs_openssl
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy"])
def test_the_program_goes_through_a_tunnel_and_the_proxy_sees_no_key(
    tmp_path: Path, authority: Authority, variable: str
) -> None:
    async def run() -> None:
        async with FakeModel([HELLO], tls=authority.server()) as fake, Proxy(fake.port) as proxy:
            here = Place(tmp_path, "https://api.invalid/v1", api_key=KEY)
            there = f"http://me:{SECRET}@{proxy.address}"
            ran = await ask(here, **{variable: there}, SSL_CERT_FILE=str(authority.file))
            assert (ran.status, ran.out) == (0, "pelican\n"), ran.err
            [(first, headers)] = proxy.asked
            assert first == "CONNECT api.invalid:443 HTTP/1.1"
            assert headers["user-agent"] == AGENT
            assert headers["proxy-authorization"] == "Basic bWU6c0BjcmV0LXdvcmQ="
            assert "authorization" not in headers
            assert "proxy-authorization" not in fake.requests[0].headers
            assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"
            assert not any("cret-word" in text for text in (ran.out, ran.err, *kept(here)))

    asyncio.run(run())


@pytest.mark.parametrize("never", ["api.invalid", ".invalid", "*", "x, api.invalid:80"])
def test_no_proxy_is_obeyed(tmp_path: Path, never: str) -> None:
    async def run() -> None:
        async with FakeModel([HELLO]) as fake, Proxy(fake.port) as proxy:
            here = Place(tmp_path, "http://api.invalid/v1")
            ran = await ask(here, HTTP_PROXY=f"http://{proxy.address}", NO_PROXY=never)
            assert ran.status == 75
            assert "the host api.invalid cannot be found" in ran.err
            assert proxy.asked == []

    asyncio.run(run())


def test_a_proxy_that_refuses_is_named_without_its_password(tmp_path: Path) -> None:
    async def run() -> None:
        async with Proxy(1, "407 Proxy Authentication Required") as proxy:
            for folder, scheme, variable in (("a", "http", "HTTP_PROXY"), ("b", "https", "HTTPS_PROXY")):
                (tmp_path / folder).mkdir()
                here = Place(tmp_path / folder, f"{scheme}://api.invalid/v1")
                ran = await ask(here, **{variable: f"http://me:{SECRET}@{proxy.address}"})
                assert ran.status == 1
                assert "407" in ran.err
                assert not any("cret-word" in text for text in (ran.out, ran.err, *kept(here)))
            assert len(proxy.asked) == 2

    asyncio.run(run())


# --- certificates


@asynccontextmanager
async def secure(
    folder: Path, authority: Authority, names: str = "IP:127.0.0.1", days: int = 2
) -> AsyncIterator[Place]:
    """A place whose model has a certificate of the authority."""
    async with FakeModel([HELLO], tls=authority.server(names, days)) as fake:
        yield Place(folder, fake.endpoint)


@needs_openssl
def test_an_authority_that_is_named_is_trusted(tmp_path: Path, authority: Authority) -> None:
    async def run() -> None:
        async with secure(tmp_path, authority) as here:
            ran = await ask(here, SSL_CERT_FILE=str(authority.file))
            assert (ran.status, ran.out) == (0, "pelican\n"), ran.err

    asyncio.run(run())


@needs_openssl
@pytest.mark.parametrize(
    ("names", "days", "trusted", "words"),
    [
        ("IP:127.0.0.1", 2, False, "unable to get local issuer certificate"),
        ("IP:127.0.0.1", -1, True, "certificate has expired"),
        ("DNS:other.invalid", 2, True, "IP address mismatch"),
        ("IP:127.0.0.2", 2, True, "IP address mismatch"),
    ],
)
def test_a_certificate_that_is_refused_fails_at_once_and_says_why(
    tmp_path: Path, authority: Authority, names: str, days: int, trusted: bool, words: str
) -> None:
    async def run() -> None:
        async with secure(tmp_path, authority, names, days) as here:
            here.environment["BANTAM_BACKOFF_SCALE"] = "1"
            began = time.monotonic()
            ran = await ask(here, **({"SSL_CERT_FILE": str(authority.file)} if trusted else {}))
            assert time.monotonic() - began < DEADLINE_S
            assert (ran.status, ran.out) == (1, "")
            assert "trying again" not in ran.err
            (line,) = [line for line in ran.err.splitlines() if "certificate of https://127.0.0.1" in line]
            assert words in line
            assert "SSL_CERT_FILE" in line

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["missing", "a folder", "no certificate"])
def test_a_file_of_authorities_that_cannot_be_used_is_named(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "authorities.pem"
    if kind == "a folder":
        file.mkdir()
    elif kind == "no certificate":
        file.write_text("hello\n")
    here = Place(tmp_path, "https://127.0.0.1:9/v1")
    here.environment["SSL_CERT_FILE"] = str(file)
    ran = here.run("-p", "hello")
    assert ran.status == 1
    assert f"SSL_CERT_FILE={file}" in ran.err
    assert "trying again" not in ran.err


# --- redirects


async def called(endpoint: str, key: str | None = KEY) -> Event:
    """The last event of one call."""
    model = Model(endpoint, key, os.environ, time.time)
    try:
        request = CallModel((1,), ({"role": "user", "content": "hello"},), (), {"stream": True}, 10)
        return [event async for event in model.call(request)][-1]
    finally:
        await model.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@needs_openssl
def test_a_key_follows_no_redirect_to_another_origin(status: int, authority: Authority) -> None:
    """However the other origin is written: what listens there is never asked."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            other = await stack.enter_async_context(FakeModel([HELLO]))
            other_tls = await stack.enter_async_context(FakeModel([HELLO], tls=authority.server("DNS:localhost")))
            locations: list[str] = []
            replies = iter(locations)
            fake = await stack.enter_async_context(
                FakeModel(lambda body: Reply(body="", status=status, headers={"Location": next(replies)}))
            )
            mine, path = f"127.0.0.1:{fake.port}", "/v1/chat/completions"
            locations += [
                f"http://127.0.0.1:{other.port}{path}",
                f"//127.0.0.1:{other.port}{path}",
                f"http://localhost:{other.port}{path}",
                f"http://localhost:{fake.port}{path}",
                f"https://127.0.0.1:{other_tls.port}{path}",
                f"https://{mine}{path}",
                f"http://{mine}@127.0.0.1:{other.port}{path}",
                f"http://{mine}%2f@127.0.0.1:{other.port}{path}",
                f"http://{mine}\\@127.0.0.1:{other.port}{path}",
                f"//me:pw@127.0.0.1:{other.port}{path}",
                f"HTTP://127.0.0.1:{other.port}/?http://{mine}/",
            ]
            for number, location in enumerate(locations, 1):
                ended = await called(fake.endpoint)
                assert isinstance(ended, ModelFailed), location
                assert (ended.failure.fault, ended.failure.status) == (Fault.HTTP, status), (location, ended)
                assert KEY not in ended.failure.text
                assert "pw" not in ended.failure.text
                assert len(fake.requests) == number, location
            assert other.connections == other_tls.connections == 0

    with environment(SSL_CERT_FILE=str(authority.file)):
        asyncio.run(run())


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("key", [KEY, None])
def test_a_login_in_a_redirect_is_not_taken(status: int, key: str | None) -> None:
    """The same origin with a user name is the same origin, and the server has no say in who we are."""

    async def run() -> None:
        away: list[str] = []
        replies = iter([True, False])

        def script(body: object) -> Reply:
            return Reply(body="", status=status, headers={"Location": away[0]}) if next(replies) else HELLO

        async with FakeModel(script) as fake:
            away.append(f"http://evil:pw@127.0.0.1:{fake.port}/v2")
            assert isinstance(await called(fake.endpoint, key), ModelEnded)
            assert [request.path for request in fake.requests] == ["/v1/chat/completions", "/v2"]
            assert {request.method for request in fake.requests} == {"POST"}
            assert len({request.raw for request in fake.requests}) == 1
            assert [request.headers.get("authorization") for request in fake.requests] == [key and f"Bearer {key}"] * 2

    with environment():
        asyncio.run(run())


def test_the_program_says_where_a_redirect_leads_and_does_not_go_round(tmp_path: Path) -> None:
    away = Reply(body="", status=301, headers={"Location": "https://api.invalid/v1/chat/completions"})
    round_ = Reply(body="", status=307, headers={"Location": "/v1/chat/completions"})
    for folder, reply, words, asked in (
        ("a", away, "it redirects to https://api.invalid/v1; set endpoint to that", 1),
        ("b", round_, "more than 5 redirects", 6),
    ):
        (tmp_path / folder).mkdir()
        with serving([reply]) as fake:
            ran = place(tmp_path / folder, fake).run("-p", "hello")
        assert (ran.status, len(fake.requests)) == (1, asked)
        assert words in ran.err


# --- silence


def test_a_stream_that_dies_is_asked_for_again_after_the_timeout(tmp_path: Path) -> None:
    dead = Reply("half an answer", delta_chars=4, end="hang")
    with serving([dead, HELLO]) as fake:
        ran = place(tmp_path, fake, timeout="0.5").run("-p", "hello")
    assert (ran.status, ran.out, len(fake.requests)) == (0, "pelican\n", 2)
    assert "nothing came for 0.5 s; trying again" in ran.err
    assert fake.requests[1].at - fake.requests[0].at >= 0.5


def test_a_stream_that_trickles_for_longer_than_the_timeout_is_fine(tmp_path: Path) -> None:
    with serving([Reply("0123456789", delta_chars=1, pause_s=0.2)]) as fake:
        ran = place(tmp_path, fake, timeout="1").run("-p", "hello")
    assert (ran.status, ran.out, len(fake.requests)) == (0, "0123456789\n", 1)
    assert "trying again" not in ran.err


@pytest.mark.parametrize("dead", ["answer", "headers", "rest"])
def test_ctrl_c_ends_the_wait_for_a_silent_server_at_once(tmp_path: Path, dead: str) -> None:
    """Within a stream, before its first byte, and between a finish_reason and an end that does not come."""
    finished = {"choices": [{"delta": {"content": "half"}, "finish_reason": "stop"}]}
    replies = {
        "answer": Reply("half", end="hang"),
        "headers": Reply(end="hang"),
        "rest": Reply(chunks=[finished], done=False, end="open"),
    }
    with serving([replies[dead]]) as fake:
        here = place(tmp_path, fake)
        (here.work / "prompt.txt").write_text("hello")
        process = here.start("prompt.txt")
        assert process.stdout is not None
        wanted, seen = (b"requesting" if dead == "headers" else b"half"), b""
        while wanted not in seen:
            seen += os.read(process.stdout.fileno(), 1000)
        deadline = time.monotonic() + DEADLINE_S
        while not fake.requests:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, err, len(fake.requests)) == (130, b"", 1)
    assert here.autosave()[-1]["content"] == ("hello" if dead == "headers" else "half")


def test_bodies_that_stay_open_are_over_in_a_few_seconds(tmp_path: Path) -> None:
    """With the timeout that everybody has: an answer behind its finish_reason, and the words of a refusal."""
    finished = {"choices": [{"delta": {"content": "pelican"}, "finish_reason": "stop"}]}
    replies = {
        "an answer": Reply(chunks=[finished], done=False, end="open"),
        "a refusal": Reply(body="no such model", status=404, end="open"),
    }
    with ExitStack() as stack:
        began, running = time.monotonic(), []
        for folder, reply in replies.items():
            (tmp_path / folder).mkdir()
            fake = stack.enter_context(serving([reply]))
            running.append((place(tmp_path / folder, fake).start("-p", "hello"), fake))
        ends = [(process.communicate(timeout=DEADLINE_S), process.returncode) for process, _ in running]
        assert time.monotonic() - began < DEADLINE_S
    ((out, err), status), ((nothing, refusal), failed) = ends
    assert (out, status, nothing, failed) == (b"pelican\n", 0, b"", 1)
    assert b"the API answered 404: no such model" in refusal
    assert b"trying again" not in err + refusal
    assert [len(fake.requests) for _, fake in running] == [1, 1]


def test_a_broken_chunk_is_named_and_quoted(tmp_path: Path) -> None:
    chunks: list[Any] = [{"choices": [{"delta": {"content": "half"}}]}, '{"choices": [{"del']
    with serving([Reply(chunks=chunks), HELLO]) as fake:
        ran = place(tmp_path, fake).run("-p", "hello")
    assert (ran.status, ran.out) == (0, "pelican\n")
    assert 'a chunk of the answer is not valid JSON: {"choices": [{"del; trying again in' in ran.err


def test_a_web_page_fails_soon_with_the_hint_about_the_endpoint(tmp_path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await read_request(reader))[0])
        page = b"<!DOCTYPE html><title>Sign in</title>"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page))

    asked: list[str] = []

    async def run() -> Ran:
        async with Server(talk) as server:
            return await ask(Place(tmp_path, f"http://{server.address}/v1"))

    ran = asyncio.run(run())
    assert (ran.status, ran.out, len(asked)) == (1, "", 3)
    assert "is the endpoint right?" in ran.err
    assert "(1 of 2)" in ran.err
