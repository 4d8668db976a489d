"""The world around the core: a dict of open requests, a number for the time, and nothing else.

It performs no I/O and decides nothing by itself: dice say what answers, when and how. Every event goes
through `World.tell`, which steps the core and has all invariants look at what it did.
"""

import json
import pickle
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from bantam.core import messages, tree
from bantam.core.base.settings import Config
from bantam.core.base.trie import Trie
from bantam.core.effects import (
    AskApproval,
    CallModel,
    CallStarted,
    Cancel,
    CheckAnswer,
    Effect,
    Emit,
    ResultDelta,
    ResultStarted,
    RunShell,
    RunTool,
    Sleep,
    TextDelta,
    ThoughtDelta,
)
from bantam.core.events import (
    Answer,
    AnswerChecked,
    Approved,
    Cleared,
    CommandEnded,
    CompactAsked,
    ConfigChanged,
    Denied,
    Event,
    Id,
    Interrupted,
    Loaded,
    Lost,
    ModelChunks,
    ModelEnded,
    ModelFailed,
    SummaryAsked,
    TimerFired,
    TookBack,
    ToolFinished,
    ToolProgress,
    UserSaid,
)
from bantam.core.past import codec, history
from bantam.core.rules import limits
from bantam.core.state import BackingOff, Calling, Session
from bantam.core.tools.table import names
from bantam.core.wire import failures
from tests import servers
from tests.servers import TOOLBOX, Dice, Json, Reply, chance, pick, text

Request = CallModel | RunShell | RunTool | Sleep | AskApproval | CheckAnswer
REQUESTS = (CallModel, RunShell, RunTool, Sleep, AskApproval, CheckAnswer)
FINAL: Mapping[type, tuple[type, ...]] = {
    CallModel: (ModelEnded, ModelFailed, Lost),
    RunShell: (CommandEnded, ToolFinished, Lost),
    RunTool: (ToolFinished, Lost),
    Sleep: (TimerFired, Lost),
    AskApproval: (Approved, Denied, Lost),
    CheckAnswer: (AnswerChecked, Lost),
}
PARTS: Mapping[type, tuple[type, ...]] = {
    CallModel: (ModelChunks,),
    RunShell: (ToolProgress,),
    RunTool: (ToolProgress,),
}
SYSTEM = "You are Bantam."
APPROVALS = ("never", "never", "ask", "deny ls; allow echo *", "allow sleep *; ask true; allow look_up *x*")
DRAIN_MAX = 3000  # answers after which a healed session must be idle


@dataclass(frozen=True)
class Moment:
    """One event and all that came of it."""

    before: Session
    event: Event
    now: float
    after: Session
    effects: tuple[Effect, ...]
    open: Mapping[Id, Request]
    """What was outstanding before."""
    copy: Session
    """`before` as it was before the step."""
    event_copy: Event
    again: tuple[Session, tuple[Effect, ...]]
    """What the second step with the same made."""

    @property
    def accepted(self) -> bool:
        """Whether the event answers something that was asked."""
        return not isinstance(self.event, Answer) or fits(self.open, self.event)

    @property
    def path(self) -> Id:
        """The agent that the event is for."""
        return self.event.id[:-1] if isinstance(self.event, Answer) else ()

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(effect for effect in self.effects if isinstance(effect, REQUESTS))


def fits(open: Mapping[Id, Request], answer: Answer) -> bool:
    asked = type(open.get(answer.id))
    return asked in FINAL and isinstance(answer, (*FINAL[asked], *PARTS.get(asked, ())))


