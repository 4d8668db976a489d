"""HTTP for the model handler: certificates, one kept session, and words for what fails.

The only module that imports aiohttp, and so the slow one: import it when a call needs it, or in the
program through `model.load`. It decides nothing: what failed becomes a `Failure`.
"""

import asyncio
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
from aiohttp.http_writer import StreamWriter

from bantam.core.base.record import dataclass
from bantam.core.events import Failure, Fault
from bantam.core.rules import credentials
from bantam.shell.net import address

HOPS_MAX = 5
HEADER_BYTES_MAX = 65_536  # of one header; 8 KB, aiohttp's limit, is less than some gateways' policies and cookies
ERROR_BYTES = 4096  # of an error's body
ERROR_S = 5.0  # for an error's body: its status is what counts, and some bodies have no end
KEPT_S = 60  # an idle connection; many servers and gateways drop it after that
REST_S = 0.05  # for the end of a body whose last event was read
WRITE_BYTES = 65_536  # of a request's body, about
STALE_MAX = 10  # kept connections that turn out dead, a call
ROUNDS = 3  # of the loop, from the abort of a TLS connection until its reader knows

ERRORS = (aiohttp.ClientError, OSError, RuntimeError)
"""What this module and a response's content raise when a server, a network or an address is at fault."""


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a server asks to wait, from `now` in seconds of the epoch; None for nonsense."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]*)?", value):
            return float(value) * unit_s
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None


# --- certificates


def tls_context(environ: Mapping[str, str]) -> ssl.SSLContext | Failure:
    """A context with the system's authorities, or those that SSL_CERT_FILE and SSL_CERT_DIR name."""
    usual = ssl.get_default_verify_paths()
    file = environ.get("SSL_CERT_FILE")
    if file:
        try:
            with open(file, "rb"):
                pass
        except OSError as error:
            return Failure(Fault.CERTIFICATE, f"SSL_CERT_FILE={file} cannot be read: {_words(error)}")
    # with a place given, be it an empty one, nothing is loaded that the environment of this process names
    context = ssl.create_default_context(capath=environ.get("SSL_CERT_DIR", usual.openssl_capath) or os.devnull)
    with suppress(OSError):  # as OpenSSL passes over what it cannot read
        context.load_verify_locations(environ.get("SSL_CERT_FILE", usual.openssl_cafile))
    if file and not context.cert_store_stats()["x509"]:
        return Failure(Fault.CERTIFICATE, f"SSL_CERT_FILE={file} holds no certificate")
    # from 3.13 on; companies' own authorities often lack the formalities it asks for
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    return context


# --- the session


@dataclass(frozen=True)
class Post:
    """One request, its body in pieces of any size; nothing may come or go for `timeout_s`."""

    target: address.Target
    headers: Mapping[str, str]
    body: Sequence[bytes]
    timeout_s: float
    proxy: address.Proxy | None = None


class Client:
    """A session whose connections are kept between calls. Made in a running loop, and closed in it.

    `environ` names authorities; `wall` are seconds of the epoch.
    """

    def __init__(self, environ: Mapping[str, str], wall: Callable[[], float]) -> None:
        self._environ, self._wall = environ, wall
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S, use_dns_cache=False, resolver=Resolver())
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # no netrc: the proxy is given
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        self._tls: ssl.SSLContext | None = None
        self._known: WeakSet[asyncio.WriteTransport] = WeakSet()

    async def close(self) -> None:
        """Close every connection. Calls that still run fail."""
        for transport in list(self._known):
            transport.abort()
        for _ in range(ROUNDS):  # or aiohttp lets go of a response without telling who reads it, for ever
            await asyncio.sleep(0)
        await self._session.close()

    async def open(self, post: Post) -> aiohttp.ClientResponse | Failure:
        """The answer to a request, as soon as its headers came; anything but a 200 as a Failure. Raises `ERRORS`."""
        url = post.target.url
        for _ in range(HOPS_MAX + 1):
            response = await self._send(url, post)
            if isinstance(response, Failure) or response.status == 200:
                return response
            location = _location(response, url)
            if not location:
                return await _refusal(response, post.timeout_s, self._wall)
            await rest(response)
            drop(response)
            if response.status not in (307, 308) or credentials.origin(location) != credentials.origin(url):
                return _redirected(response, location, post.target)
            url = location
        return Failure(Fault.HTTP, f"more than {HOPS_MAX} redirects, the last to {address.shown(url)}", response.status)

    async def _send(self, url: str, post: Post) -> aiohttp.ClientResponse | Failure:
        """One POST; once more at once if a kept connection turns out to be dead."""
        options = self._options(url, post)
        if isinstance(options, Failure):
            return options
        for _ in range(STALE_MAX):
            upload = Upload(post.body, post.timeout_s, self._known)
            try:
                return await self._session.post(url, data=upload, allow_redirects=False, **options)
            except BaseException as error:
                upload.abort()
                if isinstance(error, ValueError) and not isinstance(error, ERRORS):
                    raise aiohttp.InvalidURL(url) from error  # a host with a label of 64 letters, for one
                stale = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
                if not stale or not upload.kept or isinstance(error, aiohttp.ClientConnectorError):
                    raise
        raise aiohttp.ServerDisconnectedError

    def _options(self, url: str, post: Post) -> dict[str, Any] | Failure:
        limits = aiohttp.ClientTimeout(total=None, connect=post.timeout_s, sock_read=post.timeout_s)
        options: dict[str, Any] = {"headers": post.headers, "timeout": limits}
        secure = url.startswith("https:")
        if post.proxy:
            own = {"Proxy-Authorization": address.basic(post.proxy.login)} if post.proxy.login else {}
            options["proxy"] = post.proxy.url
            if secure:  # what asks for the tunnel is a request of its own
                options["proxy_headers"] = {"User-Agent": address.USER_AGENT, **own}
            else:
                options["headers"] = {**post.headers, **own}
        if secure or (post.proxy and post.proxy.url.startswith("https:")):
            context = self._tls or tls_context(self._environ)
            if isinstance(context, Failure):
                return context
            options["ssl"] = self._tls = context
        return options


