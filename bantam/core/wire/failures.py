"""A model call failed: what to do about it, how long to wait, and the words for the user."""

import json
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from bantam.core import messages
from bantam.core.effects import Reason
from bantam.core.events import Failure, Fault
from bantam.core.messages import Messages
from bantam.core.window import context

DELAYS_S = (1, 1, 2, 3, 5, 8, 13, 21, 34)  # Fibonacci; one a retry
PAGE_RETRIES = 2  # of an answer that some other program wrote: one of several servers may be set up wrongly
WAIT_MAX_S = 120.0  # a server that asks for more is a failure that says so
WORDS_MAX = 500  # characters of a server's own words that are shown
LOST = Failure(Fault.NETWORK, "Bantam was killed while the model answered")
TRANSIENT_STATUSES = frozenset({0, 408, 409, 425, 429})  # and every 5xx
PAGE = 200  # the status of an `ANSWER` that is a web page, or JSON of another kind: very likely a wrong endpoint
CHANGED_BY_REQUEST = frozenset({400, 413, 422})  # another request may be taken

# compiled where one is first asked: most runs meet no failure
_EVENTS = r"\s*(:|(data|event|id|retry)(:|[\r\n]|$))"  # how a stream begins, be it one that says nothing
_INVALID_ASSISTANT = (
    r"(?i)invalid assistant message|content or tool_calls must be set|must have non-?empty content"
    r"|content blocks must be non-?empty"
)
_TOO_LONG = (
    r"(?i)context[_ ](length|size|window)|ContextWindowExceeded|maximum context|prompt is too long"
    r"|input is too long|too many tokens|reduce the length"
)
_QUOTA = r"(?i)insufficient_quota|insufficient[_ ](balance|credits?|funds)|credit balance is too low|billing_hard_limit"
_REASONING_REFUSED = (
    r"(?is)\breasoning(_content|_details)?\b.{0,60}(unsupported|not supported|not permitted|unknown|unrecognized"
    r"|unexpected|extra)|(unsupported|unknown|unrecognized|unexpected|extra).{0,60}\breasoning(_content|_details)\b"
)
_REFUSED = (
    r"(?i)unsupported|not support|unknown|unrecognized|unrecognised|unexpected|not permitted|not allowed"
    r"|extra_forbidden|invalid (param|field|arg)"
)


class Remedy(StrEnum):
    RETRY = "retry"  # the same request later
    STRIP = "strip"  # without the last assistant message
    STRIP_REASONING = "strip reasoning"  # without reasoning members
    COMPACT = "compact"  # with a shorter conversation
    WITHHOLD = "withhold"  # without one parameter
    STOP = "stop"


def remedy(failure: Failure, sent: Collection[str] = ()) -> Remedy:
    """What may help. `sent` are the parameters of the request that a server may do without."""
    if broke(failure):
        return Remedy.RETRY
    if failure.fault in (Fault.CERTIFICATE, Fault.REQUEST, Fault.LIMIT):  # it would be the same, at full price
        return Remedy.STOP
    if _is_page(failure):
        return Remedy.RETRY
    if re.search(_QUOTA, failure.text) or failure.status == 402:
        return Remedy.STOP
    if failure.status in CHANGED_BY_REQUEST or failure.fault is Fault.ANSWER:
        if re.search(_INVALID_ASSISTANT, failure.text):
            return Remedy.STRIP
        if re.search(_TOO_LONG, failure.text) or failure.status == 413:
            return Remedy.COMPACT
    if failure.status in CHANGED_BY_REQUEST:
        if refused_parameter(failure, sent) is not None:
            return Remedy.WITHHOLD
        if re.search(_REASONING_REFUSED, failure.text):
            return Remedy.STRIP_REASONING
    if failure.status in TRANSIENT_STATUSES or failure.status >= 500:
        return Remedy.RETRY
    return Remedy.STOP


def broke(failure: Failure) -> bool:
    """Whether the connection failed and not the server: behind a finish_reason the answer is whole all the same."""
    return failure.fault in (Fault.NETWORK, Fault.SILENCE, Fault.TIME)


def shorter(said: Messages, remedy: Remedy) -> Messages | None:
    """The list less what the remedy takes away; None when that is nothing, so that recovery ends."""
    match remedy:
        case Remedy.STRIP:
            less = messages.strip_last_assistant(said)
        case Remedy.STRIP_REASONING:
            less = messages.strip_reasoning(said)
        case Remedy.COMPACT:
            less = context.prune(said)
        case _:
            return None
    return None if less == said else less


