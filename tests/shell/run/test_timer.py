"""`Sleep` with a real loop: the shortest waits that still tell a scaled one from one that is not."""

import asyncio
import time

import pytest

from bantam.core.effects import Sleep
from bantam.core.events import Event, TimerFired
from bantam.shell.run.timer import sleep


def wait(request: Sleep, scale: float = 1.0) -> tuple[list[Event], float]:
    """The events, and how many seconds they took."""

    async def collect() -> list[Event]:
        return [event async for event in sleep(request, scale)]

    begin_s = time.monotonic()
    return asyncio.run(collect()), time.monotonic() - begin_s


def test_the_timer_fires_once_when_its_time_has_come() -> None:
    events, took_s = wait(Sleep((3, 1), 0.05))
    assert events == [TimerFired((3, 1))]
    assert took_s >= 0.05


def test_a_wait_of_bantams_own_is_scaled() -> None:
    events, took_s = wait(Sleep((1,), 60), scale=0.0001)
    assert events == [TimerFired((1,))]
    assert took_s < 5


def test_a_wait_that_the_server_asked_for_is_never_shortened() -> None:
    events, took_s = wait(Sleep((1,), 0.1, floor_s=0.1), scale=0)
    assert events == [TimerFired((1,))]
    assert took_s >= 0.1


def test_the_floor_does_not_lengthen_a_longer_wait() -> None:
    tries = (wait(Sleep((1,), 0.2, floor_s=0.2))[1] for _ in range(5))
    assert any(0.2 <= took_s < 0.4 for took_s in tries), "once at least, on a busy machine"


def test_a_wait_of_nothing_fires_as_well() -> None:
    assert wait(Sleep((1,), 0))[0] == [TimerFired((1,))]


def test_a_cancelled_wait_leaves_nothing() -> None:
    async def scene() -> set[asyncio.Task[None]]:
        async def consume() -> None:
            async for event in sleep(Sleep((1,), 60)):
                pytest.fail(f"{event} came")

        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return {other for other in asyncio.all_tasks() if other is not asyncio.current_task()}

    assert asyncio.run(scene()) == set()
