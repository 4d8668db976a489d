"""model.cfg: reading, writing, and changing one line."""

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bantam.core.base.problem import Problem
from bantam.core.base.settings import Config
from bantam.core.wire.presets import PRESETS
from bantam.core.words import config
from bantam.core.words.config import Entry
from tests.servers import TOOLBOX, Json
from tests.strategies import any_text, json_values, wild_text

pytestmark = pytest.mark.core
GOOD = {
    "endpoint": (
        "http://127.0.0.1:8080/v1",
        "https://x.example/v1/chat/completions",
        "HTTP://[::1]:1/v1",
        "http://me:pass:word@x/v1?a=b#c",
        "https://bücher.example:65535",
        "http://x:/v1",
    ),
    "model": ("big-pickle", "a=b", "#1"),
    "stream": ("true", "false", "ON", "0"),
    "color": ("auto", "never"),
    "render": ("", "markdown", "plain"),
    "timeout": ("300", "0.5", "1e300"),
    "shell_timeout": ("120", "1.25"),
    "max_al_iterations": ("1", "1_000"),
    "max_calls_total": ("0", "50"),
    "max_tokens_total": ("0", "1_000_000"),
    "max_seconds": ("0", "0.5", "600"),
    "max_cost_usd": ("0", "0.25"),
    "max_identical_calls": ("0", "3"),
    "price_in": ("1.25",),
    "price_out": ("0",),
    "tools": ("", "shell_exec", "run_subagent, shell_exec"),
    "shell": ("sh", "/bin/my shell"),
    "shell_output_bytes": ("100", "5000"),
    "context_window": ("0", "32000"),
    "provider": ("", *PRESETS),
    "api": ("", "chat"),
    "save": ("false",),
    "logs_keep": ("0", "7"),
    "approve": ("never", "ask", "allow git *; deny rm *"),
    "enter": ("cr", "lf"),
    "editing": ("vi",),
}
BAD = {
    "endpoint": (
        "",
        "x",
        "ftp://x",
        "http://",
        "http://x y",
        "http://x:99999/v1",
        "http://x:0",
        "http://x:1a",
        "http://[zz",
        "http://[zz]/v1",
        "http://:80",
        "http://x]",
        "http:///v1",
    ),
    "model": ("",),
    "stream": ("", "maybe"),
    "color": ("", "Auto"),
    "timeout": ("", "0", "-1", "inf", "nan", "five"),
    "max_al_iterations": ("", "0", "-1", "1.5", "9" * 16, "_"),
    "tools": ("shell", "shell_exec;run_subagent"),
    "shell": ("",),
    "shell_output_bytes": ("99",),
    "context_window": ("-1", "many"),
    "provider": ("acme",),
    "temperature": ("warm", "true", '"1"', "[1]"),
    "messages": ("[]",),
    "stream_options": ("{}",),
    "sandbox": ("bwrap",),
    "api": ("responses", "Chat"),
    "render": ("html",),
    "max_seconds": ("-1", "long", "inf"),
    "max_tokens_total": ("-1", "1.5"),
    "max_cost_usd": ("nan", "$1"),
    "price_in": ("free",),
    "approve": ("maybe", "allow", "permit rm *"),
    **dict.fromkeys(("API_KEY", "Api_Key", "apikey", "api-key", "OPENAI_API_KEY", "gemini_api_key"), ("sk-123456",)),
}
one_line = any_text.map(lambda text: " ".join(re.split(r"[\r\n]", text)).strip())
own_lines = st.sampled_from([(key, value) for key, some in GOOD.items() for value in some])
forwarded_keys = st.from_regex(r"[A-Za-z_][\w.-]{0,8}", fullmatch=True).filter(
    lambda key: not isinstance(config.parse([Entry(key, "null", "x")]), Problem) and key not in GOOD
)
forwarded_lines = st.tuples(forwarded_keys, one_line | json_values.map(json.dumps))
settings = st.lists(own_lines | forwarded_lines, max_size=8)
ends = st.sampled_from(["\n", "\r\n", "\r"])


def text_of(lines: list[tuple[str, str]]) -> str:
    return "".join(f"{key}={value}\n" for key, value in lines)


