"""The REPL: a prompt, a turn, a prompt. prompt_toolkit edits the line; the conversation is the host's.

The prompt is painted first, and aiohttp imported behind it. However this ends, the terminal is as it was.
"""

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from prompt_toolkit import PromptSession
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style

from bantam import __version__
from bantam.core.base import texts
from bantam.core.effects import AskApproval
from bantam.core.events import Approved, Denied, Event
from bantam.core.words import config, prompts, status
from bantam.core.words.wrap import Kept
from bantam.front.show.screen import Screen
from bantam.front.terminal import editor, tty
from bantam.front.terminal.ahead import Queue, TypeAhead
from bantam.front.terminal.complete import Completions, History
from bantam.front.terminal.drafts import Drafts, Folded, Mode
from bantam.front.terminal.keys import bindings, keep_characters_whole
from bantam.front.terminal.talk import Talk
from bantam.host.attachments import Parts
from bantam.host.commands import Quit
from bantam.host.conversation import Conversation
from bantam.host.keeper import Causes
from bantam.host.setup import Setup
from bantam.shell.disk.files import StoreError
from bantam.shell.disk.store import Resumed
from bantam.shell.disk.tape import Recorder
from bantam.shell.net import address, model

HISTORY_FILE = ".bantam_history"
ASKED_CHARS_MAX = 200  # of a command in the question about it; the call above it has all of them
UNTYPED = "what you type is not kept"
LEAVE_HINT = "press Ctrl+C again or Ctrl+D to leave"
# a prompt in some colour, even if it is the usual one, is painted with the blank at its end
PLAIN = Style([("prompt", "ansidefault")])
COLORED = Style([("prompt", "ansidefault bold"), ("pasted", "ansibrightblack"), ("mode", "ansibrightblack")])


def run(
    found: Setup,
    resumed: Resumed | None = None,
    tape: Recorder | None = None,
    attached: Parts = (),
    first: str | None = None,
) -> int:
    """Talk until the user leaves or a signal ends it; returns the exit status. `first` is a line as if it was typed."""
    return asyncio.run(_run(found, resumed, tape, attached, first or ""))


async def _run(found: Setup, resumed: Resumed | None, tape: Recorder | None, attached: Parts, first: str) -> int:
    screen = Screen("transcript", found.config.color, found.config.render)
    talk = Conversation(found, screen, resumed=resumed, tape=tape, attached=attached)
    talk.attachments.mentions = True
    try:
        behind = partial(_load, found.config.endpoint, found.place.environ)
        history = str(found.place.user_home / HISTORY_FILE)
        repl = Repl(talk, screen, tty.Keyboard(), tty.display(), history, behind, talk.keeper.causes)
        talk.ask = partial(_approve, talk, repl)
        return await repl.run(first)
    except OSError:  # the terminal was gone before the first prompt
        return 128 + signal.SIGHUP
    finally:
        talk.keep()
        await talk.close()


async def _approve(talk: Conversation, repl: "Repl", request: AskApproval) -> Event:
    """Ask the user about a command: yes, no, or always, which holds for the rest of this run."""
    command = texts.safe(" ".join(request.command.split()))
    command = command if len(command) <= ASKED_CHARS_MAX else command[:ASKED_CHARS_MAX] + "…"
    key = await repl.ask_key(f"run {command}? ({texts.safe(request.why)}; y: yes, n: no, a: always)", "yna")
    if key == "a":
        talk.always(request.command)
    return Denied(request.id) if key == "n" else Approved(request.id)


class Cancelled(Exception):
    """Ctrl+C at the prompt."""


class Ended(Exception):
    """A signal came at the prompt."""


