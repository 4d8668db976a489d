"""One setting changed, in model.cfg and in what a conversation goes on with. What is wrong with it changes nothing."""

from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.words import config
from bantam.host import setup
from bantam.host.setup import Setup
from bantam.shell.disk import files


def change(found: Setup, key: str, value: str) -> Setup | Problem:
    """Write the line, and read what comes of it. The system prompt stays what it was."""
    old = setup.read_text(found.place, setup.CONFIG_FILE)
    if isinstance(old, Problem):
        return old
    if "\n" in value or "\r" in value:
        return Problem(f"/cfg {key}: a value is one line")
    entry = config.entry_of(f"{key}={value}", "/cfg")
    if isinstance(entry, Problem):
        return entry
    text = config.update(old or "", key, entry.value)
    options = [option for option in found.options if option.partition("=")[0].strip() != key]  # the later word wins
    options += [f"endpoint={value}"] if key == "endpoint" else []  # named by the user, so the key may go there
    new = setup.from_text(text, found.place, options)
    if not isinstance(new, Setup):
        return Problem(f"nothing was changed: {new.text}")
    path = found.place.path(setup.CONFIG_FILE)
    try:
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o600
        files.write_whole(path.resolve(), text.encode(), mode)
    except OSError as problem:
        return Problem(f"cannot write {setup.CONFIG_FILE}: {problem.strerror or problem}")
    return replace(new, system=found.system)
