"""`--schema`: the answer is JSON that satisfies it, or standard output is empty and the status 5."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.problem import Problem
from bantam.shell.disk import schema
from tests import events
from tests.program import Place, Ran, Reply, place, serving
from tests.pty_helpers import Bantam

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
GOOD = '{"name": "Ada",\n "age": 36}'
YOUNG = '{"name": "Ada", "age": "36"}'


def with_schema(here: Place, text: str | None = None) -> Place:
    (here.work / "person.json").write_text(json.dumps(PERSON) if text is None else text)
    return here


def contents(body: Any) -> list[str]:
    return [message["content"] for message in body["messages"]]


# --- what is wrong with an answer


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD, ""),
        (f"\n {GOOD}\n", ""),
        (YOUNG, "$.age: '36' is not of type 'integer'"),
        ('{"name": "Ada"}', "$: 'age' is a required property"),
        ("[1]", "$: [1] is not of type 'object'"),
        ('{"name": "Ada", "age": 1, "x": 2}', "$: Additional properties are not allowed ('x' was unexpected)"),
        ('{"name": "Ada", "age": 1, "tags": ["a", "c"]}', "$.tags[1]: 'c' is not one of ['a', 'b']"),
        (json.dumps({"name": 21 * "n", "age": 1}), f"$.name: '{21 * 'n'}' is too long (maxLength: 20)"),
        (
            '{"name": "Ada", "age": 1, "note": 5}',
            "$.note: 5 is not valid under any of the given schemas "
            '(anyOf: [{"type": "string"}, {"type": "null"}])',
        ),
        ('{"name": 1, "age": "1"}', "$.name: 1 is not of type 'string'; $.age: '1' is not of type 'integer'"),
        ("Ada is 36.", "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (f"```json\n{GOOD}\n```", "it is in a code fence, and must be JSON alone"),
        (f"{GOOD} Done.", "it is not JSON: Extra data: line 2 column 13 (char 28)"),
        ('{"name": "Ada", "age": NaN}', "it is not JSON: NaN is no number"),
        ('{"name": "Ada", "age": 1e999}', "it is not JSON: 1e999 is no number"),
        ("[" * 100_000, "it nests too deeply"),
    ],
)  # fmt: skip
def test_the_problem_names_the_member_and_what_was_expected(text: str, problem: str) -> None:
    assert schema.problem(text, PERSON) == problem


def test_of_alternatives_the_one_that_was_meant_is_told() -> None:
    either = {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "null"}]}
    assert schema.problem('{"a": "x"}', either) == "$.a: 'x' is not of type 'integer'"


def test_a_problem_is_short_however_long_the_answer_is() -> None:
    found = schema.problem(json.dumps({"name": ["x" * 100_000], "age": "y" * 100_000, "tags": "z" * 100_000}), PERSON)
    assert "$.name: ['xxx" in found
    assert "is not of type 'integer'; $.tags: 'zzz" in found
    assert len(found) < schema.PROBLEMS_MAX * 2 * schema.PROBLEM_CHARS_MAX


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**320), 10**320) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
parts = st.sampled_from(
    [{"type": "string"}, {"multipleOf": 0.1}, {"$ref": "#"}, {"pattern": "^a"}, {"uniqueItems": True}, {"const": 1},
     {"items": {"$ref": "#/$defs/nowhere"}}, {"contains": {"type": "null"}}, {"minimum": 1e300}, {"not": {}}]
)  # fmt: skip


@given(json_values.map(json.dumps) | st.text(max_size=10), st.dictionaries(st.sampled_from("ab"), parts), parts)
def test_any_text_is_told_in_one_line_what_it_lacks(text: str, members: dict[str, Any], part: dict[str, Any]) -> None:
    assert "\n" not in schema.problem(text, {**part, "properties": members})


@pytest.mark.parametrize("unusable", [{"$ref": "#/nowhere"}, {"$ref": "#"}, {"pattern": "("}])
def test_a_schema_that_cannot_be_used_is_a_problem_and_no_crash(unusable: dict[str, Any]) -> None:
    assert schema.problem('"x"', unusable).startswith("it cannot be checked: ")


def test_what_a_schema_refers_to_is_never_fetched() -> None:
    with serving([Reply(body="{}")]) as fake:
        assert schema.problem("1", {"$ref": f"{fake.endpoint}/x"}).startswith("it cannot be checked: ")
        assert (fake.requests, fake.connections) == ([], 0)


# --- the file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON: Expecting value"),
        ("{'type': 'object'}", "not JSON: "),
        ("[]", "not a JSON Schema: it must be a JSON object"),
        ("true", "not a JSON Schema: it must be a JSON object"),
        ('{"type": "objekt"}', "not a JSON Schema: $.type: 'objekt' is not valid"),
        ('{"pattern": "("}', "not a JSON Schema: $.pattern: '(' is not a 'regex'"),
        ('{"$schema": []}', "not a JSON Schema: "),
        ('{"$ref": "http://127.0.0.1:9/x"}', "it refers to http://127.0.0.1:9/x, which is neither in it nor fetched"),
        ('{"items": {"$ref": "#/$defs/x"}}', "it refers to #/$defs/x, which is"),
        ('{"items": {"$ref": "#x"}}', "it refers to #x, which is"),
        ("[" * 100_000, "it nests too deeply"),
        (" " * (schema.SCHEMA_BYTES_MAX + 1), "longer than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_no_schema_is_wrong_usage_and_nothing_runs(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "s.json").write_text(text)
    found = schema.read(str(tmp_path / "s.json"))
    assert isinstance(found, Problem)
    assert found.text.startswith(f"--schema {tmp_path}/s.json: {words}")
    assert "\n" not in found.text


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PERSON),
        "\ufeff" + json.dumps(PERSON),
        '{"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}',
        '{"properties": {"$ref": {"type": "string"}}, "const": {"$ref": "nowhere"}}',
        '{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "$ref": "#/definitions/a"}',
        '{"$ref": "https://json-schema.org/draft/2020-12/schema"}',
    ],
)
def test_a_schema_is_read_as_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    assert schema.read(str(tmp_path / "s.json")) == json.loads(text.removeprefix("\ufeff"))


def test_wrong_usage_is_one_line_and_no_request(tmp_path: Path) -> None:
    with serving([Reply(GOOD)]) as fake:
        here = with_schema(place(tmp_path, fake), "{")
        missing, broken = (here.run("--schema", name, "-p", "x") for name in ("none.json", "person.json"))
        assert fake.requests == []
    for ran in (missing, broken):
        assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert missing.err == "bantam: --schema none.json: No such file or directory\n"
    assert broken.err.startswith("bantam: --schema person.json: not JSON: ")


def test_without_its_package_the_line_says_what_to_install(tmp_path: Path) -> None:
    here = with_schema(Place(tmp_path))
    (tmp_path / "jsonschema.py").write_text("raise ModuleNotFoundError(name='jsonschema')")  # as where it is missing
    here.environment["PYTHONPATH"] = f"{tmp_path}:{here.environment['PYTHONPATH']}"
    ran = here.run("--schema", "person.json", "-p", "x")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "bantam: --schema needs a package that is not installed: pip install 'bantam[schema]'\n"
    )  # fmt: skip


def test_the_chat_takes_no_schema(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/s.json").write_text("{}")
    chat = Bantam(tmp_path, "http://127.0.0.1:9/v1", through='"$@" --schema s.json; echo "status $?"')
    before = chat.expect("status 2")
    assert before.strip() == "bantam: --schema needs a prompt: FILE, -, -p TEXT or piped lines"
    chat.stop()


# --- the program


@pytest.mark.parametrize("mode", ["print", "quiet", "file", "piped"])
def test_an_answer_that_satisfies_it_is_printed_as_it_is(tmp_path: Path, mode: str) -> None:
    with serving([Reply(GOOD)]) as fake:
        here = with_schema(place(tmp_path, fake))
        ran = ask(here, mode, "Who?")
        (request,) = fake.requests
    assert (ran.status, ran.err.replace("...requesting...\n", "")) == (0, "")
    assert ran.out == (f"{GOOD}\n" if mode in ("print", "quiet") else f"...requesting...\n{GOOD}\n")
    assert request.body["response_format"]["json_schema"]["schema"] == PERSON
    assert request.body["messages"][-1]["content"] == (
        "Who?\n\nAnswer with JSON alone, without a code fence or any other text. It must satisfy this JSON Schema:\n"
        + json.dumps(PERSON)
    )


def ask(here: Place, mode: str, text: str, *options: str) -> Ran:
    match mode:
        case "print":
            return here.run("--schema", "person.json", *options, "-p", text)
        case "quiet":
            (here.work / "prompt.txt").write_text(text)
            return here.run("--schema", "person.json", *options, "-q", "prompt.txt")
        case "file":
            return here.ask(text, "--schema", "person.json", *options)
        case _:
            return here.run("--schema", "person.json", *options, piped=f"{text}\n")


@pytest.mark.parametrize("bad", [YOUNG, f"```json\n{GOOD}\n```", "Ada is 36."])
def test_one_answer_may_be_repaired(tmp_path: Path, bad: str) -> None:
    with serving([Reply(bad), Reply(GOOD)]) as fake:
        ran = with_schema(place(tmp_path, fake)).run("--schema", "person.json", "-o", "answer", "-p", "Who?")
        said = contents(fake.requests[1].body)
    assert (ran.status, ran.out) == (0, GOOD + "\n")
    assert (tmp_path / "work/answer").read_text() == GOOD + "\n"
    assert said[2] == bad
    assert said[3].startswith("Your answer does not satisfy the schema: ")


@pytest.mark.parametrize("mode", ["print", "quiet"])
def test_a_second_failure_is_status_5_and_nothing_on_standard_output(tmp_path: Path, mode: str) -> None:
    with serving([Reply(YOUNG)]) as fake:
        here = with_schema(place(tmp_path, fake))
        ran = ask(here, mode, "Who?", "-o", "answer")
        assert len(fake.requests) == 2
    assert (ran.status, ran.out) == (5, "")
    assert ran.err.endswith("the answer does not satisfy the schema: $.age: '36' is not of type 'integer'\n")
    assert not (here.work / "answer").exists()


def test_events_have_no_answer_when_it_is_unmet(tmp_path: Path) -> None:
    with serving([Reply(YOUNG)]) as fake:
        ran = with_schema(place(tmp_path, fake)).run("--json", "--schema", "person.json", "-p", "Who?")
    end = events.read(ran.out)[-1]
    assert (end["reason"], end["exit"], end["answer"], ran.status) == ("schema", 5, None, 5)


def test_tools_are_used_before_the_answer_is_checked(tmp_path: Path) -> None:
    look = Reply("I look.", calls=[("shell_exec", {"command": "printf 36"})])
    with serving([look, Reply(GOOD)]) as fake:
        ran = with_schema(place(tmp_path, fake)).run("--schema", "person.json", "-p", "Who?")
    assert (ran.status, ran.out) == (0, GOOD + "\n")


def test_where_response_format_is_refused_the_prompt_still_asks(tmp_path: Path) -> None:
    refusal = Reply(status=400, body='{"error": {"message": "Unknown parameter: response_format"}}')
    with serving([refusal, Reply(GOOD)]) as fake:
        ran = with_schema(place(tmp_path, fake)).run("--schema", "person.json", "-p", "Who?")
        first, second = (request.body for request in fake.requests)
    assert (ran.status, ran.out) == (0, GOOD + "\n")
    assert "response_format" in first
    assert "response_format" not in second
    assert json.dumps(PERSON) in contents(second)[-1]


def test_each_piped_line_is_checked_also_behind_a_changed_setting(tmp_path: Path) -> None:
    replies = [Reply(GOOD), Reply(YOUNG), Reply(YOUNG), Reply(GOOD)]
    with serving(replies) as fake:
        here = with_schema(place(tmp_path, fake))
        ran = here.run("--schema", "person.json", piped="one\n/cfg temperature 0.1\ntwo\nthree\n")
        bodies = [request.body for request in fake.requests]
    assert ran.status == 5
    assert "does not satisfy the schema: $.age" in ran.err
    assert [("response_format" in body, body["temperature"]) for body in bodies] == [(True, 0.7)] + 3 * [(True, 0.1)]
    assert contents(bodies[-1])[-1].startswith("three\n\nAnswer with JSON alone")


def test_an_empty_schema_takes_any_json_and_nothing_else(tmp_path: Path) -> None:
    with serving([Reply("Hello."), Reply("[null]")]) as fake:
        ran = with_schema(place(tmp_path, fake), "{}").run("--schema", "person.json", "-p", "Who?")
    assert (ran.status, ran.out) == (0, "[null]\n")


def test_a_run_that_goes_on_keeps_to_the_schema_of_now(tmp_path: Path) -> None:
    with serving([Reply("Hello."), Reply(GOOD), Reply("Bye.")]) as fake:
        here = with_schema(place(tmp_path, fake))
        here.run("-p", "one")
        checked = here.run("--resume", "--schema", "person.json", "-p", "two")
        free = here.run("--resume", "-p", "three")
        sent = ["response_format" in request.body for request in fake.requests]
    assert (checked.status, checked.out, free.status, free.out) == (0, GOOD + "\n", 0, "Bye.\n")
    assert sent == [False, True, False]


def test_without_it_nothing_of_it_is_imported(tmp_path: Path) -> None:
    here = Place(tmp_path)
    (tmp_path / "jsonschema.py").write_text("raise SystemError")
    here.environment["PYTHONPATH"] = f"{tmp_path}:{here.environment['PYTHONPATH']}"
    with serving([Reply("Hello.")]) as fake:
        here.configure(endpoint=fake.endpoint, model="test")
        assert here.run("-p", "x").out == "Hello.\n"
