"""The folder that everything is in."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
