"""`bantam policy`: what the rules of this folder would do with a command, or with those of a past run."""

import os
import re
from collections.abc import Sequence

from bantam.core.base import texts
from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.effects import AskApproval, Reason, RunShell
from bantam.core.events import Id
from bantam.core.past import history
from bantam.core.rules import approval, credentials
from bantam.core.rules.approval import Decision, Policy
from bantam.core.rules.shellparts import shown
from bantam.core.words import status
from bantam.core.words.wrap import Part, Row
from bantam.front.show.tell import complain, tell
from bantam.host import setup
from bantam.host.place import Place
from bantam.shell.disk import files, log
from bantam.shell.disk.store import Store

STATUS = {
    Decision.ALLOW: status.DONE,
    Decision.DENY: status.FAILED,
    Decision.ASK: status.of(Reason.UNAPPROVED),  # as a run ends where nobody can be asked
}
WORDS = {Decision.ALLOW: "allowed", Decision.ASK: "would ask", Decision.DENY: "denied"}


def run(words: Sequence[str], past: str | None, options: Sequence[str], place: Place) -> int | Problem:
    """Judge the one command, or those of the run with the log `past`; the exit status is that of the strictest."""
    if len(words) != (1 if past is None else 0):
        return Problem("bantam policy takes one command, in quotes, or --log ID")
    environ = {name: value for name, value in place.environ.items() if name != credentials.VARIABLE}
    found = setup.read(replace(place, environ=environ), options)
    if isinstance(found, credentials.Untrusted):  # never without a key
        return Problem(found.text)
    if isinstance(found, Problem):
        return found
    rules = approval.parse(found.config.approve)
    if isinstance(rules, Problem):
        return rules
    if past is None:
        command = os.fsencode(words[0]).decode(errors="replace")
        told = tuple(map(_row, approval.explain(rules, command).split("\n")))
        return tell(told, STATUS[approval.judge(rules, command).decision])
    commands = _commands(past, place)
    return commands if isinstance(commands, Problem) else _judged(rules, commands)


def _commands(wanted: str, place: Place) -> tuple[str, ...] | Problem:
    """The commands of a past run that ran or asked, in order."""
    store = Store(place.home, place.clock.wall)
    id = store.find(wanted, logs_only=True)
    if isinstance(id, Problem):
        return Problem(f"--log: {id.text}")
    path = store.logs / f"{id}.jsonl"
    found: dict[Id, str] = {}
    try:
        for past in history.pasts(files.lines(files.read_regular(path))):
            for effect in past.effects:
                if isinstance(effect, RunShell | AskApproval):  # of the same id, where one became the other
                    found[effect.id] = effect.command
    except (OSError, ValueError, TypeError, RecursionError) as why:
        return Problem(f"--log: {log.unreadable(path, why)}")
    if past.damage.count:
        complain(f"the log {id} {past.problem}")
    return tuple(found.values())


def _judged(rules: Policy, commands: Sequence[str]) -> int:
    verdicts = [approval.judge(rules, command) for command in commands]
    rows = [
        Row(f"{verdict.decision:<5}  ", texts.safe(f"{shown(command)}  ({verdict.why})"))
        for command, verdict in zip(commands, verdicts, strict=True)
    ]
    counts = {word: sum(verdict.decision is decision for verdict in verdicts) for decision, word in WORDS.items()}
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    summary = f"{len(rows)} command{'' if len(rows) == 1 else 's'}" + (f": {told}" if told else "")
    strictest = max((verdict.decision for verdict in verdicts), key=[*Decision].index, default=Decision.ALLOW)
    return tell((*rows, summary), STATUS[strictest])


def _row(line: str) -> Part:
    """A line of an explanation: a part of the command behind what becomes of it."""
    head = re.match("  [a-z]+ +", line)
    return line if head is None else Row(head[0], line[head.end() :])
