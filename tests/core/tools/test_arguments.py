"""What is wrong with arguments is what a validator of JSON Schema finds, in words of our own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bantam.core.tools import arguments
from tests.servers import Json
from tests.strategies import json_values

pytestmark = pytest.mark.core

properties = st.one_of(
    st.sampled_from([{"type": kind} for kind in ("string", "integer", "number", "boolean", "array", "object")]),
    st.integers(-2, 2).map(lambda least: {"type": "integer", "minimum": least, "maximum": 3}),
    st.integers(0, 3).map(lambda least: {"type": "string", "minLength": least}),
    st.just({"type": "string", "enum": ["a", "b"]}),
)
schemas = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), properties)},
    optional={"required": st.lists(st.sampled_from("abc"), max_size=2)},
)
values = st.sampled_from(["a", "ab", 0, 3, 4, -1, 1.5, True, [], {}]) | json_values


# a float that is whole is an integer to JSON Schema, and not to us
@given(schemas, st.dictionaries(st.sampled_from("abcd"), values.filter(lambda v: type(v) is not float or v % 1)))
def test_it_agrees_with_a_validator(schema: Json, given: Json) -> None:
    assert (arguments.wrong("x", schema, given) == "") == Draft202012Validator(schema).is_valid(given)


@pytest.mark.parametrize(
    ("wanted", "value", "words"),
    [
        ({"type": "string"}, 3, "a string"),
        ({"type": "integer"}, "3", "a whole number"),
        ({"type": "integer"}, True, "a whole number"),
        ({"type": "integer", "minimum": 1}, 0, "at least 1"),
        ({"type": "integer", "maximum": 9}, 10, "at most 9"),
        ({"type": "string", "minLength": 2}, "a", "at least 2 characters long"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "one of a, b"),
        ({"type": "boolean"}, 1, "true or false"),
    ],
)
def test_the_words_say_what_it_must_be(wanted: Json, value: Json, words: str) -> None:
    schema = {"type": "object", "properties": {"n": wanted}, "required": ["n"]}
    assert arguments.wrong("tool", schema, {"n": value}) == f"'n' of tool must be {words}"
    assert arguments.wrong("tool", schema, {}) == "tool needs the member 'n'"
