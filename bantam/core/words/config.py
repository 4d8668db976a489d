"""model.cfg: plain `key=value` lines -> Config, or one line that says what is wrong and where.

The file is read in two steps: lines to entries, entries to a Config, so that `-c KEY=VALUE` is just more
entries. The key (`api_key`) is in the entries and never in the Config.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass, fields
from bantam.core.base.settings import Config
from bantam.core.tools import table
from bantam.core.tools.table import BUILT_IN, Toolbox
from bantam.core.wire.dialects import CHAT, DIALECTS
from bantam.core.wire.presets import LOCAL, LOCAL_MODEL, PRESETS

NOT_YET = {  # keys and values of later versions: the values that there are now
    "sandbox": ("", "none"),
    "api": ("", *DIALECTS),
    "fallback_models": ("",),
}


@dataclass(frozen=True)
class Entry:
    """One `key=value`; `where` is for messages: `model.cfg, line 3` or `-c`."""

    key: str
    value: str
    where: str


def entries(text: str, name: str = "model.cfg") -> tuple[Entry, ...] | Problem:
    """The lines of a file: a BOM and CRLF are accepted, blanks around key and value do not count."""
    found = []
    for number, line in enumerate(_lines(text), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            entry = entry_of(line, f"{name}, line {number}")
            if isinstance(entry, Problem):
                return entry
            found.append(entry)
    return tuple(found)


def entry_of(line: str, where: str) -> Entry | Problem:
    """One `key=value`, as in a line of the file or behind `-c`."""
    if len(_lines(line.strip())) > 1:
        return Problem(f"{where}: expected one line, found {line[:60]!r}")
    key, sign, value = line.partition("=")
    key = key.strip()
    if not sign or not re.fullmatch(r"[A-Za-z_][\w.-]*", key):
        return Problem(f"{where}: expected key=value")  # not quoted: it may be the key, written wrongly
    return Entry(key, value.strip(), where)


def parse(found: Iterable[Entry], toolbox: Toolbox = BUILT_IN) -> Config | Problem:
    """The settings; the last of two equal keys wins. `toolbox`: the tools that there are."""
    kinds = _OWN if toolbox is BUILT_IN else {**_OWN, "tools": _tools(toolbox)}
    last = {entry.key: entry for entry in found}
    own: dict[str, Any] = {}
    forwarded: dict[str, Any] = {"temperature": 0.7}
    dialect = DIALECTS.get(last["api"].value if "api" in last else CHAT, DIALECTS[CHAT])
    for entry in last.values():
        if entry.key == "api_key":
            continue
        if _is_key_elsewhere(entry.key):
            return Problem(f"{entry.where}: {entry.key} would be sent as it is; a key is written as api_key=…")
        if entry.key in dialect.MADE:
            return Problem(f"{entry.where}: {entry.key} is made by Bantam itself and cannot be set")
        if entry.value not in NOT_YET.get(entry.key, (entry.value,)):
            return Problem(f"{entry.where}: {entry.key} is not available in this version; remove the line")
        if entry.key in kinds:
            expected, read = kinds[entry.key]
            value = read(entry.value)
            if entry.key == "approve" and value != "never":
                problem = _approve_problem(value)
                if problem:
                    return Problem(f"{entry.where}: {problem}")
            if value is None:
                return Problem(f"{entry.where}: {entry.key} must be {expected}, found {entry.value!r}")
            own[entry.key] = value
        elif entry.key not in NOT_YET:
            value = forwarded_value(entry.value)
            if entry.key == "temperature" and not _is_number(value) and value is not None:
                return Problem(f"{entry.where}: temperature must be a number or null, found {entry.value!r}")
            forwarded[entry.key] = value
    forwarded = {key: value for key, value in forwarded.items() if value is not None}
    return Config(**{**_preset(own), **own}, forwarded=forwarded)


def secret(found: Iterable[Entry]) -> str | None:
    """The value of `api_key`; None where the key is not set, "" where it is set to nothing."""
    return next((entry.value for entry in reversed([*found]) if entry.key == "api_key"), None)


def notices(found: Iterable[Entry]) -> tuple[str, ...]:
    """Keys that look like a misspelt one of Bantam's own: they are forwarded, and probably not meant so."""
    known = (*_OWN, *NOT_YET, "api_key")
    return tuple(
        f"{entry.where}: {entry.key} is sent to the API as it is; did you mean {near}?"
        for entry in found
        if entry.key not in known
        for near in [next((name for name in known if one_edit(entry.key, name)), "")]
        if near
    )


