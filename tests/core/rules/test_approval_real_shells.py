"""What the policy allows, run by real shells: only allowed commands ever ran, and no file was written."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.problem import Problem
from bantam.core.rules import approval
from bantam.core.rules.approval import Decision, judge
from tests.commandlines import SIGNS, compound, spoilt

LOOP_S = 3  # some spoilt loops never end
OURS = ("ok", "no", "say")
REAL = ("cat", "env", "find", "nice", "nohup", "sh", "time", "timeout", "xargs")
ASIDE = ("break", "echo", "eval", "exec", "set", "sh -c", *(name for name in REAL if name != "sh"))
LISTED = f"allow ok; allow ok *; allow say *; {'; '.join(f'allow {name} *' for name in ASIDE)}"
OPEN = "deny no *; allow *"
SHELLS = [found for name in ("sh", "bash") if (found := shutil.which(name))]

words = st.sampled_from(
    ["", "", " no", " 'no; no'", ' "$x"', " *", " $(no)", ' "`say`"', " >/dev/null", " 2>&1", "#", " > f", "\\ no"]
)
starts = st.sampled_from(["", "", "", "x=no; ", "env ", "nice -n 1 ", "timeout 5 ", "xargs ", "exec ", "''", "sh -c "])
commands = st.tuples(starts, st.sampled_from(["ok", "ok", "ok", "say", "no", "$x"]), words).map("".join)
lines = (
    commands
    | compound(commands)
    | spoilt(compound(commands))
    | st.lists(st.sampled_from([*SIGNS, "ok", "no", "say", " "]), max_size=8).map("".join)
)


class Bench:
    """A folder of scripts that note their own names, and nothing else on PATH but a few wrappers."""

    def __init__(self, place: Path) -> None:
        self._log, self._work, self._path = place / "log", place / "work", place / "bin"
        self._work.mkdir()
        self._path.mkdir()
        for name in OURS:
            script = self._path / name
            script.write_text(f"#!/bin/sh\necho {name} >> '{self._log}'\necho no x\n")
            script.chmod(0o755)
        for name in REAL:
            if found := shutil.which(name):
                (self._path / name).symlink_to(found)

    def run(self, shell: str, command: str) -> tuple[set[str], set[str]]:
        """The scripts that ran and the files that were made."""
        self._log.write_text("")
        child = subprocess.Popen(
            [shell, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._work,
            env={"PATH": str(self._path)},
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LOOP_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # what it left in the background
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        made = {file.name for file in self._work.iterdir()}
        for name in made:
            (self._work / name).unlink()
        return {*self._log.read_text().split()}, made


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


def allows(rules: str, command: str) -> bool:
    found = approval.parse(rules)
    assert not isinstance(found, Problem)
    return judge(found, command).decision is Decision.ALLOW


@pytest.mark.parametrize("shell", SHELLS)
@given(drawn=st.lists(lines, min_size=3, max_size=5))
def test_a_shell_runs_only_what_is_allowed(bench: Bench, shell: str, drawn: list[str]) -> None:
    for command in drawn:
        listed, opened = allows(LISTED, command), allows(OPEN, command)
        if listed or opened:
            ran, made = bench.run(shell, command)
            assert "no" not in ran, command
            assert not (listed and made), command


@pytest.mark.parametrize("shell", SHELLS)
@given(command=compound(st.sampled_from(["ok", "ok 'no; no'", "say x", "env ok", "sh -c 'ok && say'"])))
def test_what_is_allowed_does_run(bench: Bench, shell: str, command: str) -> None:
    """The other side: no ordinary command line asks for nothing."""
    assert allows(LISTED, command)
    assert bench.run(shell, command)[0] <= {"ok", "say"}
    assert bench.run(shell, f"{{ {command}\n}}\nok")[0] >= {"ok"}
