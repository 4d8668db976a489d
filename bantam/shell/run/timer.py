"""Performs `Sleep`: waits, then says that the time has come.

It decides nothing: how long, and how far the wait may be shortened, comes with the request.
"""

import asyncio
from collections.abc import AsyncGenerator

from bantam.core.effects import Sleep
from bantam.core.events import Event, TimerFired


async def sleep(request: Sleep, scale: float = 1.0) -> AsyncGenerator[Event, None]:
    """Wait for `request.seconds` times `scale`, but never less than the server asked for."""
    await asyncio.sleep(max(request.seconds * scale, request.floor_s))
    yield TimerFired(request.id)
