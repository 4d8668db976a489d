"""How the cost of each kind of input grows with it: python scripts/growth.py [--check] [ROW ...]

Each row is run at four sizes, each twice the one before; what is printed is the CPU time at each and the exponent, the
slope of log time over log size by least squares. 1 is in line with the input, 2 is quadratic. With `--check` the exit
status is 1 if one is over 1.15.
"""

import argparse
import gc
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bantam.core import messages, tree
from bantam.core.base.problem import Problem
from bantam.core.base.settings import Config
from bantam.core.effects import CallModel, Effect, Emit, RunShell, TextDelta
from bantam.core.events import CommandEnded, Event, Loaded, ModelChunks, ModelEnded, ToolProgress, UserSaid
from bantam.core.messages import Messages
from bantam.core.past import compare, history, tape
from bantam.core.rules import approval
from bantam.core.rules.redact import Redactor
from bantam.core.state import Session
from bantam.core.window import context
from bantam.core.wire import body, chat
from bantam.core.words import config, input, report, view
from bantam.shell.disk import files
from bantam.shell.disk.store import Store
from bantam.shell.net.model import Bodies

EXPONENT_MAX = 1.15
DOUBLINGS = 3
RUNS = 3  # of which the fastest counts
TRIES = 3  # of a row that seems to grow too fast, for another process may have been in the way
SECRET = "sk-0123456789"
Work = Callable[[], Any]

# --- what rows are made of