class Upload(aiohttp.Payload):
    """A request's body. aiohttp watches what comes, not what goes: a server that takes nothing is silent too."""

    _autoclose = True  # there is nothing to close

    def __init__(self, body: Sequence[bytes], timeout_s: float, known: WeakSet[asyncio.WriteTransport]) -> None:
        super().__init__(body, content_type="application/json")
        self._size = sum(map(len, body))
        self._body, self._timeout_s, self._known = body, timeout_s, known
        self._transport: asyncio.WriteTransport | None = None
        self.kept = True
        """The connection had a request before, or was lost before it could be told."""

    def abort(self) -> None:
        """Close the connection without waiting for anybody: not for a full pipe, not for TLS's goodbye."""
        if self._transport is not None:
            self._transport.abort()

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        assert isinstance(writer, StreamWriter)
        self._transport = writer.transport
        if self._transport is not None:
            self.kept = self._transport in self._known
            self._known.add(self._transport)
        for data in _writes(self._body):
            async with asyncio.timeout(self._timeout_s):
                await writer.write(data)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._body).decode(encoding, errors)


def _writes(body: Sequence[bytes]) -> Iterator[bytes | memoryview]:
    """The same bytes in pieces that are worth a write and not too large for one."""
    small: list[bytes] = []
    size = 0
    for piece in body:
        if size + len(piece) > WRITE_BYTES and small:
            yield b"".join(small)
            small, size = [], 0
        if len(piece) > WRITE_BYTES:
            view = memoryview(piece)
            yield from (view[at : at + WRITE_BYTES] for at in range(0, len(piece), WRITE_BYTES))
        else:
            small.append(piece)
            size += len(piece)
    yield b"".join(small)


class Resolver(AbstractResolver):
    """Looks names up in a thread that nobody waits for once the call was cancelled, least of all the exit."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[ResolveResult]] = loop.create_future()

        def settle(answer: list[ResolveResult] | Exception) -> None:
            if found.done():
                return
            if isinstance(answer, Exception):
                found.set_exception(answer)
            else:
                found.set_result(answer)

        def look_up() -> None:
            answer: list[ResolveResult] | Exception
            try:
                answer = _addresses(host, port, family)
            except (OSError, UnicodeError) as error:
                answer = error
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(settle, answer)

        threading.Thread(target=look_up, daemon=True).start()
        return await found

    async def close(self) -> None:
        pass


def _addresses(host: str, port: int, family: int) -> list[ResolveResult]:
    numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    hosts = [socket.getnameinfo(info[4], numeric)[0] for info in infos]  # with the zone of a link-local address
    return [
        ResolveResult(hostname=host, host=address, port=port, family=info[0], proto=info[2], flags=flags)
        for address, info in zip(hosts, infos, strict=True)
    ]


async def read(response: aiohttp.ClientResponse, until: float) -> bytes | None:
    """The next bytes, b"" for the end; None if there are none at the time `until`. Raises `ERRORS`."""
    try:
        async with asyncio.timeout_at(until):
            return await response.content.readany()
    except TimeoutError:
        if now() < until:  # it was the silence that a call may have
            raise
        return None


def now() -> float:
    """The time in seconds, as `read` counts it."""
    return asyncio.get_running_loop().time()


async def rest(response: aiohttp.ClientResponse) -> None:
    """Read what is left of a body if it comes at once: then the connection is kept."""
    with suppress(*ERRORS):
        async with asyncio.timeout(REST_S):
            while not response.content.at_eof():
                await response.content.readany()


def drop(response: aiohttp.ClientResponse) -> None:
    """Close the connection unless the body was read to its end."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()  # closing would wait for TLS's goodbye
    response.close()


