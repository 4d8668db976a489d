"""A store and a log with the clock on the wall of this machine."""

import time
from pathlib import Path

from bantam.core.base.settings import Config
from bantam.shell.disk import log, store


class Store(store.Store):
    def __init__(self, root: Path) -> None:
        super().__init__(root, time.time)


class Log(log.Log):
    def __init__(self, folder: Path, sessions: Path, config: Config, system: str) -> None:
        super().__init__(folder, sessions, config, system, time.time)
