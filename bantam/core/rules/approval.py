"""Which commands run, which ask first and which never run: `approve=` of model.cfg as data.

`never`: everything runs. `ask`: everything asks. Otherwise rules, the first that matches wins; what no rule
matches asks. A rule is `allow`, `ask` or `deny` and the words of one simple command:

* `*` inside a word is any text; `*` as a word is any number of words, also none: `git *` matches `git`, too;
* each simple command of a line is judged by itself, and the strictest decides (deny, ask, allow);
* `ask` and `deny` know a program by its name (`rm *` means `/bin/rm` and `RM`), and look past assignments and into
  what `sudo`, `sh -c` and the like run. Where they may match but only the running shell knows, it asks;
* `allow` takes the words as they are, and does not match a command that a redirection has write a file. Behind an
  assignment it matches only if its words say so (`allow CI=1 make *`). `allow *` is free of this;
* what cannot be read asks, unless there is a `deny *`; what runs nothing is allowed;
* `allow "TEXT"` with a JSON string allows exactly this whole command line, whatever is in it.

Rules keep accidents away. They know nothing of what a program does with its arguments, so they are no sandbox.
"""

import json
import re
from enum import StrEnum
from typing import assert_never

from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass
from bantam.core.base.texts import safe
from bantam.core.rules.shellparts import Part, Unclear, Word, Words, shown
from bantam.core.rules.shellwords import find
from bantam.core.rules.wrappers import name


