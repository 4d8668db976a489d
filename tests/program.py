"""The real program in a pipe: a folder, a HOME, a loopback model, and what came out."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.fakemodel import FakeModel, Received, Reply, serving


@dataclass
class Ran:
    status: int
    out: str
    err: str


class Place:
    """A working folder and a HOME of their own, with a model.cfg for `endpoint`."""

    def __init__(self, folder: Path, endpoint: str = "http://127.0.0.1:9/v1", **settings: str) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).parent.parent),
            "BANTAM_BACKOFF_SCALE": "0.001",
        }
        self.configure(endpoint=endpoint, model="test", **settings)

    def configure(self, **settings: str) -> None:
        (self.work / "model.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "bantam", *arguments]

    def start(self, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        started: subprocess.Popen[bytes] = subprocess.Popen(
            self.command(*arguments), cwd=self.work, env=self.environment, **pipes
        )
        return started

    def run(self, *arguments: str, piped: bytes | str | None = None) -> Ran:
        data = piped.encode() if isinstance(piped, str) else piped
        process = self.start(*arguments, stdin=subprocess.DEVNULL if data is None else subprocess.PIPE)
        out, err = process.communicate(data, timeout=60)
        return Ran(process.returncode, out.decode(), err.decode())

    def ask(self, text: str, *arguments: str) -> Ran:
        """A prompt from a file."""
        (self.work / "prompt.txt").write_text(text)
        return self.run(*arguments, "prompt.txt")

    def autosave(self) -> list[dict[str, Any]]:
        return list(json.loads((self.home / ".bantam/sessions/autosave.json").read_text())["messages"])


def place(folder: Path, fake: FakeModel, **settings: str) -> Place:
    return Place(folder, fake.endpoint, **settings)


__all__ = ["FakeModel", "Place", "Ran", "Received", "Reply", "place", "serving"]
