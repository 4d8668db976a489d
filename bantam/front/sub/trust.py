"""`bantam trust`, and the question that the REPL asks instead: may the key go where this folder's model.cfg points?"""

import os
from collections.abc import Sequence

from bantam.core.base import texts
from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.rules import credentials
from bantam.core.rules.credentials import Untrusted
from bantam.core.words.wrap import laid
from bantam.front.show.tell import columns, tell
from bantam.host import setup
from bantam.host.place import Place
from bantam.shell.disk import trusted
from bantam.shell.disk.files import StoreError


def run(words: Sequence[str], options: Sequence[str], place: Place) -> int | Problem:
    """Trust the endpoint of this folder's model.cfg with OPENAI_API_KEY, or no longer (`forget`)."""
    here = place.folder.resolve()
    if list(words) not in ([], ["forget"]):
        return Problem("bantam trust takes nothing, or: forget")
    try:
        if words:
            trusted.remember(place.home, here, "")
            return tell(f"no endpoint is trusted in {here} any more")
        key = {credentials.VARIABLE: place.environ.get(credentials.VARIABLE) or "unset"}
        found = setup.read(replace(place, environ={**place.environ, **key}), options)
        if isinstance(found, Problem):
            return found
        if isinstance(found, setup.Setup):
            return tell(f"nothing to do: {_why_not(found)}")
        trusted.remember(place.home, here, found.endpoint)
    except StoreError as problem:
        return Problem(str(problem))
    return tell(f"{credentials.VARIABLE} may go to {found.endpoint} from {here}; to take it back: bantam trust forget")


def ask(found: Untrusted, place: Place) -> bool:
    """One question on the terminal; yes is remembered. Raises StoreError."""
    facts = f"{credentials.VARIABLE} is set, and the model.cfg of this folder points to {texts.safe(found.endpoint)}."
    question = laid((facts, "Send the key there, now and from now on? [y/N]"), columns(1) - 1)  # and then a blank
    os.write(1, f"{question} ".encode(errors="replace"))
    answer = os.read(0, 1000).decode(errors="replace").strip().lower()
    if answer not in ("y", "yes"):
        return False
    trusted.remember(place.home, place.folder, found.endpoint)
    return True


def _why_not(found: setup.Setup) -> str:
    if found.config.endpoint == Config().endpoint:
        return "the default endpoint needs no key"
    return f"{found.config.endpoint} needs no trust, or has it already"
