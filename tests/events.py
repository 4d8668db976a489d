"""What holds for the lines of any run with `--json`, checked against the schema that is shipped."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import bantam

Line = dict[str, Any]
SCHEMA: dict[str, Any] = json.loads((Path(bantam.__file__).parent / "events.schema.json").read_text())
TYPES = {name: kind for name, kind in SCHEMA["$defs"].items() if {"$ref": f"#/$defs/{name}"} in SCHEMA["oneOf"]}
WHOLE = Draft202012Validator(SCHEMA)
INPUT = Draft202012Validator({**SCHEMA["$defs"]["input"], "$defs": SCHEMA["$defs"]})
BY_TYPE = {name: Draft202012Validator({**kind, "$defs": SCHEMA["$defs"]}) for name, kind in TYPES.items()}
"""What the whole schema comes to for a line of a known type, for it tells them apart by that; and ten times as fast."""


def read(out: str | bytes) -> list[Line]:
    """The lines of a run, each of which keeps to the schema, and together to the order that is promised."""
    text = out.decode() if isinstance(out, bytes) else out
    assert text.endswith("\n")
    lines: list[Line] = [json.loads(line) for line in text.removesuffix("\n").split("\n")]
    for line in lines:
        BY_TYPE[line["type"]].validate(line)
        assert line.keys() == TYPES[line["type"]]["properties"].keys()
    keeps_order(lines)
    return lines


def keeps_order(lines: list[Line]) -> None:
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[-1], kinds.count("run.start"), kinds.count("run.end")) == ("run.start", "run.end", 1, 1)
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    total = lines[-1]["usage"]
    turns = [line["usage"] for line in lines if line["type"] == "turn.end"]
    assert turns == [{name: line[name] for name in total} for line in lines if line["type"] == "usage"]
    assert total == {name: _sum([usage[name] for usage in turns]) for name in total}
    calls_are_answered(lines)


def calls_are_answered(lines: list[Line]) -> None:
    """Each call has one result, from the same agent, before its turn ends, if nobody interrupts that."""
    open_: list[tuple[Any, ...]] = []
    for line in lines:
        match line["type"]:
            case "tool.call":
                open_.append((*line["agent"], line["id"], line["name"]))
            case "tool.result":
                open_.remove((*line["agent"], line["id"], line["name"]))
            case "turn.end":
                assert not open_ or line["reason"] == "interrupted"
                open_ = []


def answers_are_text(lines: list[Line]) -> None:
    """The answer of a turn is the text that came since the last request."""
    text = ""
    for line in lines:
        match line:
            case {"type": "request", "agent": []}:
                text = ""
            case {"type": "text", "agent": []}:
                text += line["text"]
            case {"type": "turn.end", "answer": str(answer)}:
                assert answer == text


def _sum(values: list[Any]) -> Any:
    """Of what is known; None where a part is not."""
    return None if None in values else pytest.approx(sum(values))
