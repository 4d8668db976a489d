"""Commands that run other commands (`sudo`, `xargs`, `sh -c`, `find -exec`): what they run, as far as it shows.

Only forms that are surely understood are taken apart. An option that is not in the tables here could be
anything, so whatever has one `Hides` what it runs.
"""

import re

from bantam.core.base.record import dataclass
from bantam.core.rules.shellparts import GAP, Word, Words


@dataclass(frozen=True)
class Runs:
    """It runs these words as a command, perhaps with assignments in front."""

    words: Words


@dataclass(frozen=True)
class Says:
    """It has a shell read this text."""

    text: str


@dataclass(frozen=True)
class Reads:
    """It runs a script: no command of its own, but whoever denies the script means this, too."""

    words: Words


@dataclass(frozen=True)
class Hides:
    """It runs, or gives a new meaning to, something that cannot be told from its words."""

    why: str


Inside = Runs | Says | Reads | Hides

_RUNS = {  # operands before the command, letters of options without a value, and of those with one
    "builtin": (0, "", ""),
    "busybox": (0, "", ""),
    "chroot": (1, "", ""),
    "command": (0, "p", ""),
    "doas": (0, "n", "u"),
    "env": (0, "i", "u"),
    "exec": (0, "", ""),
    "flock": (1, "nsx", "w"),
    "ionice": (0, "t", "cn"),
    "nice": (0, "", "n"),
    "nohup": (0, "", ""),
    "setsid": (0, "fw", ""),
    "stdbuf": (0, "", "ioe"),
    "sudo": (0, "AEHnS", "ugp"),
    "taskset": (1, "", ""),
    "time": (0, "p", ""),
    "timeout": (1, "v", "ks"),
    "toybox": (0, "", ""),
    "xargs": (0, "0rtx", "nPLs"),
}
_TEXTS = {"eval": (0, "", ""), "ssh": (1, "Tqt", "pl")}
_SHELLS = ("ash", "bash", "dash", "ksh", "mksh", "rbash", "sh", "zsh")
_OTHERS = (  # they read a language of their own, run things later, or take a command apart in their own way
    *("at", "batch", "chronic", "crontab", "csh", "entr", "expect", "fish", "nu", "parallel", "pwsh", "runuser"),
    *("script", "strace", "su", "systemd-run", "tcsh", "tmux", "screen", "unshare", "watch"),
)
_REBINDS = (  # builtins behind which the same words mean something else
    *(".", "alias", "bind", "compgen", "complete", "declare", "enable", "fc", "hash", "let", "mapfile"),
    *("readarray", "source", "trap", "typeset", "unalias"),
)
_EXECUTES = ("-exec", "-execdir", "-ok", "-okdir")


def name(text: str) -> str:
    """The name of the program that a command word means, wherever it is; some file systems know no capitals."""
    return text.rsplit("/", 1)[-1].lower()


def inside(words: Words) -> tuple[Inside, ...]:
    """What a command, whose first word is known, runs beside itself; nothing for an ordinary one."""
    program, rest = name(words[0].text), words[1:]
    if program in _REBINDS:
        return (Hides(f"{program} can change what other words mean"),)
    if program in _OTHERS:
        return (Hides(f"what {program} runs is not looked into"),)
    if program in ("[", "printf", "test") and any(word.text.startswith("-v") for word in rest):
        return (Hides(f"-v of {program} can change what other words mean"),)
    if program == "command" and rest and rest[0] in (Word("-v"), Word("-V")):
        return ()
    if program in _SHELLS:
        return _shell(program, rest)
    if program == "find":
        return _find(rest)
    if program in _TEXTS:
        return _text(program, rest)
    return _run(program, rest) if program in _RUNS else ()


def _shell(program: str, rest: Words) -> tuple[Inside, ...]:
    """`sh -c TEXT` or `sh FILE`; without either a shell reads its standard input."""
    if rest and rest[0].known:
        option = rest[0].text
        if re.fullmatch(r"-[eluvx]*c", option):
            if len(rest) > 1 and rest[1].known and rest[1].text[:1] not in ("-", "+"):
                return (Says(rest[1].text),)
        elif re.match(r"(?!/dev/|/proc/)[^-+]", option):
            return (Reads(rest),)
    return (Hides(f"what {program} reads is not known"),)


def _find(rest: Words) -> tuple[Inside, ...]:
    if not all(word.known for word in rest):
        return (Hides("a word of find is not known, and could be -exec"),)
    found: list[Inside] = []
    texts = [word.text for word in rest]
    at = 0
    while at < len(texts):
        at += 1
        if texts[at - 1] in _EXECUTES:
            start = at
            while at < len(texts) and texts[at] != ";" and not (texts[at] == "+" and texts[at - 1] == "{}"):
                at += 1
            if at in (start, len(texts)):
                return (Hides("the end of find -exec is missing"),)
            found.append(Runs(tuple(Word(GAP, False) if "{}" in word.text else word for word in rest[start:at])))
    return tuple(found)


def _text(program: str, rest: Words) -> tuple[Inside, ...]:
    start = _start(rest, *_TEXTS[program])
    if start is None or not all(word.known for word in rest):
        return (Hides(f"what {program} runs is not known"),)
    if start == len(rest):
        return (Hides("what ssh reads is not known"),) if program == "ssh" else ()
    return (Says(" ".join(word.text for word in rest[start:])),)


def _run(program: str, rest: Words) -> tuple[Inside, ...]:
    start = _start(rest, *_RUNS[program])
    if start is None:
        return (Hides(f"what {program} runs is not known"),)
    if start == len(rest):
        return ()
    return (Runs((*rest[start:], Word(GAP, False)) if program == "xargs" else rest[start:]),)


def _start(rest: Words, operands: int, flags: str, valued: str) -> int | None:
    """Where the wrapped command begins; None if that is not sure."""
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        at += 1
        if rest[at - 1] == Word("--"):
            break
        letters = rest[at - 1].text[1:].lstrip(flags or " ")
        if rest[at - 1].text == "-" or (letters and letters[0] not in valued):
            return None
        at += len(letters) == 1  # its value is a word of its own
    at += operands
    if at > len(rest) or not all(word.known for word in rest[: at + 1]):
        return None
    return None if at < len(rest) and rest[at].text.startswith("-") else at
