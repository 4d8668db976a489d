"""What is shown: complete, in order, labelled, and never anything that a terminal would act on."""

import re
import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.texts import clean, safe
from bantam.core.effects import (
    CallStarted,
    Emit,
    Notice,
    Output,
    Reason,
    Requesting,
    ResultDelta,
    ResultEnded,
    ResultStarted,
    Retrying,
    Returned,
    Spent,
    Summarised,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
)
from bantam.core.events import Id
from bantam.core.words import view
from bantam.core.words.view import Column, Pair
from bantam.core.words.wrap import width
from tests.strategies import any_text, halved, wild_text

pytestmark = pytest.mark.core
texts = any_text | wild_text | wild_text.map(halved)
outputs: st.SearchStrategy[Output] = st.one_of(
    st.just(Requesting()),
    st.builds(TextDelta, texts),
    st.builds(ThoughtDelta, texts),
    st.builds(CallStarted, texts, texts, texts),
    st.builds(ResultStarted, texts, texts, st.booleans()),
    st.builds(ResultDelta, texts, texts, st.booleans(), st.booleans()),
    st.builds(ResultEnded, texts, texts, texts, st.booleans()),
    st.builds(Retrying, texts, st.just(1.5), st.just(1), st.just(9)),
    st.builds(Notice, texts, st.booleans()),
    st.builds(Summarised, texts),
    st.builds(Returned, texts),
    st.builds(TurnEnded, st.sampled_from(Reason), texts, st.just(Spent())),
)
paths = st.sampled_from([(), (), (3,), (4,), (3, 1)])
emits = st.lists(st.builds(Emit, paths, outputs), max_size=8)
END = Emit((), TurnEnded(Reason.DONE, "", Spent()))


def shown(told: list[Emit], markdown: bool = False) -> list[Pair]:
    column, pairs = Column(markdown=markdown), []
    for emit in [*told, END]:
        column, more = view.render(column, emit)
        pairs += more
    assert column.fresh
    assert column.carry == ""
    assert column.styler is None
    assert column.markdown == markdown
    return pairs


def text_of(pairs: list[Pair]) -> str:
    return "".join(text for _, text in pairs)


def by_root(*told: Output) -> list[Emit]:
    return [Emit((), output) for output in told]


@given(emits)
def test_nothing_that_a_terminal_acts_on_is_shown(told: list[Emit]) -> None:
    for style, text in shown(told):
        text.encode()
        assert style == "" or style in view.STYLES
        for sign in set(text) - {"\n", "\t"}:
            assert unicodedata.category(sign) != "Cc"
            assert unicodedata.bidirectional(sign) not in (
                "LRO",
                "RLO",
                "LRE",
                "RLE",
                "PDF",
                "LRI",
                "RLI",
                "FSI",
                "PDI",
            )


@given(st.lists(texts))
def test_text_is_shown_whole_and_in_order_however_it_was_cut(pieces: list[str]) -> None:
    pairs = shown(by_root(*map(TextDelta, pieces)))
    whole = safe("".join(pieces))
    assert text_of(pairs) == whole + "\n" * (whole != "" and not whole.endswith("\n"))


@given(st.lists(st.sampled_from([TextDelta, ThoughtDelta, lambda text: ResultDelta("a", text)]), min_size=1), st.data())
def test_kinds_of_text_do_not_mix(kinds: list[type[TextDelta]], data: st.DataObject) -> None:
    """What is shown in the style of an answer is the answer, whatever stands between its parts."""
    told = [kind(data.draw(wild_text.filter(bool))) for kind in kinds]
    answer = "".join(o.text for o in told if isinstance(o, TextDelta))
    styled = "".join(text for style, text in shown(by_root(*told)) if style == "")
    assert re.sub(r"\s", "", styled) == re.sub(r"\s", "", safe(answer))


@given(emits)
def test_each_line_of_a_subagent_bears_its_label_and_no_other_line_does(told: list[Emit]) -> None:
    """Rendered alone or among others, an agent shows the same lines."""
    labels = {view.label(path) for path in ((3,), (4,), (3, 1))}
    quiet = [Emit(emit.who, _without(emit.output, labels)) for emit in told]
    lines = text_of(shown(quiet)).splitlines(keepends=True)
    for path in ((3,), (4,), (3, 1)):
        label = view.label(path)
        own = [line for line in lines if line.startswith(label)]
        told_by_it = any(line.strip() for line in text_of(shown([e for e in quiet if e.who == path])).splitlines())
        assert bool(own) == told_by_it


