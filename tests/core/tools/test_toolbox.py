"""Calls become actions or an explanation, and nothing runs with arguments that did not parse."""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.record import replace
from bantam.core.base.settings import DEPTH_MAX, TOOL_NAMES
from bantam.core.events import CommandEnded, ToolProgress
from bantam.core.tools import table, toolbox
from bantam.core.tools.table import BUILT_IN
from bantam.core.tools.toolbox import Command, Function, Heard, Task, Unusable
from tests.servers import LOOK_UP, TOOLBOX, Json
from tests.strategies import any_text, json_objects, json_values, wild_text

pytestmark = pytest.mark.core
any_arguments = json_values | json_objects | (json_values | json_objects).map(json.dumps) | any_text


def parse(name: Json, arguments: Json, depth: int = 0, cut: bool = False) -> toolbox.Action:
    return toolbox.parse({"function": {"name": name, "arguments": arguments}}, TOOL_NAMES, depth, cut)


def why(action: toolbox.Action) -> str:
    assert isinstance(action, Unusable)
    return action.why


@given(st.sampled_from([*TOOL_NAMES, "rm_rf", "", 3]), any_arguments, st.integers(0, DEPTH_MAX), st.booleans())
def test_whatever_a_model_writes_is_run_as_written_or_explained(name: Json, raw: Json, depth: int, cut: bool) -> None:
    match parse(name, raw, depth, cut):
        case Command(command):
            assert name == "shell_exec"
            assert _object(raw)["command"] == command
            command.encode()
            assert "\0" not in command
        case Task(prompt):
            assert name == "run_subagent"
            assert _object(raw)["prompt"] == prompt
            assert prompt.strip()
            assert depth < DEPTH_MAX
        case Unusable(why):
            assert why.startswith("error: ")
            why.encode()


def _object(raw: Json) -> Json:
    return json.loads(raw) if isinstance(raw, str) else raw


@given(wild_text.filter(lambda text: "\0" not in text), json_objects)
def test_a_good_command_runs_whatever_stands_beside_it(command: str, more: dict[str, Json]) -> None:
    arguments = {**more, "command": command}
    assert parse("shell_exec", json.dumps(arguments)) == Command(command)
    assert parse("shell_exec", arguments) == Command(command)


@pytest.mark.parametrize("depth", [0, DEPTH_MAX - 1])
def test_a_subagent_may_start_down_to_the_last_level(depth: int) -> None:
    assert parse("run_subagent", {"prompt": "do it"}, depth) == Task("do it")


def test_a_subagent_of_the_last_level_has_no_children() -> None:
    assert "5 levels deep" in why(parse("run_subagent", {"prompt": "do it"}, DEPTH_MAX))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("{", "not a JSON object: Expecting property name"),
        ("[]", "they are a list. They were: []"),
        ('"x"', "they are a string"),
        ("true", "they are a boolean"),
        ("3", "they are a number"),
        (None, "they are null. They were: null"),
        (["ls"], 'they are a list. They were: ["ls"]'),
        ('{"command": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "not a JSON object"),
        ("{}", "needs the member 'command'. They were: {}"),
        ({"command": 3}, "'command' of shell_exec must be a string. They were: {\"command\": 3}"),
        ({"command": "a\0"}, "NUL character"),
        ({"x": "y" * 999}, "…"),
        ('{"x": "\ud800"}', "\ufffd"),
    ],
)
def test_an_explanation_says_what_was_wrong(raw: Json, words: str) -> None:
    assert words in why(parse("shell_exec", raw))


def test_arguments_that_the_token_limit_cut_are_told_from_bad_ones() -> None:
    assert "cut off by the token limit" in why(parse("shell_exec", '{"command', cut=True))
    assert parse("shell_exec", '{"command": "ls"}', cut=True) == Command("ls")


def test_an_unknown_tool_is_answered_with_the_known_ones() -> None:
    assert "no tool 'rm_rf'; the tools are: shell_exec, run_subagent" in why(parse("rm_rf", {}))
    assert "the tools are: none" in why(toolbox.parse({"function": {"name": "shell_exec"}}, (), 0, False))
    assert "no tool 'x'" in why(toolbox.parse({"function": {"name": "x"}}, ("x",), 0, False))