async def _refusal(response: aiohttp.ClientResponse, timeout_s: float, wall: Callable[[], float]) -> Failure:
    """An answer that is not 200, with the beginning of its body: as much as comes, the status is what counts."""
    data = b""
    try:
        with suppress(*ERRORS):
            async with asyncio.timeout(min(ERROR_S, timeout_s)):
                while len(data) < ERROR_BYTES and not response.content.at_eof():
                    data += await response.content.readany()
    finally:
        drop(response)
    text = data[:ERROR_BYTES].decode(errors="replace")
    return Failure(Fault.HTTP, text, response.status, retry_after_s(response.headers, wall()))


def _redirected(response: aiohttp.ClientResponse, location: str, target: address.Target) -> Failure:
    """A redirect that is not followed: the key must not go to another origin, and all but 307 and 308 ask for a GET."""
    text = f"it redirects to {address.shown(location)}; set endpoint to that"
    if address.shown(location) == target.shown:  # nothing that an endpoint could say
        text = f"it redirects to {location.partition('?')[0]}, which no POST can follow"
    return Failure(Fault.HTTP, text, response.status)


def _location(response: aiohttp.ClientResponse, url: str) -> str:
    """Where a redirect leads, without a login, for a server has no say in ours; "" for an answer that is none."""
    location = response.headers.get("Location", "").strip()
    if not 300 < response.status < 400 or not location:
        return ""
    try:
        return address.without_login(urljoin(url, location))
    except ValueError:
        return ""


# --- words


def limit(left_s: float | None) -> asyncio.Timeout:
    """Ends whatever it holds after so many seconds; None: never."""
    return asyncio.timeout(left_s)


def failure_of(error: Exception, shown: str, proxy: address.Proxy | None, timeout_s: float) -> Failure:
    """What one of `ERRORS` means, in words without Python and without secrets."""
    match error:
        case aiohttp.ClientProxyConnectionError() if proxy:
            return Failure(Fault.NETWORK, f"could not connect to the proxy {proxy.url}: {_words(error.os_error)}")
        case aiohttp.ClientHttpProxyError() if proxy:
            return Failure(Fault.HTTP, f"this came from the proxy {proxy.url}: {error.message}", error.status)
        case aiohttp.ClientConnectorDNSError():
            return Failure(Fault.NETWORK, f"the host {error.host} cannot be found: {_words(error.os_error)}")
        case aiohttp.ClientConnectorCertificateError():
            return _certificate(error.certificate_error, shown)
        case aiohttp.ClientConnectorSSLError():
            return _tls(error.os_error, shown)
        case aiohttp.ClientConnectorError():
            return Failure(Fault.NETWORK, f"could not connect to {shown}: {_words(error.os_error)}")
        case TimeoutError():
            return Failure(Fault.SILENCE, f"nothing came for {timeout_s:g} s")
        case aiohttp.ClientResponseError():  # its status is aiohttp's own
            return Failure(Fault.NETWORK, f"what {shown} answered is no HTTP")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return Failure(Fault.REQUEST, f"endpoint={shown} is no URL that can be called")
        case OSError() if error.errno:
            return Failure(Fault.NETWORK, f"the connection broke off: {_words(error)}")
    return Failure(Fault.NETWORK, "the connection broke off")


def _certificate(error: Exception, shown: str) -> Failure:
    why = getattr(error, "verify_message", "") or str(error)
    hint = "SSL_CERT_FILE can name a file of authorities to trust"
    return Failure(Fault.CERTIFICATE, f"the certificate of {shown} was refused: {why.rstrip('.')}; {hint}")


def _tls(error: OSError, shown: str) -> Failure:
    """A server that speaks no TLS, or another, will not do so later either."""
    why = (getattr(error, "reason", None) or "it broke off").replace("_", " ").lower()
    return Failure(Fault.REQUEST, f"no TLS connection to {shown}: {why}; is https right?")


def _words(error: OSError) -> str:
    """The system's words for an error, or for each of several that came together."""
    if isinstance(error, socket.gaierror):
        return (error.strerror or "unknown").lower()
    numbers = [error.errno] if error.errno else [int(n) for n in re.findall(r"\[Errno (\d+)\]", str(error))]
    return (", ".join(dict.fromkeys(map(os.strerror, numbers))) or str(error)).lower()
