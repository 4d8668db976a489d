"""Servers on loopback that are no model: one that sends any bytes, a proxy that remembers, an authority for TLS.

What they are asked and how many connections they hold can be looked at. Nothing leaves the machine.
"""

import asyncio
import socket
import ssl
import struct
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import environ
from pathlib import Path
from shutil import which
from typing import Self

import pytest

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

needs_openssl = pytest.mark.skipif(which("openssl") is None, reason="the command openssl is not installed")


class Server:
    """`async with Server(talk) as server`: has `talk` speak with each client, then closes."""

    def __init__(self, talk: Talk, tls: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self._talk, self._tls = talk, tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def closed(self, patience_s: float = 5) -> None:
        """Wait until every client has gone. Raises TimeoutError."""
        async with asyncio.timeout(patience_s):
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._talk(reader, writer)
        finally:
            writer.close()


def says(data: bytes, then: str = "close") -> Talk:
    """Reads a request and sends `data`, whatever that is; then "close", "reset", or "hang" until the client goes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(data)
        await writer.drain()
        if then == "hang":
            await reader.read()
        elif then == "reset":
            reset(writer)

    return talk


async def read_request(reader: asyncio.StreamReader) -> tuple[str, Mapping[str, str], bytes]:
    """(request line, headers with names in lower case, body)."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return first, headers, await reader.readexactly(int(headers.get("content-length", 0)))


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Proxy(Server):
    """Sends everything to `127.0.0.1:port`, plain or through a tunnel, and remembers what it was asked.

    With `refusal`, a status line, it refuses.
    """

    def __init__(self, port: int, refusal: str = "") -> None:
        super().__init__(self._pass_on)
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self._target, self._refusal = port, refusal

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, headers, body = await read_request(reader)
        self.asked.append((first, headers))
        if self._refusal:
            writer.write(f"HTTP/1.1 {self._refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            return
        there, thither = await asyncio.open_connection("127.0.0.1", self._target)
        method, url, _ = first.split()
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = "/" + url.split("/", 3)[3]
            lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
            thither.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + body)
        try:
            await asyncio.gather(_pump(reader, thither), _pump(there, writer))
        finally:
            thither.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
    sink.close()


@dataclass(frozen=True)
class Authority:
    """A certificate authority of one's own, made by the openssl command."""

    folder: Path

    @property
    def file(self) -> Path:
        """The authority's certificate."""
        return self.folder / "ca.pem"

    @staticmethod
    def make(folder: Path) -> "Authority":
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        _openssl(
            folder,
            "req",
            "-x509",
            *key,
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-subj",
            "/CN=Bantam's own",
            "-days",
            "2",
        )
        return Authority(folder)

    def server(self, names: str = "IP:127.0.0.1,DNS:api.invalid", days: int = 2) -> ssl.SSLContext:
        """A server's context, with a certificate for `names` that is good for `days`; -1: it was, until yesterday."""
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        (self.folder / "names").write_text(f"subjectAltName={names}\n")
        _openssl(self.folder, "req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
        signer = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days), "-extfile", "names")
        _openssl(self.folder, "x509", "-req", "-in", "server.csr", *signer, "-out", "server.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server.key")
        return context


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """These environment variables and none of a proxy or a certificate; None: not set."""
    names = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")
    before = dict(environ)
    try:
        for name in names:
            environ.pop(name, None)
            environ.pop(name.upper(), None)
        environ.update({name: value for name, value in variables.items() if value is not None})
        yield
    finally:
        environ.clear()
        environ.update(before)
