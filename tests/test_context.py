"""The window: pruning keeps what matters, compaction leaves a valid and shorter conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import context, messages
from bantam.core.messages import Messages
from bantam.core.settings import Config
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


@given(conversations, st.booleans())
def test_a_request_for_a_summary_is_valid_and_has_all_that_will_go(said: Messages, whole: bool) -> None:
    asked = context.compact_request(said, whole)
    assert complaint(asked) == ""
    gone = said[1:] if whole else context.split(said)[0]
    assert len(asked) == len(gone) + 2
    assert asked[-1] == messages.user(context.COMPACT_PROMPT)


@given(conversations, wild_text, st.booleans())
def test_a_compacted_conversation_is_valid_and_keeps_the_turn_at_work(
    said: Messages, summary: str, whole: bool
) -> None:
    shorter = context.compacted(said, summary, whole)
    assert complaint(shorter) == ""
    assert shorter[:2] == (said[0], messages.user(context.SUMMARY_INTRODUCTION + summary))
    assert shorter[2:] == (() if whole else context.split(said)[1])
    assert not context.can_shrink(shorter)


@given(conversations)
def test_a_split_loses_nothing(said: Messages) -> None:
    earlier, current = context.split(said)
    assert (said[0], *earlier, *current) == said
    assert not current or current[0]["role"] == "user"
    assert [m["role"] for m in current[1:]].count("user") == 0


def test_a_conversation_without_a_user_has_no_turn_at_work() -> None:
    said = (messages.system("s"), messages.assistant("hello"))
    assert context.split(said) == ((messages.assistant("hello"),), ())


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
