"""Arguments -> one front end. Imports only what the chosen one needs: start-up is imports."""

import argparse
import os
import sys
from contextlib import suppress
from typing import NoReturn

from bantam.core import status
from bantam.core.config import Problem

DESCRIPTION = "A terminal AI agent with two tools: a shell, and itself."
EPILOG = """\
with no FILE on a terminal: chat. With piped input: each line is one turn.

files of the working directory: model.cfg (settings), system.txt (system prompt)
kept in ~/.bantam (or BANTAM_HOME): sessions, logs; the input history in ~/.bantam_history

exit status: 0 done, 1 failed, 2 usage or configuration, 3 a limit was reached,
75 try again later, 130 interrupted, 129 SIGHUP, 143 SIGTERM
"""
LATER = ("diff", "doctor", "eject", "models", "policy", "replay", "trust")  # names that later versions take


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        leave(message)


def leave(why: str) -> NoReturn:
    """One line about wrong usage or configuration, and out."""
    with suppress(OSError):  # the status says it too
        os.write(2, f"bantam: {why}\n".encode(errors="replace"))
    sys.exit(status.USAGE)


def parser() -> Parser:
    made = Parser(
        "bantam",
        usage="bantam [options] [FILE | - | -p TEXT | demo]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("file", nargs="?", metavar="FILE", help="a file whose text is the prompt; - is standard input")
    add("-p", dest="prompt", metavar="TEXT", help="ask TEXT; only the answer goes to standard output")
    add("-c", dest="settings", metavar="KEY=VALUE", action="append", default=[], help="override a model.cfg key")
    add("-C", dest="folder", metavar="DIR", help="work in DIR")
    add(
        "-q",
        dest="quiet",
        action="store_true",
        help="only the answer on standard output, only errors on standard error",
    )
    add("--version", action="store_true", help="show the version")
    return made


def run(arguments: list[str]) -> int:
    """The whole program; returns the exit status."""
    made = parser()
    options, rest = made.parse_known_args(arguments)
    if rest:
        unknown = [word for word in rest if word.startswith("-")]
        leave(f"unknown option {unknown[0]}; bantam --help lists them" if unknown else "only one FILE can be given")
    options.settings = [_utf8(setting) for setting in options.settings]
    if options.prompt is not None:
        options.prompt = _utf8(options.prompt)
    if options.prompt is not None and options.file is not None:
        leave("-p and FILE exclude each other")
    if options.folder is not None:
        from bantam.front.setup import working_directory

        problem = working_directory(options.folder)
        if problem is not None:
            leave(problem.text)
    if options.file == "demo":
        from bantam.front import demo

        return demo.run()
    if options.file in LATER:
        leave(f"{options.file} is not available in this version; for a prompt file of that name say ./{options.file}")
    return _front(options)


def _front(options: argparse.Namespace) -> int:
    from bantam.front import setup

    found = setup.read(options.settings, os.environ)
    if isinstance(found, Problem):
        leave(found.text)
    if options.prompt is None and not options.file and os.isatty(0) and os.isatty(1) and not options.quiet:
        from bantam.front import repl

        return repl.run(found, options.settings)
    from bantam.front import pipe

    return pipe.run(found, options)


def _utf8(argument: str) -> str:
    """An argument as it was typed, whatever Python took the locale to be."""
    return os.fsencode(argument).decode(errors="replace")
