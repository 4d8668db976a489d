"""What a user's line is before anybody acts on it: a slash command or a prompt, and what joins a prompt."""

import json
import re
from collections.abc import Mapping
from typing import Any


def slash(line: str) -> tuple[str, str] | None:
    """The name of a command, in lower case, and what stands behind it; None for text.

    A command's first word is `/` and letters, so that a path is none.
    """
    words = line.split(None, 1)
    if not words or not re.fullmatch(r"/[A-Za-z]+", words[0]):
        return None
    return words[0].lower(), words[1].strip() if len(words) > 1 else ""


def with_piped(prompt: str, piped: str) -> str:
    """A prompt joined by what was piped in, as a block that the model can tell from it."""
    return f"{prompt}\n\n<stdin>\n{piped}\n</stdin>" if piped.strip() else prompt


def with_schema(prompt: str, schema: Mapping[str, Any]) -> str:
    """A prompt joined by the wish for JSON that satisfies a schema, for servers that cannot be asked; {} for none."""
    wish = "Answer with JSON alone, without a code fence or any other text. It must satisfy this JSON Schema:"
    return f"{prompt}\n\n{wish}\n{json.dumps(schema, ensure_ascii=False)}" if schema else prompt


def is_private(line: str) -> bool:
    """Whether a typed line holds the key and must not be kept in the history or the log."""
    return bool(re.match(r"\s*/cfg\s+api_key\b", line, re.I))