def refused_parameter(failure: Failure, sent: Collection[str]) -> str | None:
    """The one parameter of `sent` that the server refuses by name, if it names one.

    By OpenAI's `error.param`, by the `loc` of a FastAPI validation error, or by its quoted or bare name in
    words that refuse something.
    """
    if not re.search(_REFUSED, failure.text):
        return None
    body = _json(failure.text)
    named = {str(word) for key in ("param", "loc") for found in _find(body, key) for word in _listed(found)}
    for name in sorted(sent):
        if name in named:
            return name
    for name in sorted(sent, key=len, reverse=True):
        if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", words(failure.text)):
            return name
    return None


def retries_max(failure: Failure) -> int:
    return PAGE_RETRIES if _is_page(failure) else len(DELAYS_S)


def used_up(failure: Failure) -> Reason:
    """Why a turn ends when there are no retries left: whether to try again later makes sense."""
    return Reason.FAILED if _is_page(failure) else Reason.TRANSIENT


def _is_page(failure: Failure) -> bool:
    return failure.fault is Fault.ANSWER and failure.status == PAGE


def delay(attempt: int, failure: Failure) -> tuple[float, float] | None:
    """(seconds, floor) to wait after failed attempt number `attempt` (from 1); None when that was the last.

    Also None when the server asks for a wait beyond `WAIT_MAX_S`.
    """
    floor = failure.retry_after_s or 0.0
    if attempt > retries_max(failure) or floor > WAIT_MAX_S:
        return None
    return max(float(DELAYS_S[attempt - 1]), floor), floor


def explain(failure: Failure) -> str:
    """One line for the user: what failed, in the server's own words where it has some."""
    said = words(failure.text)
    floor = failure.retry_after_s or 0.0
    wait = f" (the server asks to wait {floor:g} s)" if floor > WAIT_MAX_S else ""
    match failure.fault:
        case Fault.HTTP:
            return f"the API answered {failure.status}: {said or 'without a word'}{wait}"
        case Fault.ANSWER if failure.status and not _is_page(failure):
            return f"the API answered {failure.status} inside a 200: {said}{wait}"
    return said + wait


def no_answer(text: str) -> Failure:
    """Status 200, but with nothing, a web page, or JSON of another kind.

    Nothing is what comes when the server behind a gateway goes away, and so passes. The others are the words of
    some other program, and stay.
    """
    if not text.strip():
        return Failure(Fault.ANSWER, "the API answered 200 with an empty body")
    if re.match(_EVENTS, text):
        return Failure(Fault.ANSWER, "the API answered 200 with a stream that says nothing")
    kind = "a web page (HTML)" if text.lstrip()[:1] == "<" else "something that is no chat completion"
    return Failure(Fault.ANSWER, f"the API answered 200 with {kind}; is the endpoint right? {short(text)}", PAGE)


def words_alone(text: str, told: bool) -> Failure:
    """A stream that ended before its answer did, with words that are no JSON. `told`: a part of the answer came."""
    how = "the answer broke off with the words" if told else "the API answered 200 with nothing but the words"
    return Failure(Fault.ANSWER, f"{how}: {short(text)}")


def in_body(payload: str, value: Mapping[str, Any]) -> Failure:
    """The failure that an error object inside a 200 tells of."""
    error = value.get("error")
    code = error.get("code") if isinstance(error, Mapping) else value.get("code")
    status = int(code) if isinstance(code, (int, str)) and re.fullmatch(r"[45]\d\d", str(code)) else 0
    return Failure(Fault.ANSWER, payload[:4096], status)


def words(text: str) -> str:
    """The message inside an error body: JSON of any of the usual shapes, or the text itself."""
    body = _json(text)
    if body is None:
        return short(text)
    for key in ("message", "error", "detail", "msg", "error_description"):
        for found in _find(body, key):
            if isinstance(found, str) and found.strip():
                return short(found)
    return short(text)


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WORDS_MAX else line[:WORDS_MAX] + "…"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _find(value: Any, key: str, levels: int = 6) -> list[Any]:
    """Everything that stands under `key`, outermost first."""
    if levels == 0 or not isinstance(value, (dict, list)):
        return []
    own = [value[key]] if isinstance(value, dict) and key in value else []
    inner = value.values() if isinstance(value, dict) else value
    return own + [found for item in inner for found in _find(item, key, levels - 1)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