class Repl:
    """Asks for lines and has the conversation carry them out, until someone wants to leave.

    `behind` is run once, in a thread, when the first prompt stands. `causes`: what was said of what cannot be kept.
    """

    def __init__(
        self,
        talk: Talk,
        screen: Screen,
        keyboard: Vt100Input,
        display: Output,
        history: str,
        behind: Callable[[], None],
        causes: Causes | None = None,
    ) -> None:
        self._talk, self._screen = talk, screen
        self._keyboard, self._display = keyboard, display
        self._modes = tty.Modes(keyboard)
        self._behind: Callable[[], None] | None = behind
        self._ahead: list[KeyPress] = []  # typed before the editor could take it
        self._status = 0
        self._typeahead: TypeAhead | None = None  # a turn runs
        self._asking = asyncio.Lock()
        self._warned = False  # the last thing that happened was a Ctrl+C at an empty prompt
        self._causes, self._complained = causes or Causes(), False
        self._unwritten: StoreError | None = None  # the history, which is not said yet
        self._drafts = Drafts(lambda text: editor.edit(text, os.environ), self._say)
        self._history = History(history, talk.clean, lambda: talk.config.save, self._complain, self._drafts.whole)
        self._queue = Queue(talk, lambda text: screen.say(text, "notice"), self._history.append_string)
        self._editor = self._make_editor()

    async def run(self, first: str = "") -> int:
        """The whole session, with a `first` line as if it was typed; returns the exit status."""
        self._heed_signals()
        with self._modes.raw():  # all the time: what is typed during a turn is neither echoed nor changed
            tty.keep_typed_before(self._keyboard)
            self._greet()
            if self._talk.is_unfinished:
                await self._turn(self._talk.go_on())
            while not self._status:
                try:
                    if first:
                        self._screen.say(Kept(tty.PROMPT + first.replace("\n", "\n" + " " * len(tty.PROMPT))), "prompt")
                    text, first = first or await self._ask(), ""
                    self._warned = False
                    if text.strip() and not self._status:
                        await self._turn(self._talk.line(text))
                except Cancelled:
                    if self._leaves():
                        break
                except (EOFError, Ended, Quit):
                    break
                except OSError:  # the terminal is gone
                    self._end(128 + signal.SIGHUP)
                except Exception as bug:  # in the editor, so that asking again would not help
                    self._unexpected(bug)
                    self._end(status.FAILED)
        return self._status

    # --- asking

    def _make_editor(self) -> PromptSession[str]:
        made: PromptSession[str] = PromptSession(
            self._prompt,
            multiline=True,
            prompt_continuation=self._continuation,
            key_bindings=bindings(self._drafts, self._enter_is_lf, self._suspend),
            input_processors=[Folded(self._drafts.seen), Mode()],
            history=self._history,
            completer=Completions(
                lambda: sorted(self._talk.sessions(), reverse=True), self._keys, summary=self._talk.words_of
            ),
            complete_in_thread=True,
            complete_while_typing=False,
            search_ignore_case=True,
            interrupt_exception=Cancelled,
            input=self._keyboard,
            output=self._display,
        )
        tty.use_painter(made.app, self._drafts.seen)
        keep_characters_whole(made.app, made.default_buffer)
        made.app.after_render += self._painted
        made.default_buffer.on_text_changed += self._forget_warning
        return made

    async def _ask(self) -> str:
        """The next line, or several of them."""
        self._complain_late()
        self._screen.fresh_line()
        self._ahead = get_typeahead(self._keyboard)
        settings, colored = self._talk.config, self._screen.colored
        # a signal may have ended the last prompt in the middle of a search, or of Ctrl+Q
        self._editor.layout.focus(self._editor.default_buffer)
        self._editor.app.quoted_insert = False
        self._editor.style = COLORED if colored else PLAIN
        self._editor.color_depth = None if colored else ColorDepth.DEPTH_1_BIT
        is_vi = settings.editing == "vi"
        self._editor.editing_mode = EditingMode.VI if is_vi else EditingMode.EMACS
        self._editor.app.ttimeoutlen = tty.ESCAPE_S if is_vi else tty.SEQUENCE_S
        text = await self._editor.prompt_async(handle_sigint=False, set_exception_handler=False)
        return self._drafts.whole(text)

    def _prompt(self) -> StyleAndTextTuples:
        return [("class:prompt", tty.PROMPT if self._columns() >= tty.COLUMNS_MIN else "")]

    def _continuation(self, width: int, line_number: int, wrap_count: int) -> str:
        return " " * width

    def _columns(self) -> int:
        return self._display.get_size().columns

    def _enter_is_lf(self) -> bool:
        return "lf" in (self._talk.config.enter, os.environ.get("BANTAM_ENTER"))

    def _keys(self) -> list[str]:
        return sorted({*config.names(), *self._talk.config.forwarded})

    def _forget_warning(self, _: object) -> None:
        self._warned = False

    def _leaves(self) -> bool:
        """What Ctrl+C at the prompt means: away with the text, or a warning, or the end."""
        text = self._editor.default_buffer.text
        if text:
            self._history.remember(text)
            self._warned = False
        elif self._warned:
            return True
        else:
            self._screen.say(LEAVE_HINT, "notice")
            self._warned = True
        return False

    # --- a turn

    async def _turn(self, work: Awaitable[object]) -> None:
        """One line for the conversation. Raises Quit."""
        work = asyncio.ensure_future(work)
        heed = (self._enter_is_lf, self._talk.interrupt, self._suspend, self._end_of_input)
        self._typeahead = TypeAhead(self._keyboard, self._display, self._queue, *heed)
        try:
            with self._typeahead.reading():
                await self._carry_out(work)
                self._typeahead.settle()
        finally:
            self._typeahead = None

    async def ask_key(self, question: str, keys: str) -> str:
        """Ask in the middle of a turn for one of `keys`, lower-case letters; whoever asks next waits for the answer.

        What was typed before the question stood answers nothing. Ctrl+C stops the turn, which is to cancel this.
        """
        async with self._asking:
            assert self._typeahead is not None
            return await self._typeahead.answer(
                keys, lambda: self._screen.say(f"{question} [{'/'.join(keys)}]", "prompt")
            )

    async def _carry_out(self, work: Awaitable[object]) -> None:
        try:
            await work
        except Quit:
            raise
        except Exception as bug:  # one turn is lost, and not the conversation
            self._unexpected(bug)
            with suppress(Exception):
                self._talk.interrupt()

    # --- what may come at any time

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self._unexpected(context.get("exception") or context["message"]))
        loop.add_signal_handler(signal.SIGINT, self._stop, Cancelled())
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            loop.add_signal_handler(number, self._end, 128 + number)
        self._heed_job_control()
        self._screen.unwritable = lambda _: self._end(128 + signal.SIGHUP)  # the terminal is gone

    def _heed_job_control(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        loop.add_signal_handler(signal.SIGCONT, self._go_on)

    def _suspend(self) -> None:
        """To the background, with the terminal as the shell had it, until the shell has us go on."""
        loop, app = asyncio.get_running_loop(), self._editor.app
        for number in (signal.SIGTSTP, signal.SIGCONT):
            loop.remove_signal_handler(number)
        with suppress(OSError):  # of a terminal that is gone, which whoever reads will notice
            if self._typeahead:
                self._typeahead.mark_pastes(False)
            elif app.is_running and not self._lent:
                app.renderer.erase()
        if not self._lent:
            self._modes.give_back()
        os.kill(0, signal.SIGTSTP)  # the whole process group, as the terminal would; without a shell nothing stops
        self._heed_job_control()
        self._go_on()

    def _go_on(self) -> None:
        """Take the terminal back: after SIGSTOP nobody could prepare it for the shell, nor the shell for us."""
        app = self._editor.app
        if self._lent:
            return
        self._modes.retake()
        with suppress(OSError):  # SIGCONT comes with SIGHUP, too
            if self._typeahead:
                self._typeahead.mark_pastes(True)
            elif app.is_running and not app.is_done:
                self._display.write_raw("\r")
                app.renderer.reset()
                app.invalidate()

    @property
    def _lent(self) -> bool:
        """Whether another program, the user's editor, has the terminal."""
        return self._editor.app._running_in_terminal

    def _end_of_input(self) -> None:
        if tty.is_gone(self._keyboard):
            self._end(128 + signal.SIGHUP)

    def _end(self, code: int) -> None:
        self._status = self._status or code
        self._stop(Ended())

    def _stop(self, why: Exception) -> None:
        """Stop the turn, or the editor with `why`."""
        app = self._editor.app
        if self._typeahead:
            asyncio.get_running_loop().call_soon(self._talk.interrupt)  # once the turn has begun
        elif app.is_running and not app.is_done:
            app.exit(exception=why)

    def _unexpected(self, bug: object) -> None:
        if tty.is_gone(self._keyboard):  # of which anything may complain that paints, and nobody would see it
            self._end(128 + signal.SIGHUP)
            return
        words = f"{type(bug).__name__}: {bug}" if isinstance(bug, Exception) else str(bug)
        self._say(f"bantam: unexpected error: {' '.join(words.split())}")

    def _complain(self, problem: StoreError) -> None:
        """Say once that the history does not work; behind the turn, where the conversation may tell the same cause."""
        if not self._complained:
            self._complained = True
            if problem.number:
                self._unwritten = problem
            else:
                self._say(str(problem))

    def _complain_late(self) -> None:
        if self._unwritten and (words := self._causes.words(self._unwritten, UNTYPED, minor=True)):
            self._screen.say(words, error=True)
        self._unwritten = None

    def _say(self, problem: str) -> None:
        """A line of an error, above the editor if it is there."""
        app = self._editor.app
        if app.is_running:
            app.renderer.erase()
        self._screen.say(problem, error=True)
        app.invalidate()

    # --- the start

    def _greet(self) -> None:
        self._screen.say(f"bantam {__version__}, {self._talk.config.model}; /help lists the commands", "notice")

    def _painted(self, _: object) -> None:
        """The prompt stands: the editor can have what was typed ahead, and what is slow can go on behind it."""
        if self._ahead:  # prompt_toolkit takes it before it has read the history, so that Up would do nothing
            keys, self._ahead = self._ahead, []
            asyncio.get_running_loop().call_soon(self._type, keys)
        if self._behind:
            threading.Thread(target=self._behind, daemon=True).start()
            self._behind = None

    def _type(self, keys: list[KeyPress]) -> None:
        self._editor.app.key_processor.feed_multiple(keys)
        self._editor.app.key_processor.process_keys()


def _load(endpoint: str, environ: Mapping[str, str]) -> None:
    """Import aiohttp, and have garbage collected again once nothing more is imported."""
    with suppress(Exception):  # whoever needs it will say what is wrong
        model.load()
        # whoever uses a pattern first compiles it, which is not to happen between Enter and the request
        prompts.slash("/help")
        prompts.is_private("")
        address.proxy_for(endpoint, environ)
        address.target(endpoint, "")
    gc.freeze()
    gc.enable()
