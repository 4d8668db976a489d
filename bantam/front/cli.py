"""Arguments -> one front end. Imports only what the chosen one needs: start-up is imports."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from bantam import __version__
from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.rules.credentials import Untrusted
from bantam.core.words.wrap import Row, laid
from bantam.front.show.tell import columns
from bantam.front.usage import leave

if TYPE_CHECKING:
    from bantam.front.show.jsonlines import JsonLines
    from bantam.host import setup
    from bantam.host.place import Place
    from bantam.shell.disk.tape import Player, Recorder

USAGE = "bantam [options] [FILE | - | -p TEXT | help | demo | trust | policy | replay | diff]"
DESCRIPTION = "A terminal AI agent with two tools: a shell, and itself."
GOES_ON = "\v"  # a line's end that is none on a terminal
EPILOG = f"""\
the manual: bantam help lists its topics, bantam help TOPIC shows one

with no FILE on a terminal: chat. With piped input: each line is one turn.

files of the working directory: model.cfg (settings), system.txt (system prompt)
kept in ~/.bantam (or BANTAM_HOME): sessions, logs; the input history in ~/.bantam_history

exit status: 0 done, 1 failed, 2 usage or configuration, 3 a limit was reached, 4 a command{GOES_ON}\
needed an approval that nobody could give, 5 the answer does not satisfy the schema,{GOES_ON}\
6 a replay differs from its tape,{GOES_ON}\
75 try again later, 130 interrupted, 129 SIGHUP, 143 SIGTERM
"""
LATER = ("doctor", "eject", "models")  # names that later versions take
SHORT = {"attach": "-a", "first": "-i", "output": "-o", "prompt": "-p", "quiet": "-q", "settings": "-c"}
SUBCOMMANDS = {"demo": (), "diff": (), "help": (), "policy": ("settings", "log"), "replay": (), "trust": ("settings",)}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        leave(message)

    def format_help(self) -> str:
        self.usage = laid(USAGE, columns(1) - len("usage: ")).replace("\n", "\n" + " " * len("usage: "))
        return super().format_help()


class Formatter(argparse.RawDescriptionHelpFormatter):
    """On a terminal, help as wide as that is now, broken between words; elsewhere it is argparse's, for 80 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns(1) or None)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return laid(Row("", text), width).split("\n") if columns(1) else super()._split_lines(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs. A line that goes on from the one before begins with a mark, and is one with it on a terminal."""
        wide = columns(1)
        return laid(text.replace(GOES_ON, " "), wide) if wide else text.replace(GOES_ON, "\n")


