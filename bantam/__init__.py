"""Bantam, a terminal AI agent. Importing this package imports nothing else, so that starting stays fast."""

__version__ = "1.0.0"