class Rolled:
    """Dice of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def number(self, most: int) -> int:
        return int(self._random() * (most + 1))


class Broken(AssertionError):
    """An invariant does not hold. The message has the events that lead there."""


PICTURE = (messages.image_part("data:image/png;base64,AAAA"), messages.text_part("a note"))


class World:
    def __init__(
        self, config: Config, checks: tuple[Callable[["World", Moment], None], ...] = (), twice: bool = True
    ) -> None:
        self.start = config
        self.checks = checks
        self.twice = twice
        """Step with copies and a second time, to see that nothing changes."""
        self.now = 0.0
        self.session = tree.start(config, SYSTEM, TOOLBOX)
        self.log: list[tuple[float, Event]] = []
        self.history: list[tuple[Session, tuple[Effect, ...]]] = []
        self.open: dict[Id, Request] = {}
        self.used: set[Id] = set()
        self.scripts: dict[Id, list[Answer]] = {}
        """What is on its way from a server that has begun to answer."""
        self.truth: dict[Id, Reply] = {}
        """What the answer to a request means, where nothing spoiled it."""
        self.spoiled: set[Id] = set()
        """Requests that a ghost has answered too."""
        self.shown: dict[Id, tuple[str, str]] = {}
        """(text, thought) that was shown of an answer so far."""
        self.in_turn = False
        self.usage: dict[Id, tuple[int, int]] = {}
        self.spent = (0, 0, 0)
        self.begun = 0.0
        self.row: dict[Id, tuple[str, int]] = {}
        """The last call of each agent in this turn, and how often it came in a row."""
        self.approvals: dict[Id, str] = {}
        """The commands that needed an approval."""
        self.sleeps: dict[Id, int] = {}
        """Sleeps of each agent since its call was first made."""
        self.answered: dict[Id, int] = {}
        """Replies that each agent got in this turn."""
        self.results: dict[tuple[Id, str], str] = {}
        """What was shown of the result of each call so far."""
        self.limit = config.max_al_iterations
        """The largest limit of this turn."""
        self.in_a_row = config.max_identical_calls
        """The same for calls in a row; 0: there was none."""

    def tell(self, event: Event) -> tuple[Effect, ...]:
        """Let `event` happen, and see that every invariant holds."""
        if self.log[-1:] == [(self.now, event)]:
            self.now = round(self.now + 1e-6, 6)  # nothing happens twice in one microsecond
        self.log.append((self.now, event))
        try:
            return self._step(event)
        except Exception as problem:
            raise Broken(f"{problem!r}\n{self.story()}") from problem

    def _step(self, event: Event) -> tuple[Effect, ...]:
        before = self.session
        if not self.checks or not self.twice:
            after, effects = tree.step(before, event, self.now)
            moment = Moment(before, event, self.now, after, effects, self.open, before, event, (after, effects))
        else:
            session_copy, event_copy = pickle.loads(pickle.dumps((before, event)))
            after, effects = tree.step(before, event, self.now)
            again = tree.step(before, event, self.now)
            moment = Moment(before, event, self.now, after, effects, self.open, session_copy, event_copy, again)
        if isinstance(event, ConfigChanged):
            self.limit = max(self.limit, event.config.max_al_iterations)
            both = self.in_a_row, event.config.max_identical_calls
            self.in_a_row = max(both) if all(both) else 0
        if isinstance(event, (UserSaid, CompactAsked, SummaryAsked)) and not self.in_turn:
            self._begin(bool(effects))
        self._count_usage(moment)
        for check in self.checks:
            try:
                check(self, moment)
            except AssertionError as problem:
                raise Broken(f"{check.__name__}: {problem}") from problem
        self._remember(moment)
        return effects

    def story(self) -> str:
        """The events so far, as Python that makes them happen again."""
        events = "".join(f"    ({now!r}, {event!r}),\n" for now, event in self.log)
        return f"config = {self.start!r}\nlog = [\n{events}]"

    def _begin(self, begins: bool) -> None:
        if begins:
            self.in_turn, self.limit, self.answered = True, self.session.config.max_al_iterations, {}
            self.spent, self.begun, self.row = (0, 0, 0), self.now, {}
            self.in_a_row = self.session.config.max_identical_calls

    def _count_usage(self, moment: Moment) -> None:
        """Usage counts when its request ends: the last that came, be it zero."""
        event, ended = moment.event, []
        if isinstance(event, ModelChunks) and moment.accepted:
            for chunk in event.chunks:
                told = chunk.get("usage")
                if isinstance(told, Mapping) and told:
                    sizes = (told.get("prompt_tokens"), told.get("completion_tokens"))
                    self.usage[event.id] = (_natural(sizes[0]), _natural(sizes[1]))
        if isinstance(event, (ModelEnded, ModelFailed, Lost)) and isinstance(moment.open.get(event.id), CallModel):
            ended.append(event.id)
        ended += [e.id for e in moment.effects if isinstance(e, Cancel) and isinstance(moment.open[e.id], CallModel)]
        for id in ended:
            tokens = self.usage.pop(id, (0, 0))
            if tokens == (0, 0):  # where nobody counted, the core may have to guess
                guess = limits.charge(moment.before.agents[id[:-1]], moment.before.config)
                tokens = guess.tokens_in, guess.tokens_out
            self.spent = (self.spent[0] + 1, self.spent[1] + tokens[0], self.spent[2] + tokens[1])

    def _remember(self, moment: Moment) -> None:
        self.session = moment.after
        self.history.append((moment.after, moment.effects))
        event = moment.event
        if isinstance(event, Answer) and moment.accepted:
            if type(event) in FINAL[type(self.open[event.id])]:
                self._forget(event.id)
            elif isinstance(event, ModelChunks):
                shown = self.shown.get(event.id, ("", ""))
                for effect in moment.effects:
                    if isinstance(effect, Emit) and isinstance(effect.output, TextDelta):
                        shown = (shown[0] + effect.output.text, shown[1])
                    if isinstance(effect, Emit) and isinstance(effect.output, ThoughtDelta):
                        shown = (shown[0], shown[1] + effect.output.text)
                self.shown[event.id] = shown
        for effect in moment.effects:
            match effect:
                case Cancel(id):
                    self._forget(id)
                case Emit(who, ResultStarted(call_id)):
                    self.results[who, call_id] = ""
                case Emit(who, ResultDelta(call_id, text, glimpse=False)):
                    self.results[who, call_id] += text
        self.row = rows(self.row, moment.effects)
        for request in moment.requests:
            self.open[request.id] = request
            self.used.add(request.id)
            if isinstance(request, AskApproval):
                self.approvals[request.id] = request.command
            self._count_sleeps(moment, request)
        ended = isinstance(event, ModelEnded) or whole(moment)
        if ended and isinstance(event, Answer) and moment.accepted and _purpose(moment.before, event.id) == "reply":
            slept = any(isinstance(request, Sleep) and request.id[:-1] == moment.path for request in moment.requests)
            self.answered[moment.path] = self.answered.get(moment.path, 0) + (not slept)
        if self.in_turn and tree.idle(moment.after):
            self.in_turn = False

    def _forget(self, id: Id) -> None:
        del self.open[id]
        for kept in (self.scripts, self.truth, self.shown, self.usage):
            kept.pop(id, None)

    def _count_sleeps(self, moment: Moment, request: Request) -> None:
        path = request.id[:-1]
        if isinstance(request, Sleep):
            self.sleeps[path] = self.sleeps.get(path, 0) + 1
        elif not _backed_off(moment) and not self._is_same_call(moment, path):
            self.sleeps[path] = 0

    def _is_same_call(self, moment: Moment, path: Id) -> bool:
        """Whether a failed call was made again as it was, less one parameter."""
        old, new = moment.before.agents.get(path), moment.after.agents[path]
        if old is None or path != moment.path or not isinstance(moment.event, ModelFailed) or whole(moment):
            return False
        assert isinstance(old.phase, Calling)
        assert isinstance(new.phase, Calling)
        return (old.messages, old.squeezed, old.phase.purpose) == (new.messages, new.squeezed, new.phase.purpose)

    # --- what a user does

    def says(self, dice: Dice) -> None:
        words = pick(dice, ("hello", "do it", " ", "")) if chance(dice, 80) else text(dice)
        self.tell(UserSaid(words, PICTURE if chance(dice, 10) else ()))

    def takes_back(self, dice: Dice) -> None:
        self.tell(TookBack())

    def interrupts(self, dice: Dice) -> None:
        self.tell(Interrupted())

    def governs(self, dice: Dice) -> None:
        """Everything a user can do beside talking and Ctrl+C."""
        match dice.number(4):
            case 0:
                self.tell(CompactAsked())
            case 1:
                self.tell(SummaryAsked())
            case 2:
                self.tell(Cleared())
            case 3:
                self.tell(Loaded(self.saved(dice)))
            case _:
                self.tell(ConfigChanged(config(dice)))

    def saved(self, dice: Dice) -> tuple[Json, ...]:
        """A conversation from a file: as it was saved, cut by a crash, edited by hand, or no conversation at all."""
        agents = sorted(self.session.agents)
        whole: list[Json] = json.loads(json.dumps([*self.session.agents[pick(dice, agents)].messages]))
        match dice.number(3):
            case 0:
                return tuple(whole)
            case 1:
                return tuple(whole[: dice.number(len(whole))])
            case 2:
                whole = whole[dice.number(len(whole) - 1) :]
                return (*whole, servers.json_value(dice), *whole[:1])
            case _:
                return tuple(message(dice) for _ in range(dice.number(4)))

    # --- what answers

    def model(self, dice: Dice, faults: int = 20, hostile: bool = False) -> None:
        """A model begins to answer, or goes on with the next thing its server sends."""
        id = pick(dice, self.waiting(CallModel))
        if id not in self.scripts:
            self.scripts[id], truth = servers.answer(dice, id, faults, hostile)
            if truth is not None and id not in self.spoiled:
                self.truth[id] = truth
        for _ in range(1 + 60 * chance(dice, 60)):
            if id not in self.scripts:
                return
            self.tell(self.scripts[id].pop(0))

    def fails(self, dice: Dice) -> None:
        self.tell(ModelFailed(pick(dice, self.waiting(CallModel)), pick(dice, servers.FAILURES)))

    def shell(self, dice: Dice) -> None:
        id = pick(dice, self.waiting(RunShell))
        match dice.number(4):
            case 0:
                self.tell(CommandEnded(id, pick(dice, (0, 1, 127, 255)), pick(dice, ("", "done\n", text(dice)))))
            case 1:
                self.tell(ToolProgress(id, pick(dice, ("", "line\n", "x" * 400, text(dice)))))
            case 2:
                self.tell(ToolProgress(id, pick(dice, ("", "glimpse", text(dice))), 1 + dice.number(10**6)))
            case 3:
                self.tell(CommandEnded(id, 137, text(dice), dice.number(99), "SIGKILL", chance(dice, 50)))
            case _:
                ends: tuple[Event, ...] = (CommandEnded(id, 127, problem="no shell"), ToolFinished(id, "", True))
                self.tell(pick(dice, ends))

    def function(self, dice: Dice) -> None:
        """A function says how far it is, or has its result: all of what it said, some of it, or something else."""
        id = pick(dice, self.waiting(RunTool))
        match dice.number(2):
            case 0:
                self.tell(ToolFinished(id, pick(dice, ("", "found\n", "found\nall", text(dice))), chance(dice, 30)))
            case 1:
                self.tell(ToolProgress(id, pick(dice, ("", "found\n", text(dice)))))
            case _:
                self.tell(ToolProgress(id, "half", 1 + dice.number(99)))

    def user(self, dice: Dice) -> None:
        """Whoever is asked for an approval, be it that nobody is there."""
        self.now += pick(dice, (0.0, 0.0, 60.0))  # people take their time
        id = pick(dice, self.waiting(AskApproval))
        answers: tuple[Event, ...] = (Approved(id), Denied(id), Denied(id, nobody=True))
        self.tell(pick(dice, answers))

    def checker(self, dice: Dice) -> None:
        self.tell(AnswerChecked(pick(dice, self.waiting(CheckAnswer)), pick(dice, ("", "no JSON"))))

    def timer(self, dice: Dice) -> None:
        self.now += pick(dice, (0.0, 1.0, 0.5, 3600.0, 1e9))
        self.tell(TimerFired(pick(dice, self.waiting(Sleep))))

    def ghost(self, dice: Dice) -> None:
        """An answer that comes late, twice, from a forger, or to the wrong kind of request."""
        id = self._haunted(dice)
        self.spoiled.add(id)
        self.truth.pop(id, None)
        fake = {"choices": [{"delta": {"content": "boo"}, "finish_reason": "stop"}]}
        answers: tuple[Event, ...] = (
            ModelChunks(id, (fake,)),
            ModelChunks(id, tuple(servers.json_object(dice) for _ in range(dice.number(2)))),
            ModelEnded(id, chance(dice, 50)),
            ModelFailed(id, pick(dice, servers.FAILURES)),
            ToolProgress(id, "boo", dice.number(1)),
            CommandEnded(id, 0, "boo"),
            ToolFinished(id, "boo"),
            TimerFired(id),
            Approved(id),
            Denied(id),
            AnswerChecked(id, ""),
            Lost(id),
        )
        self.tell(pick(dice, answers))

    def _haunted(self, dice: Dice) -> Id:
        """An address: best of all an old one of an agent that waits for another answer now."""
        busy = {id[:-1] for id in self.open}
        old = sorted(id for id in self.used - self.open.keys() if id[:-1] in busy)
        known = [*sorted(self.used), *sorted(self.session.agents)]
        if old and chance(dice, 50):
            return pick(dice, old)
        return pick(dice, known) if known and chance(dice, 80) else tuple(dice.number(3) for _ in range(dice.number(7)))

    def crash(self, dice: Dice) -> None:
        """The process dies behind any line of its log; a new one goes on from there."""
        kept = len(self.log) - dice.number(min(len(self.log), 9))
        lines = [json.dumps([now, codec.encode(event)]) for now, event in self.log[:kept]]
        new = World(self.start)
        for line in lines:
            new.now, event = json.loads(line)
            new.tell(codec.decode(event))
        assert new.history == self.history[:kept], f"replay differs\n{self.story()}"
        new.checks, new.twice = self.checks, self.twice
        self.__dict__.update(new.__dict__)
        for event in history.recovery(self.session):
            self.tell(event)

    def swaps(self, dice: Dice) -> None:
        """Answers to two agents that are not above one another come in either order: the end is equal."""
        c = self.session.config
        if c.max_calls_total or c.max_tokens_total or c.max_cost_usd:
            return  # whoever comes first has the last of a budget
        first, second = pick(dice, self.pairs())
        one, two = self._final(dice, first), self._final(dice, second)
        ends = []
        for events in ((one, two), (two, one)):
            session = self.session
            for event in events:
                session, _ = tree.step(session, event, self.now)
            ends.append(_but_for_parameters(session))
        assert ends[0] == ends[1], f"the order of {one} and {two} matters\n{self.story()}"

    def _final(self, dice: Dice, id: Id) -> Event:
        match self.open[id]:
            case CallModel():
                ends: tuple[Event, ...] = (ModelEnded(id, True), ModelFailed(id, pick(dice, servers.FAILURES)))
                return pick(dice, ends)
            case RunShell():
                return CommandEnded(id, 0, "x")
            case RunTool():
                return ToolFinished(id, "x")
            case Sleep():
                return TimerFired(id)
            case AskApproval():
                return Approved(id)
            case CheckAnswer():
                return AnswerChecked(id, "")

    def waiting(self, kind: type[Request]) -> tuple[Id, ...]:
        return tuple(sorted(id for id, request in self.open.items() if isinstance(request, kind)))

    def pairs(self) -> tuple[tuple[Id, Id], ...]:
        """Open requests of two agents of which neither is above the other."""
        ids = sorted(self.open)
        return tuple(
            (a, b)
            for n, a in enumerate(ids)
            for b in ids[n + 1 :]
            if a[:-1] != b[: len(a) - 1] and b[:-1] != a[: len(b) - 1]
        )

    # --- the end

    def heal(self) -> int:
        """No more faults: everything is answered, until the session is idle. Gives the number of answers."""
        for count in range(DRAIN_MAX):
            if not self.open:
                assert tree.idle(self.session), f"nothing is outstanding, and the root waits\n{self.story()}"
                return count
            id = min(self.open)
            for event in self.scripts.pop(id, None) or self._plain(id):
                if id in self.open:
                    self.tell(event)
        raise Broken(f"not idle after {DRAIN_MAX} good answers\n{self.story()}")

    def _plain(self, id: Id) -> list[Answer]:
        match self.open[id]:
            case CallModel():
                return [ModelChunks(id, ({"choices": [{"delta": {"content": "fine"}}]},)), ModelEnded(id, marked=True)]
            case RunShell():
                return [ToolProgress(id, "out\n"), CommandEnded(id, 0)]
            case RunTool():
                return [ToolProgress(id, "out\n"), ToolFinished(id, "out\nall")]
            case Sleep(seconds=seconds):
                self.now += seconds
                return [TimerFired(id)]
            case AskApproval():
                return [Approved(id)]
            case CheckAnswer():
                return [AnswerChecked(id, "")]

    def act(self, dice: Dice, faults: int) -> None:
        """One random thing happens; `faults` (percent) says how often it is something bad."""
        deeds: list[Callable[[Dice], None]] = []
        if self.waiting(CallModel):
            deeds += [lambda d: self.model(d, faults)] * 6
        if self.waiting(RunShell):
            deeds += [self.shell] * 5
        if self.waiting(RunTool):
            deeds += [self.function] * 5
        if self.waiting(Sleep):
            deeds += [self.timer] * 4
        if self.waiting(AskApproval):
            deeds += [self.user] * 5 + [self.says, self.takes_back]
        if self.waiting(CheckAnswer):
            deeds += [self.checker] * 5 + [self.says, self.takes_back]
        if not deeds:
            deeds = [self.says] * 12
            if chance(dice, 30):
                deeds += [self.governs] * 4
        if chance(dice, faults):
            deeds = [self.says, self.interrupts, self.governs, self.ghost, self.ghost, self.crash]
            deeds += [self.says, self.takes_back, self.takes_back] * any(a.queued for a in self.session.agents.values())
            deeds += [self.fails] * (4 if self.waiting(CallModel) else 0)
            deeds += [self.swaps] * (4 if self.pairs() else 0)
        pick(dice, deeds)(dice)


def config(dice: Dice) -> Config:
    plain = Config(tools=names(TOOLBOX))
    if chance(dice, 40):
        return plain
    forwarded = {name: pick(dice, (0.7, "high", ["\n"])) for name in servers.PARAMETERS if chance(dice, 40)}
    return replace(
        plain,
        stream=not chance(dice, 30),
        timeout=pick(dice, (300, 0.5)),
        max_al_iterations=pick(dice, (1000, 1, 2, 3)),
        tools=pick(dice, (plain.tools, plain.tools, ("shell_exec",), ())),
        context_window=pick(dice, (0, 50, 200, 1000)),
        max_calls_total=pick(dice, (0, 0, 0, 1, 4)),
        max_tokens_total=pick(dice, (0, 0, 0, 1, 1500)),
        max_seconds=pick(dice, (0, 0, 0, 0.5, 30)),
        max_cost_usd=pick(dice, (0, 0, 0.001)),
        price_in=pick(dice, (0, 1.5)),
        max_identical_calls=pick(dice, (0, 0, 1, 2)),
        approve=pick(dice, APPROVALS),
        schema=pick(dice, ({}, {}, {"type": "object"})),
        forwarded=forwarded,
    )


def message(dice: Dice) -> Json:
    """Something that a file may have in place of a message."""
    if chance(dice, 20):
        return servers.json_value(dice)
    made: dict[str, Json] = {
        "role": pick(dice, ("user", "assistant", "tool", "system", "developer", servers.json_value(dice, 1))),
        "content": pick(dice, ("hello", None, "", [{"type": "text", "text": "a"}], servers.json_value(dice, 2))),
        **servers.facts(dice),
    }
    if chance(dice, 40):
        made["tool_call_id"] = pick(dice, ("call_1", "call_2", "", None, 3, servers.json_value(dice, 1)))
    if chance(dice, 40):
        calls: list[Json] = [
            {
                "id": pick(dice, ("call_1", "call_2", "", None)),
                "function": pick(dice, ({"name": "x"}, {"name": 3}, None, "x")),
            }
            for _ in range(dice.number(3))
        ]
        made["tool_calls"] = [*calls, servers.json_value(dice, 1)] if chance(dice, 20) else calls
    return made


def _but_for_parameters(session: Session) -> Session:
    """The session without the note of what each call went without: that depends on who was refused first."""
    agents = {
        path: replace(agent, phase=replace(agent.phase, withheld=frozenset()))
        if isinstance(agent.phase, Calling)
        else agent
        for path, agent in session.agents.items()
    }
    return replace(session, agents=Trie(agents))


def rows(before: Mapping[Id, tuple[str, int]], effects: tuple[Effect, ...]) -> dict[Id, tuple[str, int]]:
    """The last call of each agent, and how often it came in a row. One that cannot be used is like no other."""
    row = dict(before)
    for effect, following in zip_longest(effects, effects[1:]):
        match effect:
            case Emit(who, CallStarted(_, name, arguments)):
                refused = isinstance(following, Emit) and isinstance(following.output, ResultStarted)
                call, times = row.get(who, ("", 0))
                row[who] = ("", 0) if refused else (name + arguments, times + 1 if call == name + arguments else 1)
    return row


def _backed_off(moment: Moment) -> bool:
    """Whether the agent of the event was waiting to make the same call again."""
    agent = moment.before.agents.get(moment.path)
    return agent is not None and isinstance(agent.phase, BackingOff)


def _natural(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def whole(moment: Moment) -> bool:
    """Whether a connection broke behind the finish_reason: that ends an answer as well as any end."""
    agent, event = moment.before.agents.get(moment.path), moment.event
    match event:
        case ModelFailed(failure=failure) if failures.broke(failure):
            pass
        case Lost():
            pass
        case _:
            return False
    phase = None if agent is None else agent.phase
    return isinstance(phase, Calling) and phase.id == event.id and bool(phase.partial.finish)


def _purpose(session: Session, id: Id) -> str:
    agent = session.agents.get(id[:-1])
    return agent.phase.purpose if agent is not None and isinstance(agent.phase, Calling) else ""
