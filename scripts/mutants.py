"""One-line bugs, each of which must turn the core's tests red.

    scripts/mutants.py [NAME ...]

Each bug is made in a copy of the tree, one at a time. Status 1 if one survives, or if the text that it changes
is no longer there exactly once: then change its line below, too.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 180  # a bug that makes the tests hang is caught, too
NEEDED = ("bantam", "tests", "pyproject.toml", "CONTRIBUTING.md")

MUTANTS = (  # name, file below bantam/core, old text, new text
    (
        "an interrupt leaves calls open",
        "loop.py",
        "*closed))\n    return _finish(agent, Finish(Reason.INTERRUPTED), effects)",
        "))\n    return _finish(agent, Finish(Reason.INTERRUPTED), effects)",
    ),
    (
        "an interrupt overwrites results that came",
        "acting.py",
        "if (slot.place,) in phase.results:\n            continue",
        "if False:\n            continue",
    ),
    (
        "an interrupt overwrites an empty result",
        "acting.py",
        "if (slot.place,) in phase.results:\n            continue",
        "if phase.results.get((slot.place,)):\n            continue",
    ),
    ("an interrupt forgets to cancel a tool", "acting.py", "[Cancel(id), *shown", "[*shown"),
    (
        "an interrupt forgets to cancel a sleep",
        "loop.py",
        "(Reason.INTERRUPTED), (Cancel(id),))",
        "(Reason.INTERRUPTED))",
    ),
    (
        "an interrupt keeps a summary as an answer",
        "loop.py",
        'if phase.purpose == "reply" else ""\n    kept',
        "\n    kept",
    ),
    (
        "a late ModelEnded is accepted",
        "loop.py",
        "ModelEnded(id=its, marked=marked) if id == its",
        "ModelEnded(marked=marked)",
    ),
    (
        "late chunks are accepted",
        "loop.py",
        "ModelChunks(id=its, chunks=chunks) if id == its",
        "ModelChunks(chunks=chunks)",
    ),
    (
        "a late timer is accepted",
        "loop.py",
        "(TimerFired(id=its) | Lost(id=its)) if id == its",
        "(TimerFired() | Lost())",
    ),
    ("retries for ever", "loop.py", "phase.attempt + 1)", "phase.attempt)"),
    (
        "a retry keeps the partial reply",
        "loop.py",
        "attempt, Partial(),",
        "attempt, getattr(agent.phase, 'partial', Partial()),",
    ),
    (
        "results in reverse order",
        "acting.py",
        "phase.results[slot.place,]) for slot in phase.slots)",
        "phase.results[slot.place,]) for slot in phase.slots[::-1])",
    ),
    (
        "wrong id on a result",
        "acting.py",
        "tool_result(slot.call_id, phase",
        "tool_result(phase.slots[0].call_id, phase",
    ),
    (
        "commands run side by side",
        "acting.py",
        "if busy and not (slot.together and _is_group(busy)):",
        "if False:",
    ),
    ("subagents run one after another", "acting.py", "busy and not (slot.together and _is_group(busy))", "busy"),
    ("a command overtakes a subagent", "acting.py", "not (slot.together and _is_group(busy))", "not _is_group(busy)"),
    (
        "a function is told that it ended as a command",
        "loop.py",
        "CommandEnded(id=id) if slot := acting.command(",
        "CommandEnded(id=id) if slot := acting.running(",
    ),
    ("a function never asks", "tools/toolbox.py", "if tool is None or not tool.judged:", "if tool is None or True:"),
    ("queued text is said again and again", "loop.py", "*said), queued=())", "*said))"),
    (
        "queued text is lost at the end",
        "loop.py",
        "Save(agent.messages), *back, finish)",
        "Save(agent.messages), finish)",
    ),
    ("what is taken back stays queued", "loop.py", "queued=agent.queued[:-1]), (emit", "serial=agent.serial), (emit"),
    ("the first is taken back", "loop.py", "last = agent.queued[-1]", "last = agent.queued[0]"),
    ("what was attached is not said", "loop.py", "messages.user(one.text, one.parts)", "messages.user(one.text)"),
    ("recovery without end", "loop.py", "strips=agent.strips + 1", "strips=agent.strips"),
    ("an open end is an answer", "loop.py", "if not marked and not phase.partial.finish:", "if False:"),
    (
        "an empty summary replaces the conversation",
        "loop.py",
        '(phase.purpose != "reply" and not messages.text_of(message).strip())',
        "False",
    ),
    (
        "a parameter is refused to two agents at once",
        "loop.py",
        "spare(ctx.config, phase.withheld)",
        "spare(ctx.config, ctx.withheld)",
    ),
    ("iterations are not counted", "loop.py", "iterations=agent.iterations + 1)", "iterations=agent.iterations)"),
    ("iterations off by one", "rules/limits.py", "if most and has >= most", "if most and has > most"),
    ("depth off by one", "tools/toolbox.py", "depth >= DEPTH_MAX", "depth > DEPTH_MAX"),
    (
        "arguments that did not parse are empty",
        "tools/toolbox.py",
        "given = json_object(raw)",
        "given = json_object(raw) or {}",
    ),
    ("only the last output counts", "tools/toolbox.py", "head=rope.add(heard.head, event.text)", "head=(event.text,)"),
    ("a glimpse is kept as output", "tools/toolbox.py", "if event.skipped:", "if False:"),
    (
        "cancelled children live on",
        "tree.py",
        "agents=session.agents.cut(path)), cancels",
        "agents=session.agents), cancels",
    ),
    (
        "cancelled calls cost nothing",
        "tree.py",
        "for agent in cut.values():\n        session",
        "for agent in ():\n        session",
    ),
    ("typing resets the meter", "tree.py", "if _begins(event) and idle(session):", "if _begins(event):"),
    ("a blank line resets the meter", "tree.py", "return says(said)", "return True"),
    (
        "the total is the last turn's",
        "tree.py",
        "total=limits.add(session.total, session.spent)",
        "total=session.spent",
    ),
    ("a forger can end a subagent", "tree.py", "event.id in session.agents:", "False:"),
    ("a subagent's list is saved as the root's", "tree.py", "case Save() if path:", "case Save() if False:"),
    ("duplicate ids are kept", "messages.py", "while own in taken:", "while False:"),
    (
        "close forgets the rest",
        "messages.py",
        "for call in open_calls(messages))",
        "for call in open_calls(messages)[:1])",
    ),
    (
        "unknown members are dropped",
        "messages.py",
        '{**message, "role": "assistant", "content": content}',
        '{"role": "assistant", "content": content}',
    ),
    (
        "a thought becomes the answer",
        "messages.py",
        'and not calls else ""',
        'and not calls else str(message.get("reasoning") or "")',
    ),
    (
        "stripping forgets the results",
        "messages.py",
        "return messages[:at] + rest",
        "return messages[:at] + messages[at + 1 :]",
    ),
    ("NaN passes for JSON", "messages.py", "json.JSONDecoder(parse_constant=_no_json)", "json.JSONDecoder()"),
    (
        "index 0 merges all calls",
        "wire/assemble.py",
        'if item.get("id") and old.get("id") and item["id"] != old["id"]:',
        "if False:",
    ),
    (
        "a late piece goes to the last call",
        "wire/assemble.py",
        "at = max(self._last((who, index), end), self._last((who, ()), end))",
        "at = self._last((who,), end)",
    ),
    (
        "calls without a role are lost",
        "wire/assemble.py",
        '{**_joined({**partial.message, **lists}), "role": "assistant"}',
        "_joined({**partial.message, **lists})",
    ),
    (
        "nulls inside unknown members are lost",
        "wire/assemble.py",
        "if value is not None or key not in merged:",
        "if value is not None:",
    ),
    (
        "coalescing mixes what differs",
        "wire/assemble.py",
        'mine = ({**chunk, "choices": None}, rest)',
        "mine = ({}, {})",
    ),
    (
        "two halves stay two",
        "wire/assemble.py",
        "rope.add(pieces[:-1], paired(pieces[-1] + piece))",
        "rope.add(pieces, piece)",
    ),
    ("CRLF is not understood", "wire/sse.py", r'rb"(?:\r\n|\n|\r(?!\n)){2}"', r'rb"\n\n"'),
    ("lines of one event are glued", "wire/sse.py", 'data = b"\\n".join(', 'data = b"".join('),
    (
        "a byte order mark in pieces hides an answer",
        "wire/body.py",
        r'data = data.lstrip(b"\xef\xbb\xbf \t\r\n")',
        r'data = data.removeprefix(b"\xef\xbb\xbf").lstrip()',
    ),
    ("an error inside a stream is a chunk", "wire/chat.py", 'if value.get("error") or', "if"),
    (
        "a keep-alive is a damaged chunk",
        "wire/body.py",
        "            if not bare:  # no",
        "            if False:  # no",
    ),
    ("a damaged chunk is a keep-alive", "wire/body.py", r'r"\{|\[(?![A-Za-z])"', r'r"\{.*\}$|\[(?![A-Za-z])"'),
    (
        "an answer of words alone says nothing",
        "wire/body.py",
        "if body.words and not body.finished:",
        "if False:",
    ),
    (
        "an answer that is too large is asked for again",
        "wire/failures.py",
        "(Fault.CERTIFICATE, Fault.REQUEST, Fault.LIMIT)",
        "(Fault.CERTIFICATE, Fault.REQUEST)",
    ),
    ("not Fibonacci", "wire/failures.py", "(1, 1, 2, 3, 5, 8, 13, 21, 34)", "(1, 2, 3, 5, 8, 13, 21, 34, 55)"),
    (
        "Retry-After is ignored",
        "wire/failures.py",
        "max(float(DELAYS_S[attempt - 1]), floor)",
        "float(DELAYS_S[attempt - 1])",
    ),
    ("any wait is waited", "wire/failures.py", "or floor > WAIT_MAX_S:", "or False:"),
    ("a used-up quota is tried again", "wire/failures.py", "if re.search(_QUOTA, failure.text) or", "if"),
    ("output of this turn is cleared", "window/context.py", "turns >= PROTECTED_TURNS", "turns >= 0"),
    (
        "compaction loses the system message",
        "window/context.py",
        "return (*messages[:1], *before, user(SUMMARY",
        "return (*before, user(SUMMARY",
    ),
    (
        "compaction loses the turn at work",
        "window/context.py",
        "before, _, after = ((), (), ()) if whole else split(messages)",
        "before, _, after = (), (), ()",
    ),
    (
        "a turn of its own is never compacted",
        "window/context.py",
        "return messages[1 : turn + 1], messages[turn + 1 :], ()",
        "return messages[1:], (), ()",
    ),
    (
        "a summary that is too long is asked for again as it is",
        "window/context.py",
        "n, window) != asked), None)",
        "n, window) is not asked), None)",
    ),
    (
        "a request for a summary is never shorter",
        "window/context.py",
        "shortened(without_images(message), share) for",
        "message for",
    ),
    (
        "a last event waits for its blank line",
        "wire/body.py",
        "return before or soon if _says_end(body) else before",
        "return before",
    ),
    (
        "an object that looks like a mark is a tuple",
        "past/codec.py",
        'startswith("$") else ""',
        'startswith("%") else ""',
    ),
    ("a log line of the wrong kind is taken", "past/codec.py", "if not fits:", "if False:"),
    (
        "an update changes the first of two lines",
        "words/config.py",
        "range(len(lines) - 1, -1, -1)",
        "range(len(lines))",
    ),
    (
        "the key goes anywhere",
        "rules/credentials.py",
        "if chosen or is_loopback(config.endpoint) or",
        "if chosen or True or",
    ),
    ("a call that ended costs nothing", "tree.py", "if _ends_call(agent, event):", "if False:"),
    ("the clock of a turn never starts", "tree.py", "=frozenset(), begun=now)", "=frozenset())"),
    ("a denial that nobody could lift is told again", "tree.py", "if command not in session.unapproved:", "if True:"),
    ("a denial that nobody could lift is forgotten", "tree.py", "session.unapproved and reason", "False and reason"),
    ("another key forgets what was refused", "tree.py", "session.withheld if same else frozenset()", "frozenset()"),
    ("a retry does not look at the budgets", "loop.py", "if reason is None else _stop(agent, reason, ctx)", ""),
    ("it sleeps beyond the end of its time", "loop.py", "ctx.elapsed_s + wait[0])):", "0)):"),
    (
        "it sleeps although the calls are used up",
        "loop.py",
        "if reason := _over(agent, replace",
        "if reason := False and _over(agent, replace",
    ),
    ("a request may take longer than the turn", "loop.py", "ctx.withheld, left_s)", "ctx.withheld, None)"),
    ("a command may take longer than the turn", "acting.py", "if left_s is None else min(", "if True else min("),
    ("a command starts when time is over", "acting.py", "left_s <= limits.CLOCK_S", "left_s < 0"),
    ("cycles off by one", "loop.py", "max_identical_calls < most", "max_identical_calls <= most"),
    ("calls in a row are never counted again", "loop.py", "replace(agent, repeated=repeated)", "replace(agent)"),
    ("a repaired answer is repaired again", "loop.py", "repairs=agent.repairs + 1)", "repairs=agent.repairs)"),
    ("a bad answer is good enough", "loop.py", "if not problem and not agent.queued:", "if not agent.queued:"),
    ("what asks runs", "rules/gate.py", 'verdict.why if verdict.decision == "ask" else ""', '""'),
    ("what is denied asks", "rules/gate.py", 'if verdict.decision == "deny":', "if False:"),
    (
        "output of a command that asks is taken",
        "acting.py",
        "if slot is None or slot.asks else",
        "if slot is None else",
    ),
    (
        "a lost command is run again",
        "loop.py",
        "toolbox.lost_result(slot.heard), True, ctx)",
        "toolbox.NOT_RUN, True, ctx)",
    ),
    (
        "a turn goes on over a gap in its log",
        "past/mend.py",
        "if shown is not None:",
        "if False:",
    ),
    ("half a key is told", "rules/redact.py", "most = min(len(secret) - 1", "most = min(0"),
    ("the key is in what is saved", "rules/redact.py", "return (Save(self.messages((), said)),)", "return (effect,)"),
    ("C1 controls reach the terminal", "base/texts.py", r"\x7f-\x9f", r"\x7f"),
    ("an indent takes from a word's room", "words/wrap.py", "min(indent, columns - wide)", "indent"),
    ("a line is as wide as it likes", "words/wrap.py", "used + gap + wide <= columns", "used + wide <= columns"),
    ("signs are parted from their marks", "words/wrap.py", "_columns(char) == 0 or char == _EMOJI", "char == _EMOJI"),
    ("a label takes no room", "words/view.py", "columns - wrap.width(label(who))", "columns"),
    ("a call is wrapped", "words/view.py", '"call", wrap.Kept(text)', '"call", text'),
    ("verbatim goes beyond its line", "words/markdown.py", 'starts=True, verbatim="")', "starts=True)"),
    ("a shorter fence closes a longer one", "words/blocks.py", "len(rest) >= fence.length", "len(rest) >= 3"),
    ("a run of stars is judged before it has ended", "words/spans.py", "len(mark) < STARS_MAX:", "len(mark) < 0:"),
    (
        "what is held back at the end is lost",
        "words/markdown.py",
        "if styler.held else []",
        "if not styler.held else []",
    ),
    ("a carriage return is forgotten", "words/view.py", "column.kind, column.carry)", 'column.kind, "")'),
)


def main() -> int:
    wanted = sys.argv[1:]
    survived, begun = [], time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made)
        for name in NEEDED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
        chosen = [mutant for mutant in MUTANTS if not wanted or any(word in mutant[0] for word in wanted)]
        if is_red(copy):
            print("the tests are red without any bug")
            return 1
        for name, file, old, new in chosen:
            verdict = "caught" if catches(copy / "bantam" / "core" / file, old, new, copy) else "SURVIVED"
            survived += [name] if verdict != "caught" else []
            print(f"{verdict:8}  {file:12} {name}", flush=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} caught, {time.monotonic() - begun:.0f} s")
    return 1 if survived else 0


def catches(file: Path, old: str, new: str, copy: Path) -> bool:
    """Whether the tests turn red when `old` is `new`. A text that is not there once is no bug, so not caught."""
    text = file.read_text()
    if text.count(old) != 1:
        print(f"found {text.count(old)} times in {file.name}: {old!r}")
        return False
    file.write_text(text.replace(old, new))
    try:
        return is_red(copy)
    finally:
        file.write_text(text)


def is_red(copy: Path) -> bool:
    """Whether the core's tests fail in a tree."""
    tests = [
        str(test) for test in sorted((copy / "tests").rglob("test_*.py")) if "pytest.mark.core" in test.read_text()
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "core", "--no-header", "--tb=no", *tests]
    environ = {**os.environ, "HYPOTHESIS_PROFILE": "quick", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    try:
        run = subprocess.run(command, cwd=copy, env=environ, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return True
    if run.returncode not in (0, 1):  # neither green nor red: pytest itself could not run
        raise SystemExit(run.stdout.decode() + run.stderr.decode())
    return run.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
