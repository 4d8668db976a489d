"""Performs `CallModel`: one POST, and its answer as it comes.

It decides nothing and knows no dialect: bytes go into `core.wire.body`, whose events go out; what fails becomes
`ModelFailed`. It never raises, and cancelled it leaves no socket and no task. Importing it does not import aiohttp.
"""

import gc
import json
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from bantam.core.effects import CallModel
from bantam.core.events import Event, Failure, Fault, Id, ModelEnded, ModelFailed
from bantam.core.messages import Message
from bantam.core.rules.redact import Redactor
from bantam.core.wire.body import Body, deadline, feed, finish, lapse
from bantam.core.wire.dialect import Dialect, Listed, Sent
from bantam.core.wire.dialects import DIALECTS
from bantam.shell.net import address

if TYPE_CHECKING:
    from bantam.shell.net import http

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "Accept-Encoding": "identity",  # what compresses a stream holds it back
    "User-Agent": address.USER_AGENT,
}

Kept = dict[int, tuple[Message, bytes]]
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_loading = threading.Lock()


def load() -> None:
    """Import aiohttp in two thirds of the time; without this the first call imports it as usual.

    For a process that is Bantam's own, from any thread. When aiohttp is imported it makes two TLS contexts and
    loads the system's authorities into each. Bantam uses neither, so they stay empty here, and whoever
    else wants to use aiohttp in this process finds them so. The stand-in for the loading method is in place
    during the import only: pointing SSL_CERT_FILE at nothing does the same, but would be handed on to a
    command that starts meanwhile.
    """
    import ssl

    with _loading:
        if "aiohttp" in sys.modules:
            return
        collects, method = gc.isenabled(), "set_default_verify_paths"
        gc.disable()  # nothing of what an import makes is garbage
        setattr(ssl.SSLContext, method, lambda context: None)
        try:
            import bantam.shell.net.http  # noqa: F401
        finally:
            delattr(ssl.SSLContext, method)  # the inherited one is back
            gc.freeze()
            if collects:
                gc.enable()


class Model:
    """The API behind `endpoint`, in one loop until it is closed. All three attributes are read at each call.

    `redactor` takes secrets out of what the server sends, and out of words about failures. `environ` names proxies
    and authorities; `wall` are seconds of the epoch.
    """

    def __init__(
        self,
        endpoint: str,
        key: str | None,
        environ: Mapping[str, str],
        wall: Callable[[], float],
        redactor: Redactor | None = None,
    ) -> None:
        self.endpoint, self.key = endpoint, key
        self._environ, self._wall = environ, wall
        self.redactor = redactor or Redactor(())
        self._bodies = Bodies()
        self._client: http.Client | None = None

    async def call(self, request: CallModel) -> AsyncGenerator[Event, None]:
        """Any number of `ModelChunks`, then one `ModelEnded` or `ModelFailed`."""
        from bantam.shell.net import http

        dialect = DIALECTS[request.api]
        post = self._post(request, dialect)
        if isinstance(post, Failure):
            yield self._failed(request, post)
            return
        self._client = self._client or http.Client(self._environ, self._wall)
        response, secrets, limit = None, self.redactor.stream(), http.limit(request.left_s)
        try:
            async with limit:
                opened = await self._client.open(post)
                if isinstance(opened, Failure):
                    yield self._failed(request, opened)
                    return
                response, body, until = opened, Body(request.id, dialect), None
                while True:
                    data = await (response.content.readany() if until is None else http.read(response, until))
                    if data:
                        body, events = feed(body, secrets.feed(data))
                        until = deadline(body, events, until, http.now(), request.timeout_s)
                    else:
                        body, events = feed(body, secrets.end())
                        events += lapse(body) if data is None else finish(body)
                        until = None
                    final = events.pop() if events and isinstance(events[-1], (ModelEnded, ModelFailed)) else None
                    for event in events:
                        yield event
                    if final:
                        await http.rest(response)
                        yield final
                        return
        except http.ERRORS as error:
            failure = http.failure_of(error, post.target.shown, post.proxy, request.timeout_s)
            late = Failure(Fault.TIME, "the time of the turn is over")
            yield self._failed(request, late if limit.expired() else failure)
        finally:
            if response is not None:
                http.drop(response)

    async def close(self) -> None:
        """Close all connections; a call after it opens new ones."""
        client, self._client = self._client, None
        if client:
            await client.close()

    def _post(self, request: CallModel, dialect: Dialect) -> "http.Post | Failure":
        """The request as it will be sent."""
        from bantam.shell.net import http

        target = address.target(self.endpoint, dialect.PATH)
        if isinstance(target, Failure):
            return target
        headers = {**HEADERS, **dialect.HEADERS}
        if self.key:
            if not (self.key.isascii() and self.key.isprintable()):
                return Failure(Fault.REQUEST, "the API key holds a character that no header can carry")
            headers["Authorization"] = f"Bearer {self.key}"
        elif target.login:
            headers["Authorization"] = address.basic(target.login)
        proxy = address.proxy_for(target.url, self._environ)
        if isinstance(proxy, Failure):
            return proxy
        try:
            body = self._bodies.of(request, dialect.sent(request))
        except (TypeError, ValueError, RecursionError) as error:
            return Failure(Fault.REQUEST, f"the request cannot be written as JSON: {error}")
        return http.Post(target, headers, body, request.timeout_s, proxy)

    def _failed(self, request: CallModel, failure: Failure) -> ModelFailed:
        text = self.redactor.text(failure.text)
        return ModelFailed(request.id, Failure(failure.fault, text, failure.status, failure.retry_after_s))


class Bodies:
    """Request bodies. A part of a list is written once and its bytes are kept, so a turn's cost does not grow.

    They are found by identity: the messages of a conversation are the same objects in each of its requests.
    """

    def __init__(self) -> None:
        self._kept: dict[Id, dict[tuple[str, str], Kept]] = {}

    def of(self, request: CallModel, sent: Sent) -> list[bytes]:
        """The JSON of a request, in pieces: joining them would cost more than all the rest.

        Raises TypeError, ValueError or RecursionError for what JSON cannot say.
        """
        agent = request.id[:-1]
        old = self._kept.get(agent, {})
        # an agent that calls has no subagents at work, so what is kept for those can go too
        self._kept = {path: other for path, other in self._kept.items() if path[: len(agent)] != agent}
        kept = self._kept[agent] = {}
        members = _encode(dict(sent.members)).encode()[1:-1]
        pieces = [b"{", members]
        for listed in sent.lists:
            place = request.api, listed.name  # another dialect writes the same message otherwise
            written = kept[place] = _written(listed, old.get(place, {}))
            pieces += [b"," if len(pieces) > 2 or members else b"", f'"{listed.name}":['.encode()]
            pieces += _joined(written, listed.parts)
            pieces.append(b"]")
        return [*pieces, b"}"]


def _written(listed: Listed, old: Kept) -> Kept:
    # a part is kept with its bytes: as long as it lives, nothing else can have its id
    return {id(part): old.get(id(part)) or (part, _items(listed, part)) for part in listed.parts}


def _items(listed: Listed, part: Message) -> bytes:
    return b",".join([_encode(item).encode() for item in listed.items(part)])


def _joined(written: Kept, parts: Iterable[Message]) -> list[bytes]:
    return [piece for part in parts if (data := written[id(part)][1]) for piece in (data, b",")][:-1]
