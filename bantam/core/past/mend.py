"""What happens behind a damaged line of a log: the same as anywhere, until something shows what is missing.

Whatever a line told may have had no effect, so the session just goes on. An answer to a request that it has not made
shows that it had: the turn then ends as if interrupted, and goes on with what was asked there. Requests are numbered in
order, so what comes behind says by itself where the numbers stand, and its results find their calls. A turn that is
complete behind the damage is there as it was; of one with a gap, what stands before the gap and what begins behind it.
"""

from collections.abc import Sequence

from bantam.core import tree
from bantam.core.base.record import replace
from bantam.core.effects import Effect
from bantam.core.events import (
    Answer,
    Cleared,
    CompactAsked,
    Event,
    Id,
    Interrupted,
    Loaded,
    ModelChunks,
    ModelEnded,
    ModelFailed,
    SummaryAsked,
    UserSaid,
)
from bantam.core.state import Session, waiting

GAP = "[something is missing here: the log of this run was damaged]"


def ahead(events: Sequence[Event | None]) -> list[Id | None]:
    """For each event the id of the next answer, as far as only what the user says lies between; None is a lost line."""
    found: list[Id | None] = []
    next_id = None
    for event in reversed(events):
        found.append(next_id)
        if isinstance(event, Answer):
            next_id = event.id
        elif not isinstance(event, UserSaid):
            next_id = None
    return found[::-1]


def step(session: Session, event: Event, now: float, coming: Id | None) -> tuple[Session, tuple[Effect, ...], bool]:
    """The session after an event behind a damaged line, what is to be done, and whether the event meant anything.

    `coming` is the id of the next answer, where `ahead` knows it.
    """
    effects: tuple[Effect, ...] = ()
    shown = _shows(session, event, coming)
    if shown is not None:
        session, effects = _closed(session, event, shown, now)
    meant = not isinstance(event, Answer) or _is_awaited(session, event.id)
    session, more = tree.step(session, event, now)
    return session, effects + more, meant


def _shows(session: Session, event: Event, coming: Id | None) -> Id | None:
    """The request that shows that something is missing before an event; () if only the event itself does."""
    is_idle = tree.idle(session)
    match event:
        case Cleared() | Loaded():  # which happen between turns
            return None if is_idle else ()
        case CompactAsked() | SummaryAsked() if not is_idle:
            return coming or ()
        case UserSaid() | CompactAsked() | SummaryAsked():
            follows = is_idle and coming == (session.agents[tree.ROOT].serial + 1,)
            return None if coming is None or follows or not _is_unasked(session, coming) else coming
        case _:
            return event.id if isinstance(event, Answer) and _is_unasked(session, event.id) else None


def _closed(session: Session, event: Event, id: Id, now: float) -> tuple[Session, tuple[Effect, ...]]:
    """The session with its turn ended, where the request `id` can come next."""
    queued = session.agents[tree.ROOT].queued
    session, effects = tree.step(session, Interrupted(), now)
    is_call = isinstance(event, (ModelChunks, ModelEnded, ModelFailed))
    begins = len(id) == 1 and (is_call or not isinstance(event, Answer))
    root = session.agents[tree.ROOT]
    root = replace(root, serial=max(root.serial, id[0] - begins) if id else root.serial)
    session = replace(session, agents=session.agents.put(tree.ROOT, root))
    for said in queued or ((UserSaid(GAP),) if begins and is_call else ()):
        session, more = tree.step(session, said, now)
        effects += more
    if queued and not isinstance(event, (UserSaid, Answer)):  # it happened between turns
        session, more = tree.step(session, Interrupted(), now)
        effects += more
    return session, effects


def _is_unasked(session: Session, id: Id) -> bool:
    """Whether a request has a number that its agent, or the one that would have spawned it, has not reached."""
    known = next((n for n in range(len(id) - 1, -1, -1) if id[:n] in session.agents), None)
    return known is not None and id[known] > session.agents[id[:known]].serial


def _is_awaited(session: Session, id: Id) -> bool:
    agent = session.agents.get(id[:-1])
    return agent is not None and id in waiting(agent)
