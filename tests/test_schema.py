"""`--schema`: answers that satisfy a JSON Schema, one repair, and status 5."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from bantam.core import commands
from bantam.shell.schema import problem_of
from scripts.fakemodel import Reply
from tests.program import Place, place, serving
from tests.strategies import json_values

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}
GOOD = '{"name": "Ada", "age": 36}'


def asked(here: Place, *arguments: str, schema: Any = SCHEMA, piped: str | None = None) -> Any:
    (here.work / "schema.json").write_text(json.dumps(schema))
    return here.run("--schema", "schema.json", *arguments, piped=piped)


def test_a_good_answer_is_printed_as_it_is_and_the_server_knows_the_schema(tmp_path: Path) -> None:
    with serving([Reply(text=GOOD)]) as fake:
        ran = asked(place(tmp_path, fake), "-p", "Who?")
        body = fake.requests[0].body
    assert (ran.status, ran.out) == (0, GOOD + "\n")
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    assert body["messages"][1]["content"] == commands.with_schema("Who?", SCHEMA)


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ('{"age": 3}', "'name' is a required property"),
        ('{"name": "x", "age": -1}', "$.age: -1 is less than the minimum of 0"),
        (f"```json\n{GOOD}\n```", "it is no JSON"),
        ("Sure! " + GOOD, "it is no JSON"),
    ],
)
def test_a_bad_answer_may_be_repaired_once(tmp_path: Path, first: str, why: str) -> None:
    with serving([Reply(text=first), Reply(text=GOOD)]) as fake:
        ran = asked(place(tmp_path, fake), "-q", "-p", "Who?")
        said = fake.requests[1].body["messages"][-1]["content"]
    assert (ran.status, ran.out) == (0, GOOD + "\n")
    assert why in said


def test_an_answer_that_stays_bad_is_status_5_and_empty_output(tmp_path: Path) -> None:
    with serving([Reply(text="{}")]) as fake:
        here = place(tmp_path, fake)
        (here.work / "out").write_text("before")
        ran = asked(here, "-o", "out", "-q", "-p", "Who?")
        assert len(fake.requests) == 2
    assert (ran.status, ran.out) == (5, "")
    assert ran.err == "the answer does not satisfy the schema: 'name' is a required property\n"
    assert (here.work / "out").read_text() == "before"


def test_tools_may_be_used_on_the_way_and_each_line_is_a_turn(tmp_path: Path) -> None:
    script = [
        Reply(calls=[("shell_exec", {"command": "echo hi"})]),
        Reply(text=GOOD),
        Reply(text="no"),
        Reply(text="no"),
    ]
    with serving(script) as fake:
        ran = asked(place(tmp_path, fake), piped="one\n/cfg temperature 0.5\ntwo\n")
        assert "response_format" in fake.requests[-1].body
    assert ran.status == 5
    assert GOOD in ran.out


def test_a_server_that_refuses_the_format_is_asked_without_it(tmp_path: Path) -> None:
    refusal = Reply(status=400, body=json.dumps({"error": {"message": "Unsupported", "param": "response_format"}}))
    with serving([refusal, Reply(text=GOOD)]) as fake:
        ran = asked(place(tmp_path, fake), "-p", "Who?")
        assert "response_format" not in fake.requests[1].body
    assert (ran.status, ran.out) == (0, GOOD + "\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file or directory"),
        ("{", "this is no JSON"),
        ("[]", "a JSON object"),
        ('{"type": 3}', "this is no JSON Schema"),
        ("\xff", "this is no JSON"),
    ],
)
def test_a_schema_that_is_none_is_one_line_and_nothing_runs(tmp_path: Path, text: str | None, why: str) -> None:
    here = Place(tmp_path)
    if text is not None:
        (here.work / "s").write_bytes(text.encode("latin-1"))
    ran = here.run("--schema", "s", "-p", "x")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("bantam: --schema s: ")
    assert why in ran.err


def test_runs_without_a_schema_never_import_the_library(tmp_path: Path) -> None:
    with serving([Reply(text="x")]) as fake:
        here = place(tmp_path, fake)
        here.environment["PYTHONPROFILEIMPORTTIME"] = "1"
        assert "jsonschema" not in here.ask("x").err


@given(json_values)
def test_any_json_satisfies_the_empty_schema_and_none_the_false_one(value: Any) -> None:
    assert problem_of(json.dumps(value), {}) == ""
    assert problem_of(json.dumps(value), {"not": {}}) != ""


@pytest.mark.parametrize("schema", [{"$ref": "#/nowhere"}, {"pattern": "("}])
def test_a_schema_that_cannot_be_used_is_a_problem_and_no_crash(schema: dict[str, Any]) -> None:
    assert problem_of('"x"', schema).startswith("the schema itself cannot be used: ")