def test_half_a_character_in_a_command_does_not_reach_the_shell() -> None:
    assert parse("shell_exec", '{"command": "echo \\ud800"}') == Command("echo \ufffd")


def test_an_empty_prompt_is_explained() -> None:
    assert "the prompt is empty" in why(parse("run_subagent", {"prompt": " \n"}))


def test_a_model_is_told_of_the_tools_that_are_on() -> None:
    offered = table.chosen(BUILT_IN, TOOL_NAMES)
    assert [tool.name for tool in offered] == [*TOOL_NAMES]
    assert [tool.parameters["required"] for tool in offered] == [["command"], ["prompt"]]
    assert [tool.name for tool in table.chosen(BUILT_IN, ("run_subagent",))] == ["run_subagent"]
    assert table.chosen(BUILT_IN, ()) == ()


def test_the_tools_that_are_on_unless_a_setting_says_otherwise_are_the_built_in_ones() -> None:
    assert table.names(table.BUILT_IN) == TOOL_NAMES


@given(json_objects)
def test_a_function_gets_any_json_object_and_judges_for_itself(arguments: dict[str, Json]) -> None:
    call = {"function": {"name": "look_up", "arguments": json.dumps(arguments)}}
    action = toolbox.parse(call, ("look_up",), 0, False, TOOLBOX)
    assert action == Function("look_up", arguments)
    line = toolbox.judged(LOOK_UP, action)
    assert line is not None
    name, written = shlex.split(line)
    assert (name, json.loads(written)) == ("look_up", arguments)
    assert toolbox.judged(replace(LOOK_UP, judged=False), action) is None


def test_arguments_of_a_function_are_an_object_and_no_attack_on_its_reader() -> None:
    deep = {"function": {"name": "look_up", "arguments": '{"a":' + "[" * 200 + "]" * 200 + "}"}}
    assert "nested more than 100 levels" in why(toolbox.parse(deep, ("look_up",), 0, False, TOOLBOX))
    half = {"function": {"name": "look_up", "arguments": '{"a": 1'}}
    assert "cut off by the token limit" in why(toolbox.parse(half, ("look_up",), 0, True, TOOLBOX))
    assert "not a JSON object" in why(toolbox.parse(half, ("look_up",), 0, False, TOOLBOX))


# --- what a command printed


@given(st.lists(wild_text), wild_text, st.integers(0, 255))
def test_a_result_is_all_that_was_printed_and_the_status(pieces: list[str], tail: str, code: int) -> None:
    heard = Heard()
    for number, piece in enumerate(pieces):
        heard = toolbox.hear(heard, ToolProgress((number,), piece))
    output = "".join(pieces)
    assert toolbox.result(heard, CommandEnded((9,), code, tail), 120) == f"{output}{tail}\n\nexit: {code}"
    assert toolbox.interrupted_result(heard).startswith(output)
    assert toolbox.interrupted_result(heard).endswith("[interrupted by the user]")


def test_a_glimpse_is_shown_after_an_interrupt_and_nowhere_else() -> None:
    heard = toolbox.hear(toolbox.hear(Heard(), ToolProgress((1,), "head\n")), ToolProgress((1,), "old", 5))
    heard = toolbox.hear(heard, ToolProgress((1,), "new", 7))
    left_out = "head\n\n[7 bytes left out here]\nnew\n[interrupted by the user]"
    assert toolbox.interrupted_result(heard) == left_out
    ended = CommandEnded((1,), 0, "tail", 9)
    assert toolbox.result(heard, ended, 120) == "head\n\n[9 bytes left out here]\ntail\n\nexit: 0"


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (CommandEnded((1,), 137, "x", signal="SIGKILL"), "x\n[ended by SIGKILL]\n\nexit: 137"),
        (
            CommandEnded((1,), 124, "x\n", timed_out=True, signal="SIGTERM"),
            "x\n[timed out after 0.5 s and was stopped]\n\nexit: 124",
        ),
        (CommandEnded((1,), 127, problem="no such shell"), "[no such shell]\n\nexit: 127"),
        (CommandEnded((1,), 0), "\n\nexit: 0"),
    ],
)
def test_a_special_end_is_named_in_a_line_before_the_status(ended: CommandEnded, text: str) -> None:
    assert toolbox.result(Heard(), ended, 0.5) == text
