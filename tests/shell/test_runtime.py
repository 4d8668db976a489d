"""The interpreter with real asyncio and handlers of three lines."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from bantam.core import tree
from bantam.core.base.settings import Config
from bantam.core.effects import CallModel, Emit, Reason, RunShell, RunTool, Sleep, TurnEnded
from bantam.core.events import (
    CommandEnded,
    Event,
    Failure,
    Fault,
    Interrupted,
    ModelChunks,
    ModelEnded,
    ModelFailed,
    TimerFired,
    ToolFinished,
    ToolProgress,
    UserSaid,
)
from bantam.core.messages import Messages
from bantam.core.rules.redact import Redactor
from bantam.core.tools.table import BUILT_IN, Toolbox, names
from bantam.host.handlers import Outside
from bantam.host.place import Clock, at
from bantam.shell.runtime import Handler, Runtime
from tests.servers import TOOLBOX


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}


def asks(command: str) -> dict[str, Any]:
    call = {"index": 0, "id": "c", "function": {"name": "shell_exec", "arguments": f'{{"command": "{command}"}}'}}
    return {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}


class Host:
    """A runtime whose handlers answer from a list, and everything it told."""

    def __init__(
        self,
        *replies: dict[str, Any] | Failure,
        secrets: tuple[str, ...] = (),
        toolbox: Toolbox = BUILT_IN,
        **handlers: Handler,
    ) -> None:
        self.replies = list(replies)
        self.shown: list[Emit] = []
        self.kept: list[Messages] = []
        self.logged: list[Event] = []
        named: dict[type, Handler] = {CallModel: self.call, RunShell: self.run, Sleep: self.sleep}
        given = {kind: handlers[kind.__name__] for kind in (*named, RunTool) if kind.__name__ in handlers}
        self.runtime = Runtime(
            tree.start(Config(tools=names(toolbox)), "sys", toolbox),
            named | given,
            self.shown.append,
            self.kept.append,
            lambda now, event: self.logged.append(event),
            Redactor(secrets),
            lambda: 0.0,
        )

    async def call(self, request: CallModel) -> AsyncGenerator[Event, None]:
        reply = self.replies.pop(0)
        if isinstance(reply, Failure):
            yield ModelFailed(request.id, reply)
        else:
            yield ModelChunks(request.id, (reply,))
            yield ModelEnded(request.id)

    async def run(self, request: RunShell) -> AsyncGenerator[Event, None]:
        yield CommandEnded(request.id, 0, "out")

    async def sleep(self, request: Sleep) -> AsyncGenerator[Event, None]:
        yield TimerFired(request.id)


def test_a_turn_runs_through_tools_and_retries_to_its_end() -> None:
    async def scene() -> None:
        host = Host(asks("ls"), Failure(Fault.NETWORK, "gone"), said("done"))
        ended = await host.runtime.turn(UserSaid("hi"))
        assert (ended.reason, ended.text) == (Reason.DONE, "done")
        assert not host.runtime.busy
        assert [m["role"] for m in host.kept[-1]] == ["system", "user", "assistant", "tool", "assistant"]
        assert isinstance(host.shown[-1].output, TurnEnded)

    asyncio.run(scene())


def test_a_function_is_run_by_the_handler_that_was_given(tmp_path: Path) -> None:
    async def look_up(request: RunTool) -> AsyncGenerator[Event, None]:
        yield ToolProgress(request.id, "blue")
        yield ToolFinished(request.id, "blue " + request.arguments["word"])

    async def scene(*given: Handler) -> list[str]:
        place = at(tmp_path, {}, Clock(lambda: 0.0, lambda: 0.0))
        outside = Outside(place, Config(), None, Redactor(()), *given)
        call = {"index": 0, "id": "c", "function": {"name": "look_up", "arguments": '{"word": "sky"}'}}
        asking = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        host = Host(asking, said("done"), toolbox=TOOLBOX, RunTool=outside.handlers()[RunTool])
        assert (await host.runtime.turn(UserSaid("hi"))).reason is Reason.DONE
        await outside.close()
        return [*(type(emit.output).__name__ for emit in host.shown), host.kept[-1][3]["content"]]

    shown = ["Requesting", "CallStarted", "ResultStarted", "ResultDelta", "ResultDelta", "ResultEnded"]
    assert asyncio.run(scene(look_up)) == [*shown, "Requesting", "TextDelta", "TurnEnded", "blue sky"]
    assert asyncio.run(scene())[-1] == "error: nothing here can run the tool look_up"


def test_each_event_is_logged_before_it_happens() -> None:
    async def scene() -> None:
        host = Host(said("x"))
        await host.runtime.turn(UserSaid("hi"))
        folded = tree.start(Config(), "sys")
        for event in host.logged:
            folded, _ = tree.step(folded, event, 0.0)
        assert folded == host.runtime.session

    asyncio.run(scene())


def test_an_interrupt_waits_until_the_handler_has_cleaned_up() -> None:
    async def scene() -> None:
        began, cleaned = asyncio.Event(), []

        async def slow(request: RunShell) -> AsyncGenerator[Event, None]:
            try:
                began.set()
                await asyncio.Event().wait()
                yield CommandEnded(request.id, 0)
            finally:
                await asyncio.sleep(0.01)
                cleaned.append(request.id)

        host = Host(asks("sleep"), RunShell=slow)
        turn = asyncio.ensure_future(host.runtime.turn(UserSaid("hi")))
        await began.wait()
        host.runtime.tell(Interrupted())
        ended = await turn
        assert ended.reason is Reason.INTERRUPTED
        assert cleaned == [(2,)]

    asyncio.run(scene())


def test_close_cancels_what_is_outstanding() -> None:
    async def scene() -> None:
        ended = []

        async def hang(request: CallModel) -> AsyncGenerator[Event, None]:
            try:
                await asyncio.Event().wait()
                yield ModelEnded(request.id)
            finally:
                ended.append(request.id)

        host = Host(CallModel=hang)
        host.runtime.tell(UserSaid("hi"))
        await asyncio.sleep(0)
        await host.runtime.close()
        assert ended == [(1,)]

    asyncio.run(scene())


def test_a_bug_in_a_handler_ends_the_turn_instead_of_vanishing() -> None:
    async def scene() -> None:
        async def broken(request: CallModel) -> AsyncGenerator[Event, None]:
            raise ZeroDivisionError
            yield ModelEnded(request.id)

        host = Host(CallModel=broken)
        with pytest.raises(ZeroDivisionError):
            await host.runtime.turn(UserSaid("hi"))

    asyncio.run(scene())
