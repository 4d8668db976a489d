"""The manual: its topics, and the way to one for somebody who does not know its name.

A topic is a Markdown file of `bantam/manual`: `# Title`, a line that says what it is about, then the text.
Whoever shows it (a subcommand, the chat) gets text, or one line about why there is none.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bantam.core.base import texts
from bantam.core.base.problem import Problem

MANUAL = Path(__file__).parent.parent / "manual"
WANTED_CHARS_MAX = 60  # of what was asked for, in what is said about it
BEGINNING_CHARS_MIN = 3  # of a name that is meant by a part of it
NEAR, SIMILAR = 0.8, 0.6  # of 1 for the same word: before the texts are searched, and when nothing was found

Manual = Mapping[str, str]
"""Name -> text, in the order of names."""


def manual() -> Manual:
    """All topics, as the package has them."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(MANUAL.glob("*.md"))}


def text(wanted: str) -> str | Problem:
    """What `help WANTED` shows: a topic, where others speak of it, or the list for nothing."""
    return found(manual(), wanted)


def found(topics: Manual, wanted: str) -> str | Problem:
    """A topic by its name, the topics that speak of something else, or a line with the nearest name."""
    words = wanted.lower().split()
    name = "-".join(words).removesuffix(".md")
    if not words:
        return listed(topics)
    if name in topics:
        return topics[name]
    shown = texts.safe(" ".join(words)[:WANTED_CHARS_MAX])
    near = nearest([*topics], name, NEAR)
    if near:
        return Problem(f"there is no topic {shown}; did you mean {near}?")
    places = search(topics, words)
    if places:
        told = "\n\n".join(f"{topic}\n  {line}" for topic, line in places.items())
        return f"There is no topic {shown}. These speak of it:\n\n{told}\n"
    near = nearest([*topics], name, SIMILAR)
    hint = f"did you mean {near}?" if near else "bantam help lists them"
    return Problem(f"there is no topic {shown}, and none speaks of it; {hint}")


def listed(topics: Manual) -> str:
    """Every topic with its line, and how to go on."""
    width = max(map(len, topics), default=0)
    rows = "\n".join(f"  {name:<{width}}  {about(text)}" for name, text in topics.items())
    return f"Topics of the manual:\n\n{rows}\n\nbantam help TOPIC shows one; any other word is looked for in all.\n"


def about(text: str) -> str:
    """The line below the title."""
    return next((line for line in text.splitlines()[1:] if line), "")


def nearest(names: Sequence[str], wanted: str, least: float) -> str:
    """The one name that begins with what is wanted, or that it begins with, else the most similar; "" for none."""
    parts = [name for name in names if name.startswith(wanted) or wanted.startswith(name)]
    if len(parts) == 1 and len(wanted) >= BEGINNING_CHARS_MIN:
        return parts[0]
    return next(iter(difflib.get_close_matches(wanted, names, 1, least)), "")


def search(topics: Manual, words: Sequence[str]) -> Mapping[str, str]:
    """The topics that have the words, each with the first line where they stand.

    Words together before apart, whole before as beginnings of others. Those that are about them come first, then
    those that have them most often.
    """
    phrase = r"\s+".join(map(re.escape, words))
    for ending in (r"(?![\w-]|\.\w)", ""):
        places = _matches(topics, phrase, ending)
        if places:
            return places
    return _apart(topics, words)


def _matches(topics: Manual, phrase: str, ending: str) -> Mapping[str, str]:
    pattern = re.compile(rf"(?<![\w-]){phrase}{ending}", re.I)
    hits = {name: [*pattern.finditer(text)] for name, text in topics.items()}

    def rank(name: str) -> tuple[bool, bool, int]:
        title, *_ = topics[name].splitlines()
        heads = name.replace("-", " "), f"{title} {about(topics[name])}"
        return pattern.search(heads[0]) is None, pattern.search(heads[1]) is None, -len(hits[name])

    best_first = sorted((name for name in hits if hits[name]), key=rank)
    return {name: _line(topics[name], hits[name][0].start()) for name in best_first}


def _apart(topics: Manual, words: Sequence[str]) -> Mapping[str, str]:
    """Topics that have all of the words somewhere, with the line that has most of them."""
    places = {}
    for name, text in topics.items():
        folded = text.lower()
        if all(word in folded for word in words):
            places[name] = max(text.splitlines(), key=lambda line: sum(word in line.lower() for word in words)).strip()
    return places


def _line(text: str, at: int) -> str:
    """The line that a place is in."""
    return text[text.rfind("\n", 0, at) + 1 : (text + "\n").index("\n", at)].strip()
