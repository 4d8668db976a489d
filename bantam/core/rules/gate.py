"""What `approve` says of a tool call before it runs. The policy is imported only where there is one."""

from functools import cache

from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass
from bantam.core.tools.toolbox import Action, Unusable, denied

SETTING_CHARS_MAX = 500  # of a line for model.cfg that is still worth showing


def judged(action: Action, line: str | None, approve: str) -> tuple[Action, str]:
    """What may become of a call, and why the user is to be asked first; "" for no question.

    `line` says the call in the words that rules are about; None for what is not judged.
    """
    if line is None or approve == "never":
        return action, ""
    verdict = _verdict(approve, line)
    if verdict.decision == "deny":
        return Unusable(denied(verdict.why)), ""
    return action, verdict.why if verdict.decision == "ask" else ""


def needed(approve: str, command: str) -> str:
    """One line: which command did not run, by which rule, and what to write so that it does."""
    from bantam.core.rules import approval
    from bantam.core.rules.shellparts import shown

    read = approval.parse(approve)
    setting = approval.render(approval.remember(approval.Always() if isinstance(read, Problem) else read, command))
    what = f"approve={setting}" if len(setting) <= SETTING_CHARS_MAX else "a rule of approve that matches it"
    why = f"it needs an approval ({_verdict(approve, command).why}), and there is nobody to ask"
    return f"not run: {shown(command)}: {why}; to allow it, write into model.cfg: {what}"


@dataclass(frozen=True)
class Verdict:
    decision: str
    why: str


@cache
def _verdict(approve: str, command: str) -> Verdict:
    from bantam.core.rules import approval

    read = approval.parse(approve)
    if isinstance(read, Problem):  # it was checked when it was read; what cannot be read asks
        return Verdict("ask", read.text)
    found = approval.judge(read, command)
    return Verdict(str(found.decision), found.why)
