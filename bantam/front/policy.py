"""`bantam policy`: what the rules of this folder's `approve` do with a command, or would have done to a past run."""

import os
from collections import Counter
from collections.abc import Sequence

from bantam.core import history, policy, status, view
from bantam.core.config import Problem
from bantam.core.effects import AskApproval, RunShell
from bantam.core.policy import Decision
from bantam.front import setup
from bantam.shell import files
from bantam.shell.files import StoreError
from bantam.shell.store import Store, home

STATUS = {Decision.ALLOW: status.DONE, Decision.DENY: status.FAILED, Decision.ASK: status.UNAPPROVED}


def run(words: Sequence[str], options: Sequence[str], log: str | None) -> int | Problem:
    """Tell about one command, or about those of a log; returns the exit status."""
    rules = _rules(options)
    if isinstance(rules, Problem):
        return rules
    if log is not None and not words:
        return _past(rules, log)
    if log is not None or len(words) != 1:
        return Problem("bantam policy takes one command, quoted as a whole, or --log ID")
    _tell(policy.explain(rules, words[0]))
    return STATUS[policy.judge(rules, words[0]).decision]


def _rules(options: Sequence[str]) -> policy.Policy | Problem:
    found = setup.read(options, {})  # without any key there is nobody to trust
    if not isinstance(found, setup.Setup):
        return Problem(found.text)
    return policy.parse(found.config.approve)


def _past(rules: policy.Policy, wanted: str) -> int | Problem:
    store = Store(home())
    id = store.find(wanted, logs_only=True)
    if isinstance(id, Problem):
        return Problem(f"--log: {id.text}")
    path = store.logs / f"{id}.jsonl"
    counts: Counter[Decision] = Counter()
    try:
        for effect in history.effects(files.lines(files.read_regular(path))):
            if isinstance(effect, (RunShell, AskApproval)):
                verdict = policy.judge(rules, effect.command)
                counts[verdict.decision] += 1
                command = " ".join(effect.command.split())
                _tell(view.safe(f"{verdict.decision:<5}  {command}  ({verdict.why})"))
    except (OSError, ValueError, TypeError, RecursionError, StoreError) as problem:
        return Problem(f"cannot read {path}: {problem}")
    _tell(f"of {counts.total()} commands: " + ", ".join(f"{counts[decision]} {decision}" for decision in Decision))
    return status.DONE


def _tell(text: str) -> None:
    os.write(1, (text + "\n").encode(errors="replace"))
