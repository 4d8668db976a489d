"""The window: pruning keeps what matters, compaction leaves a valid and shorter conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.base.settings import Config
from bantam.core.messages import Messages
from bantam.core.window import context
from tests.invariants import complaint
from tests.strategies import any_text, conversations, wild_text

pytestmark = pytest.mark.core
windows = st.sampled_from([0, 10, 50, 200, 1000])


@given(conversations, windows)
def test_pruning_marks_old_output_and_nothing_else(said: Messages, window: int) -> None:
    pruned = context.prune(said, window)
    assert len(pruned) == len(said)
    assert complaint(pruned) == ""
    for new, old in zip(pruned, said, strict=True):
        assert new == old or (new == {**old, "content": context.CLEARED} and messages.answers(old) is not None)
    assert context.estimate(pruned) <= context.estimate(said)


@given(conversations, windows)
def test_pruning_twice_is_pruning_once(said: Messages, window: int) -> None:
    pruned = context.prune(said, window)
    assert context.prune(pruned, window) == pruned


@given(conversations, windows)
def test_the_last_two_turns_and_unseen_output_are_never_cleared(said: Messages, window: int) -> None:
    users = [at for at, m in enumerate(said) if m["role"] == "user"]
    spoke = [at for at, m in enumerate(said) if m["role"] == "assistant"]
    safe = min(users[-2] if len(users) > 1 else 1, spoke[-1] if spoke else 1)
    assert context.prune(said, window)[safe:] == said[safe:]


def turn(size: int) -> Messages:
    call = {"id": "a", "type": "function", "function": {"name": "shell_exec", "arguments": "{}"}}
    asked = {"role": "assistant", "content": "", "tool_calls": [call]}
    return messages.user("hello"), asked, messages.tool_result("a", "y" * size), messages.assistant("done")


def test_the_newest_output_is_protected_and_the_older_is_cleared() -> None:
    said = (messages.system("s"), *turn(100_000), *turn(100_000), *turn(150_000), *turn(1))
    pruned = context.prune(said)
    assert [m["content"] == context.CLEARED for m in pruned if m["role"] == "tool"] == [True, True, False, False]


def test_nothing_is_cleared_that_is_not_worth_it() -> None:
    said = (messages.system("s"), *turn(30_000), *turn(10), *turn(200_000))
    assert context.prune(said) == said


def test_output_that_the_model_has_not_seen_is_kept_whatever_the_user_says_meanwhile() -> None:
    said = (messages.system("s"), *turn(10_000)[:3], messages.user("a"), messages.user("b"))
    assert context.prune(said, window=100) == said


@given(conversations, st.booleans(), st.integers(0, len(context.SHARES) - 1), windows)
def test_a_request_for_a_summary_is_valid_and_has_all_that_will_go(
    said: Messages, whole: bool, squeezed: int, window: int
) -> None:
    asked = context.compact_request(said, whole, squeezed, window)
    assert complaint(asked) == ""
    before, part, _ = context.split(said)
    gone = said[1:] if whole else before + part
    assert (asked[0], asked[-1]) == (said[0], messages.user(context.COMPACT_PROMPT))
    assert [m["role"] for m in asked[1:-1]] == [m["role"] for m in gone]
    assert context.estimate(asked[:-1]) <= context.estimate((said[0], *gone))


SHORT = (messages.system("s"), messages.user("hello"), *turn(3_000)[1:3])


def test_long_texts_are_cut_in_a_request_for_a_summary_the_more_the_less_room_there_is() -> None:
    sizes = [len(context.compact_request(SHORT, True, level)[3]["content"]) for level in range(3)]
    assert sizes[0] == 3_000
    assert [size // 100 for size in sizes[1:]] == [10, 2]
    assert context.compact_request(SHORT, True, 1)[3]["content"].startswith("y" * 500 + "\n[2000 characters left out]")
    for window, level in ((0, 0), (10_000, 0), (800, 1), (1, 2)):
        assert context.compact_request(SHORT, True, 0, window) == context.compact_request(SHORT, True, level)


def test_a_request_for_a_summary_is_made_again_only_if_it_is_shorter() -> None:
    assert context.squeeze(SHORT, True, 0, 0) == 1
    assert context.squeeze(SHORT, True, 0, 800) == 2  # for that window it was shortened already
    assert context.squeeze(SHORT, True, 2, 0) is None
    assert context.squeeze((*SHORT[:3], messages.tool_result("a", "short")), True, 0, 0) is None


@given(conversations, wild_text, st.booleans())
def test_a_compacted_conversation_is_valid_and_keeps_what_the_user_asked_last(
    said: Messages, summary: str, whole: bool
) -> None:
    shorter = context.compacted(said, summary, whole)
    assert complaint(shorter) == ""
    assert shorter[0] == said[0]
    assert [m for m in shorter[1:] if m not in said] in ([], [messages.user(context.SUMMARY_INTRODUCTION + summary)])
    if whole:
        assert len(shorter) == 2
    elif context.can_shrink(said):
        assert len(shorter) < len(said)
        asked = [
            m for m in said if m["role"] == "user" and not messages.text_of(m).startswith(context.SUMMARY_INTRODUCTION)
        ]
        assert not asked or asked[-1] in shorter


@given(conversations, wild_text)
def test_shrinking_comes_to_an_end(said: Messages, summary: str) -> None:
    for _ in said:
        if not context.can_shrink(said):
            return
        said = context.compacted(said, summary, whole=False)
    raise AssertionError(said)


@given(conversations)
def test_a_split_loses_nothing(said: Messages) -> None:
    before, gone, after = context.split(said)
    assert (said[0], *before, *gone, *after) == said
    assert not (before and after)
    prompts = [
        m for m in said if m["role"] == "user" and not messages.text_of(m).startswith(context.SUMMARY_INTRODUCTION)
    ]
    if prompts:
        assert prompts[-1] == (after[0] if after else before[-1])


def test_a_turn_with_nothing_before_it_keeps_its_prompt_and_loses_its_work() -> None:
    asked, *work = turn(10)[:3]
    said = (messages.system("s"), asked, *work)
    assert context.split(said) == ((asked,), tuple(work), ())
    summary = messages.user(context.SUMMARY_INTRODUCTION + "did it")
    assert context.compacted(said, "did it", whole=False) == (*said[:2], summary)
    later = (said[0], summary, *turn(10)[:3])  # a summary is all that stands before: it stays, too
    assert context.compacted(later, "more", whole=False)[:3] == later[:3]
    grown = (*said[:2], summary, *work)  # so that one summary follows another, and the prompt stays all the time
    assert context.split(grown) == ((asked,), (summary, *work), ())
    assert not context.can_shrink(context.compacted(grown, "all of it", whole=False))


def test_a_conversation_without_a_user_has_no_turn_at_work() -> None:
    said = (messages.system("s"), messages.assistant("hello"))
    assert context.split(said) == ((messages.assistant("hello"),), (), ())


@given(conversations, st.integers(0, 2000))
def test_a_window_is_full_above_three_quarters(said: Messages, window: int) -> None:
    full = context.is_full(Config(context_window=window), said)
    assert full == (window > 0 and 4 * context.estimate(said) > 3 * window)


@given(any_text)
def test_a_summary_is_one_short_line(text: str) -> None:
    line = context.summary_line(text * 30)
    assert len(line) <= context.SUMMARY_MAX
    assert line == " ".join(line.split())
    line.encode()


@given(conversations)
def test_a_summary_is_asked_for_behind_the_conversation(said: Messages) -> None:
    assert context.summary_request(said) == (*said, messages.user(context.SUMMARY_PROMPT))


def test_a_child_is_told_that_it_is_one() -> None:
    assert context.child_system("s")["content"] == "s\n\nImportant: this is a child agent"


@pytest.mark.parametrize("grown", [False, True])
def test_a_picture_counts_by_itself_and_is_a_mark_where_a_summary_is_asked_for(grown: bool) -> None:
    picture = messages.image_part("data:image/png;base64," + "A" * 400_000)
    said: Messages = (messages.system("s"), messages.user("look", (picture,)), messages.assistant("a cat"))
    said = messages.longer(said) if grown else said
    words = context.estimate(tuple(map(messages.without_images, said)))
    assert context.IMAGE_TOKENS <= context.estimate(said) - words + 20 <= context.IMAGE_TOKENS + 40
    for asked in (context.compact_request(said, whole=True), context.summary_request(said)):
        assert not any(map(messages.images_of, asked))
        assert any(messages.IMAGE in messages.text_of(message) for message in asked)
