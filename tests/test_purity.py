"""The dependency rule, read from the syntax trees: front -> shell -> core -> nothing that touches the world."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.core
ROOT = Path(__file__).parent.parent / "bantam"
FILES = sorted(ROOT.rglob("*.py"))
CORE = [file for file in FILES if file.parent.name == "core"]
LINES_MAX = 400

CORE_MAY_IMPORT = {  # none of them reads a clock, rolls a die or opens anything
    "collections",
    "collections.abc",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "itertools",
    "json",
    "math",
    "re",
    "types",
    "typing",
}
NEVER_IN_CORE = {  # hash and id differ from run to run
    "__import__",
    "breakpoint",
    "compile",
    "eval",
    "exec",
    "globals",
    "hash",
    "id",
    "input",
    "open",
    "print",
    "vars",
}
ALLOWED_CALLS = {"core/record.py": {"hash"}, "core/codec.py": {"vars"}}  # of a record; of the modules with records
LAYERS = ("core", "shell", "front")  # each may import itself and those before it
# the REPL's own files: whoever needs no editor pays for none
EDITORS = {"complete.py", "keys.py", "repl.py", "tty.py"}

WIRE_KEYS = {
    "arguments",
    "choices",
    "content",
    "delta",
    "finish_reason",
    "function",
    "index",
    "reasoning",
    "reasoning_content",
    "refusal",
    "role",
    "tool_call_id",
    "tool_calls",
}
MAY_SPELL = {  # where a provider's JSON is taken apart or put together, and why there
    "core/messages.py": WIRE_KEYS,  # its home
    "core/assemble.py": WIRE_KEYS,  # the deltas of a stream are not messages yet
    "core/body.py": {"choices", "finish_reason"},  # whether a chunk is an answer at all
    "core/shellwords.py": {"function"},  # a keyword of shells
    "core/report.py": {"reasoning"},  # a type of our own events
    "core/tools.py": {"function"},  # the tool definitions of a request
    "front/script.py": WIRE_KEYS,  # plays the server of the tour
}


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, anywhere in it."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield node.module or ""
            if node.module and node.module.startswith("bantam"):
                yield from (f"{node.module}.{name.name}" for name in node.names)


def layer(module: str) -> int:
    parts = module.split(".")
    return LAYERS.index(parts[1]) if len(parts) > 1 and parts[1] in LAYERS else -1


def name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("file", CORE, ids=name)
def test_the_core_imports_nothing_that_touches_the_world(file: Path) -> None:
    assert {module for module in imports(file) if not module.startswith("bantam.core")} <= CORE_MAY_IMPORT | {"bantam"}


@pytest.mark.parametrize("file", CORE, ids=name)
def test_the_core_neither_waits_nor_reaches_out(file: Path) -> None:
    for node in ast.walk(tree(file)):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await | ast.Global)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in NEVER_IN_CORE - ALLOWED_CALLS.get(name(file), set())


@pytest.mark.parametrize("file", FILES, ids=name)
def test_imports_go_from_front_to_shell_to_core(file: Path) -> None:
    own = layer("bantam." + name(file).removesuffix(".py").replace("/", "."))
    if own >= 0:
        assert all(layer(module) <= own for module in imports(file) if module.startswith("bantam"))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_only_the_repl_knows_the_editor(file: Path) -> None:
    if not (file.parent.name == "front" and file.name in EDITORS):
        assert not any(module.startswith("prompt_toolkit") for module in imports(file))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_keys_of_the_wire_are_spelt_in_few_places(file: Path) -> None:
    strings = (node.value for node in ast.walk(tree(file)) if isinstance(node, ast.Constant))
    spelt = {value for value in strings if isinstance(value, str)} & WIRE_KEYS
    assert spelt <= MAY_SPELL.get(name(file), set())


def test_what_is_allowed_is_needed() -> None:
    """A permission that nobody uses any more is taken back."""
    assert {module for file in CORE for module in imports(file) if not module.startswith("bantam")} == CORE_MAY_IMPORT
    for file, keys in MAY_SPELL.items():
        strings = {node.value for node in ast.walk(tree(ROOT / file)) if isinstance(node, ast.Constant)}
        assert keys == WIRE_KEYS or keys <= strings


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_file_fits_into_a_head(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= LINES_MAX
