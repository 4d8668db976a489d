"""What a conversation starts from: model.cfg and system.txt of its folder, `-c` options, the key."""

from collections.abc import Sequence

from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass, replace
from bantam.core.base.settings import SYSTEM_PROMPT, Config
from bantam.core.rules import credentials
from bantam.core.rules.credentials import Untrusted
from bantam.core.words import config
from bantam.core.words.config import Entry
from bantam.host.place import Place

CONFIG_FILE, SYSTEM_FILE = "model.cfg", "system.txt"


@dataclass(frozen=True)
class Setup:
    """The settings, and the key beside them; `options`, the values of `-c`, hold whatever model.cfg says."""

    place: Place
    options: tuple[str, ...]
    config: Config
    key: str | None
    system: str
    notices: tuple[str, ...]


def read(place: Place, options: Sequence[str] = ()) -> Setup | Untrusted | Problem:
    """Read the files of the folder. `options` are the values of `-c`."""
    text = read_text(place, CONFIG_FILE)
    if isinstance(text, Problem):
        return text
    system = read_text(place, SYSTEM_FILE)
    if isinstance(system, Problem):
        return system
    found = from_text(text or "", place, options)
    if not isinstance(found, Setup):
        return found
    return replace(found, system=SYSTEM_PROMPT if system is None else system)


def from_text(text: str, place: Place, options: Sequence[str]) -> Setup | Untrusted | Problem:
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
    key = _key(settings, config.secret(both), place, any(entry.key == "endpoint" for entry in given))
    if isinstance(key, Untrusted):
        return key
    return Setup(place, tuple(options), settings, key, "", config.notices(both))


def _key(settings: Config, written: str | None, place: Place, chosen: bool) -> str | Untrusted | None:
    """The key that may go to the endpoint, `written` in the file or in the environment."""
    variables = {name for name, value in place.environ.items() if value}
    source = credentials.key_source(settings, written, variables, chosen)
    if isinstance(source, Untrusted):
        from bantam.shell.disk import trusted

        if trusted.endpoint_of(place.home, place.folder) == source.endpoint:
            source = credentials.key_source(settings, written, variables, True)
    match source:
        case Untrusted():
            return source
        case credentials.UseFile():
            return written
        case credentials.UseVariable(name):
            return place.environ[name]
        case credentials.NoKey():
            return None


def read_text(place: Place, name: str) -> str | Problem | None:
    """The text of a file of the folder; None where there is none."""
    try:
        data = place.path(name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        return Problem(f"{name}: cannot be read: {problem.strerror or problem}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        return Problem(f"{name}, line {line}: not UTF-8; save the file as UTF-8")


def child_environment(place: Place, key: str | None) -> dict[str, str]:
    """The environment of commands in the folder: Bantam's own without keys."""
    return {**credentials.without_keys(place.environ, key), "PWD": str(place.folder)}
