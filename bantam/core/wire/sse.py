"""Server-sent events: bytes in any pieces -> the `data` of each event (WHATWG HTML, section 9.2.6).

Bytes are split, never text: a line ends at CR, LF or CRLF and nowhere else (`str.splitlines` also cuts
at U+2028, which is legal inside JSON), and only whole events are decoded, so no character is ever cut.

The names of events are not told, but for one: the words of an event named `error` are given as the error
object that other servers send, for plain words alone say nothing.
"""

import json
import re

from bantam.core.base import rope

Tail = tuple[bytes, ...]
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


def feed(tail: Tail, data: bytes) -> tuple[Tail, list[str]]:
    """What is left for the next call, and the payloads of the events that `data` completed.

    Unfinished bytes are kept as they came, so a CR whose LF comes later needs no care: behind a whole
    event the late LF is an empty line.
    """
    seam = (tail[-1][-3:] if tail else b"") + data
    if not (b"\n\n" in seam if b"\r" not in seam else _BLANK_LINE.search(seam)):
        return rope.add(tail, data), []
    whole = b"".join((*tail, data))
    blocks = whole.split(b"\n\n") if b"\r" not in whole else _BLANK_LINE.split(whole)
    last = blocks.pop()
    return ((last,) if last else ()), [text for block in blocks if (text := _payload(block))]


def finish(tail: Tail) -> list[str]:
    """The payload of an unfinished last event: many servers stop short of the blank line."""
    return [text for text in [_payload(b"".join(tail))] if text]


def _payload(block: bytes) -> str:
    if block.startswith(b"data:") and b"\n" not in block and b"\r" not in block:
        return block[5:].decode(errors="replace").strip()  # the common case, and the only fast one
    lines = [line.removeprefix(_BOM) for line in _LINE_END.split(block)]
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:") or line == b"data")
    text = data.decode(errors="replace").strip()
    is_error = any(line.startswith(b"event:") and line[6:].strip() == b"error" for line in lines)
    return json.dumps({"error": text}) if is_error and text and text[0] not in "{[" else text