def parser() -> Parser:
    made = Parser(
        "bantam",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("words", nargs="*", metavar="FILE", help="a file whose text is the prompt; - is standard input")
    add("-p", dest="prompt", metavar="TEXT", help="ask TEXT; only the answer goes to standard output")
    add("-c", dest="settings", metavar="KEY=VALUE", action="append", default=[], help="override a model.cfg key")
    add("-C", dest="folder", metavar="DIR", help="work in DIR")
    add(
        "-q",
        dest="quiet",
        action="store_true",
        help="only the answer on standard output, only errors on standard error",
    )
    add(
        "--resume",
        metavar="ID",
        help="go on with a saved or killed session: --resume=ID, or the newest one",
    )
    add(
        "-a",
        dest="attach",
        metavar="FILE",
        action="append",
        default=[],
        help="send FILE with the first message: a picture (PNG, JPEG, GIF, WebP) or UTF-8 text; repeatable",
    )
    add("-i", dest="first", metavar="TEXT", help="chat, with TEXT as the first message")
    add("-o", dest="output", metavar="FILE", help="write the final answer to FILE too, whole or not at all")
    add(
        "--stdin",
        choices=("auto", "require", "ignore"),
        help="with -p: wait 3 s for piped input to begin (auto, the default), as long as it takes, or not at all",
    )
    add("--json", action="store_true", help="events for programs on standard output: one JSON object a line")
    add(
        "--input",
        choices=["json"],
        metavar="json",
        help="take prompts as JSON objects, one a line, while turns run too; with events as --json",
    )
    add("--schema", metavar="FILE", help="the answer must be JSON that satisfies this JSON Schema")
    add("--record", metavar="TAPE", help="write a tape of this run, which --replay plays")
    add("--replay", metavar="TAPE", help="run again with a tape in place of the model, the shell and the clock")
    add("--log", metavar="ID", help="with policy: judge the commands of a past run")
    add("--version", action="version", version=f"bantam {__version__}", help="show the version")
    return made


def run(arguments: list[str]) -> int:
    """The whole program; returns the exit status."""
    if arguments[:1] == ["help"] and not {"-h", "--help"}.intersection(arguments):
        return _help(arguments[1:])  # an option behind it is a word to look up
    if not _wants_events(arguments):
        return _run(arguments, None)
    from bantam.front.show import jsonlines

    lines = jsonlines.JsonLines()
    return jsonlines.guarded(lines, lambda: _run(arguments, lines))


def _wants_events(arguments: Sequence[str]) -> bool:
    """Whether events are told, looked for before anything else: wrong usage is told as events too."""
    return any(word in ("--json", "--input") or word.startswith("--input=") for word in arguments)


def _run(arguments: list[str], events: "JsonLines | None") -> int:
    options, unknown = parser().parse_known_args(["--resume=" if word == "--resume" else word for word in arguments])
    for word in unknown:
        if word.startswith("-") and word != "-":
            leave(f"unknown option {word}; bantam --help lists them")
    options.settings = [_utf8(setting) for setting in options.settings]
    if options.prompt is not None:
        options.prompt = _utf8(options.prompt)
    words: list[str] = [*options.words, *unknown]  # argparse takes none behind an option that comes between words
    options.file = words[0] if words else ""
    _check_subcommand(options)
    if options.prompt is not None and options.file:
        leave("-p and FILE exclude each other")
    if options.stdin is not None and options.prompt is None:
        leave("--stdin is for -p; other runs take standard input as - or as lines, or leave it alone")
    if options.log is not None and options.file != "policy":
        leave("--log is for policy: bantam policy --log ID")
    options.events = events
    if options.events and options.quiet:
        leave("-q and --json exclude each other")
    if options.input and (options.prompt is not None or options.file):
        leave("--input takes prompts from standard input, so neither -p nor FILE can be given")
    if options.folder is not None:
        from bantam.front.here import work_in

        problem = work_in(options.folder)
        if problem is not None:
            leave(problem.text)
    return _chosen(options, words[1:])


def _chosen(options: argparse.Namespace, rest: list[str]) -> int:
    """The front end that the first word names, or the one for a prompt."""
    if options.file == "help":
        return _help(rest)
    if options.file in SUBCOMMANDS:
        done = _subcommand(options, rest)
        return leave(done.text) if isinstance(done, Problem) else done
    if options.file in LATER:
        leave(f"{options.file} is not available in this version; for a prompt file of that name say ./{options.file}")
    if rest:
        leave("only one FILE can be given")
    return _front(options)


def _subcommand(options: argparse.Namespace, rest: list[str]) -> int | Problem:
    if options.file == "demo":
        from bantam.front.sub import demo

        return Problem("only one FILE can be given") if rest else demo.run()
    from bantam.front.here import here

    match options.file:
        case "trust":
            from bantam.front.sub import trust

            return trust.run(rest, options.settings, here())
        case "policy":
            from bantam.front.sub import policy

            return policy.run(rest, options.log, options.settings, here())
        case "replay":
            from bantam.front.sub import replay as past_run

            return past_run.run(rest, here())
    from bantam.front.sub import diff

    return diff.run(rest, here())


def _help(words: Sequence[str]) -> int:
    from bantam.front.sub import help

    told = help.run(words, os.environ)
    return leave(told.text) if isinstance(told, Problem) else told


def _check_subcommand(options: argparse.Namespace) -> None:
    """What a subcommand would ignore is refused."""
    name = options.file
    if name not in SUBCOMMANDS:
        return
    for option, default in vars(parser().parse_args([])).items():
        if getattr(options, option) != default and option not in ("words", "folder", *SUBCOMMANDS[name]):
            flag = SHORT.get(option, f"--{option}")
            leave(f"{name} takes no {flag}; for a prompt file of that name say ./{name}")


def _front(options: argparse.Namespace) -> int:
    from bantam.front.here import here
    from bantam.host import attachments, setup

    attended = os.isatty(0) and os.isatty(1) and not options.quiet and not options.events
    edits = options.prompt is None and not options.file and attended
    place = here()
    keyless = replace(place, environ={})  # a replay needs no key
    found = setup.read(place if options.replay is None else keyless, options.settings)
    if isinstance(found, Untrusted) and edits:
        found = _asked(found, place, options.settings)
    if not isinstance(found, setup.Setup):
        leave(found.text)
    found = replace(found, place=place)
    options.tape = _tape(options, place, edits)
    if options.replay is not None:  # nothing is kept, and no model is started
        found = replace(found, config=replace(found.config, save=False, provider=""))
    if options.schema is not None:
        found = _with_schema(found, options.schema, edits)
    options.resumed = None
    if options.resume is not None:
        from bantam.shell.disk.store import Store

        options.resumed = Store(place.home, place.clock.wall).resume(options.resume, found.config, found.system)
        if isinstance(options.resumed, Problem):
            leave(options.resumed.text)
    options.attached = attachments.read(place, options.attach)
    if isinstance(options.attached, Problem):
        leave(options.attached.text)
    if options.first is not None and not edits:
        leave("-i is for the chat: it needs a terminal, and neither FILE nor -p, -q or --json")
    if edits:
        if options.output is not None:
            leave("-o needs a prompt: FILE, -, -p TEXT or piped lines")
        from bantam.front.terminal import repl

        return repl.run(found, options.resumed, options.tape, options.attached, options.first)
    from bantam.front.pipe import pipe

    return pipe.run(found, options)


def _with_schema(found: "setup.Setup", name: str, edits: bool) -> "setup.Setup":
    from bantam.shell.disk import schema

    if edits:
        leave("--schema needs a prompt: FILE, -, -p TEXT or piped lines")
    read = schema.read(name, found.place.folder)
    if isinstance(read, Problem):
        leave(read.text)
    return replace(found, config=replace(found.config, schema=read))


def _tape(options: argparse.Namespace, place: "Place", edits: bool) -> "Recorder | Player | None":
    """What records this run, or plays another one."""
    if options.record is None and options.replay is None:
        return None
    if options.resume is not None or (options.record is not None and options.replay is not None):
        leave("--record, --replay and --resume exclude each other")
    from bantam.shell.disk import tape
    from bantam.shell.disk.store import Store

    if options.record is not None:
        try:
            return tape.Recorder(options.record, place.folder)
        except OSError as problem:
            leave(f"--record {options.record}: {problem.strerror or problem}")
    if edits or options.input:
        leave("--replay needs a prompt: FILE, -, -p TEXT or piped lines")
    played = tape.read(options.replay, place.folder, Store(place.home, place.clock.wall))
    if isinstance(played, Problem):
        leave(f"--replay: {played.text}")
    if options.events:
        options.events.created = played.started
    return tape.Player(played)


def _asked(found: Untrusted, place: "Place", settings: list[str]) -> "setup.Setup | Untrusted | Problem":
    """The settings once more, if the user trusts the endpoint."""
    from bantam.front.sub import trust
    from bantam.host import setup
    from bantam.shell.disk.files import StoreError

    try:
        return setup.read(place, settings) if trust.ask(found, place) else found
    except StoreError as problem:
        return Problem(str(problem))


def _utf8(argument: str) -> str:
    """An argument as it was typed, whatever Python took the locale to be."""
    return os.fsencode(argument).decode(errors="replace")
