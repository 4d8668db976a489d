"""The REPL: the only folder that knows prompt_toolkit."""
