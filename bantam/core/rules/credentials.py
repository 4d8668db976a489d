"""Which key may go where. A folder's model.cfg names the endpoint, and folders are cloned from strangers."""

import re
from collections.abc import Collection, Mapping

from bantam.core.base.record import dataclass
from bantam.core.base.settings import Config
from bantam.core.rules import redact
from bantam.core.wire.presets import PRESETS

VARIABLE = "OPENAI_API_KEY"
_LOOPBACK = r"localhost|127(\.\d{1,3}){3}|\[::1\]"


@dataclass(frozen=True)
class UseFile:
    """Send the key that is written in model.cfg or given with -c."""


@dataclass(frozen=True)
class UseVariable:
    """Send the key that this environment variable holds."""

    name: str


@dataclass(frozen=True)
class NoKey:
    pass


@dataclass(frozen=True)
class Untrusted:
    """The key would go where the user has not said that it may. `endpoint` as `bantam trust` remembers it."""

    endpoint: str

    @property
    def text(self) -> str:
        return (
            f"{VARIABLE} is set, and model.cfg points to {origin(self.endpoint)}, which must not get it unasked. "
            f"To send it there from this folder: bantam trust; in this run only: bantam -c endpoint={self.endpoint}; "
            "to send no key: write api_key= into model.cfg"
        )


def key_source(
    config: Config, written: str | None, variables: Collection[str], chosen: bool
) -> UseFile | UseVariable | NoKey | Untrusted:
    """Where the key of a run comes from. `written` is api_key; `chosen`: the user has named or trusted the endpoint."""
    if written is not None:
        return UseFile() if written else NoKey()
    preset = PRESETS.get(config.provider)
    if preset is not None:
        own = preset.key_variable in variables and origin(config.endpoint) == origin(preset.endpoint)
        return UseVariable(preset.key_variable) if own else NoKey()
    if VARIABLE not in variables or origin(config.endpoint) == origin(Config().endpoint):
        return NoKey()
    if chosen or is_loopback(config.endpoint) or origin(config.endpoint) == "https://api.openai.com":
        return UseVariable(VARIABLE)
    return Untrusted(config.endpoint)


def secrets(environ: Mapping[str, str], key: str | None) -> frozenset[str]:
    """All that must not be seen: the key of this run, and those that wait for another endpoint."""
    values = {key, *(environ.get(name) for name in _variables())}
    return frozenset(value for value in values if value is not None and redact.is_secret(value))


def without_keys(environ: Mapping[str, str], key: str | None) -> dict[str, str]:
    """What commands get of an environment: all but the key, under whatever name it stands.

    And without the variables of all presets, used or not: one `env` would hand them to the endpoint of a
    stranger's model.cfg.
    """
    hidden, named = secrets(environ, key), _variables()
    return {name: value for name, value in environ.items() if name not in named and value not in hidden}


def _variables() -> frozenset[str]:
    """The names of variables that hold keys."""
    return frozenset({VARIABLE, *(preset.key_variable for preset in PRESETS.values() if preset.key_variable)})


def origin(url: str) -> str:
    """scheme://host[:port] in lower case, without a user name, a path or the scheme's own port."""
    match = re.match(r"(https?)://(?:[^/?#]*@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d*))?", url, re.I)
    if match is None:
        return ""
    scheme, host, port = match[1].lower(), match[2].lower(), match[3] or ""
    own = {"http": "80", "https": "443"}[scheme]
    return f"{scheme}://{host}" + (f":{port}" if port and port != own else "")


def is_loopback(url: str) -> bool:
    host = re.sub(r"^https?://", "", origin(url))
    return bool(re.fullmatch(_LOOPBACK, re.sub(r":\d+$", "", host)))