def render(config: Config) -> str:
    """The text of a model.cfg that gives `config` again."""
    lines = [f"{f.name}={_written(getattr(config, f.name))}" for f in fields(config) if f.name in _OWN]
    lines += [f"{key}={_forwarded_text(value)}" for key, value in config.forwarded.items()]
    lines += [] if "temperature" in config.forwarded else ["temperature=null"]
    return "\n".join(lines) + "\n"


def update(text: str, key: str, value: str) -> str:
    """The text with one line changed, the last that sets `key`, or one more at the end. The rest stays."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    ending = "\r\n" if "\r\n" in text else "\n"
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at].lstrip("\ufeff").strip()
        if not line.startswith("#") and line.partition("=")[0].strip() == key and "=" in line:
            mark = "\ufeff" if lines[at].startswith("\ufeff") else ""
            last = lines[at][len(lines[at].rstrip("\r\n")) :]
            lines[at] = f"{mark}{key}={value}{last}"
            return "".join(lines)
    if lines[-1]:
        lines[-1] += ending
    return "".join(lines) + f"{key}={value}{ending}"


def shown(config: Config, has_key: bool) -> tuple[tuple[str, str], ...]:
    """All settings as `/cfg` lists them, the key masked."""
    own = [(f.name, _written(getattr(config, f.name))) for f in fields(config) if f.name in _OWN]
    rest = [(key, _forwarded_text(value)) for key, value in config.forwarded.items()]
    return (*own, ("api_key", "********" if has_key else "(none)"), *rest)


def names() -> tuple[str, ...]:
    """The keys of Bantam's own that can be set, for completion."""
    return (*_OWN, "api_key", "temperature")


def values(key: str) -> tuple[str, ...]:
    """The values that a key can have, for completion; () where there are too many to name."""
    expected, read = _OWN.get(key, ("", None))
    if read is _bool:
        return ("true", "false")
    found = tuple(expected.removeprefix("one of ").split(", ")) if expected.startswith("one of ") else ()
    named = {"tools": table.names(BUILT_IN), "approve": ("never", "ask"), "temperature": ("null",)}.get(key, ())
    return tuple(filter(None, found)) or named


def forwarded_value(text: str) -> Any:
    """JSON where it is a number, true, false, null, a list, an object or a quoted string; else the text."""
    if text[:1] not in '-0123456789tfn[{"':
        return text
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def _is_key_elsewhere(name: str) -> bool:
    """Whether a setting can only be meant as the key: `API_KEY`, `apikey`, a preset's variable."""
    plain = re.sub(r"[_.-]", "", name).lower()
    variables = {preset.key_variable for preset in PRESETS.values()} | {"OPENAI_API_KEY"}
    return plain == "apikey" or name.upper() in variables


