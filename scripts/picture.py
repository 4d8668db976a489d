"""The picture of a session in the README, drawn from a real one: the program on a terminal, with a scripted model.

    scripts/picture.py          writes bantam/manual/session.svg
    scripts/picture.py --text   prints the same session, as the README has it

Needs pexpect, which the tests need too. What differs from run to run, the id of what is saved, is always the same here.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import pexpect

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from scripts.fakemodel import Reply, serving  # noqa: E402

PICTURE = ROOT / "bantam/manual/session.svg"
FILES = {"server.py": 480, "util.py": 120}  # names, and how many lines they have
TYPED = ("How many Python files are here, and which is the longest?", "/save", "/quit")
ANSWERS = (
    Reply(reasoning="I should look.", calls=[("shell_exec", {"command": "wc -l *.py | sort -n | tail -3"})]),
    Reply("There are two: `server.py` is the longer one, with 480 lines."),
    Reply("counting Python files"),
)
ID = "20261201-101502"
PROMPT = "bantam> "
COLUMNS, PATIENCE_S = 76, 30

CELL, LINE, MARGIN, BAR = 8.4, 19, 16, 34  # a character's width, a line's height, around the text, above it
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
INK, DIMMED, PAPER, PROMPT_INK = "#d8dee9", "#8b919c", "#1e222a", "#a3be8c"
COLORS = {31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 36: "#56b6c2", 90: "#7f848e"}
Run = tuple[str, str, bool]
"""Text, its colour, whether it is bold."""


def session() -> str:
    """What the terminal got: lines of text, with escape sequences for colours and no others."""
    with tempfile.TemporaryDirectory() as folder, serving(ANSWERS) as fake:
        home, work = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        work.mkdir()
        (work / "model.cfg").write_text(f"endpoint={fake.endpoint}\nmodel=fake\ncolor=always\n")
        for name, count in FILES.items():
            (work / name).write_text("pass\n" * count)
        chat = pexpect.spawn(
            sys.executable,
            ["-m", "bantam"],
            cwd=str(work),
            env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "dumb"},
            dimensions=(40, COLUMNS),
            encoding="utf-8",
            timeout=PATIENCE_S,
        )
        told = ""
        for line in TYPED:
            chat.expect_exact(PROMPT)
            told += str(chat.before) + PROMPT
            chat.send(line + "\r")
        chat.expect(pexpect.EOF)
        told += str(chat.before)
        chat.close()
    # the mark of a request in flight, which was there and went
    told = re.sub(r"\x1b\[[0-9;]*m?\.\.\.requesting\.\.\.(?:\x1b\[0m)?\r *\r", "", told)
    return re.sub(r"\d{8}-\d{6}(-\d+)?", ID, "$ bantam\n" + told.replace("\r", ""))


def plain(told: str) -> str:
    """The session without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", told)


def svg(told: str) -> str:
    """The session as a picture: text in a window, its colours as attributes, which every viewer knows."""
    lines = told.rstrip("\n").split("\n")
    width, height = round(2 * MARGIN + COLUMNS * CELL), BAR + LINE * len(lines) + MARGIN
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{BAR + LINE * n - 6}" xml:space="preserve">{"".join(map(_span, _runs(line)))}</text>'
        for n, line in enumerate(lines, 1)
        if line
    )
    dots = "".join(f'<circle cx="{MARGIN + 18 * n}" cy="17" r="5.5" fill="#4b5261"/>' for n in range(3))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>A session: a question, a command that the model runs, and the answer</title>
<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>
{dots}
<g font-family="{FONT}" font-size="14" fill="{INK}">
{rows}
</g>
</svg>
"""


def _runs(line: str) -> Iterator[Run]:
    """A line as pieces of one look. The prompt has none of its own on such a terminal, and gets one here."""
    color, bold, dim = INK, False, False
    for prompt in (PROMPT, "$ "):
        if line.startswith(prompt):
            yield prompt, PROMPT_INK, True
            line = line.removeprefix(prompt)
            bold = True
    for codes, text in re.findall(r"(?:\x1b\[([0-9;]*)m)?([^\x1b]*)", line):
        for code in map(int, filter(None, codes.split(";"))):
            color = INK if code == 0 else COLORS.get(code, color)
            bold, dim = (code == 1 or (bold and code != 0)), (code == 2 or (dim and code != 0))
        if text:
            yield text, DIMMED if dim and color == INK else color, bold


def _span(run: Run) -> str:
    text, color, bold = run
    if (color, bold) == (INK, False):
        return escape(text, quote=False)
    weight = ' font-weight="bold"' if bold else ""
    return f'<tspan fill="{color}"{weight}>{escape(text, quote=False)}</tspan>'


def main(arguments: Sequence[str]) -> None:
    told = session()
    if list(arguments) == ["--text"]:
        print(plain(told), end="")
    else:
        PICTURE.write_text(svg(told))


if __name__ == "__main__":
    main(sys.argv[1:])
