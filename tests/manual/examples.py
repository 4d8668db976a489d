"""The pages that users read, and the blocks of code that stand in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bantam.host import topics
from tests.root import ROOT

README = ROOT / "README.md"
PAGES = (README, *sorted(topics.MANUAL.glob("*.md")))


class Block(NamedTuple):
    """Some code: where it begins, its language, its text. What is indented is lines for a shell."""

    where: str
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """All of a page, in order. Raises AssertionError for one that is neither fenced with a language nor indented."""
    lines = iter(enumerate(page.read_text().splitlines(), 1))
    for number, line in lines:
        if line.startswith("```"):
            assert re.fullmatch("```[a-z]+", line), f"{page.name}:{number} has no language"
            inside = []
            for _, held in lines:
                if held == "```":
                    break
                inside.append(held)
            yield Block(f"{page.name}:{number}", line[3:], "\n".join(inside) + "\n")
        elif line.startswith("   "):
            assert re.match(" {4}\\S", line), f"{page.name}:{number} is neither indented by four nor by two"
            yield Block(f"{page.name}:{number}", "line", line.strip())


def prose(page: Path) -> str:
    """A page without its blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"^ {4}.*$", "", text, flags=re.M)


def inline(page: Path) -> list[str]:
    """What stands between backticks in the prose of a page, be it broken between two lines."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose(page))]


def section(name: str, title: str) -> str:
    """A part of a topic, by its heading."""
    return topics.manual()[name].split(f"\n## {title}\n")[1].split("\n## ")[0]
