"""What `provider=NAME` fills in: where the API is, which variable holds its key, how large its window is.

Addresses and variable names are those of each provider's own documentation.
"""

from bantam.core.base.record import dataclass

LOCAL = "local"  # llama.cpp started by Bantam itself
LOCAL_MODEL = "smollm2"


@dataclass(frozen=True)
class Preset:
    endpoint: str
    key_variable: str = ""
    context_window: int = 0
    """Tokens; 0 where it differs from model to model."""


PRESETS = {
    "anthropic": Preset("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", 200_000),
    "gemini": Preset("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", 1_000_000),
    "lmstudio": Preset("http://127.0.0.1:1234/v1"),
    LOCAL: Preset("http://127.0.0.1/v1"),  # the port is known once the server runs
    "ollama": Preset("http://127.0.0.1:11434/v1"),
    "openai": Preset("https://api.openai.com/v1", "OPENAI_API_KEY", 128_000),
    "openrouter": Preset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "zai": Preset("https://api.z.ai/api/paas/v4", "ZAI_API_KEY", 128_000),
}
