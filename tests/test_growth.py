"""scripts/growth.py runs: at sizes that say nothing of growth, so that the rows are there when they are needed."""

import re
import subprocess
import sys

import pytest

from scripts import growth
from tests.root import ROOT


def test_every_row_runs() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "growth.py"), "--share", "0.01"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line.split()[0] for line in ran.stdout.splitlines()] == [*growth.ROWS]
    assert all(re.search(r"ms  exponent +-?\d+\.\d\d$", line) for line in ran.stdout.splitlines())


@pytest.mark.parametrize("exponent", [0, 1, 2])
def test_the_exponent_is_that_of_a_power(exponent: int) -> None:
    xs = [1.0, 2.0, 3.0, 4.0]
    assert growth.slope(xs, [exponent * x - 7 for x in xs]) == pytest.approx(exponent)
