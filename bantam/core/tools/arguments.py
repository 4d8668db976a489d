"""Whether arguments fit the schema of a built-in tool, in words for the model.

As much of JSON Schema as the table of tools uses: `required`, and of each property its `type`, `enum`, `minimum`,
`maximum` and `minLength`. What a schema does not name may stand in a call and does not count.
"""

from collections.abc import Mapping
from typing import Any

_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a string", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "array": ("a list", (list,)),
    "object": ("an object", (dict,)),
}


def wrong(tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """The first thing that is wrong with the arguments of a call; "" for none."""
    for member in schema.get("required", ()):
        if member not in arguments:
            return f"{tool} needs the member {member!r}"
    for member, wanted in schema.get("properties", {}).items():
        if member in arguments and (must := _must(wanted, arguments[member])):
            return f"{member!r} of {tool} must be {must}"
    return ""


def _must(wanted: Mapping[str, Any], value: Any) -> str:
    """What a value should be and is not."""
    words, types = _TYPES[wanted["type"]]
    if type(value) not in types:  # by the very type: in Python a boolean is a number
        return words
    if value not in wanted.get("enum", (value,)):
        return "one of " + ", ".join(map(str, wanted["enum"]))
    if "minimum" in wanted and value < wanted["minimum"]:
        return f"at least {wanted['minimum']}"
    if "maximum" in wanted and value > wanted["maximum"]:
        return f"at most {wanted['maximum']}"
    if "minLength" in wanted and len(value) < wanted["minLength"]:
        return f"at least {wanted['minLength']} characters long"
    return ""
