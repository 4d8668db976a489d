"""Keeping a conversation inside the model's window: estimate, prune, compact."""

import json

from bantam.core.messages import Message, Messages, answers, clean, role_of, system, text_of, user, with_text
from bantam.core.settings import Config

CHARS_PER_TOKEN = 4  # a rough mean of English and code
CLEARED = "[output cleared]"
PROTECTED_TURNS = 2  # user turns whose tool output is never cleared
PROTECTED_TOKENS = 40_000  # of the newest tool output
FREED_TOKENS_MIN = 20_000  # clearing less is not worth losing it
FULL = 0.75  # of the window: above it the list is pruned, then compacted

COMPACT_PROMPT = (
    "Summarise this conversation so that you can go on from the summary alone. Cover: what the user wants; "
    "what was done and found out, with file names, commands and exact values that still matter; decisions "
    "and why; what is left to do. Answer with the summary only."
)
SUMMARY_PROMPT = "What is this conversation about? Answer with one line of at most twelve words, nothing else."
SUMMARY_INTRODUCTION = "Summary of the conversation so far:\n\n"
SUMMARY_MAX = 120  # characters of the line that /list shows


def estimate(messages: Messages) -> int:
    """Tokens of a list, roughly."""
    return sum(len(json.dumps(message)) for message in messages) // CHARS_PER_TOKEN


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


def split(messages: Messages) -> tuple[Messages, Messages]:
    """(what came before, the current user turn) of a list, the system message left out."""
    for at in range(len(messages) - 1, 0, -1):
        if role_of(messages[at]) == "user":
            return messages[1:at], messages[at:]
    return messages[1:], ()


def can_shrink(messages: Messages) -> bool:
    """Whether a summary would be shorter: one message can be that summary already."""
    return len(split(messages)[0]) > 1


def compact_request(messages: Messages, whole: bool) -> Messages:
    """The list that asks for a summary of the conversation, or of what came before the current turn."""
    earlier = messages[1:] if whole else split(messages)[0]
    return (*prune((*messages[:1], *earlier)), user(COMPACT_PROMPT))


def compacted(messages: Messages, summary: str, whole: bool) -> Messages:
    current = () if whole else split(messages)[1]
    return (*messages[:1], user(SUMMARY_INTRODUCTION + summary), *current)


def summary_request(messages: Messages) -> Messages:
    return (*messages, user(SUMMARY_PROMPT))


def summary_line(text: str) -> str:
    """A model's summary, or a first prompt, as one short line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= SUMMARY_MAX else line[: SUMMARY_MAX - 1] + "…"


def child_system(prompt: str) -> Message:
    """The system message of a subagent."""
    return system(prompt + "\n\nImportant: this is a child agent")
