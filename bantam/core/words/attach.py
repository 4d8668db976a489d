"""A file that goes along with a message: bytes -> the part of a message that it becomes, or why it cannot.

What it is says its content and not its name: PNG, JPEG, GIF and WebP by the signatures of their standards, text by
being UTF-8 without a NUL. The limits are those of the wire: Anthropic takes 5 MB of a picture, others more.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from bantam.core.base.problem import Problem
from bantam.core.messages import image_part, text_part

IMAGE_BYTES_MAX = 5_000_000
TEXT_BYTES_MAX = 1_000_000
BYTES_MAX = max(IMAGE_BYTES_MAX, TEXT_BYTES_MAX)


def part(name: str, data: bytes) -> Mapping[str, Any] | Problem:
    """The content part of a file: a picture as a data URL (RFC 2397), text as a block that says its name."""
    kind = image_type(data)
    if kind is not None:
        if len(data) > IMAGE_BYTES_MAX:
            return too_large(name, "a picture", IMAGE_BYTES_MAX)
        return image_part(f"data:{kind};base64,{b64encode(data).decode()}")
    if len(data) > TEXT_BYTES_MAX:
        return too_large(name, "a text", TEXT_BYTES_MAX)
    if not data:
        return Problem(f"{name} is empty; nothing was attached")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return Problem(f"{name} is neither a picture (PNG, JPEG, GIF, WebP) nor UTF-8 text; nothing was attached")
    return text_part(block(name, text))


def image_type(data: bytes) -> str | None:
    """The media type of a picture, by its first bytes; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):  # PNG, 5.2
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):  # JPEG: SOI and the first marker
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":  # RFC 9649
        return "image/webp"
    return None


def block(name: str, text: str) -> str:
    """A text as a block that a model can tell from what is said about it; the text cannot close it."""
    fence = "file"
    while f"</{fence}" in text:
        fence += "-"
    title = name.replace('"', "'").replace("\n", " ")
    return f'<{fence} name="{title}">\n{text}' + ("" if text.endswith("\n") else "\n") + f"</{fence}>"


def too_large(name: str, what: str, most: int) -> Problem:
    return Problem(f"{name} is too large: {what} may have {most // 1_000_000} MB; nothing was attached")


def mentions(text: str) -> tuple[str, ...]:
    """The paths that a prompt names as `@path`: behind a blank or at the beginning, each once, in order.

    With blanks in it as `@"a path"`. A bare `@`, and one inside a word (an e-mail address), is text.
    """
    found: dict[str, None] = {}
    at = 0
    while (at := text.find("@", at)) >= 0:
        before, at = text[at - 1 : at], at + 1
        if before and not before.isspace():
            continue
        if text[at : at + 1] == '"':
            path = text[at + 1 :].partition('"')[0].partition("\n")[0]
        else:
            path = (text[at:].split(None, 1) or [""])[0] if not text[at : at + 1].isspace() else ""
        if path:
            found[path] = None
    return tuple(found)
