"""Runs without an editor: prompts, piped lines, a driver."""
