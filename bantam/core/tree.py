"""All agents: routing by address, spawning, finishing, cancelling, accounting.

A child's end is its parent's result, so nothing outside the core has ever heard of a subagent. Knows
nothing of phases beyond what an agent waits for.
"""

from collections import deque

from bantam.core import loop, messages
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.base.trie import Trie
from bantam.core.effects import (
    BUDGETS,
    Cancel,
    Effect,
    Emit,
    Finish,
    Notice,
    Reason,
    Save,
    Spawn,
    Spent,
    TurnEnded,
    Unapproved,
    Withhold,
)
from bantam.core.events import (
    Answer,
    CompactAsked,
    ConfigChanged,
    Event,
    Id,
    Interrupted,
    Lost,
    ModelEnded,
    ModelFailed,
    SummaryAsked,
    ToolFinished,
    UserSaid,
    says,
)
from bantam.core.rules import gate, limits
from bantam.core.state import Agent, Calling, Idle, Session, waiting
from bantam.core.tools.table import BUILT_IN, Toolbox
from bantam.core.window import context

ROOT: Id = ()


def start(config: Config, system: str, toolbox: Toolbox = BUILT_IN) -> Session:
    """A session whose root has heard nothing but its system prompt."""
    return Session(config, system, Trie({ROOT: Agent(ROOT, (messages.system(system),))}), toolbox)


def step(session: Session, event: Event, now: float) -> tuple[Session, tuple[Effect, ...]]:
    """What an event at time `now` (seconds of any steady clock) makes of a session, and what is to be done.

    Total and deterministic: any event in any state gives the same answer each time, and none raises.
    """
    if isinstance(event, ConfigChanged):
        same = (event.config.endpoint, event.config.model) == (session.config.endpoint, session.config.model)
        return replace(session, config=event.config, withheld=session.withheld if same else frozenset()), ()
    if isinstance(event, Answer) and event.id in session.agents:  # a subagent's end is told in here alone
        return session, ()
    if _begins(event) and idle(session):
        session = replace(session, spent=Spent(), unapproved=frozenset(), begun=now)
    out: list[Effect] = []
    inbox: deque[tuple[Id, Event]] = deque([(_owner(event), event)])
    while inbox:
        path, event = inbox.popleft()
        agent = session.agents.get(path)
        if agent is None:  # cancelled meanwhile
            continue
        if _ends_call(agent, event):
            session = replace(session, spent=limits.add(session.spent, limits.charge(agent, session.config)))
        ctx = loop.Context(session.config, session.toolbox, session.withheld, session.spent, now - session.begun)
        agent, effects = loop.step(agent, event, ctx)
        session = replace(session, agents=session.agents.put(path, agent))
        for effect in effects:
            match effect:
                case Spawn(id, prompt):
                    child = Agent(id, (context.child_system(session.system),))
                    session = replace(session, agents=session.agents.put(id, child))
                    inbox.append((id, UserSaid(prompt)))
                case Cancel(id) if id in session.agents:
                    session, cancels = _cut(session, id)
                    out += cancels
                case Withhold(parameter):
                    session = replace(session, withheld=session.withheld | {parameter})
                case Finish() if path:
                    session, _ = _cut(session, path)
                    inbox.append((path[:-1], _result(path, effect)))
                case Unapproved(command):
                    if command not in session.unapproved:
                        why = gate.needed(session.config.approve, command)
                        out.append(Emit(path, Notice(why, error=True)))
                    session = replace(session, unapproved=session.unapproved | {command})
                case Finish(reason, text):
                    reason = Reason.UNAPPROVED if session.unapproved and reason is Reason.DONE else reason
                    usd = limits.known_cost_usd(session.config, session.spent)
                    out.append(Emit(ROOT, TurnEnded(reason, text, session.spent, usd)))
                    session = replace(session, total=limits.add(session.total, session.spent))
                case Save() if path:
                    pass  # a subagent's conversation ends with it
                case _:
                    out.append(effect)
    return session, tuple(out)


def idle(session: Session) -> bool:
    return session.agents[ROOT].phase == Idle()


def conversation(session: Session) -> messages.Messages:
    return session.agents[ROOT].messages


def outstanding(session: Session) -> frozenset[Id]:
    """The ids of all requests that the outside has not answered yet."""
    wanted = {id for agent in session.agents.values() for id in waiting(agent)}
    return frozenset(wanted - session.agents.keys())


def _owner(event: Event) -> Id:
    return event.id[:-1] if isinstance(event, Answer) else ROOT


def _begins(event: Event) -> bool:
    """Whether the event begins a turn of an idle session."""
    match event:
        case UserSaid() as said:
            return says(said)
        case _:
            return isinstance(event, (CompactAsked, SummaryAsked))


def _ends_call(agent: Agent, event: Event) -> bool:
    """Whether the event ends the call that the agent waits for, which is charged before anything else happens."""
    match agent.phase, event:
        case Calling(id=id), ModelEnded(id=its) | ModelFailed(id=its) | Lost(id=its):
            return id == its
        case Calling(), Interrupted():
            return True
        case _:
            return False


def _cut(session: Session, path: Id) -> tuple[Session, list[Effect]]:
    """Without an agent and all below it; and the cancellation of what they waited for, which is charged."""
    cut = dict(session.agents.below(path))
    cancels: list[Effect] = [Cancel(id) for agent in cut.values() for id in waiting(agent) if id not in cut]
    for agent in cut.values():
        session = replace(session, spent=limits.add(session.spent, limits.charge(agent, session.config)))
    return replace(session, agents=session.agents.cut(path)), cancels


def _result(path: Id, finish: Finish) -> ToolFinished:
    """A subagent's end as the result of the call that spawned it."""
    match finish.reason:
        case Reason.DONE:
            return ToolFinished(path, finish.text)
        case reason if reason in BUDGETS:
            words = f" Its last words: {finish.text}" if finish.text else ""
            return ToolFinished(path, f"error: the subagent did not finish: {finish.why}.{words}", error=True)
        case _:
            return ToolFinished(path, f"error: the subagent failed: {finish.why}", error=True)
