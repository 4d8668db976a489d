"""The dependency rule, read from the syntax trees: front -> host -> shell -> core -> nothing that touches the world."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from bantam.core.tools.table import BUILT_IN

pytestmark = pytest.mark.core
ROOT = Path(__file__).parent.parent / "bantam"
FILES = sorted(ROOT.rglob("*.py"))
CORE = [file for file in FILES if ROOT / "core" in file.parents]
LINES_MAX = 400
LAYERS = ("core", "shell", "host", "front")  # each may import itself and those before it
SPINE = ("messages", "events", "effects", "state", "acting", "loop", "tree")  # each may import those before it
SPINE_LINES_MAX = 2_000
ROOMS: Mapping[str, tuple[str, set[str]]] = {  # how far up the spine a folder of core may look, and into which others
    "base": ("", set()),
    "window": ("messages", {"base"}),
    "tools": ("state", {"base"}),
    "wire": ("state", {"base", "tools", "window"}),
    "rules": ("state", {"base", "tools", "window", "wire"}),
    "past": ("tree", {"base", "tools", "wire", "rules"}),
    "words": ("effects", {"base", "tools", "wire", "rules"}),
}
SPINE_MAY_IMPORT = {"base", "tools", "window", "wire", "rules"}
ONE_NAME = {"tape"}  # the same in two places: what a tape is, and who records and plays it

CORE_MAY_IMPORT = {  # none of them reads a clock, rolls a die or opens anything
    "base64",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "enum",
    "functools",
    "itertools",
    "json",
    "math",
    "re",
    "types",
    "typing",
    "unicodedata",
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
ALLOWED_CALLS = {
    "core/base/record.py": {"hash"},
    "core/past/codec.py": {"vars"},
}  # of a record; of the modules with records
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
MAY_NAME_TOOLS = {
    "core/tools/table.py",  # their home
    "core/base/settings.py",  # which of them are on where `tools` is not set
    "front/sub/script.py",  # plays the model of the tour
}
MAY_SPELL = {  # where a provider's JSON is taken apart or put together, and why there
    "core/messages.py": WIRE_KEYS,  # its home
    "core/wire/assemble.py": WIRE_KEYS,  # the deltas of a stream are not messages yet
    "core/wire/chat.py": {"choices", "finish_reason", "function"},  # whether a chunk is an answer; a tool's definition
    "core/rules/shellwords.py": {"function"},  # a keyword of shells
    "core/words/report.py": {"reasoning"},  # a type of our own events
    "core/tools/table.py": {"function"},  # a kind of tool
    "front/sub/script.py": WIRE_KEYS,  # plays the server of the tour
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


def place(module: str) -> tuple[str, ...]:
    """Where a module stands: its layer, then its room if it has one, then its name."""
    return tuple(module.split(".")[1:])


@cache
def own_imports(file: Path) -> frozenset[str]:
    """The modules of Bantam that a file imports, anywhere in it."""
    modules = {file_module(other) for other in FILES}
    return frozenset(modules.intersection(imports(file)))


def file_module(file: Path) -> str:
    return "bantam." + ".".join(name(file).removesuffix(".py").split("/"))


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
def test_imports_go_from_front_to_host_to_shell_to_core(file: Path) -> None:
    own = name(file).split("/")[0]
    if own in LAYERS:
        reached = {place(module)[0] for module in own_imports(file)}
        assert reached <= {*LAYERS[: LAYERS.index(own) + 1]}


@pytest.mark.parametrize("file", CORE, ids=name)
def test_rooms_of_the_core_look_only_where_they_may(file: Path) -> None:
    _, *rooms, own = name(file).removesuffix(".py").split("/")
    for module in own_imports(file):
        _, *others, wanted = place(module)
        if rooms and others:
            assert others == rooms or others[0] in ROOMS[rooms[0]][1], module
        elif rooms:
            assert wanted in SPINE[: SPINE.index(ROOMS[rooms[0]][0]) + 1] if ROOMS[rooms[0]][0] else False, module
        elif others:
            assert others[0] in SPINE_MAY_IMPORT, module
        elif own != "__init__":
            assert SPINE.index(wanted) < SPINE.index(own), module


def test_in_the_hall_of_the_core_stands_the_spine_alone() -> None:
    hall = {file.stem: len(file.read_text().splitlines()) for file in CORE if file.parent.name == "core"}
    assert hall.keys() == {*SPINE, "__init__"}
    assert sum(hall.values()) < SPINE_LINES_MAX
    assert {file.parent.name for file in CORE} == {"core", *ROOMS}


def test_no_imports_go_in_a_circle() -> None:
    graph = {file_module(file): own_imports(file) for file in FILES}
    left = dict(graph)
    while free := [module for module, wanted in left.items() if not wanted & left.keys()]:
        left = {module: left[module] for module in left if module not in free}
    assert not left, f"these import each other: {sorted(left)}"


def test_no_two_files_have_one_name() -> None:
    stems = [file.stem for file in FILES if file.stem not in ("__init__", "__main__")]
    assert {stem for stem in stems if stems.count(stem) > 1} == ONE_NAME


@pytest.mark.parametrize("file", FILES, ids=name)
def test_only_the_terminal_knows_the_editor(file: Path) -> None:
    if file.parent.name != "terminal":
        assert not any(module.startswith("prompt_toolkit") for module in imports(file))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_keys_of_the_wire_are_spelt_in_few_places(file: Path) -> None:
    strings = (node.value for node in ast.walk(tree(file)) if isinstance(node, ast.Constant))
    spelt = {value for value in strings if isinstance(value, str)} & WIRE_KEYS
    assert spelt <= MAY_SPELL.get(name(file), set())


@pytest.mark.parametrize("file", FILES, ids=name)
def test_nothing_but_the_table_of_tools_knows_their_names(file: Path) -> None:
    assert name(file) in MAY_NAME_TOOLS or not any(tool.name in file.read_text() for tool in BUILT_IN)


def test_what_is_allowed_is_needed() -> None:
    """A permission that nobody uses any more is taken back."""
    assert {module for file in CORE for module in imports(file) if not module.startswith("bantam")} == CORE_MAY_IMPORT
    for file, keys in MAY_SPELL.items():
        strings = {node.value for node in ast.walk(tree(ROOT / file)) if isinstance(node, ast.Constant)}
        assert keys == WIRE_KEYS or keys <= strings


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_file_fits_into_a_head(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= LINES_MAX


# --- what belongs to the process is a parameter below the front ends

OF_THE_PROCESS = {  # names that read or change what all conversations of a process would share
    "os": {"chdir", "environ", "environb", "fchdir", "getcwd", "getcwdb", "getenv", "putenv", "umask", "unsetenv"},
    "sys": {"argv", "stdin", "stdout", "stderr", "exit"},
    "Path": {"cwd", "home"},
    "time": {"*"},
    "signal": {"signal", "setitimer"},
}
OF_A_CHILD = {"shell/net/local.py": {"sys.argv"}}  # its second half is a program of its own
WITH_A_TIME_GIVEN = {"shell/disk/files.py": {"time.strftime", "time.localtime"}}  # words for it, and no look at a clock


@pytest.mark.parametrize("file", [f for f in FILES if name(f).split("/")[0] in ("core", "shell", "host")], ids=name)
def test_below_the_front_ends_nothing_asks_the_process(file: Path) -> None:
    """The working folder, the environment, the clock, the arguments and the streams are the front ends' to know."""
    allowed = OF_A_CHILD.get(name(file), set()) | WITH_A_TIME_GIVEN.get(name(file), set())
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = OF_THE_PROCESS.get(node.value.id, set())
            used = f"{node.value.id}.{node.attr}"
            assert used in allowed or not names & {node.attr, "*"}, f"line {node.lineno}: {used}"
        elif isinstance(node, ast.ImportFrom):
            assert not {alias.name for alias in node.names} & OF_THE_PROCESS.get(node.module or "", set())
            assert node.module != "time"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "input")
