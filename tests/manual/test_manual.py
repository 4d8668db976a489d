"""The manual has everything: keys, statuses, commands, options, presets; and its links lead somewhere."""

import re

import pytest

from bantam.core.base.problem import Problem
from bantam.core.effects import Reason
from bantam.core.wire.presets import PRESETS
from bantam.core.words import config, status
from bantam.front import cli
from bantam.front.usage import Left
from bantam.host import commands, topics
from tests.manual.examples import PAGES, README, inline, prose
from tests.root import ROOT

MANUAL = topics.manual()
SLASH_COMMANDS = [row.name for row in commands.ROWS]
LINE_CHARS_MAX = 78  # of prose, so that it fits an ordinary terminal, also where `help` indents it
ABOUT_CHARS_MAX = 65  # with the names before it, for the same reason
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
MENTIONS_MIN = 50  # fewer, and the pattern below finds no files any more
README_LINES_MAX = 160
SPINE_LINES_OFF = 100  # the README rounds


def rows(name: str) -> list[str]:
    """The points of lists in a topic, each as one line."""
    return points(MANUAL[name])


def points(text: str) -> list[str]:
    return [" ".join(point.split()) for point in re.findall(r"^\* (.*(?:\n {2}\S.*)*)", text, re.M)]


def test_each_topic_begins_with_its_title_and_one_line_about_it() -> None:
    for name, text in MANUAL.items():
        title, blank, about, behind = text.split("\n")[:4]
        assert re.fullmatch(r"# \S.*", title), name
        assert (blank, behind) == ("", ""), name
        assert re.fullmatch(r".*\S\.", about), name
        assert len(about) <= ABOUT_CHARS_MAX, name


@pytest.mark.parametrize("name", MANUAL)
def test_topics_fit_a_terminal(name: str) -> None:
    long = [line for line in prose(topics.MANUAL / f"{name}.md").splitlines() if len(line) > LINE_CHARS_MAX]
    assert not long


def test_every_key_of_model_cfg_stands_there_with_its_default() -> None:
    default = config.parse(())
    assert not isinstance(default, Problem)
    values = dict(config.shown(default, has_key=False))
    told = {}
    for row in points(MANUAL["config"].split("\n## Every other key")[0]):
        keys, sign, value = re.match(r"((?:`\w+`(?:, )?)+)( \(`?(.*?)`?\))?", row).groups()  # type: ignore[union-attr]
        if sign:
            told.update(dict.fromkeys(re.findall(r"\w+", keys), value))
    assert told == {key: values[key].strip("()") or "none" for key in config.names()}


def test_every_exit_status_stands_there() -> None:
    told = set(map(int, re.findall(r"^\| (\d+) ", MANUAL["statuses"], re.M)))
    ends = {status.of(reason) for reason in Reason}
    assert told == ends | {status.FAILED, status.USAGE, status.DIVERGED, status.READER_GONE, 128 + 1, 128 + 3, 128 + 15}


def test_every_slash_command_stands_there() -> None:
    told = {word for row in rows("commands") for word in re.findall(r"^`(/[a-z]+)", row)}
    assert told == {*SLASH_COMMANDS}


def test_every_option_and_subcommand_stands_there() -> None:
    options = {
        word for line in cli.parser().format_help().splitlines() for word in re.findall(r" (--?[a-zA-Z]+)", line)
    }
    told = " ".join(rows("options"))
    assert not [option for option in options if not re.search(rf"`(?:[^`]* )?{option}[` |=]", told)]
    assert not [name for name in cli.SUBCOMMANDS if f"`bantam {name}" not in told]


def test_every_reason_and_every_preset_stand_there() -> None:
    assert not [reason for reason in Reason if f"`{reason}`" not in MANUAL["json-events"]]
    assert not [name for name in PRESETS if f"`{name}`" not in MANUAL["config"]]
    for name, preset in PRESETS.items():
        row = next(line for line in MANUAL["providers"].splitlines() if line.startswith(f"| `{name}`"))
        assert f"`{preset.key_variable}`" in row if preset.key_variable else "_KEY" not in row
        host, _, port = preset.endpoint.split("/")[2].partition(":")
        assert port in row if port else host in row or name == "local"


def test_commands_within_the_text_are_ones() -> None:
    for page in PAGES:
        for code in inline(page):
            words = code.replace("'COMMAND'", "COMMAND").replace("…", "X").split()
            if words[0] == "bantam":
                try:
                    options, unknown = cli.parser().parse_known_args(words[1:])
                except Left as left:
                    pytest.fail(f"{page.name}: {code}: {left.why}")
                assert not [word for word in unknown if word.startswith("-")], code
                assert len(options.words) <= 1 or options.words[0] in cli.SUBCOMMANDS, code
            if re.fullmatch(r"/[a-z]+", words[0]) and words[0] != "/":
                assert not isinstance(commands.parse(code), Problem) or words == ["/load"], code


def test_the_readme_is_short_and_links_every_topic_with_its_line() -> None:
    readme = README.read_text()
    assert len(readme.splitlines()) <= README_LINES_MAX
    for name, text in MANUAL.items():
        assert f"| [{name}](bantam/manual/{name}.md) | {topics.about(text).removesuffix('.')} |\n" in readme


def test_links_lead_somewhere() -> None:
    for page in (*PAGES, CONTRIBUTING):
        for target in re.findall(r"\]\(([^)#]*)\)", prose(page)):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
    for name, text in MANUAL.items():
        assert not re.search(r"See also:.*\b" + name + r"\.md", text, re.S), f"{name} links itself"


def test_the_spine_is_as_long_as_the_readme_says() -> None:
    told = re.search(r"about ([\d,]+) lines, small enough to read in an\s+evening", README.read_text())
    assert told is not None
    real = sum(len(file.read_text().splitlines()) for file in (ROOT / "bantam/core").glob("*.py"))
    assert abs(int(told[1].replace(",", "")) - real) <= SPINE_LINES_OFF


def test_whatever_contributing_names_is_there() -> None:
    """Files and folders of the tree; `bantam` may be left out, and the folder that was named last."""
    before, _, behind = CONTRIBUTING.read_text().partition("\n## Speed\n")
    text, folder = before + behind.partition("\n## ")[2], ""
    paths = re.findall(r"`((?:(?:core|shell|host|front|tests|scripts|manual)/)?[\w/]*(?:/|\.py|\.md|\.json))`", text)
    assert len(paths) > MENTIONS_MIN
    for path in paths:
        folder = path.rpartition("/")[0] or folder
        places = (ROOT / path, ROOT / "bantam" / path, ROOT / "bantam" / folder / path)
        rooms = [*(ROOT / "bantam").glob(f"*/{path}")]
        assert rooms or any(place.exists() for place in places), f"CONTRIBUTING.md names {path}"
