"""The scripted model of the guided tour: the body of a request -> an answer, as the chunks of a stream.

Pure and total. How far the tour has come is read from the messages alone, so that `/clear` begins it again
and `/compact`, `/load` and interrupts do not confuse it. May not do any I/O.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bantam.core.messages import Message, answers, role_of, text_of
from bantam.core.window import context

START_S, PIECE_S, NUMBER_S = 0.1, 0.025, 0.2  # before an answer, before some words of it, before a counted number
WORDS = re.compile(r"\s*\S+(?:\s+\S+)?|\s+")  # two at a time
COUNT_MAX = 300
QUOTE_MAX = 40  # characters of what the user or a command said
CHARS_PER_TOKEN = 4

NAMES = ("reasoning", "a command", "Ctrl+J", "subagents", "an interrupt", "the end")
STEPS = len(NAMES)
INTERRUPT = 5
HEADS = {n: f"Step {n} of {STEPS}: {name}.\n" for n, name in enumerate(NAMES, 1)}
ENDS = {  # what an answer must end with to count as given
    1: "Next: say anything, and I run a command.",
    2: "Next: type a line, press Ctrl+J, type another one, then press Enter.",
    3: "Next: say anything, and I start two subagents.",
    4: "Next: say anything, and I count slowly. Press Ctrl+C to stop me, then say\nsomething again.",
    5: "Next: say anything.",
    6: "That was the tour. /clear begins it again.",
}
COUNTING = HEADS[INTERRUPT] + "I count until you press Ctrl+C:"
OVER = "The tour is over. /clear begins it again, /help lists the commands, /quit leaves."

FILES = {
    "birds.txt": "bantam 900\ngoldcrest 6\ngoose 4000\nostrich 120000\nrobin 18\nswan 11000\nwren 9\n",
    "notes.txt": "The weights in birds.txt are in grams.\nAsk the goose.\n",
}
LOOK = "ls; wc -l *.txt; grep bantam birds.txt"
QUESTIONS = {  # for the subagents: the command that finds the answer, and the words for it
    "How many birds are in birds.txt?": ("wc -l <birds.txt", "There are {} birds."),
    "Which bird of birds.txt is heaviest?": ("sort -nk2 birds.txt | tail -n 1", "The heaviest is: {}"),
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says and wants to have run. `count` is added to the text, a number at a time."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Mapping[str, str]], ...] = ()
    count: int = 0

    @property
    def words(self) -> str:
        return self.text + "".join(self.numbers()) + (f"\nThat is enough.\n\n{ENDS[INTERRUPT]}" if self.count else "")

    def numbers(self) -> Iterator[str]:
        return (f" {n}" for n in range(1, self.count + 1))


@dataclass(frozen=True, slots=True)
class Talk:
    """What matters of a conversation: the last thing the user said, and the results that came since then."""

    said: str
    results: tuple[str, ...]
    counted: str


# --- what the model says


def reply(body: Any) -> Reply:
    """The answer to any request at all."""
    messages = _messages(body)
    talk = _talk(messages)
    done = _done(messages)
    if talk.said in (context.COMPACT_PROMPT, context.SUMMARY_PROMPT):
        return Reply(f"A guided tour of Bantam, {done} of {STEPS} steps done")
    if any(role_of(m) == "system" and text_of(m).endswith(CHILD) for m in messages[:1]):
        return _child(talk)
    return TELL[done + 1](talk) if done < STEPS else Reply(OVER)


CHILD = text_of(context.child_system("")).strip()


def counted(text: str) -> int:
    """How far an answer of the step with the interrupt has counted; 0 for any other text."""
    numbers = re.findall(r"[0-9]+", text.removeprefix(COUNTING)) if text.startswith(COUNTING) else []
    return int(numbers[-1]) if numbers else 0


def _messages(body: Any) -> list[Message]:
    listed = body.get("messages") if isinstance(body, Mapping) else None
    return [m for m in listed if isinstance(m, Mapping)] if isinstance(listed, (list, tuple)) else []


def _talk(messages: list[Message]) -> Talk:
    said = next((text_of(m) for m in reversed(messages) if role_of(m) == "user"), "")
    results: list[str] = []
    for message in reversed(messages):
        if answers(message) is None:
            break
        results.insert(0, text_of(message))
    counts = [text_of(m) for m in messages if role_of(m) == "assistant" and text_of(m).startswith(COUNTING)]
    return Talk(said, tuple(results), counts[-1] if counts else "")


def _done(messages: list[Message]) -> int:
    """The last step that was told to its end. To be interrupted is the end of that step."""
    done = 0
    for message in messages:
        text = text_of(message)
        if role_of(message) == "assistant":
            told = (n for n in HEADS if text.startswith(HEADS[n]) and (n == INTERRUPT or text.endswith(ENDS[n])))
            done = max(done, *told, 0)
        elif role_of(message) == "user" and text.startswith(context.SUMMARY_INTRODUCTION):
            summary = re.search(rf"([0-{STEPS}]) of {STEPS} steps done", text)
            done = max(done, int(summary[1]) if summary else 0)
    return done


def _step(number: int, text: str, reasoning: str = "") -> Reply:
    return Reply(f"{HEADS[number]}{text}\n\n{ENDS[number]}", reasoning)


def _reasoning(talk: Talk) -> Reply:
    return _step(
        1,
        "Hello! I am a script and no model, but Bantam does not know: it talks to me\n"
        "over HTTP, as to any other API. What stood between the markers was reasoning:\n"
        "shown as it comes, and never mixed with the answer.",
        f'The user says "{_short(talk.said)}". This is the beginning, so I greet, say what I am,\n'
        "and name the next step.\n",
    )


def _command(talk: Talk) -> Reply:
    if not talk.results:
        return Reply("I look around.", calls=(("shell_exec", {"command": LOOK}),))
    lines = _output(talk.results[-1])
    if lines is None:
        return _step(2, f"The command did not run: {_short(talk.results[-1])}")
    last = f', the last one from grep:\n"{_short(lines[-1])}".' if lines else "."
    return _step(
        2,
        "That was a real shell, in a scratch folder that goes when you leave. What it\n"
        f"printed came back to me with its exit status: {len(lines)} lines{last}",
    )


def _lines(talk: Talk) -> Reply:
    count = len(talk.said.splitlines())
    if count > 1:
        told = f"{count} lines arrived as one message: Ctrl+J begins a line, Enter sends, and a paste\nnever does."
    else:
        told = "One line arrived. At any prompt Ctrl+J begins another (Alt+Enter, where enter=lf\nis set)."
    return _step(3, told)


def _subagents(talk: Talk) -> Reply:
    if not talk.results:
        calls = tuple(("run_subagent", {"prompt": question}) for question in QUESTIONS)
        return Reply("I ask two others.", calls=calls)
    reports = "\n".join(f"- {_short(result, 2 * QUOTE_MAX)}" for result in talk.results)
    return _step(
        4, f"Both ran at the same time, each with a conversation and a shell of its own.\nThey say:\n{reports}"
    )


def _interrupt(talk: Talk) -> Reply:
    return Reply(COUNTING, count=COUNT_MAX)


def _end(talk: Talk) -> Reply:
    if ENDS[INTERRUPT] in talk.counted:
        told = "You let me count to the end."
    elif counted(talk.counted):
        told = (
            f"You stopped me at {counted(talk.counted)}. I know, since all that I had said is kept. When you stop a\n"
            "command, what it had printed is kept, and no process is left behind."
        )
    else:
        told = "Of my counting nothing is left."
    return _step(
        6,
        f"{told}\n\n"
        "/help lists the commands, /quit leaves. To talk to a real model, write its\n"
        "endpoint, its name and your key into a file model.cfg, as the README shows, and\n"
        "start bantam beside it. With no model.cfg it uses one that needs no key.",
    )


TELL: Mapping[int, Callable[[Talk], Reply]] = dict(
    enumerate((_reasoning, _command, _lines, _subagents, _interrupt, _end), 1)
)


def _child(talk: Talk) -> Reply:
    """A subagent finds out with one command, and says what it was told to find out."""
    command, words = QUESTIONS.get(talk.said, ("ls", "It printed: {}"))
    if not talk.results:
        return Reply(calls=(("shell_exec", {"command": command}),))
    lines = _output(talk.results[-1])
    return Reply(words.format(_short(lines[0])) if lines else f"I could not find out: {_short(talk.results[-1])}")


def _output(result: str) -> list[str] | None:
    """The lines that a command printed; None if the result is not one of a command that ended."""
    output, found, _ = result.rpartition("\n\nexit: ")
    return output.splitlines() if found else None


def _short(text: str, most: int = QUOTE_MAX) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


# --- how it is sent


def chunks(body: Any) -> list[tuple[float, Mapping[str, Any]]]:
    """The stream that answers a request: chat-completion chunks, each with the seconds to wait before it."""
    said = reply(body)
    deltas: list[tuple[float, Mapping[str, Any]]] = [(START_S, {"role": "assistant", "content": ""})]
    deltas += [(PIECE_S, {"reasoning_content": piece}) for piece in _pieces(said.reasoning)]
    deltas += [(PIECE_S, {"content": piece}) for piece in _pieces(said.text)]
    deltas += [(NUMBER_S, {"content": number}) for number in said.numbers()]
    rest = said.words[len(said.text) + sum(map(len, said.numbers())) :]
    deltas += [(PIECE_S, {"content": piece}) for piece in _pieces(rest)]
    deltas += [(PIECE_S, {"tool_calls": [{"index": n, **call}]}) for n, call in enumerate(_calls(said))]
    made = [(wait, _chunk({"index": 0, "delta": delta, "finish_reason": None})) for wait, delta in deltas]
    made.append((0.0, _chunk({"index": 0, "delta": {}, "finish_reason": _finish(said)})))
    return [*made, (0.0, {**_chunk(), "usage": _usage(body, said)})]


def whole(body: Any) -> Mapping[str, Any]:
    """The same answer for a request that wants no stream."""
    said = reply(body)
    message: dict[str, Any] = {"role": "assistant", "content": said.words}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if said.calls:
        message["tool_calls"] = _calls(said)
    choice = {"index": 0, "message": message, "finish_reason": _finish(said)}
    return {**_chunk(choice), "object": "chat.completion", "usage": _usage(body, said)}


def wants_stream(body: Any) -> bool:
    return isinstance(body, Mapping) and body.get("stream") is True


def _pieces(text: str) -> list[str]:
    """What comes at once: some words, or a whole line where that is all, lest two subagents mix their words."""
    return WORDS.findall(text) if "\n" in text else [text] if text else []


def _calls(said: Reply) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(said.calls, 1)
    ]


def _finish(said: Reply) -> str:
    return "tool_calls" if said.calls else "stop"


def _chunk(*choices: Mapping[str, Any]) -> dict[str, Any]:
    made = {"id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": "demo"}
    return {**made, "choices": list(choices)}


def _usage(body: Any, said: Reply) -> dict[str, int]:
    asked = sum(len(text_of(message)) for message in _messages(body)) // CHARS_PER_TOKEN
    told = len(said.reasoning + said.words) // CHARS_PER_TOKEN
    return {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}