def entries(text: str) -> tuple[Entry, ...]:
    found = config.entries(text)
    assert not isinstance(found, Problem)
    return found


def read(text: str) -> Config:
    made = config.parse(entries(text))
    assert not isinstance(made, Problem)
    return made


@given(settings)
def test_what_is_written_is_read_again(lines: list[tuple[str, str]]) -> None:
    made = read(text_of(lines))
    assert read(config.render(made)) == made
    assert config.render(read(config.render(made))) == config.render(made)


@given(any_text | wild_text | settings.map(text_of))
def test_any_text_is_a_configuration_or_a_problem_that_says_where(text: str) -> None:
    found = config.entries(text)
    made = found if isinstance(found, Problem) else config.parse(found)
    assert isinstance(made, Config) or re.match(r"model\.cfg, line \d+: ", made.text)


def test_a_later_versions_key_that_asks_for_nothing_is_taken() -> None:
    assert read("sandbox=none\nrender=\n") == Config()


def test_a_dialect_of_a_later_version_is_said_to_be_one() -> None:
    problem = config.parse(entries("api=responses"))
    assert problem == Problem("model.cfg, line 1: api is not available in this version; remove the line")


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_a_value_of_the_wrong_kind_is_refused_with_its_line(key: str, value: str) -> None:
    problem = config.parse(entries(f"# first\n\n{key}={value}\n"))
    assert isinstance(problem, Problem)
    assert problem.text.startswith("model.cfg, line 3: ")
    assert key in problem.text


@pytest.mark.parametrize("line", ["model", "=x", "1=x", "a b=x", "[section]", "mo\rdel=x"])
def test_a_line_that_is_no_setting_is_refused(line: str) -> None:
    assert isinstance(config.entry_of(line, "-c"), Problem)


def test_a_setting_is_one_line() -> None:
    problem = config.entry_of("a=b\nendpoint=http://evil", "/cfg")
    assert problem == Problem("/cfg: expected one line, found 'a=b\\nendpoint=http://evil'")


def test_a_bom_blanks_comments_and_equal_keys_are_taken_as_they_should() -> None:
    made = read("\ufeff# hi\r\n  model = a=b # c \r\nmodel=x\r\rtemperature=null\nmax_seconds=0")
    assert made == Config(model="x", forwarded={})


@given(json_values)
def test_a_forwarded_value_is_json_where_it_looks_like_it(value: Json) -> None:
    text = json.dumps(value)
    assert config.forwarded_value(text) == value


@pytest.mark.parametrize(
    "text", ["high", "", "NaN", "-", "Infinity", "[NaN]", "1e999", "-Infinity", "{", "nullable", "0123"]
)
def test_what_is_no_json_is_text(text: str) -> None:
    assert config.forwarded_value(text) == text


# --- changing one line


@given(st.lists(own_lines | forwarded_lines | st.just(("# note", "a=b")), max_size=6), ends, own_lines, st.booleans())
def test_an_update_changes_one_setting_and_keeps_the_rest(
    lines: list[tuple[str, str]], end: str, new: tuple[str, str], open_end: bool
) -> None:
    text = end.join(f"{key}={value}" for key, value in lines) + end * (not open_end and bool(lines))
    key, value = new
    changed = config.update(text, key, value)
    before, after = entries(text), entries(changed)
    assert [(e.key, e.value) for e in after if e.key == key][-1] == (key, value)
    last = max((n for n, entry in enumerate(before) if entry.key == key), default=len(before))
    expected = [*before[:last], Entry(key, value, ""), *before[last + 1 :]]
    assert [(e.key, e.value) for e in after] == [(e.key, e.value) for e in expected]
    assert [*_comments(changed)] == [*_comments(text)]
    assert config.update(changed, key, value) == changed


@given(any_text, own_lines)
def test_an_update_of_any_text_keeps_its_other_lines(text: str, new: tuple[str, str]) -> None:
    """Also where a line has characters that Python, but no model.cfg, takes for line ends."""
    changed = config.update(text, *new)
    kept = [line for line in _lines(text) if line and line.partition("=")[0].strip("\ufeff \t") != new[0]]
    assert all(line in _lines(changed) for line in kept)


