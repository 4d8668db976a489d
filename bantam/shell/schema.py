"""Performs `CheckAnswer`: whether a text is JSON that satisfies a JSON Schema. The library is imported here alone."""

import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from bantam.core.config import Problem
from bantam.core.effects import CheckAnswer
from bantam.core.events import AnswerChecked, Event
from bantam.core.failures import short

SCHEMA_BYTES_MAX = 1_000_000  # it goes into each request


def read(name: str) -> Mapping[str, Any] | Problem:
    """The schema of a file, or one line that says why there is none."""
    try:
        from jsonschema import exceptions, validators
    except ImportError:
        return Problem("--schema needs a library: pip install 'bantam[schema]'")
    try:
        data = Path(name).read_bytes()
        schema = json.loads(data.decode("utf-8-sig"))
        if not isinstance(schema, dict) or len(data) > SCHEMA_BYTES_MAX:
            return Problem(f"--schema {name}: a JSON object of at most {SCHEMA_BYTES_MAX // 10**6} MB is expected")
        validators.validator_for(schema, validators.Draft202012Validator).check_schema(schema)
    except OSError as problem:
        return Problem(f"--schema {name}: {problem.strerror or problem}")
    except exceptions.SchemaError as problem:
        return Problem(f"--schema {name}: this is no JSON Schema: {short(problem.message)}")
    except (ValueError, RecursionError) as problem:
        return Problem(f"--schema {name}: this is no JSON: {problem}")
    return schema


async def check(request: CheckAnswer) -> AsyncGenerator[Event, None]:
    """One `AnswerChecked`."""
    yield AnswerChecked(request.id, problem_of(request.text, request.schema))


def problem_of(text: str, schema: Mapping[str, Any]) -> str:
    """Why a text does not satisfy a schema, in one line; "" if it does."""
    from jsonschema import exceptions, validators

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        return f"it is no JSON ({problem}); no fence and no words may stand around it"
    try:
        checker = validators.validator_for(schema, validators.Draft202012Validator)(schema)
        found = exceptions.best_match(checker.iter_errors(value))
    except Exception as problem:  # a reference to nowhere, a pattern that Python does not know
        return f"the schema itself cannot be used: {short(str(problem))}"
    if found is None:
        return ""
    return f"{found.json_path}: {short(found.message)}" if found.absolute_path else short(found.message)