def _without(output: Output, labels: set[str]) -> Output:
    match output:
        case TextDelta(text):
            return TextDelta(text.replace("|", "/"))
        case Notice(text, error):
            return Notice(text.replace("|", "/"), error)
        case _:
            return Requesting()


markdowns = st.lists(st.sampled_from(["*", "**b**", "`", "\n", "```c\n", "- ", "# ", " a", "> ", "\r", "h"])).map(
    "".join
)


@given(st.lists(st.builds(Emit, paths, outputs | st.builds(TextDelta, markdowns)), max_size=12))
def test_styles_change_no_text(told: list[Emit]) -> None:
    pairs = shown(told, markdown=True)
    assert text_of(pairs) == text_of(shown(told))
    assert {word.partition(":")[0] for style, _ in pairs for word in style.split()} <= view.STYLES.keys()


@given(st.lists(st.builds(Emit, paths, outputs.filter(lambda output: not isinstance(output, TextDelta))), max_size=12))
def test_nothing_but_answers_is_styled(told: list[Emit]) -> None:
    assert shown(told, markdown=True) == shown(told)


def test_the_styles_of_an_answer_end_with_it() -> None:
    told = by_root(TextDelta("```py\nx ="), CallStarted("a", "b", "c"), TextDelta("*d*"))
    assert shown(told, markdown=True) == [
        ("mark", "```py"),
        ("", "\n"),
        ("code:py", "x ="),
        ("", "\n"),
        ("call", "[tool call: b(c)]\n"),
        ("mark", "*"),
        ("emphasis", "d"),
        ("mark", "*"),
        ("", "\n"),
    ]


def test_the_label_of_a_subagent_has_no_style_of_its_lines() -> None:
    told = [Emit((3,), TextDelta("# a\n```c\nb")), Emit((3,), TextDelta("\n"))]
    assert shown(told, markdown=True) == [
        ("", "  3| "),
        ("mark", "#"),
        ("heading", " a"),
        ("", "\n"),
        ("", "  3| "),
        ("mark", "```c"),
        ("", "\n"),
        ("", "  3| "),
        ("code:c", "b"),
        ("code:c", "\n"),
    ]


def test_styles_add_up() -> None:
    assert view.ansi("heading emphasis", "a\nb") == "\x1b[1;3ma\x1b[0m\n\x1b[1;3mb\x1b[0m"
    assert view.ansi("code:python", "a") == view.ansi("code", "a")
    assert view.ansi("nothing", "a") == "a"


def test_a_subagent_is_indented_by_its_level_and_named() -> None:
    told = [Emit((3, 1), TextDelta("a\nb")), Emit((3, 1), TextDelta("c\n")), Emit((), TextDelta("d"))]
    assert text_of(shown(told)) == "    3.1| a\n    3.1| bc\nd\n"


@given(st.lists(texts.filter(bool), min_size=1))
def test_a_thought_stands_between_its_markers(pieces: list[str]) -> None:
    pairs = shown(by_root(*map(ThoughtDelta, pieces)))
    assert pairs[0] == ("marker", "--- reasoning start ---\n")
    assert pairs[-1] == ("marker", "--- reasoning end ---\n")
    thought = text_of([pair for pair in pairs if pair[0] == "thought"])
    assert thought == safe("".join(pieces))


def test_a_turn_looks_as_promised() -> None:
    told = by_root(
        Requesting(),
        ThoughtDelta("hm"),
        TextDelta("Let me look."),
        CallStarted("a", "shell_exec", '{"command": "ls"}'),
        ResultStarted("a", "shell_exec"),
        ResultDelta("a", "x\n"),
        ResultDelta("a", "y", glimpse=True),
        ResultDelta("a", "\nexit: 0"),
        ResultEnded("a", "shell_exec", "x\n\nexit: 0"),
        Retrying("busy", 1.0, 1, 9),
        Notice("a notice"),
        Summarised("x"),
        Returned("x"),
    )
    assert shown(told) == [
        ("request", "...requesting...\n"),
        ("marker", "--- reasoning start ---\n"),
        ("thought", "hm"),
        ("", "\n"),
        ("marker", "--- reasoning end ---\n"),
        ("", "Let me look."),
        ("", "\n"),
        ("call", '[tool call: shell_exec({"command": "ls"})]\n'),
        ("header", "[tool result: shell_exec]\n"),
        ("result", "x\n"),
        ("result", "\ny\n"),
        ("result", "\nexit: 0"),
        ("", "\n"),
        ("error", "busy; trying again in 1 s (1 of 9)\n"),
        ("notice", "a notice\n"),
    ]


