"""What Bantam itself says, on terminals of several widths and in a pipe: the same words, in lines that fit or whole."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from prompt_toolkit.utils import get_cwidth

from scripts.fakemodel import FakeModel, Reply
from tests.pty_helpers import ROOT, Bantam, Start, model, plain, shell

WIDTHS = (40, 60, 80, 120)
COMMANDS = (
    "/help",
    "/help keys",
    "/cfg",
    "/list",
    "/list logs",
    "/laod x",
    "/load nothing-begins-with-this",
    "/cfg no-such-key",
)
SUMMARY = "A summary in many words, 漢字 among them, so that it goes on in the line below and the one below that"
PATH = "https://example.com/a/path/that/is/longer/than/a/terminal/of/forty/columns/and/left/whole/on/one/of/eighty"
RULES = f"approve=allow ls *; ask git commit *; ask curl {PATH}; deny rm *; deny sudo *; ask docker run *\n"
FAILURE = "the server says in some more words than fit into a line of a terminal why it could not answer this time"
CALLS = [
    ("--help",),
    ("policy", f"ls; git commit -m 'some words of a message'; curl {PATH}; sudo rm -rf somewhere; echo > here"),
    ("--no-such-option-at-all",),
    ("-c", "timeout=a-word-where-a-number-of-seconds-should-be", "-p", "hello"),
    ("-p", "hello", "FILE"),
    ("trust", "too", "many", "words"),
    ("trust", "forget"),
    ("diff", "a-name-that-nothing-has", "another-name-that-nothing-has"),
    ("replay",),
    ("help",),
    ("help", "keys"),
    ("help", "exit status"),
]


def lines(shown: str) -> list[str]:
    """What stood on the terminal's lines in the end, without what was taken back."""
    return [plain(re.split(r"\r(?!$)|\x1b\[K", line)[-1]) for line in shown.split("\n")]


def fit(shown: list[str], columns: int) -> None:
    assert [line for line in shown if get_cwidth(line) > columns] == []


def same_words(shown: list[str], whole: str, columns: int) -> None:
    """The words of a pipe, in order, none cut in two that a line has room for."""
    pieces = iter(" ".join(shown).split())
    for word in whole.split():
        found = next(pieces)
        assert found == word or get_cwidth(word) > columns, (found, word)
        while found != word:
            found += next(pieces)
            assert word.startswith(found), (found, word)
    assert [*pieces] == []