def test_an_update_keeps_the_bom_the_blanks_and_the_line_ends() -> None:
    text = "\ufeffmodel=a\r\n # b\r\n\r\nmodel = c\r\n"
    assert config.update(text, "model", "d") == "\ufeffmodel=a\r\n # b\r\n\r\nmodel=d\r\n"
    assert config.update("\ufeffmodel=a", "model", "d") == "\ufeffmodel=d"
    assert config.update("a=1\r\nb=2", "c", "3") == "a=1\r\nb=2\r\nc=3\r\n"
    assert config.update("a=1\rb=2", "a", "3") == "a=3\rb=2"


def _lines(text: str) -> list[str]:
    return re.split(r"\r\n|\n|\r", text)


def _comments(text: str) -> list[str]:
    return [line for line in _lines(text) if line.startswith("#")]


# --- the rest


def test_the_last_of_two_keys_wins_and_no_config_holds_it() -> None:
    found = entries("api_key=a\nmodel=x\napi_key=b")
    assert config.secret(found) == "b"
    assert config.secret(entries("api_key=")) == ""
    assert config.secret(entries("model=x")) is None
    assert config.parse(found) == Config(model="x")


@pytest.mark.parametrize("provider", PRESETS)
def test_a_preset_fills_what_is_not_set(provider: str) -> None:
    preset = PRESETS[provider]
    made = read(f"provider={provider}")
    assert (made.endpoint, made.context_window) == (preset.endpoint, preset.context_window)
    assert read(f"provider={provider}\nendpoint=http://x/v1").endpoint == "http://x/v1"


def test_the_tools_that_can_be_named_are_those_that_there_are() -> None:
    written = Entry("tools", "look_up,shell_exec", "here")
    found = config.parse([written], TOOLBOX)
    assert isinstance(found, Config)
    assert found.tools == ("shell_exec", "look_up")
    words = "here: tools must be a list of shell_exec, run_subagent"
    assert config.parse([written]) == Problem(f"{words}, found 'look_up,shell_exec'")
    assert config.parse([Entry("tools", "rm", "here")], TOOLBOX) == Problem(f"{words}, look_up, found 'rm'")


def test_the_small_local_model_gets_no_tools_unless_told() -> None:
    assert read("provider=local").tools == ()
    assert read("provider=local\ntools=shell_exec").tools == ("shell_exec",)
    assert read("provider=local\nmodel=big.gguf").tools == Config().tools


def test_a_key_that_looks_misspelt_gets_a_notice() -> None:
    found = entries("modle=x\ntemperature=1\ntop_p=1\napi_kee=x\nstreem=x")
    assert [notice.split(": ")[0] for notice in config.notices(found)] == [
        "model.cfg, line 1",
        "model.cfg, line 4",
        "model.cfg, line 5",
    ]
    assert "did you mean model?" in config.notices(found)[0]


@given(st.text("ab", max_size=4), st.text("ab", max_size=4))
def test_one_edit_is_one_edit(a: str, b: str) -> None:
    def edits(word: str) -> set[str]:
        cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
        added = {x + c + y for x, y in cuts for c in "ab"}
        removed = {x + y[1:] for x, y in cuts if y}
        changed = {x + c + y[1:] for x, y in cuts if y for c in "ab"}
        swapped = {x + y[1] + y[0] + y[2:] for x, y in cuts if len(y) > 1}
        return (added | removed | changed | swapped) - {word}

    assert config.one_edit(a, b) == (b in edits(a))


@given(settings)
def test_all_settings_are_shown_and_the_key_is_not(lines: list[tuple[str, str]]) -> None:
    assume(all(key != "api_key" for key, _ in lines))
    made = read(text_of(lines))
    shown = dict(config.shown(made, has_key=True))
    assert shown["api_key"] == "********"
    assert dict(config.shown(made, has_key=False))["api_key"] == "(none)"
    assert shown.keys() >= {*GOOD, *made.forwarded}
    assert set(config.names()) >= {*GOOD, "api_key", "temperature"}