def test_errors_are_red() -> None:
    told = by_root(ResultStarted("a", "x", error=True), ResultDelta("a", "no", error=True), Notice("no", error=True))
    assert {style for style, text in shown(told) if text.strip()} == {"error"}


@given(texts)
def test_a_call_is_one_line(text: str) -> None:
    told = by_root(CallStarted("a", text, text), ResultStarted("a", text))
    assert text_of(shown(told)).count("\n") == 2


@given(texts)
def test_safe_text_is_safe_and_stays_so(text: str) -> None:
    shown = safe(text)
    assert safe(shown) == shown
    kept = [sign for sign in clean(text) if sign.isprintable() and unicodedata.category(sign) != "Cf"]
    assert [sign for sign in shown if sign in kept] == kept or any(sign in "<>0123456789ABCDEF\ufffd" for sign in kept)


@pytest.mark.parametrize(
    ("raw", "sign"),
    [
        ("\x1b[31m", "␛[31m"),
        ("\r", "␍"),
        ("\r\n", "\n"),
        ("\x7f", "␡"),
        ("\x9b", "<9B>"),
        ("\u202e", "<202E>"),
        ("\ud800", "\ufffd"),
    ],
)
def test_a_control_character_becomes_a_sign(raw: str, sign: str) -> None:
    assert safe(raw) == sign


def test_a_carriage_return_at_the_end_is_the_same_sign_as_elsewhere() -> None:
    assert text_of(shown(by_root(TextDelta("a\r")))) == "a␍\n"


@given(st.sampled_from(["", *view.STYLES]), wild_text)
def test_colours_change_no_text_and_end_with_their_line(style: str, text: str) -> None:
    text = safe(text)
    coloured = view.ansi(style, text)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text
    for line in coloured.split("\n"):
        assert line.count("\x1b[0m") == line.count("\x1b") - line.count("\x1b[0m")
        assert "\x1b" not in line or line.endswith("\x1b[0m")


@given(st.lists(st.integers(1, 9), max_size=5).map(tuple))
def test_a_label_has_two_blanks_for_each_level(who: Id) -> None:
    assert view.label(who) == ("  " * len(who) + ".".join(map(str, who)) + "| " if who else "")


@given(paths, st.builds(Retrying, texts, st.just(1.5), st.just(1), st.just(9)) | st.builds(Notice, texts))
def test_lines_of_bantams_own_fit_the_terminal_each_behind_its_label(who: Id, told: Output) -> None:
    label = view.label(who)
    _, whole = view.render(Column(), Emit(who, told))
    for columns in (40, 60, 80, 120):
        _, pairs = view.render(Column(), Emit(who, told), columns)
        *lines, end = text_of(pairs).split("\n")
        assert end == ""
        assert all(line.startswith(label) and width(line) <= columns for line in lines)
        assert unspaced(line.removeprefix(label) for line in lines) == unspaced([text_of(whole).replace(label, "")])


def unspaced(lines: Iterable[str]) -> str:
    return re.sub("[ \t\n]", "", "".join(lines))


@given(emits, st.integers(1, 130))
def test_what_others_wrote_is_the_same_on_any_terminal(told: list[Emit], columns: int) -> None:
    own = (Retrying, Notice, Requesting, ThoughtDelta)  # which has Bantam's markers around it
    column = at_any = Column()
    for emit in (emit for emit in told if not isinstance(emit.output, own)):
        column, pairs = view.render(column, emit)
        at_any, wrapped = view.render(at_any, emit, columns)
        assert (at_any, wrapped) == (column, pairs)


def test_a_notice_of_a_subagent_goes_on_behind_its_label() -> None:
    told = Emit((3, 1), Notice("this agent has made 1000 calls of the model", True))
    assert text_of(view.render(Column(), told, 28)[1]).split("\n") == [
        "    3.1| this agent has made",
        "    3.1|   1000 calls of the",
        "    3.1|   model",
        "",
    ]


@pytest.mark.parametrize(
    ("who", "columns", "mark"),
    [
        ((), 0, "...requesting..."),
        ((3,), 40, "  3| ...requesting..."),
        ((3,), 20, "...requesting..."),
        ((), 5, "...re"),
    ],
)
def test_the_mark_of_a_request_is_one_line(who: Id, columns: int, mark: str) -> None:
    assert view.mark(who, columns) == mark