def piped(folder: Path, *arguments: str, lines: str = "") -> tuple[str, str]:
    """What a pipe gets of the same program in the same folder."""
    ran = subprocess.run(
        [sys.executable, "-m", "bantam", *arguments],
        input=lines.encode(),
        capture_output=True,
        cwd=folder / "work",
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    return ran.stdout.decode(), ran.stderr.decode()


def answers(bantam: Bantam, command: str) -> list[str]:
    """What a slash command answers, without the line that it was typed on."""
    bantam.send(command + "\r")
    shown = bantam.expect("bantam> ")
    assert "Traceback" not in shown
    _, _, answer = shown.partition("\r\n")
    return lines(answer)


def called(start: Start, columns: int, *arguments: str) -> list[str]:
    """What the program says on a terminal when it is called like this."""
    bantam = start(f'"$@" {shlex.join(arguments)}; echo "status=$?"', COLUMNS=str(columns), PAGER="cat")
    shown = lines(bantam.expect("status="))
    bantam.end()
    return shown


def kept(folder: Path, fake: FakeModel) -> None:
    """Settings with long values, and a session and a log that `/list` shows."""
    work = folder / "work"
    work.mkdir()
    (work / "model.cfg").write_text(f"endpoint={fake.endpoint}\nmodel=fake\n{RULES}extra_path={PATH}\n")


def summed_up(body: dict[str, object]) -> Reply:
    return Reply(SUMMARY)


@pytest.mark.parametrize("columns", WIDTHS)
def test_what_commands_answer_fits_the_terminal_and_is_whole_in_a_pipe(tmp_path: Path, columns: int) -> None:
    with model(tmp_path, summed_up) as (fake, start):
        kept(tmp_path, fake)
        bantam = start(COLUMNS=str(columns))
        greeting = lines(bantam.expect("bantam> "))
        fit(greeting, columns)
        bantam.ask("A first prompt of a few words, which is what the log is listed with when there is no summary")
        bantam.ask("/save")
        for command in COMMANDS:
            out, err = piped(tmp_path, lines=command + "\n")
            whole = out + err
            shown = answers(bantam, command)
            fit(shown, columns)
            same_words(shown, whole, columns)
            assert command != "/cfg" or f"\n{RULES}" in whole
            assert command != "/list" or f" messages  {SUMMARY}\n" in whole
        bantam.leave()
        (log,) = (path.stem for path in (bantam.home / ".bantam/logs").glob("*.jsonl"))
        fit(called(start, columns, "diff", log, log), columns)
        fit(called(start, columns, "policy", "--log", log), columns)


@pytest.mark.parametrize("columns", WIDTHS)
def test_what_other_calls_say_fits_the_terminal_and_is_whole_in_a_pipe(tmp_path: Path, columns: int) -> None:
    with model(tmp_path, []) as (fake, start):
        kept(tmp_path, fake)
        for arguments in CALLS:
            shown = called(start, columns, *arguments)
            fit(shown, columns)
            same_words(shown, "".join(piped(tmp_path, *arguments)), columns)


@pytest.mark.parametrize("columns", WIDTHS)
def test_errors_retries_and_questions_fit_the_terminal(tmp_path: Path, columns: int) -> None:
    script = [
        Reply(FAILURE, status=503),
        Reply(FAILURE, status=400),
        shell(f"curl {PATH} && echo one two three four five six"),
        Reply("Done."),
    ]
    with model(tmp_path, script) as (fake, start):
        kept(tmp_path, fake)
        bantam = start(COLUMNS=str(columns), BANTAM_BACKOFF_SCALE="0.001")
        bantam.prompt()
        shown = answers(bantam, "hello")
        fit(shown, columns)
        assert " ".join(" ".join(shown).split()).count(FAILURE) == 2
        assert "trying again in" in " ".join(" ".join(shown).split())
        bantam.send("again\r")
        bantam.expect("run curl")
        question = lines("run curl" + bantam.expect("[y/n/a]") + "[y/n/a]")
        fit(question, columns)
        same_words(question, QUESTION, columns)
        bantam.send("n")
        bantam.prompt()
        bantam.leave()


QUESTION = f"run curl {PATH} && echo one two three four five six? (ask curl {PATH}; y: yes, n: no, a: always) [y/n/a]"


def test_after_a_resize_the_next_line_fits(tmp_path: Path) -> None:
    with model(tmp_path, []) as (fake, start):
        kept(tmp_path, fake)
        bantam = start(COLUMNS="120")
        bantam.prompt()
        for columns in (120, 40, 80, 60):
            bantam.resize(columns)
            bantam.send("/help\r")
            table = bantam.expect("/quit") + "/quit"  # its last row: a prompt before that is one painted anew
            shown = lines((table + bantam.expect("bantam> ")).partition("\r\n")[2])
            fit(shown, columns)
            assert max(map(get_cwidth, shown)) > min(columns, 85) - 12  # and it uses what there is
        bantam.leave()


def test_a_question_before_the_first_prompt_fits_and_the_cursor_stands_behind_it(tmp_path: Path) -> None:
    with model(tmp_path, []) as (_, start):
        (tmp_path / "work").mkdir()
        (tmp_path / "work/model.cfg").write_text("endpoint=https://an.endpoint.example.com/of/a/stranger/v1\n")
        bantam = start(COLUMNS="40", OPENAI_API_KEY="secret-key-of-the-user")
        shown = lines(bantam.expect("[y/N] ") + "[y/N] ")
        fit(shown, 40)
        assert " ".join(" ".join(shown).split()).endswith("Send the key there, now and from now on? [y/N]")
        bantam.send("n\n")
        bantam.expect("bantam: ")
        with pytest.raises(AssertionError):
            assert bantam.end() == 0


def test_the_tour_introduces_itself_in_lines_that_fit(tmp_path: Path) -> None:
    with model(tmp_path, []) as (_, start):
        bantam = start('exec "$@" demo', COLUMNS="40")
        shown = lines(bantam.expect("bantam> "))
        fit(shown, 40)
        assert "no network, no key. The folder is a scratch folder" in " ".join(shown)
        bantam.leave()


def test_a_dumb_terminal_gets_lines_that_fit_too(tmp_path: Path) -> None:
    with model(tmp_path, []) as (fake, start):
        kept(tmp_path, fake)
        bantam = start(COLUMNS="40", TERM="dumb")
        bantam.prompt()
        shown = answers(bantam, "/help")
        fit(shown, 40)
        assert len(shown) > 15
        bantam.leave()
