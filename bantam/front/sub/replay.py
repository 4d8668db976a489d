"""`bantam replay`: a past run, told again from its log. Nothing runs."""

import os
import time
from collections.abc import Sequence

from bantam.core.base import texts
from bantam.core.base.problem import Problem
from bantam.core.effects import Emit
from bantam.core.events import UserSaid
from bantam.core.past import history
from bantam.core.words.wrap import Kept
from bantam.front.show.screen import Screen
from bantam.host.place import Place
from bantam.shell.disk import tape
from bantam.shell.disk.files import StoreError
from bantam.shell.disk.store import Store

WAIT_MAX_S = 2.0  # between two events, however long it was
PROMPT = "bantam> "


def run(words: Sequence[str], place: Place) -> int | Problem:
    """Tell a log or a tape: on a terminal at its pace, or so many times as fast; 0 and elsewhere: at once."""
    name = words[0] if words else ""
    speed = _speed(words[1] if len(words) > 1 else "")
    if not name or speed is None or len(words) > 2:
        return Problem("bantam replay takes the id of a log or a tape, and perhaps how many times as fast (0: at once)")
    try:
        lines = tape.lines_of(name, place.folder, Store(place.home, place.clock.wall))
    except StoreError as problem:
        return Problem(str(problem))
    screen, before = Screen("transcript"), 0.0
    try:
        for past in history.pasts(lines):
            if speed and os.isatty(1):
                time.sleep(min(max(0.0, past.now - before) / speed, WAIT_MAX_S))
            before = past.now
            if isinstance(past.event, UserSaid):
                said = texts.safe(past.event.text).replace("\n", "\n" + " " * len(PROMPT))
                screen.say(Kept(PROMPT + said), "prompt")
            for effect in past.effects:
                if isinstance(effect, Emit):
                    screen.show(effect)
            if screen.lost:
                return screen.lost
    except (ValueError, TypeError, KeyError, RecursionError) as problem:
        return Problem(f"{name} is no log: {problem}")
    screen.fresh_line()
    return Problem(f"{name} {past.problem}") if past.damage.count else 0


def _speed(text: str) -> float | None:
    try:
        return max(0.0, float(text or 1))
    except ValueError:
        return None
