"""What the configuration means to the core: one frozen value without the key. `config` reads and writes it."""

from collections.abc import Mapping
from typing import Any

from bantam.core.base.record import dataclass, field

DEPTH_MAX = 5  # levels of subagents below the root, which is level 0
TOOL_NAMES = ("shell_exec", "run_subagent")  # the tools that are on where `tools` is not set


@dataclass(frozen=True)
class Config:
    """The settings of a run. Times are in seconds. The key is not here: no log or session can hold it."""

    endpoint: str = "https://opencode.ai/zen/v1"
    model: str = "big-pickle"
    stream: bool = True
    color: str = "auto"
    timeout: float = 300
    shell_timeout: float = 120
    max_al_iterations: int = 1000
    max_calls_total: int = 0
    max_tokens_total: int = 0
    max_seconds: float = 0
    max_cost_usd: float = 0
    max_identical_calls: int = 0
    price_in: float = 0
    price_out: float = 0
    tools: tuple[str, ...] = TOOL_NAMES
    shell: str = "sh"
    shell_output_bytes: int = 100_000
    context_window: int = 0
    provider: str = ""
    api: str = "chat"
    """The dialect of the API, a name of `dialects`."""
    save: bool = True
    logs_keep: int = 200
    approve: str = "never"
    """As in model.cfg; `policy` reads it."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema that the root's answers must satisfy; {} for none. No key of model.cfg."""
    enter: str = "cr"
    editing: str = "emacs"
    forwarded: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0.7})
    """What goes into each request body beside the members that Bantam makes itself."""


SYSTEM_PROMPT = (
    "You are Bantam, an agent in the user's terminal. You have a shell: look before you answer, run what is "
    "needed, check the result, and say briefly and truthfully what you did and found. If the working directory "
    "or a parent of it has an AGENTS.md, GEMINI.md or CLAUDE.md, read it first and respect it."
)
"""For folders without a system.txt."""
