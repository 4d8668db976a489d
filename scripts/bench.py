"""What Bantam costs, as ratios to the obvious client: python scripts/bench.py [-n RUNS] [SCENARIO ...]

Each scenario is run in turn by Bantam and by `OBVIOUS`, forty lines of plain aiohttp, against the same
loopback server; the medians of the ratios of neighbouring runs are printed, since milliseconds drift. Nothing
here passes or fails: on a busy machine read the ratios only.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from scripts.fakemodel import FakeModel, Reply, serving

OBVIOUS = r"""
import asyncio, json, os, sys
import aiohttp

messages = [{"role": "user", "content": "hello"}]
tool = {"type": "function", "function": {"name": "shell_exec", "parameters": {"type": "object",
        "properties": {"command": {"type": "string"}}, "required": ["command"]}}}

async def turn(session):
    text, calls, rest = [], {}, b""
    async with session.post(sys.argv[1] + "/chat/completions",
                            json={"model": "m", "messages": messages, "tools": [tool], "stream": True}) as response:
        async for data in response.content.iter_any():
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for line in lines:
                if line.startswith(b"data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        delta = choice["delta"]
                        text.append(delta.get("content") or "")
                        sys.stdout.write(text[-1])
                        for part in delta.get("tool_calls") or ():
                            call = calls.setdefault(part["index"], {"id": part.get("id"), "arguments": ""})
                            call["arguments"] += part["function"].get("arguments") or ""
            sys.stdout.flush()
    return "".join(text), list(calls.values())

async def main():
    async with aiohttp.ClientSession() as session:
        while True:
            text, calls = await turn(session)
            if not calls:
                return
            messages.append({"role": "assistant", "content": text, "tool_calls": [{"id": c["id"], "type": "function",
                "function": {"name": "shell_exec", "arguments": c["arguments"]}} for c in calls]})
            for call in calls:
                process = await asyncio.create_subprocess_shell(json.loads(call["arguments"])["command"],
                    stdin=-3, stdout=-1, stderr=-2)
                out, _ = await process.communicate()
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": out.decode()})

asyncio.run(main())
"""
TURNS, CHUNKS, WORD = 100, 20_000, "word "


def hello(_: Any) -> Reply:
    return Reply("hello there")


def stream(_: Any) -> Reply:
    return Reply(WORD * CHUNKS, delta_chars=len(WORD), write_bytes=65_536)


def tools(body: Any) -> Reply:
    done = sum(message["role"] == "tool" for message in body["messages"])
    return hello(body) if done == TURNS else Reply(calls=[("shell_exec", {"command": f'printf "%2000d" {done}'})])


SCENARIOS: dict[str, Callable[[Any], Reply]] = {"hello": hello, f"stream-{CHUNKS}": stream, f"tools-{TURNS}": tools}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(["version", *SCENARIOS]))
    parser.add_argument("-n", type=int, default=5, help="counted runs (default 5)")
    options = parser.parse_args()
    print(f"{'scenario':14} {'figure':12} {'bantam':>9} {'obvious':>9} {'ratio':>6}")
    for name in options.scenarios or ["version", *SCENARIOS]:
        measure(name, options.n)


def measure(name: str, runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder, serving(SCENARIOS.get(name, hello)) as fake:
        Path(folder, "model.cfg").write_text(f"endpoint={fake.endpoint}\nmodel=m\n")
        Path(folder, "prompt.txt").write_text("hello")
        bantam, obvious = [sys.executable, "-m", "bantam"], [sys.executable, "-c"]
        bantam += ["--version"] if name == "version" else ["prompt.txt"]
        obvious += ["pass"] if name == "version" else [OBVIOUS, fake.endpoint]
        pairs = [(run(bantam, folder, fake), run(obvious, folder, fake)) for _ in range(runs + 1)][1:]
    for figure in pairs[0][0]:
        ours, theirs = ([pair[side][figure] for pair in pairs] for side in (0, 1))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        print(f"{name:14} {figure:12} {statistics.median(ours):9.1f} {statistics.median(theirs):9.1f} {ratio:6.2f}")


def run(command: list[str], folder: str, fake: FakeModel) -> dict[str, float]:
    """One run, in milliseconds."""
    environment = {
        "HOME": folder,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    fake.requests.clear()
    start = time.monotonic()
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as p:
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = status
    wall = time.monotonic() - start
    if status:
        sys.exit(f"{' '.join(command[:4])} failed")
    figures = {"wall ms": wall * 1e3, "cpu ms": (used.ru_utime + used.ru_stime) * 1e3}
    if fake.requests:
        figures["request ms"] = (fake.requests[0].at - start) * 1e3
    return figures


if __name__ == "__main__":
    main()
