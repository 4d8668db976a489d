"""Outputs -> the events of `--json`: JSON objects for programs. A contract: see the manual and `events.schema.json`.

An event's time is that of what caused it, on the run's own clock and as the log has it: whoever folds the same
log again gets the same lines. Within one VERSION types and members are only added.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, assert_never

from bantam.core.base.record import dataclass, field, replace
from bantam.core.base.texts import clean
from bantam.core.effects import (
    ANSWERED,
    CallStarted,
    Emit,
    Notice,
    Requesting,
    ResultDelta,
    ResultEnded,
    ResultStarted,
    Retrying,
    Returned,
    Spent,
    Summarised,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
)
from bantam.core.events import CompactAsked, Event, Id, SummaryAsked, UserSaid, says
from bantam.core.messages import NESTING_MAX, json_object, map_text, nesting
from bantam.core.rules import limits

VERSION = 1
USAGE = "usage"  # the reason of a run that wrong usage or configuration ended; the others are those of a turn, or
DIVERGED = "diverged"  # of a replay that differs from its tape

Json = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """What is known of a run so far."""

    time: float = 0.0
    """Seconds since the start, when the last event happened."""
    prompted: bool | None = None
    """Whether the turn that runs answers a prompt, and not `/compact` or `/save`; None between turns."""
    halves: Mapping[tuple[Id, str], str] = field(default_factory=dict)
    """Of a stream of text that ended within a character: its high surrogate, whose low one may come next."""
    returned: tuple[str, ...] = ()
    """What was said in this turn and not told the model."""
    answer: str | None = None
    """To the last prompt, if that turn ended well."""
    spent: Spent = field(default_factory=Spent)
    """In all turns that ended."""
    cost_usd: float | None = 0.0
    """Of all turns that ended; None where that of one is unknown."""


def heard(report: Report, event: Event, now: float) -> Report:
    """The report once an event has happened, before its outputs are told."""
    report = replace(report, time=max(report.time, now))
    match event:
        case UserSaid() as said if report.prompted is None and says(said):
            return replace(report, prompted=True)
        case CompactAsked() | SummaryAsked() if report.prompted is None:
            return replace(report, prompted=False)
        case _:
            return report


def told(report: Report, emit: Emit) -> tuple[Report, list[Json]]:
    """The events that one output makes: none, one, or two."""
    who, output = emit.who, emit.output
    match output:
        case ThoughtDelta(text):
            return _flow(report, who, "reasoning", text)
        case TextDelta(text):
            return _flow(report, who, "text", text)
        case TurnEnded():
            return _turn_ended(report, output)
        case ResultStarted() | ResultDelta() | Summarised():  # the whole result comes, and `/save` says the summary
            return report, []
        case Returned(text):
            return replace(report, returned=(*report.returned, text)), []
        case Requesting():
            event = _event(report, "request", who)
        case CallStarted(call_id, name, text):
            event = _event(report, "tool.call", who, id=call_id, name=name, arguments=_object(text))
        case ResultEnded(call_id, name, text, error):
            event = _event(report, "tool.result", who, id=call_id, name=name, output=text, error=error)
        case Retrying(why, seconds, attempt, attempts_max):
            event = _event(
                report, "retry", who, message=why, seconds=seconds, attempt=attempt, attempts_max=attempts_max
            )
        case Notice(text, error):
            event = said(report, text, error, who)
        case never:
            assert_never(never)
    report, events = _settled(report, who)
    return report, [*events, event]


def started(version: str, created: str, model: str | None) -> Json:
    """The first event. `created` is a wall-clock stamp, `model` is None where the configuration could not be read."""
    first = Report()
    return _event(first, "run.start", (), version=VERSION, bantam=version, created=created, model=model)


def said(report: Report, text: str, error: bool, who: Id = ()) -> Json:
    """One line for the user, from the core or from a front end."""
    return _event(report, "error" if error else "notice", who, message=text)


def ended(report: Report, reason: str, code: int, session: str | None) -> Json:
    """The last event. `code` is the exit status, `session` the id of the run's log."""
    told = {
        "reason": str(reason),
        "exit": code,
        "answer": report.answer,
        "usage": _usage(report.spent, report.cost_usd),
    }
    return _event(report, "run.end", (), **told, session=session)


def line(event: Json) -> str:
    """The event as one line, with its end. What a terminal would act on is escaped, which leaves the data equal."""
    text = json.dumps(map_text(event, clean), ensure_ascii=False, separators=(",", ":"))
    return re.sub(_UNSAFE, lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


# C1 controls, line separators that are none in JSON, direction marks; JSON itself escapes what is below U+0020
_UNSAFE = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"


def _event(report: Report, kind: str, who: Id, **members: Any) -> Json:
    return {"type": kind, "time": report.time, "agent": list(who), **members}


def _object(text: str) -> Json | str:
    """A call's arguments as the object that they are, else as the text that they are."""
    found = json_object(text)
    return text if found is None or nesting(found) > NESTING_MAX else found


def _usage(spent: Spent, cost_usd: float | None) -> Json:
    tokens = {"tokens_in": spent.tokens_in, "tokens_out": spent.tokens_out, "tokens_cached": spent.tokens_cached}
    return {"calls": spent.calls, **tokens, "cost_usd": None if cost_usd is None else round(cost_usd, 9)}


def _flow(report: Report, who: Id, kind: str, text: str) -> tuple[Report, list[Json]]:
    """A piece of a text, in whole characters."""
    text = report.halves.get((who, kind), "") + text
    held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    others = {key: half for key, half in report.halves.items() if key != (who, kind)}
    report = replace(report, halves={**others, (who, kind): held} if held else others)
    text = clean(text.removesuffix(held))
    return report, [_event(report, kind, who, text=text)] if text else []


def _settled(report: Report, *agents: Id) -> tuple[Report, list[Json]]:
    """No more text comes of these agents' answers: what is half is told, as the mark of what cannot be read."""
    half = [key for key in report.halves if key[0] in agents]
    events = [_event(report, kind, who, text="\ufffd") for who, kind in half]
    return replace(report, halves={k: v for k, v in report.halves.items() if k not in half}) if half else report, events


def _turn_ended(report: Report, turn: TurnEnded) -> tuple[Report, list[Json]]:
    report, events = _settled(report, *(who for who, _ in report.halves))
    answer = turn.text if turn.reason in ANSWERED and report.prompted else None
    usage, returned = _usage(turn.spent, turn.cost_usd), list(report.returned)
    events.append(_event(report, "usage", (), **usage))
    events.append(
        _event(report, "turn.end", (), reason=str(turn.reason), answer=answer, usage=usage, returned=returned)
    )
    total = limits.add(report.spent, turn.spent)
    last = answer if report.prompted else report.answer
    costs = report.cost_usd, turn.cost_usd
    usd = None if costs[0] is None or costs[1] is None else costs[0] + costs[1]
    return replace(report, prompted=None, returned=(), answer=last, spent=total, cost_usd=usd), events
