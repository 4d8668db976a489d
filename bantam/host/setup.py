"""What a run starts from: model.cfg and system.txt of the working directory, `-c` options, the key."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass
from bantam.core.base.settings import SYSTEM_PROMPT, Config
from bantam.core.rules import credentials, redact
from bantam.core.rules.credentials import Untrusted
from bantam.core.wire.presets import PRESETS
from bantam.core.words import config
from bantam.core.words.config import Entry

CONFIG_FILE, SYSTEM_FILE = "model.cfg", "system.txt"


@dataclass(frozen=True)
class Setup:
    """The settings, and the key beside them."""

    config: Config
    key: str | None
    system: str
    notices: tuple[str, ...]


def read(options: Sequence[str], environ: Mapping[str, str]) -> Setup | Untrusted | Problem:
    """Read the files of the working directory. `options` are the values of `-c`."""
    text = read_text(CONFIG_FILE)
    if isinstance(text, Problem):
        return text
    system = read_text(SYSTEM_FILE)
    if isinstance(system, Problem):
        return system
    found = from_text(text or "", options, environ)
    if not isinstance(found, Setup):
        return found
    return Setup(found.config, found.key, SYSTEM_PROMPT if system is None else system, found.notices)


def from_text(text: str, options: Sequence[str], environ: Mapping[str, str]) -> Setup | Untrusted | Problem:
    """The settings of a model.cfg's text and of `-c` options, without a system prompt."""
    written = config.entries(text, CONFIG_FILE)
    if isinstance(written, Problem):
        return written
    given: list[Entry] = []
    for option in options:
        entry = config.entry_of(option, f"-c {option.partition('=')[0]}")
        if isinstance(entry, Problem):
            return entry
        given.append(entry)
    both = (*written, *given)
    settings = config.parse(both)
    if isinstance(settings, Problem):
        return settings
    chosen = any(entry.key == "endpoint" for entry in given)
    written_key, variables = config.secret(both), {name for name, value in environ.items() if value}
    source = credentials.key_source(settings, written_key, variables, chosen)
    if isinstance(source, Untrusted):
        from bantam.shell.disk import trusted

        if trusted.endpoint_of(Path.cwd()) == source.endpoint:
            source = credentials.key_source(settings, written_key, variables, True)
    match source:
        case Untrusted():
            return source
        case credentials.UseFile():
            key = written_key
        case credentials.UseVariable(name):
            key = environ[name]
        case credentials.NoKey():
            key = None
    return Setup(settings, key, "", config.notices(both))


def read_text(name: str) -> str | Problem | None:
    """The text of a file of the working directory; None where there is none."""
    try:
        data = Path(name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        return Problem(f"{name}: cannot be read: {problem.strerror or problem}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        return Problem(f"{name}, line {line}: not UTF-8; save the file as UTF-8")


def child_environment(environ: Mapping[str, str], key: str | None) -> dict[str, str]:
    """The environment of commands: Bantam's own without the key, under whatever name it stands.

    And without the variables of all presets, used or not: one `env` would hand them to the endpoint of a
    stranger's model.cfg.
    """
    hidden = secrets(environ, key)
    return {name: value for name, value in environ.items() if name not in _variables() and value not in hidden}


def secrets(environ: Mapping[str, str], key: str | None) -> frozenset[str]:
    """All that must not be seen: the key of this run, and those that wait for another endpoint."""
    values = {key, *(environ.get(name) for name in _variables())}
    return frozenset(value for value in values if value is not None and redact.is_secret(value))


def _variables() -> frozenset[str]:
    """The names of variables that hold keys."""
    return frozenset(
        {credentials.VARIABLE, *(preset.key_variable for preset in PRESETS.values() if preset.key_variable)}
    )


def backoff_scale(environ: Mapping[str, str]) -> float:
    """BANTAM_BACKOFF_SCALE: a factor of the Fibonacci delays, for tests."""
    try:
        return max(0.0, float(environ.get("BANTAM_BACKOFF_SCALE") or 1))
    except ValueError:
        return 1.0


def working_directory(folder: str) -> Problem | None:
    """Work in another folder (`-C`)."""
    try:
        os.chdir(folder)
    except OSError as problem:
        return Problem(f"-C {folder}: {problem.strerror or problem}")
    return None
