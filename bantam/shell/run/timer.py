"""Performs `Sleep`: waits, then says that the time has come.

It decides nothing: how long, and how far the wait may be shortened, comes with the request.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping

from bantam.core.effects import Sleep
from bantam.core.events import Event, TimerFired


async def sleep(request: Sleep, scale: float = 1.0) -> AsyncGenerator[Event, None]:
    """Wait for `request.seconds` times `scale`, but never less than the server asked for."""
    await asyncio.sleep(max(request.seconds * scale, request.floor_s))
    yield TimerFired(request.id)


def scale(environ: Mapping[str, str]) -> float:
    """BANTAM_BACKOFF_SCALE: a factor of the Fibonacci delays, for tests."""
    try:
        return max(0.0, float(environ.get("BANTAM_BACKOFF_SCALE") or 1))
    except ValueError:
        return 1.0