def one_edit(a: str, b: str) -> bool:
    """Whether one letter added, removed or changed, or two neighbours swapped, make `a` into `b`."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    at = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rests = {(a[at + 1 :], b[at:]), (a[at:], b[at + 1 :]), (a[at + 1 :], b[at + 1 :])}
    swapped = a[at : at + 2][::-1] == b[at : at + 2] and a[at + 2 :] == b[at + 2 :]
    return swapped or any(x == y for x, y in rests)


# --- the kinds of values: each reads a text and gives None for one that does not fit


def _bool(text: str) -> bool | None:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    return words.get(text.lower())


def _amount(text: str) -> float | None:
    """A number of at least 0; nothing counts as 0."""
    try:
        value = float(text or 0)
    except ValueError:
        return None
    if not math.isfinite(value) or value < 0:
        return None
    return int(value) if value.is_integer() else value


def _seconds(text: str) -> float | None:
    return _amount(text) or None


def _count(least: int) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        digits = text.replace("_", "")
        return int(digits) if re.fullmatch(r"[0-9]{1,15}", digits) and int(digits) >= least else None

    return read


def _one_of(*words: str) -> tuple[str, Callable[[str], str | None]]:
    return "one of " + ", ".join(words), lambda text: text if text in words else None


def _url(text: str) -> str | None:
    found = _URL.fullmatch(text)
    return text if found and int(found["port"] or 1) in range(1, 65536) else None


def _approve_problem(text: str) -> str:
    from bantam.core.rules import approval  # seldom needed

    found = approval.parse(text)
    return found.text if isinstance(found, Problem) else ""


_URL = re.compile(  # RFC 3986, 3.2, as far as http needs it: a login, a name or an address in brackets, a port
    r"https?://(?:[^\s/?#@]*@)?(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::(?P<port>[0-9]{0,5}))?(?:[/?#]\S*)?", re.I
)


def _tools(toolbox: Toolbox) -> tuple[str, Callable[[str], tuple[str, ...] | None]]:
    known = table.names(toolbox)

    def read(text: str) -> tuple[str, ...] | None:
        wanted = {name.strip() for name in text.split(",") if name.strip()}
        return table.names(table.chosen(toolbox, wanted)) if wanted <= {*known} else None

    return "a list of " + ", ".join(known), read


_OWN: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "endpoint": ("a URL that begins with http:// or https://", _url),
    "model": ("a name", lambda text: text or None),
    "stream": ("true or false", _bool),
    "color": _one_of("auto", "always", "never"),
    "render": ("markdown or plain", {"": "markdown", "markdown": "markdown", "plain": "plain"}.get),
    "timeout": ("a number of seconds above 0", _seconds),
    "shell_timeout": ("a number of seconds above 0", _seconds),
    "max_al_iterations": ("a whole number of at least 1", _count(1)),
    "max_calls_total": ("a whole number, or 0 for no limit", _count(0)),
    "max_tokens_total": ("a whole number, or 0 for no limit", _count(0)),
    "max_seconds": ("a number of seconds, or 0 for no limit", _amount),
    "max_cost_usd": ("a number of dollars, or 0 for no limit", _amount),
    "max_identical_calls": ("a whole number, or 0 for no limit", _count(0)),
    "price_in": ("USD per million tokens", _amount),
    "price_out": ("USD per million tokens", _amount),
    "tools": _tools(BUILT_IN),
    "shell": ("the name or path of a shell", lambda text: text or None),
    "shell_output_bytes": ("a whole number of at least 100", _count(100)),
    "context_window": ("a whole number of tokens", _count(0)),
    "provider": _one_of("", *PRESETS),
    "api": ("the name of a dialect", lambda text: text or CHAT),
    "save": ("true or false", _bool),
    "logs_keep": ("a whole number", _count(0)),
    "approve": ("never, ask or rules", lambda text: text or "never"),
    "enter": _one_of("cr", "lf"),
    "editing": _one_of("emacs", "vi"),
}


def _preset(own: Mapping[str, Any]) -> dict[str, Any]:
    name = own.get("provider")
    if not name:
        return {}
    preset = PRESETS[name]
    filled: dict[str, Any] = {"endpoint": preset.endpoint, "context_window": preset.context_window}
    if name == LOCAL:
        filled["model"] = LOCAL_MODEL
        if own.get("model", LOCAL_MODEL) == LOCAL_MODEL:  # so small a model makes commands up
            filled["tools"] = ()
    return filled


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _forwarded_text(value: Any) -> str:
    """A forwarded value so that `forwarded_value` reads it again."""
    if isinstance(value, str) and forwarded_value(value) == value and value == value.strip() and value.isprintable():
        return value
    return json.dumps(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _no_constant(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are no JSON, so they are text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _lines(text: str) -> Sequence[str]:
    return re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff"))
