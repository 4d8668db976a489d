"""A page of the manual, whose lines were ended by hand -> its paragraphs, list items and rows, for any width.

The pages are our own, so this knows what is in them and no more of Markdown: prose and items of lists go on in lines
with the indent of their words; code, headings and rows of tables are lines of their own.
"""

import re
from collections.abc import Iterator

Piece = tuple[str, str] | str
"""What a line began: a head and the words behind it, which may go on; or a line of its own."""

_FENCE = "```"
_ITEM = r"([*-] |\d+\. )(.+)"
_CELLS = r"(\|.*?\| )(.*\S) *\|"  # of a table: the first cell, and the others
_APART = r"( +\S.*? {2,})(\S.*)"  # a name and what it is; a command and a comment
_RULE = r"\|[|\s-]+"  # below a table's head


def pieces(page: str) -> list[Piece]:
    """What the page is made of, wherever its lines ended."""
    found: list[Piece] = []
    for line, is_code in _coded(page.split("\n")):
        last = found[-1] if found else ""
        if not isinstance(last, str) and not is_code and _goes_on(last[0], line):
            found[-1] = last[0], f"{last[1]} {line.strip(' ')}"
        else:
            found.append(line if is_code else _begun(line))
    return found


def _coded(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is between fences or one itself."""
    inside = False
    for line in lines:
        fence = line.startswith(_FENCE)
        yield line, inside or fence
        inside ^= fence


def _begun(line: str) -> Piece:
    """What a line begins: an item of a list, a row, prose, or nothing that goes on."""
    if re.fullmatch(_RULE, line):
        return re.sub("-+", "---", line)
    found = re.fullmatch(_ITEM, line) or re.fullmatch(_CELLS, line) or re.fullmatch(_APART, line)
    if found:
        return found[1], re.sub(" {2,}", " ", found[2]) if line.startswith("|") else found[2]
    return ("", line) if re.match(r"[^\s#|]", line) else line


def _goes_on(head: str, line: str) -> bool:
    """Whether a line is more of what the one before began with this head."""
    indent = len(line) - len(line.lstrip(" "))
    begins = re.match(rf"[#|]|{_ITEM}", line)
    return bool(line) and begins is None and indent == len(head)
