"""Performs `CheckAnswer`: whether an answer is JSON that satisfies a JSON Schema; and reads the schema of `--schema`.

The package `jsonschema` knows how; it is imported here, and only where there is a schema. Nothing is fetched: what
a schema refers to is in it, or is one of the standard's own.
"""

import json
import math
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bantam.core.base.problem import Problem
from bantam.core.effects import CheckAnswer
from bantam.core.events import AnswerChecked, Event

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from referencing import Resource
    from referencing._core import Resolver

SCHEMA_BYTES_MAX = 1_000_000  # it goes into each request, twice
PROBLEMS_MAX = 3  # that are told of one answer
PROBLEM_CHARS_MAX = 200
VALUE_CHARS_MAX = 40
DIALECT = "https://json-schema.org/draft/2020-12/schema"  # of a schema that names none
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
UNTOLD = frozenset(  # keywords whose value the package's own words leave out
    ("anyOf", "contains", "maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties", "oneOf")
)
INSTALL = "--schema needs a package that is not installed: pip install 'bantam[schema]'"


async def check(request: CheckAnswer) -> AsyncGenerator[Event, None]:
    """Say what is wrong with an answer, if anything is."""
    yield AnswerChecked(request.id, problem(request.text, request.schema))


def problem(text: str, schema: Mapping[str, Any]) -> str:
    """What a text lacks, in one line that names members; "" for JSON that satisfies the schema. Never raises.

    A code fence counts as wrong: what a script reads is the answer as it is.
    """
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    if text.lstrip().startswith("```"):
        return "it is in a code fence, and must be JSON alone"
    try:
        value = _read(text)
    except RecursionError:
        return "it nests too deeply"
    except ValueError as why:
        return f"it is not JSON: {_short(str(why), PROBLEM_CHARS_MAX)}"
    try:
        found = [_words(best_match([error])) for error in islice(_errors(value, schema), PROBLEMS_MAX)]
    except (RecursionError, ArithmeticError, re.error, Unresolvable) as why:
        return f"it cannot be checked: {_short(str(why), PROBLEM_CHARS_MAX)}"
    return "; ".join(found)


def read(name: str, folder: Path = Path("/")) -> Mapping[str, Any] | Problem:
    """The schema in a file of the folder, or one line that says why it is none."""
    try:
        import jsonschema
    except ImportError:
        return Problem(INSTALL)
    try:
        with open(folder / name, "rb") as file:
            data = file.read(SCHEMA_BYTES_MAX + 1)
    except OSError as problem:
        return Problem(f"--schema {name}: {problem.strerror or problem}")
    if len(data) > SCHEMA_BYTES_MAX:
        return Problem(f"--schema {name}: longer than {SCHEMA_BYTES_MAX:,} bytes")
    try:
        schema = _read(data.decode("utf-8-sig"))
        if not isinstance(schema, dict) or not isinstance(schema.get("$schema", ""), str):
            return Problem(f"--schema {name}: not a JSON Schema: it must be a JSON object")
        jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator).check_schema(schema)
        missing = _missing(schema)
    except RecursionError:
        return Problem(f"--schema {name}: it nests too deeply")
    except ValueError as why:
        return Problem(f"--schema {name}: not JSON: {_short(str(why), PROBLEM_CHARS_MAX)}")
    except jsonschema.SchemaError as error:
        return Problem(f"--schema {name}: not a JSON Schema: {_words(error)}")
    if missing:
        return Problem(
            f"--schema {name}: it refers to {_short(missing, PROBLEM_CHARS_MAX)}, which is neither in it nor fetched"
        )
    return schema or {"$schema": DIALECT}  # an empty one takes any JSON, and JSON it must be


def _read(text: str) -> Any:
    """JSON by the letter: no NaN, no number that is too large. Raises ValueError and RecursionError."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _errors(value: Any, schema: Mapping[str, Any]) -> "Iterator[ValidationError]":
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY

    kind = validator_for(schema, Draft202012Validator)
    return kind(schema, registry=REGISTRY).iter_errors(value)


def _missing(schema: Mapping[str, Any]) -> str:
    """The first reference that leads nowhere, or ""."""
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import DRAFT202012, specification_with

    kind = specification_with(schema.get("$schema") or DIALECT, default=DRAFT202012)
    resource = kind.create_resource(schema)
    return next(_lost(resource, REGISTRY.resolver_with_root(resource)), "")


def _lost(resource: "Resource[Any]", resolver: "Resolver[Any]") -> Iterator[str]:
    from referencing.exceptions import Unresolvable

    if isinstance(resource.contents, Mapping):
        for member in REFERENCES:
            reference = resource.contents.get(member)
            if isinstance(reference, str):
                try:
                    resolver.lookup(reference)
                except Unresolvable:
                    yield reference
    for part in resource.subresources():
        yield from _lost(part, resolver.in_subresource(part))


def _words(error: Any) -> str:
    """Which member is wrong, and what was expected there."""
    value, words = repr(error.instance), str(error.message)
    if words.startswith(value):
        words = _short(value, VALUE_CHARS_MAX) + words[len(value) :]
    if error.validator in UNTOLD:
        words += f" ({error.validator}: {json.dumps(error.validator_value, ensure_ascii=False)})"
    return f"{_short(error.json_path, PROBLEM_CHARS_MAX)}: {_short(words, PROBLEM_CHARS_MAX)}"


def _short(text: str, chars_max: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"
