"""Where a call goes, by way of which proxy: an endpoint and the environment -> addresses.

Pure, and it decides nothing about a call. What may be secret in an address is kept out of what is shown.
"""

import ipaddress
import re
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from bantam.core.base.record import dataclass
from bantam.core.events import Failure, Fault
from bantam.core.rules import credentials
from bantam.core.wire.dialects import PATHS

USER_AGENT = "Mozilla/5.0 (compatible; Bantam/1.0)"


@dataclass(frozen=True)
class Target:
    """Where a call goes. `shown` is its endpoint without what may be secret, `login` a user and a password."""

    url: str
    shown: str
    login: str = ""


@dataclass(frozen=True)
class Proxy:
    url: str
    login: str = ""


def target(endpoint: str, path: str) -> Target | Failure:
    """The address of `path` behind an endpoint: a base URL, or a whole one, with or without a slash or a query."""
    plain = shown(endpoint)
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or re.search(r"[\x00-\x20\x7f\\]", endpoint):
        return Failure(Fault.REQUEST, f"endpoint={plain} is no URL of an API, such as https://api.openai.com/v1")
    whole = _base(parts.path) + path
    return Target(urlunsplit((parts.scheme, _authority(parts), whole, parts.query, "")), plain, _login(parts))


def proxy_for(url: str, environment: Mapping[str, str]) -> Proxy | Failure | None:
    """The proxy that the environment names for `url`; None to go directly, as to loopback always."""
    parts = urlsplit(url)
    value = _variable(environment, f"{parts.scheme}_proxy") or _variable(environment, "all_proxy")
    if not value or credentials.is_loopback(url) or _goes_directly(parts, _variable(environment, "no_proxy")):
        return None
    try:
        proxy = urlsplit(value if "://" in value else f"http://{value}")
        usable = proxy.scheme in ("http", "https") and proxy.hostname and proxy.port != 0
    except ValueError:
        usable = False
    if not usable:
        return Failure(Fault.REQUEST, f"the environment's proxy {shown(value)} cannot be used: it is no http:// URL")
    return Proxy(f"{proxy.scheme}://{_authority(proxy)}", _login(proxy))


def basic(login: str) -> str:
    """The header's value for `user:password`."""
    return f"Basic {b64encode(login.encode()).decode()}"


def shown(url: str) -> str:
    """A URL without user, password, query and the path that calls have."""
    return _base(re.split(r"[?#]", without_login(url))[0])


def without_login(url: str) -> str:
    return re.sub(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", r"\1", url, flags=re.I)


def _base(path: str) -> str:
    """A path, or a URL, without what a dialect has behind the endpoint."""
    path = path.rstrip("/")
    return next((path.removesuffix(end) for end in PATHS if path.endswith(end)), path)


def _authority(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _login(parts: SplitResult) -> str:
    return f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, environment.get(name.upper(), "")).strip()


def _goes_directly(parts: SplitResult, no_proxy: str) -> bool:
    """Whether an entry of NO_PROXY is meant: a name and all below it, with a port or not, an address, a network."""
    host = parts.hostname or ""
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    for entry in no_proxy.lower().replace(",", " ").split():
        name, colon, wanted = entry.rpartition(":")
        if not (colon and wanted.isdecimal()) or (":" in name and not name.endswith("]")):
            name, wanted = entry, str(port)
        name = name.strip("[]").removeprefix("*").removeprefix(".")
        if wanted == str(port) and (not name or host == name or host.endswith(f".{name}") or _lies_in(host, name)):
            return True
    return False


def _lies_in(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
