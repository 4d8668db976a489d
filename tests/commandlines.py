"""Command lines for the tests of the policy: compound ones out of given simple commands, and spoilt ones."""

import shlex

from hypothesis import strategies as st

SIGNS = (  # what a shell takes notice of, for spoiling a command line
    *(" ", "\t", "\n", ";", "&&", "||", "|", "&", "(", ")", "{ ", " }", "'", '"', "`", "\\", "\\\n", "$(", "$((", "))"),
    *(
        "$x",
        "${x}",
        "${x:-a}",
        "${!x}",
        "$'",
        '$"',
        "$",
        "x=",
        "x=a ",
        "X=1 ",
        "#",
        " #",
        "*",
        "~",
        "[",
        "[[ ",
        "{a,b}",
    ),
    *(">", "<", "<<E\n", "<<'E'\n", "\nE\n", ">/dev/null", "2>&1", "&>", "<(", ">(", "<<<", "12>", "|&", ";;", ";&"),
    *(
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case a in ",
        "a) ",
        "esac",
        "in",
        "! ",
        "time ",
        "function f ",
    ),
    *(
        "f() ",
        "alias a=b\n",
        "eval ",
        "sh -c ",
        "env ",
        "exec ",
        "xargs ",
        "command ",
        "trap ",
        "set -- ",
        '"$@"',
        "\r",
    ),
)


def compound(commands: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Command lines in which each of some drawn commands stands where a shell would run it."""
    return st.recursive(commands, _joined, max_leaves=6)


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["; ", " && ", "||", " | ", " & ", "\n", " \\\n&& "]), inner).map("".join),
        st.tuples(st.sampled_from(_AROUND), inner).map(lambda drawn: _around(*drawn)),
        st.tuples(st.sampled_from(_AROUND_TWO), two).map(
            lambda drawn: drawn[0].replace("%", drawn[1][1]).replace("@", drawn[1][0])
        ),
        inner.map(lambda command: f"sh -c {shlex.quote(command)}"),
        inner.map(lambda command: f"eval {shlex.quote(command)}"),
    )


def _around(form: str, command: str) -> str:
    """The end of a here-document must not be that of one inside it, which is shorter."""
    return form.replace("END", f"E{len(command)}").replace("@", command)


_AROUND = (
    "( @ )",
    "{ @\n}",
    "if ! { @\n}\nthen say; fi",
    "for x in 1 2; do @\ndone",
    "while\n! { @\n}\ndo break; done",
    'say "a $( @\n) b"',
    "x=$( @\n)",
    "{ say <<END\n$( @\n)\nEND\n}",
    "{ say <<'END' && say\n$( `\nEND\n@\n}",
    "{ @ # it's a comment\n}",
)
_AROUND_TWO = (
    "if @\nthen %\nfi",
    "if say; then @\nelse %\nfi",
    "case x in a | b) @\n;; *) %\nesac",
    "say $( @\n) $( %\n)",
)


def spoilt(lines: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Command lines with some signs put in anywhere, over what was there."""
    spoil = st.tuples(st.integers(0, 60), st.integers(0, 2), st.sampled_from(SIGNS))
    return st.tuples(lines, st.lists(spoil, max_size=3)).map(lambda drawn: _spoil(*drawn))


def _spoil(line: str, spoils: list[tuple[int, int, str]]) -> str:
    for at, over, sign in spoils:
        at %= len(line) + 1
        line = line[:at] + sign + line[at + over :]
    return line
