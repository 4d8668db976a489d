"""A command line, as a POSIX shell or bash reads it -> the simple commands in it, and what could not be read.

It is no parser: what it passes over without a word is exactly what it is sure of, and whatever else there is
becomes an `Unclear`. It may find commands that never run, such as those behind a syntax error, but where it
reports nothing unclear, nothing runs that it did not find.
"""

import re
from typing import assert_never

from bantam.core.rules.shellparts import GAP, SHOWN_CHARS_MAX, Found, Part, Unclear, Word, Words, is_marked, shown
from bantam.core.rules.wrappers import Hides, Reads, Runs, Says, inside

NESTING_MAX = 20  # levels of $( ), sh -c, sudo and the like
_CONTROL = ("!", "{", "}", "do", "done", "elif", "else", "fi", "if", "then", "until", "while")
_UNREAD = ("[[", "coproc", "function", "select")
_KEYWORDS = {*_CONTROL, *_UNREAD, "case", "esac", "for"}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_HARMLESS = re.compile(r"(?!.*path)[a-z][a-z0-9]*\Z")  # no shell or program gives these names a meaning
_BLANKS = re.compile(r"(?:[ \t]|(?<=[ \t\n])\\\n)*(?:#[^\n]*)?")
_PLAIN = re.compile(r"[^ \t\n;&|<>()'\"\\$`]+")
_QUOTED = re.compile(r"[^\"\\$`]+|\"")
_REDIRECT = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())")
_SEPARATOR = re.compile(r"&&|\|\||\|&|[;&|]")
_PARAMETER = re.compile(
    r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{#?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])"
    r"(?:(?::?[-+?]|%%?|##?)[A-Za-z0-9_./:*, -]*)?\})"
)
_ARITHMETIC = re.compile(r"\$\(\([0-9 +*/%-]*\)\)")  # a name in there can hold a command that bash runs


def find(command: str) -> tuple[Found, ...]:
    """All simple commands of a command line, also those inside others, and all that is unclear in it."""
    found: list[Found] = []
    _Scan(command, 0, found).program()
    return tuple(found)


class _Scan:
    """One text on its way through. Only `find` makes one, and nobody keeps it."""

    def __init__(self, text: str, depth: int, found: list[Found]) -> None:
        self._text, self._depth, self._found = text, depth, found
        self._at = 0
        self._begin = 0  # of the simple command that is being read
        self._lost = False
        self._bodies: list[tuple[str, bool, bool]] = []  # here-documents to come: end, tabs go, taken literally

    def program(self, closer: str = "") -> None:
        """Read commands up to `closer`, which is left, or to the end."""
        begin, bodies, self._bodies = self._begin, self._bodies, []
        stack: list[str] = []
        both = False  # behind `&` of `&>`
        while True:
            said = self._command(stack, both)
            both = False
            rest = self._text[self._at : self._at + 3]
            if not rest or (rest[0] == ")" and closer and not stack):
                break
            if rest[0] == "(":
                if said or rest.startswith("(("):
                    self._lose("a function, an array, a pattern or arithmetic is not looked into")
                stack.append("(")
                self._at += 1
            elif rest[0] == ")":
                if stack[-1:] != ["("]:
                    self._lose("a ) without its (")
                else:
                    stack.pop()
                self._at += 1
            elif rest[0] == "\n":
                self._newline()
            elif rest.startswith((";;", ";&")):
                self._at += 3 if rest == ";;&" else 2
                self._pattern(stack)
            else:
                both = self._take(_SEPARATOR) == "&" and self._text.startswith(">", self._at)
        if stack or self._bodies:
            self._lose("something is not closed")
        self._begin, self._bodies = begin, bodies

    def _command(self, stack: list[str], both: bool) -> bool:
        """Read one simple command and the keywords before it; whether it has words."""
        words: list[Word] = []
        assigned: list[Word] = []
        redirected = writes = loop = False
        self._begin = self._at
        while True:
            self._blanks()
            if match := _REDIRECT.match(self._text, self._at):
                writes = self._redirect(match) or writes
                redirected = True
                continue
            start = self._at
            word = self._word()
            raw = self._text[start : self._at]
            if not raw:
                break
            if not (words or assigned or redirected) and raw in _KEYWORDS:
                if raw in _UNREAD:
                    self._lose(f"{raw} is not looked into")
                elif raw == "case":
                    self._case(stack)
                elif raw == "esac" and (not stack or stack.pop() != "case"):
                    self._lose("an esac without its case")
                loop = raw == "for"
                if loop:
                    words.append(word)
                else:
                    self._begin = self._at
            elif not words and _ASSIGNMENT.match(raw):
                assigned.append(word)
            else:
                words.append(Word(word.text, False) if raw.startswith("~") and not words else word)
        if both and (words or assigned):
            self._lose("&> means different things to different shells")
        if loop:
            self._loop(words, redirected)
        else:
            self._emit(tuple(words), tuple(assigned), writes)
        return bool(words or assigned)

    def _emit(self, words: Words, assigned: Words, writes: bool) -> None:
        where = self._shown()
        if words:
            self._simple(where, words, assigned, writes, self._depth)
            return
        assigned = tuple(word for word in assigned if not _HARMLESS.match(word.text.partition("=")[0]))
        if assigned or writes:
            self._found.append(Part(where, (), assigned, writes))

    def _simple(self, where: str, words: Words, assigned: Words, writes: bool, depth: int) -> None:
        """A command as words; then what it runs."""
        head = words[0]
        if depth > NESTING_MAX:
            self._hide(where, words, "it is nested too deeply", depth)
        elif not head.known:
            self._hide(where, words, "its command is only known when it runs", depth)
        elif not head.text.isprintable() or "=" in head.text or head.text in {*_KEYWORDS, ""}:
            self._hide(where, words, "its first word is no plain command", depth)
        else:
            self._found.append(Part(where, words, assigned, writes))
            for inner in inside(words):
                match inner:
                    case Runs(rest):
                        count = next((n for n, w in enumerate(rest) if not _ASSIGNMENT.match(w.text)), len(rest))
                        if count < len(rest):
                            self._simple(where, rest[count:], rest[:count], False, depth + 1)
                    case Says(text):
                        self._inner(text, depth)
                    case Reads(script):
                        self._found.append(Part(where, script, anywhere=True))
                    case Hides(why):
                        self._hide(where, words[1:], why, depth)
                    case never:
                        assert_never(never)

    def _hide(self, where: str, words: Words, why: str, depth: int) -> None:
        """One of these words may begin a command, or hold one."""
        self._found.append(Unclear(where, why))
        self._found.append(Part(where, words, anywhere=True))
        for word in words:
            if is_marked(word.text) and word.text != self._text:
                self._inner(word.text, depth)

    def _inner(self, text: str, depth: int) -> None:
        """Read a text inside this one."""
        if depth < NESTING_MAX:
            _Scan(text, depth + 1, self._found).program()
        else:
            self._lose("it is nested too deeply")

    def _lose(self, why: str) -> None:
        """From here on it may be read wrongly: so whatever words there are may be commands."""
        if not self._lost:
            self._lost = True
            self._found.append(Unclear(self._shown(to=self._begin + 40), why))
            rest = re.sub(r"[\"'\\]", "", self._text[self._begin :])
            for piece in re.split(r"[\n;&|<>(){}`]+", rest):
                if words := tuple(map(Word, piece.split())):
                    self._found.append(Part(shown(piece), words, anywhere=True))

    def _shown(self, to: int = 0) -> str:
        return shown(self._text[self._begin : min(max(self._at, to), self._begin + 2 * SHOWN_CHARS_MAX)])

    # --- words

    def _blanks(self) -> None:
        self._take(_BLANKS)

    def _word(self) -> Word:
        """The word here; an empty one, at the same place, if there is none."""
        text, start = self._text, self._at
        pieces: list[str] = []
        known = True
        while self._at < len(text):
            char = text[self._at]
            if match := _PLAIN.match(text, self._at):
                self._at = match.end()
                pieces.append(match[0])
                known = known and not re.search(r"[*?\[{}]", match[0])
            elif char == "'":
                end = text.find("'", self._at + 1)
                if end < 0:
                    self._lose("a quote is not closed")
                    end = len(text)
                pieces.append(text[self._at + 1 : end])
                self._at = end + 1
            elif char == "\\":
                if text[self._at + 1 : self._at + 2] in ("", "\n"):
                    self._lose("a line is continued inside a word")
                pieces.append(text[self._at + 1 : self._at + 2])
                self._at += 2
            elif char in '"$`':
                piece = self._double('"') if char == '"' else self._expansion(quoted=False)
                pieces.append(piece.text)
                known = known and piece.known
            elif text.startswith(("<(", ">("), self._at):
                self._at += 1
                self._nested()
                pieces.append(GAP)
                known = False
            else:
                break
        self._at = min(self._at, len(text))
        raw = text[start : self._at]
        if "\n" in raw and self._bodies:
            self._lose("a here-document begins before a text of several lines")
        return Word("".join(pieces), known or raw in ("[", "{}"))

    def _double(self, closer: str) -> Word:
        """Behind a double quote up to the next; or, without one, a here-document."""
        text = self._text
        pieces: list[str] = []
        known = True
        self._at += len(closer)
        while self._at < len(text):
            char = text[self._at]
            if char == closer:
                self._at += 1
                return Word("".join(pieces), known)
            if char == "\\":
                following = text[self._at + 1 : self._at + 2]
                if following == "\n" and (not closer or text[self._at - 1] == "$"):
                    self._lose("a line is continued inside an expansion")
                pieces.append(following if following in '$`"\\' else "" if following == "\n" else "\\" + following)
                self._at += 2
            elif char in "$`":
                piece = self._expansion(quoted=True)
                pieces.append(piece.text)
                known = known and piece.known
            else:
                pieces.append(self._take(_QUOTED))
        if closer:
            self._lose("a quote is not closed")
        return Word("".join(pieces), known)

    def _expansion(self, quoted: bool) -> Word:
        """What begins with a dollar sign or a backtick here."""
        text = self._text
        if text[self._at] == "`":
            return self._backtick(quoted)
        if match := _PARAMETER.match(text, self._at) or _ARITHMETIC.match(text, self._at):
            self._at = match.end()
            return Word(GAP, False)
        self._at += 1
        following = text[self._at : self._at + 1]
        if following == "(":
            if text.startswith("((", self._at):
                self._lose("arithmetic is not looked into")
            self._nested()
        elif following in ("{", "["):
            self._lose("this kind of expansion is not looked into")
            self._at += 1
        elif following in ("'", '"') and not quoted:
            end = re.compile(r"'[^'\\]*'|\"").match(text, self._at)
            if end is None:
                self._lose("$'…' means different things to different shells")
        else:
            return Word("$")
        return Word(GAP, False)

    def _backtick(self, quoted: bool) -> Word:
        end = self._text.find("`", self._at + 1)
        inner = self._text[self._at + 1 : end]
        if end < 0 or "\\" in inner or (quoted and '"' in inner):
            self._lose("these backticks are not looked into")
            self._at += 1
        else:
            self._inner(inner, self._depth)
            self._at = end + 1
        return Word(GAP, False)

    def _nested(self) -> None:
        """Behind `$`, `<` or `>`: a command in parentheses."""
        self._at += 1
        if self._depth >= NESTING_MAX:
            self._lose("it is nested too deeply")
            self._at = len(self._text)
            return
        self._depth += 1
        self.program(")")
        self._depth -= 1
        if self._at >= len(self._text):
            self._lose("a ( is not closed")
        self._at += 1

    # --- redirections and keywords

    def _redirect(self, match: re.Match[str]) -> bool:
        """Read one; whether it can change a file."""
        descriptor, sign = match.groups()
        self._at = match.end()
        self._blanks()
        start = self._at
        target = self._word()
        raw = self._text[start : self._at]
        if not raw or len(descriptor) > 1:
            self._lose("a redirection that cannot be read")
        if sign in ("<<", "<<-"):
            if not target.known or "\n" in raw:
                self._lose("the end of a here-document is not known")
            self._bodies.append((target.text, sign == "<<-", bool(re.search(r"[\"'\\]", raw))))
        if sign.startswith("<") and sign != "<>":
            return False
        if sign == ">&" and re.fullmatch(r"[0-9]|-", raw):
            return False
        return target not in (Word("/dev/null"), Word("/dev/stdout"), Word("/dev/stderr"))

    def _newline(self) -> None:
        """Step over the end of a line, and over the here-documents that follow it."""
        self._at += 1
        bodies, self._bodies = self._bodies, []
        for end, tabs, literal in bodies:
            start = stop = self._at
            while stop < len(self._text):
                after = self._text.find("\n", stop) + 1 or len(self._text) + 1
                line = self._text[stop : after - 1]
                stop, line_at = after, stop
                if (line.lstrip("\t") if tabs else line) == end:
                    break
            else:
                self._lose("the end of a here-document is missing")
                line_at = len(self._text)
            if not literal:
                inner = _Scan(self._text[start:line_at], self._depth, self._found)
                inner._double("")
            self._at = min(stop, len(self._text))

    def _loop(self, words: list[Word], redirected: bool) -> None:
        """`for NAME in …`: the variable is set as by an assignment."""
        if len(words) < 2 or redirected or (len(words) > 2 and words[2] != Word("in")):
            self._lose("a loop that cannot be read")
        elif not _HARMLESS.match(words[1].text):
            self._found.append(Part(self._shown(), (), (Word(words[1].text + "=", False),)))

    def _case(self, stack: list[str]) -> None:
        self._blanks()
        self._word()
        self._lines()
        start = self._at
        self._word()
        if self._text[start : self._at] != "in":
            self._lose("a case without its in")
            return
        stack.append("case")
        self._pattern(stack)

    def _pattern(self, stack: list[str]) -> None:
        """Step over `a | b)`, or stop before `esac`."""
        if stack[-1:] != ["case"]:
            self._lose("a ;; without its case")
            return
        self._lines()
        if re.compile(r"esac(?![^\s;&|)])").match(self._text, self._at):
            return
        self._at += self._text.startswith("(", self._at)
        while True:
            self._blanks()
            self._word()
            self._blanks()
            following = self._text[self._at : self._at + 1]
            self._at += following in ("|", ")")
            if following == ")":
                return
            if following != "|":
                self._lose("a pattern of case that cannot be read")
                return

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match[0]

    def _lines(self) -> None:
        self._blanks()
        while self._text.startswith("\n", self._at):
            self._newline()
            self._blanks()
