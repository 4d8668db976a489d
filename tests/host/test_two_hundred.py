"""Two hundred conversations in one process: nothing of one is seen, used, kept or stopped by another."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bantam.core.base.record import dataclass
from bantam.core.effects import Emit, Reason, ResultDelta
from bantam.core.words.wrap import Text, plain
from bantam.host import place, setup
from bantam.host.conversation import Conversation
from bantam.host.place import Clock
from bantam.host.watcher import Watcher
from scripts.fakemodel import FakeModel, Reply
from tests.loopback import environment

COUNT, HOMES, SERVERS = 200, 60, 3
BUSY, FAILING = 7, 11  # the one that is interrupted in its command, and the one whose server refuses it
COMMAND = 'echo "$NAME $PWD" | tee mark.txt; pwd'
SLOW = "echo begun; sleep 600"


class Listener(Watcher):
    """Notes what it is told."""

    created = "2026-01-01T00:00:00Z"

    def __init__(self) -> None:
        self.shown: list[Emit] = []
        self.said: list[tuple[str, bool]] = []
        self.begun = asyncio.Event()

    def show(self, emit: Emit) -> None:
        self.shown.append(emit)
        if isinstance(emit.output, ResultDelta) and emit.output.text == "begun\n":
            self.begun.set()

    def say(self, text: Text, style: str = "", error: bool = False) -> None:
        self.said.append((plain(text), error))


@dataclass(frozen=True)
class One:
    """What one of them has of its own, but for a home that it may share."""

    number: int
    folder: Path
    home: Path
    talk: Conversation
    watcher: Listener

    @property
    def name(self) -> str:
        return f"n{self.number}"


def answer(body: Mapping[str, Any]) -> Reply:
    """A command first, then the result of it as text; for one of the models a refusal."""
    number, last = int(body["model"].removeprefix("model-")), body["messages"][-1]
    if number == FAILING:
        return Reply("this model is not for you", status=400)
    if last["role"] == "tool":
        return Reply(f"{body['model']} is done: {last['content']}")
    return Reply(calls=[("shell_exec", {"command": SLOW if number == BUSY else COMMAND})])


def begin(number: int, root: Path, endpoint: str) -> One:
    folder, home = root / f"work-{number}", root / f"home-{number % HOMES}"
    if number % 2:  # a folder by the name that its user knows it by
        (root / f"real-{number}").mkdir()
        folder.symlink_to(root / f"real-{number}")
    else:
        folder.mkdir()
    settings = f"endpoint={endpoint}\nmodel=model-{number}\napi_key=sk-secret-{number:04}-of-its-own\nseed={number}\n"
    (folder / "model.cfg").write_text(settings)
    (folder / "system.txt").write_text(f"You are number {number}.")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "NAME": f"n{number}", "PWD": "/elsewhere"}
    found = setup.read(place.at(folder, environ, Clock(time.monotonic, lambda: 1e9 + number)))
    assert isinstance(found, setup.Setup)
    watcher = Listener()
    return One(number, folder, home / ".bantam", Conversation(found, watcher), watcher)


async def talk(one: One) -> Reason:
    """One turn, and a slash command or two."""
    turn = asyncio.ensure_future(one.talk.line(f"hello from {one.name}"))
    if one.number == BUSY:
        await one.watcher.begun.wait()
        one.talk.interrupt()
    reason = await turn
    if one.number % 10 == 0:
        assert await one.talk.line(f"/cfg temperature 0.{one.number}") is Reason.DONE
    one.talk.keep()
    await one.talk.close()
    return reason


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def children() -> set[str]:
    return {child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text().split()}


Ran = tuple[list[One], list[Reason], list[FakeModel]]


async def scene(root: Path) -> Ran:
    async with FakeModel(answer) as first, FakeModel(answer) as second, FakeModel(answer) as third:
        servers = [first, second, third]
        every = [begin(number, root, servers[number % SERVERS].endpoint) for number in range(COUNT)]
        reasons = await asyncio.gather(*map(talk, every))
        for server in servers:
            await server.closed()
        assert asyncio.all_tasks() == {asyncio.current_task(), *(t for s in servers for t in s._tasks)}
    return every, reasons, servers


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    import bantam.shell.net.http  # noqa: F401  what a process makes once is not counted

    with environment(NAME="the process's own", OPENAI_API_KEY="sk-of-the-process-itself"):
        here, mine, others = os.getcwd(), dict(os.environ), children()
        asyncio.run(asyncio.sleep(0))
        before = descriptors()
        done = asyncio.run(scene(tmp_path_factory.mktemp("two-hundred")))
        assert (os.getcwd(), dict(os.environ), descriptors()) == (here, mine, before)
        assert children() <= others
    return done


def test_one_is_interrupted_one_fails_and_the_others_do_neither(ran: Ran) -> None:
    ends = {BUSY: Reason.INTERRUPTED, FAILING: Reason.FAILED}
    assert ran[1] == [ends.get(number, Reason.DONE) for number in range(COUNT)]


def test_each_request_has_its_own_key_model_prompt_and_messages(ran: Ran) -> None:
    asked: dict[int, int] = {}
    for at, server in enumerate(ran[2]):
        for request in server.requests:
            number = int(request.body["model"].removeprefix("model-"))
            asked[number] = asked.get(number, 0) + 1
            assert number % SERVERS == at
            assert request.headers["authorization"] == f"Bearer sk-secret-{number:04}-of-its-own"
            assert request.body["seed"] == number
            system, prompt, *rest = request.body["messages"]
            assert system["content"].startswith(f"You are number {number}.")
            assert prompt["content"] == f"hello from n{number}"
            assert all(f"n{number} " in message["content"] for message in rest if message["role"] == "tool")
    assert asked == {number: 1 if number in (BUSY, FAILING) else 2 for number in range(COUNT)}


def test_each_command_runs_in_its_own_folder_with_its_own_environment(ran: Ran) -> None:
    for one in ran[0]:
        marked = (one.folder / "mark.txt").read_text() if (one.folder / "mark.txt").exists() else ""
        assert marked == ("" if one.number in (BUSY, FAILING) else f"{one.name} {one.folder}\n")
        told = json.dumps(one.talk.runtime.conversation)
        assert (f"{one.name} {one.folder}\\n{one.folder}\\n" in told) == bool(marked)


def test_what_is_kept_is_in_its_own_home(ran: Ran) -> None:
    every = ran[0]
    logs: dict[Path, set[str]] = {}
    for one in every:
        assert one.talk.log_id
        lines = (one.home / "logs" / f"{one.talk.log_id}.jsonl").read_text().splitlines()
        assert f"You are number {one.number}." in lines[0]
        assert [json.loads(line)[1]["text"] for line in lines[1:] if '"UserSaid"' in line] == [f"hello from {one.name}"]
        logs.setdefault(one.home, set()).add(f"{one.talk.log_id}.jsonl")
    for home, names in logs.items():
        assert {path.name for path in (home / "logs").iterdir()} == names
        assert len(names) == sum(one.home == home for one in every)
        saved = json.loads((home / "sessions" / "autosave.json").read_text())
        assert saved["messages"][1]["content"] in {f"hello from {one.name}" for one in every if one.home == home}
        assert [path.name for path in (home / "sessions").iterdir()] == ["autosave.json"]


def test_each_watcher_hears_of_its_own_alone_and_a_setting_is_changed_in_one_file(ran: Ran) -> None:
    for one in ran[0]:
        told = repr([*one.watcher.shown, *one.watcher.said])
        assert f"model-{one.number} is done" in told or one.number in (BUSY, FAILING)
        assert not any(f"hello from n{number}'" in told for number in (one.number + 1, one.number - 1))
        changed = f"temperature=0.{one.number}" in (one.folder / "model.cfg").read_text()
        assert changed == (one.number % 10 == 0)
        assert "sk-secret" not in told