class Decision(StrEnum):
    """In order of strictness."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True)
class Rule:
    """A decision for each simple command that the words match."""

    decision: Decision
    pattern: tuple[str, ...]


@dataclass(frozen=True)
class Exactly:
    """Allow this command line, letter by letter."""

    command: str


@dataclass(frozen=True)
class Never:
    """`approve=never`: it never asks."""


@dataclass(frozen=True)
class Always:
    """`approve=ask`: it always asks."""


@dataclass(frozen=True)
class Rules:
    """At least one; what none of them matches asks."""

    rules: tuple[Rule | Exactly, ...]


Policy = Never | Always | Rules


@dataclass(frozen=True)
class Verdict:
    """A decision, the part of the command that it is about, and why: a rule, or what is unclear."""

    decision: Decision
    part: str
    why: str


_ORDER = (*Decision,)
_ALL = ("*",)
_EXACT = re.compile(r'\s*allow\s*("(?:[^"\\]|\\.)*")\s*(?:;|\Z)', re.S)
_UNFIT = re.compile(r"[\"'\\`$|&<>(){}#?\x00-\x1f\x7f]")


def parse(text: str) -> Policy | Problem:
    """The policy of a value of `approve`; a problem names the rule that is wrong."""
    if text.strip() in ("", "never"):
        return Never()
    if text.strip() == "ask":
        return Always()
    rules: list[Rule | Exactly] = []
    rule: Rule | Exactly | Problem
    at = 0
    while at < len(text):
        if match := _EXACT.match(text, at):
            rule = _exact(match[1], len(rules) + 1)
            at = match.end()
        else:
            piece = text[at:].partition(";")[0]
            at += len(piece) + 1
            if not piece.strip():
                continue
            rule = _rule(piece, len(rules) + 1)
        if isinstance(rule, Problem):
            return rule
        rules.append(rule)
    return Rules(tuple(rules)) if rules else Problem("approve: there is no rule; write never, ask or rules")


def render(policy: Policy) -> str:
    """The value of `approve` that gives this policy again, in one line."""
    match policy:
        case Never():
            return "never"
        case Always():
            return "ask"
        case Rules(rules):
            return "; ".join(map(written, rules)) or "ask"
        case never:
            assert_never(never)


def written(rule: Rule | Exactly) -> str:
    match rule:
        case Rule(decision, pattern):
            return f"{decision} {' '.join(pattern)}"
        case Exactly(command):
            return f"allow {json.dumps(command)}"
        case never:
            assert_never(never)


def judge(policy: Policy, command: str) -> Verdict:
    """What is to be done with a command line: the first of its strictest verdicts."""
    return max(verdicts(policy, command), key=_strictness)


def verdicts(policy: Policy, command: str) -> tuple[Verdict, ...]:
    """One for each part of the command that is judged, at least one."""
    match policy:
        case Never():
            return (Verdict(Decision.ALLOW, shown(command), "approve=never"),)
        case Always():
            return (Verdict(Decision.ASK, shown(command), "approve=ask"),)
        case Rules(rules):
            here = tuple(rule for rule in rules if isinstance(rule, Rule) or rule.command == command)
            found = [
                _unclear(here, part) if isinstance(part, Unclear) else _judged(here, part) for part in find(command)
            ]
            nothing = Verdict(Decision.ALLOW, shown(command), "it runs nothing")
            return tuple(verdict for verdict in found if verdict is not None) or (nothing,)
        case never:
            assert_never(never)


def explain(policy: Policy, command: str) -> str:
    """What the policy does with a command, in lines for people: the decision, then part by part, strict ones first."""
    found: dict[str, Verdict] = {}
    for verdict in sorted(verdicts(policy, command), key=_strictness, reverse=True):
        found.setdefault(verdict.part, verdict)
    strictest, *_ = found.values()
    shown = (f"  {verdict.decision:<5}  {verdict.part}  ({verdict.why})" for verdict in found.values())
    return safe("\n".join([strictest.decision, *shown]))


def remember(policy: Policy, command: str) -> Policy:
    """The policy that also allows exactly this command line and changes nothing else that runs."""
    if judge(policy, command).decision is Decision.ALLOW:
        return policy
    rules = policy.rules if isinstance(policy, Rules) else ()
    return Rules((Exactly(command), *rules))


# --- reading rules


def _exact(quoted: str, number: int) -> Exactly | Problem:
    try:
        return Exactly(json.loads(quoted, strict=False))
    except ValueError:
        return Problem(f"approve: rule {number}, allow {quoted[:60]!r}: this is no JSON string")


def _rule(piece: str, number: int) -> Rule | Problem:
    where = f"approve: rule {number}, {piece.strip()[:60]!r}"
    decision, *pattern = piece.split()
    if decision not in _ORDER:
        return Problem(f"{where}: a rule begins with allow, ask or deny")
    if not pattern:
        return Problem(f"{where}: the words of a command are missing, such as {decision} git *")
    if unfit := _UNFIT.search(" ".join(pattern)):
        return Problem(
            f'{where}: {unfit[0]!r} cannot be in a rule, which is plain words and *, or allow "TEXT" for one command'
        )
    return Rule(Decision(decision), tuple(pattern))


# --- judging


def _strictness(verdict: Verdict) -> int:
    return _ORDER.index(verdict.decision)


def _judged(rules: tuple[Rule | Exactly, ...], part: Part) -> Verdict | None:
    """The verdict of rules, each `Exactly` of which fits; None if none is about what `anywhere` could mean."""
    doubt: Rule | None = None
    for rule in rules:
        if isinstance(rule, Exactly):
            return Verdict(Decision.ALLOW, part.shown, written(rule))
        matches = _allows(rule, part) if rule.decision is Decision.ALLOW else _concerns(rule, part)
        if matches is None:
            doubt = doubt or rule
        elif matches and (rule.decision is Decision.DENY or doubt is None):
            return Verdict(rule.decision, part.shown, written(rule))
        elif matches:
            break
    if doubt is not None:
        return Verdict(Decision.ASK, part.shown, f"this may be a case of: {written(doubt)}")
    if part.anywhere:
        return None
    return Verdict(Decision.ASK, part.shown, "it writes a file" if part.writes else "no rule is about it")


def _unclear(rules: tuple[Rule | Exactly, ...], part: Unclear) -> Verdict:
    for rule in rules:
        if isinstance(rule, Exactly):
            return Verdict(Decision.ALLOW, part.shown, written(rule))
        if rule == Rule(Decision.DENY, _ALL):
            return Verdict(Decision.DENY, part.shown, written(rule))
    return Verdict(Decision.ASK, part.shown, part.why)


def _allows(rule: Rule, part: Part) -> bool:
    if part.anywhere:
        return False
    if rule.pattern == _ALL:
        return True
    return not part.writes and _match(rule.pattern, (*part.assigned, *part.words), None) is True


def _concerns(rule: Rule, part: Part) -> bool | None:
    """Whether an `ask` or a `deny` is about a command; None: only the running shell knows."""
    if part.anywhere:
        return _match((*_ALL, *rule.pattern), part.words, 1)
    found = _match(rule.pattern, part.words, 0)
    if found is True or not part.assigned:
        return found
    return _match(rule.pattern, (*part.assigned, *part.words), None) or found


def _match(pattern: tuple[str, ...], words: Words, named: int | None) -> bool | None:
    """Whether a pattern matches all words; None: it depends on what the unknown ones become.

    `named`: which word of the pattern is a program, to be known by its name. The pattern's words are the states
    of an automaton, so a long command takes no longer than it is long.
    """
    states = _open(pattern, {0})
    doubt = False
    for word in words:
        if not states:
            break
        if pattern[-1] == "*" and len(pattern) - 1 in states:
            return True
        doubt = doubt or not word.known
        stay = {at for at in states if at < len(pattern) and pattern[at] == "*"}
        step = {
            at + 1
            for at in states - stay
            if at < len(pattern) and word.known and _is_like(pattern[at], word, at == named)
        }
        states = _open(pattern, stay | step)
    if len(pattern) in states:
        return True
    return None if doubt else False


def _open(pattern: tuple[str, ...], states: set[int]) -> set[int]:
    """With the states that are reached without a word: a `*` may stand for none."""
    for at, word in enumerate(pattern):
        if word == "*" and at in states:
            states.add(at + 1)
    return states


def _is_like(pattern: str, word: Word, is_name: bool) -> bool:
    if is_name:
        pattern = pattern.lower()
        return _fits(pattern, word.text.lower()) or _fits(pattern, name(word.text))
    return _fits(pattern, word.text)


def _fits(pattern: str, text: str) -> bool:
    """Whether a text is a pattern with something for each `*`."""
    first, *others = pattern.split("*")
    if not others:
        return first == text
    *middle, last = others
    at = len(first) if text.startswith(first) else len(text) + 1
    for piece in middle:
        found = text.find(piece, at)
        at = found + len(piece) if found >= 0 else len(text) + 1
    return len(text) - at >= len(last) and text.endswith(last)