def said(*deltas: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": delta} for delta in deltas]}


def calls(name: str, arguments: Iterable[str]) -> dict[str, Any]:
    """A chunk with so many tool calls."""
    made = [
        {"index": n, "id": f"c{n}", "function": {"name": name, "arguments": text}} for n, text in enumerate(arguments)
    ]
    return said({"tool_calls": made})


def told(session: Session, events: Iterable[Event]) -> Session:
    for event in events:
        session, _ = tree.step(session, event, 0.0)
    return session


def turn(chunk: dict[str, Any]) -> None:
    """A turn whose first answer is `chunk`; all other calls are answered with a word, and commands end at once."""
    session, effects = tree.step(tree.start(Config(), "s"), UserSaid("go"), 0.0)
    open: deque[Effect] = deque(effects)
    while open:
        effect, events = open.popleft(), ()  # type: tuple[Effect, tuple[Event, ...]]
        if isinstance(effect, CallModel):
            events = ModelChunks(effect.id, (chunk,)), ModelEnded(effect.id, marked=True)
            chunk = said({"content": "done"})
        elif isinstance(effect, RunShell):
            events = (CommandEnded(effect.id, 0),)
        for event in events:
            session, effects = tree.step(session, event, 0.0)
            open.extend(effects)
    assert tree.idle(session)


def conversation(count: int) -> Messages:
    """So many messages: prompts, calls, results, answers."""
    function = {"name": "shell_exec", "arguments": '{"command": "ls"}'}
    made: list[messages.Message] = [messages.system("s")]
    for n in range(count // 4):
        call = {"id": f"c{n}", "type": "function", "function": function}
        made += [messages.user(f"prompt {n}"), {"role": "assistant", "content": "", "tool_calls": [call]}]
        made += [messages.tool_result(f"c{n}", "out " * 20), messages.assistant("done")]
    return tuple(made)


def log(count: int, **settings: Any) -> list[bytes]:
    """The lines of a log with so many messages."""
    lines: list[Any] = [history.header("a", "2026-01-01 00:00:00", "", "s", Config(**settings))]
    for n in range(1, count // 2 + 1):
        chunk = said({"content": f"answer {n}"})
        events: tuple[Event, ...] = UserSaid(f"prompt {n}"), ModelChunks((n,), (chunk,)), ModelEnded((n,), marked=True)
        lines += [history.line(n, event) for event in events]
    return [files.json_line(line) for line in lines]


def pieces(count: int) -> list[Emit]:
    return [Emit((), TextDelta(f"word {n}\n")) for n in range(count)]


# --- rows: a size -> the work to be timed


def chunks(size: int) -> Work:
    events: list[Event] = [UserSaid("go"), *(ModelChunks((1,), (said({"content": "word "}),)) for _ in range(size))]
    return partial(told, tree.start(Config(), "s"), [*events, ModelEnded((1,), marked=True)])


def stream(size: int) -> Work:
    data = b"".join(b"data: %s\n\n" % json.dumps(said({"content": f"word {n} "})).encode() for n in range(size))
    reads = [data[at : at + 4096] for at in range(0, len(data), 4096)]

    def read() -> None:
        made = body.Body((1,), chat)
        for piece in reads:
            made, _ = body.feed(made, piece)
        body.finish(made)

    return read


def commands(size: int) -> Work:
    return partial(turn, calls("shell_exec", (json.dumps({"command": f"echo {n}"}) for n in range(size))))


def unusable(size: int) -> Work:
    return partial(turn, calls("nothing", (json.dumps({"n": n}) for n in range(size))))


def subagents(size: int) -> Work:
    return partial(turn, calls("run_subagent", (json.dumps({"prompt": f"do {n}"}) for n in range(size))))


def progress(size: int) -> Work:
    begun = told(tree.start(Config(), "s"), [UserSaid("go")])
    asked = told(begun, [ModelChunks((1,), (calls("shell_exec", ['{"command": "ls"}']),)), ModelEnded((1,), True)])
    return partial(told, asked, [*(ToolProgress((2,), "line\n") for _ in range(size)), CommandEnded((2,), 0)])


def request(size: int) -> Work:
    """One more prompt in a long conversation, from its event to the bytes of the request."""
    session = told(tree.start(Config(context_window=10**9), "s"), [Loaded(tuple(conversation(size)))])

    def ask() -> None:
        redactor, bodies = Redactor([SECRET]), Bodies()
        for effect in tree.step(session, UserSaid("go"), 0.0)[1]:
            for clean in redactor.effects(effect):
                if isinstance(clean, CallModel):
                    bodies.of(clean, chat.sent(clean))

    return ask


def pruning(size: int) -> Work:
    return partial(context.prune, conversation(size), 1000)


def repair(size: int) -> Work:
    return partial(messages.repair, conversation(size), "s")


def resume(size: int) -> Work:
    return partial(history.fold, log(size))


def windowed(size: int) -> Work:
    return partial(history.fold, log(size, context_window=10**9))


def damaged(size: int) -> Work:
    return partial(history.fold, [line if n % 10 != 9 else b"\0\n" for n, line in enumerate(log(size))])


def replay(size: int) -> Work:
    return partial(tape.read, log(size))


def diff(size: int) -> Work:
    one, other = tape.read(log(size)), tape.read(log(size))
    return lambda: (compare.parted(one, other), compare.cost(one))


def model_cfg(size: int) -> Work:
    text = "".join(f"key_{n}={n}\n" for n in range(size))

    def read() -> None:
        found = config.entries(text)
        assert not isinstance(found, Problem)
        assert not isinstance(config.parse(found), Problem)
        config.update(text, "model", "m")

    return read


def rules(size: int) -> Work:
    text = "; ".join(f"allow tool{n} *" for n in range(size))

    def judge() -> None:
        policy = approval.parse(text)
        assert not isinstance(policy, Problem)
        approval.judge(policy, "make it | tail -n 3")

    return judge


def parts(size: int) -> Work:
    policy = approval.parse("; ".join(f"allow tool{n} *" for n in range(20)))
    assert not isinstance(policy, Problem)
    return partial(approval.judge, policy, "; ".join(f"tool3 'a b' \"$x{n}\"" for n in range(size)))


def words(size: int) -> Work:
    policy = approval.parse("allow echo *; deny * --force *; deny rm *")
    assert not isinstance(policy, Problem)
    return partial(approval.judge, policy, "echo " + "word " * size)


def input_lines(size: int) -> Work:
    lines = [json.dumps({"prompt": f"say {n}"}).encode() for n in range(size)]
    return lambda: [input.parse(line) for line in lines]


def json_events(size: int) -> Work:
    emits = pieces(size)

    def tell() -> None:
        state = report.Report()
        for emit in emits:
            state, events = report.told(state, emit)
            "".join(map(report.line, events))

    return tell


def viewed(size: int) -> Work:
    emits = pieces(size)

    def show() -> None:
        column = view.Column()
        for emit in emits:
            column, _ = view.render(column, emit)

    return show


def long_text(size: int) -> Work:
    return partial(view.render, view.Column(), Emit((), TextDelta("a line\r\n\x1b[1m" * size)))


# --- rows on a disk, and with the real program


def sessions(size: int) -> Work:
    store = Store(_folder(), time.time)
    store.save("s0", conversation(8), "about")
    whole = (store.sessions / "s0.json").read_bytes()
    for n in range(1, size):
        (store.sessions / f"s{n}.json").write_bytes(whole)
    return store.saved


def logs(size: int) -> Work:
    store = Store(_folder(), time.time)
    store.logs.mkdir()
    whole = b"".join(log(8))
    for n in range(size):
        (store.logs / f"l{n}.jsonl").write_bytes(whole)
    return store.runs


def typed(size: int) -> Work:
    from bantam.front.terminal.complete import History

    path = _folder() / "history"
    path.write_text("".join(f"\n# now\n+line {n}\n" for n in range(size)))
    return lambda: History(str(path), str, lambda: True, print).load_history_strings()


def piped(size: int) -> Work:
    return partial(_program, b"/cfg model\n" * size)


def driven(size: int) -> Work:
    return partial(_program, b'{"nothing": 1}\n' * size, "--input", "json", "--json")


def _program(lines: bytes, *arguments: str) -> None:
    home = _folder()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-m", "bantam", *arguments]
    out = subprocess.DEVNULL
    subprocess.run(command, input=lines, env=environment, cwd=home, stdout=out, stderr=out, check=False)


_folders: list[tempfile.TemporaryDirectory[str]] = []


def _folder() -> Path:
    _folders.append(tempfile.TemporaryDirectory())
    return Path(_folders[-1].name)


# --- measuring

ROWS: dict[str, tuple[Callable[[int], Work], int]] = {  # name: the row, and its smallest size
    "chunks": (chunks, 1000),
    "stream": (stream, 2000),
    "commands": (commands, 100),
    "unusable": (unusable, 200),
    "subagents": (subagents, 50),
    "progress": (progress, 1000),
    "request": (request, 2000),
    "pruning": (pruning, 4000),
    "repair": (repair, 1000),
    "resume": (resume, 500),
    "windowed": (windowed, 500),
    "damaged": (damaged, 500),
    "replay": (replay, 500),
    "diff": (diff, 250),
    "sessions": (sessions, 200),
    "logs": (logs, 100),
    "history": (typed, 5000),
    "model.cfg": (model_cfg, 2000),
    "rules": (rules, 500),
    "parts": (parts, 100),
    "words": (words, 4000),
    "input": (input_lines, 4000),
    "json": (json_events, 2000),
    "view": (viewed, 4000),
    "text": (long_text, 10_000),
    "piped": (piped, 1000),
    "driven": (driven, 1500),
}
PROGRAMS = {"piped", "driven"}  # whose start is no part of the growth


def measure(name: str, share: float) -> tuple[list[float], float]:
    """The seconds at each size, and the exponent."""
    row, first = ROWS[name]
    sizes = [max(1, int(first * share)) * 2**n for n in range(DOUBLINGS + 1)]
    start = fastest(row(0)) if name in PROGRAMS else 0.0
    times = [max(1e-6, fastest(row(size)) - start) for size in sizes]
    return times, slope([*map(math.log, sizes)], [*map(math.log, times)])


def fastest(work: Work) -> float:
    return min(seconds(work) for _ in range(RUNS))


def seconds(work: Work) -> float:
    """The CPU time of this process and its children."""
    gc.collect()
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Of the line through the points, by least squares."""
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--check", action="store_true", help=f"exit with 1 if an exponent is over {EXPONENT_MAX}")
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes, for a quick look (default 1)")
    options = parser.parse_args()
    if unknown := [name for name in options.rows if name not in ROWS]:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(ROWS)}")
    over = []
    for name in options.rows or ROWS:
        for _ in range(TRIES if options.check else 1):
            times, exponent = measure(name, options.share)
            if exponent <= EXPONENT_MAX:
                break
        over += [name] if exponent > EXPONENT_MAX else []
        shown = " ".join(f"{seconds * 1e3:8.1f}" for seconds in times)
        print(f"{name:10} {ROWS[name][1]:6} x 1, 2, 4, 8: {shown} ms  exponent {exponent:5.2f}", flush=True)
    if options.check and over:
        sys.exit(f"growing faster than the input: {', '.join(over)}")


if __name__ == "__main__":
    main()
