"""The key goes where it may, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.settings import Config
from bantam.core.rules.credentials import (
    VARIABLE,
    NoKey,
    Untrusted,
    UseFile,
    UseVariable,
    is_loopback,
    key_source,
    origin,
)
from bantam.core.wire.presets import PRESETS

pytestmark = pytest.mark.core
ENDPOINTS = (
    Config().endpoint,
    "https://api.openai.com/v1",
    "https://API.openai.com:443/v1/chat/completions",
    "http://api.openai.com/v1",
    "https://api.openai.com.evil.example/v1",
    "https://api.openai.com@evil.example/v1",
    "https://evil.example/v1#api.openai.com",
    "http://localhost:8080/v1",
    "http://127.0.0.1/v1",
    "http://[::1]:1/v1",
    "http://127.0.0.1.evil.example/v1",
    "http://localhost@evil.example/v1",
    *(preset.endpoint for preset in PRESETS.values()),
)
VARIABLES = (VARIABLE, *(preset.key_variable for preset in PRESETS.values()))
MAY_HAVE_IT = ("https://api.openai.com", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:1")
configs = st.builds(Config, endpoint=st.sampled_from(ENDPOINTS), provider=st.sampled_from([*[""] * 9, *PRESETS]))


@given(configs, st.none() | st.sampled_from(["", "sk-1"]), st.sets(st.sampled_from(VARIABLES)), st.booleans())
def test_a_key_of_the_environment_goes_only_where_it_may(
    config: Config, written: str | None, variables: set[str], chosen: bool
) -> None:
    match key_source(config, written, variables, chosen):
        case UseFile():
            assert written
        case UseVariable(name):
            assert written is None
            assert name in variables
            if config.provider:
                preset = PRESETS[config.provider]
                assert (name, origin(config.endpoint)) == (preset.key_variable, origin(preset.endpoint))
            else:
                allowed = chosen or origin(config.endpoint) in MAY_HAVE_IT or is_loopback(config.endpoint)
                assert (name, allowed) == (VARIABLE, True)
        case NoKey():
            assert not written
        case Untrusted(endpoint) as found:
            assert (VARIABLE in variables, written, config.provider, chosen) == (True, None, "", False)
            assert endpoint == config.endpoint
            assert f"bantam -c endpoint={config.endpoint}" in found.text


def test_where_the_key_may_go_it_goes() -> None:
    for url in ("https://api.openai.com/v1", "http://localhost:8080/v1"):
        assert key_source(Config(endpoint=url), None, {VARIABLE}, False) == UseVariable(VARIABLE)
    assert key_source(Config(endpoint="https://evil.example"), None, {VARIABLE}, True) == UseVariable(VARIABLE)
    gemini = Config(endpoint=PRESETS["gemini"].endpoint, provider="gemini")
    assert key_source(gemini, None, {"GEMINI_API_KEY"}, False) == UseVariable("GEMINI_API_KEY")
    assert key_source(Config(), "sk-1", {VARIABLE}, False) == UseFile()


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("https://X.example:443/v1", "https://x.example"),
        ("HTTP://x.example:80", "http://x.example"),
        ("http://x.example:443/v1", "http://x.example:443"),
        ("http://a:b@x.example/@y", "http://x.example"),
        ("http://[::1]:8080/v1", "http://[::1]:8080"),
        ("http://x.example?@y", "http://x.example"),
        ("ftp://x.example", ""),
        ("", ""),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, where: str) -> None:
    assert origin(url) == where


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "LOCALHOST", "user@localhost"])
def test_this_machine_is_loopback(host: str) -> None:
    assert is_loopback(f"http://{host}:8080/v1")
    assert is_loopback(f"https://{host}")


@pytest.mark.parametrize(
    "host", ["localhost.example", "127.0.0.1.example", "128.0.0.1", "[::2]", "localhost@x.example", ""]
)
def test_other_machines_are_not(host: str) -> None:
    assert not is_loopback(f"http://{host}:8080/v1")


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/chat/completions/"])
def test_the_default_endpoint_gets_no_variable_however_it_is_written(ending: str) -> None:
    config = Config(endpoint=Config().endpoint + ending)
    assert key_source(config, None, {VARIABLE}, chosen=False) == NoKey()


def test_what_is_not_trusted_says_what_to_type() -> None:
    stranger = Config(endpoint="https://evil.example/v1?a=b")
    found = key_source(stranger, None, {VARIABLE}, chosen=False)
    assert found == Untrusted(stranger.endpoint)
    assert isinstance(found, Untrusted)
    assert "points to https://evil.example, which" in found.text
    assert "bantam trust; " in found.text
    assert key_source(stranger, None, {VARIABLE}, chosen=True) == UseVariable(VARIABLE)
    assert key_source(stranger, "", {VARIABLE}, chosen=False) == NoKey()
