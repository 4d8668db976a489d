"""Keeping a conversation inside the model's window: estimate, prune, compact."""

import json

from bantam.core.base.grown import Grown
from bantam.core.base.settings import Config
from bantam.core.base.texts import clean
from bantam.core.messages import (
    Message,
    Messages,
    answers,
    images_of,
    role_of,
    shortened,
    system,
    text_of,
    user,
    with_text,
    without_images,
)

CHARS_PER_TOKEN = 4  # a rough mean of English and code
IMAGE_TOKENS = 1_000  # of a picture: providers count from 85 to about 1,600, by its size in pixels
CLEARED = "[output cleared]"
PROTECTED_TURNS = 2  # user turns whose tool output is never cleared
PROTECTED_TOKENS = 40_000  # of the newest tool output
FREED_TOKENS_MIN = 20_000  # clearing less is not worth losing it
FULL = 0.75  # of the window: above it the list is pruned, then compacted
SHARES = (4_000, 1_000, 250)  # characters of each text in a request for a summary; the next where it is too long so

COMPACT_PROMPT = (
    "Summarise this conversation so that you can go on from the summary alone. Cover: what the user wants; "
    "what was done and found out, with file names, commands and exact values that still matter; decisions "
    "and why; what is left to do. Answer with the summary only."
)
SUMMARY_PROMPT = "What is this conversation about? Answer with one line of at most twelve words, nothing else."
SUMMARY_INTRODUCTION = "Summary of the conversation so far:\n\n"
SUMMARY_MAX = 120  # characters of the line that /list shows


def estimate(messages: Messages) -> int:
    """Tokens of a list, roughly; a picture counts by itself, for how many bytes it has says little."""
    if isinstance(messages, Grown):  # asked for before each call, so a message is measured once
        return messages.total(_chars) // CHARS_PER_TOKEN
    return sum(map(_chars, messages)) // CHARS_PER_TOKEN


def _chars(message: Message) -> int:
    return len(json.dumps(without_images(message))) + images_of(message) * IMAGE_TOKENS * CHARS_PER_TOKEN


def is_full(config: Config, messages: Messages) -> bool:
    return bool(config.context_window) and estimate(messages) > FULL * config.context_window


def prune(messages: Messages, window: int = 0) -> Messages:
    """The same list with old tool output replaced by a mark. Length, order and ids stay; twice is once.

    The newest output, the last user turns and what the model has not seen yet are protected, and nothing
    happens unless enough is freed.
    In a small `window` (tokens) both measures shrink with it.
    """
    protected = min(PROTECTED_TOKENS, window // 4) if window else PROTECTED_TOKENS
    worth = min(FREED_TOKENS_MIN, window // 10) if window else FREED_TOKENS_MIN
    turns, newest, freed, seen = 0, 0, 0, False
    pruned = list(messages)
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        turns += role_of(message) == "user"
        seen = seen or role_of(message) == "assistant"
        if answers(message) is None or len(text_of(message)) <= len(CLEARED):
            continue
        size = estimate((message,))
        newest += size
        if seen and newest > protected and turns >= PROTECTED_TURNS:
            pruned[at] = with_text(message, CLEARED)
            freed += size
    return tuple(pruned) if freed >= worth and freed else messages


def split(messages: Messages) -> tuple[tuple[Message, ...], tuple[Message, ...], tuple[Message, ...]]:
    """(what stays, what a summary shall stand for, what stays) in mid-turn, the system message left out.

    A summary stands for what came before the current user turn; where that is one message at most (a summary, it
    may be), for what was done in the turn, an earlier summary of it included. The prompt of the turn stays.
    """
    users = [at for at, message in enumerate(messages) if role_of(message) == "user"]
    prompts = [at for at in users if not text_of(messages[at]).startswith(SUMMARY_INTRODUCTION)]
    turn = (prompts or users or [len(messages)])[-1]
    if turn > 2:
        return (), messages[1:turn], messages[turn:]
    return messages[1 : turn + 1], messages[turn + 1 :], ()


def can_shrink(messages: Messages) -> bool:
    """Whether a summary would be shorter: one message can be that summary already."""
    return len(split(messages)[1]) > 1


def compact_request(messages: Messages, whole: bool, squeezed: int = 0, window: int = 0) -> Messages:
    """The list that asks for a summary of the conversation, or in mid-turn of the part that `split` tells.

    Long texts in it are cut, the more the higher `squeezed` is or the smaller the `window` (tokens; 0: unknown):
    this request is to fit where the conversation did not.
    """
    before, gone, _ = ((), messages[1:], ()) if whole else split(messages)
    for share in SHARES[squeezed:]:
        told = (shortened(without_images(message), share) for message in before + gone)
        asked = (*messages[:1], *told, user(COMPACT_PROMPT))
        if not window or estimate(asked) <= FULL * window:
            break
    return asked


def squeeze(messages: Messages, whole: bool, squeezed: int, window: int) -> int | None:
    """The next value of `squeezed` that makes the request for a summary another one; None if none does."""
    asked = compact_request(messages, whole, squeezed, window)
    others = range(squeezed + 1, len(SHARES))
    return next((n for n in others if compact_request(messages, whole, n, window) != asked), None)


def compacted(messages: Messages, summary: str, whole: bool) -> Messages:
    """The list with the summary in the place of what it stands for."""
    before, _, after = ((), (), ()) if whole else split(messages)
    return (*messages[:1], *before, user(SUMMARY_INTRODUCTION + summary), *after)


def summary_request(messages: Messages) -> Messages:
    return (*map(without_images, messages), user(SUMMARY_PROMPT))


def summary_line(text: str) -> str:
    """A model's summary, or a first prompt, as one short line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= SUMMARY_MAX else line[: SUMMARY_MAX - 1] + "…"


def child_system(prompt: str) -> Message:
    """The system message of a subagent."""
    return system(prompt + "\n\nImportant: this is a child agent")
