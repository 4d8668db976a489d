"""The draft in the editor: what is folded in it, how that and vi's mode are shown, and its way to another program."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from prompt_toolkit.application import get_app
from prompt_toolkit.application.run_in_terminal import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from bantam.core.base.problem import Problem
from bantam.core.words import pastes
from bantam.core.words.pastes import Pastes
from bantam.front.terminal import tty

DraftEditor = Callable[[str], str | Problem]


class Drafts:
    """What was folded so far, and what keys do with it. `edit_elsewhere` waits for another program."""

    def __init__(self, edit_elsewhere: DraftEditor, complain: Callable[[str], None]) -> None:
        self._pastes = Pastes()
        self._edit_elsewhere, self._complain = edit_elsewhere, complain

    def whole(self, text: str) -> str:
        return self._pastes.unfold(text)

    def seen(self, text: str) -> str:
        return self._pastes.shown(text)

    def paste(self, buffer: Buffer, text: str) -> None:
        """Put in what was pasted: a long text as one character."""
        self._pastes, put = pastes.folded(self._pastes, text)
        buffer.insert_text(put)

    def expand(self, buffer: Buffer) -> None:
        """Put all that is folded into its place; undo folds it again."""
        if pastes.has_mark(buffer.text):
            before = self.whole(buffer.document.text_before_cursor)
            buffer.document = Document(self.whole(buffer.text), len(before))

    def edit(self, buffer: Buffer) -> None:
        """Have another program edit all of it."""
        get_app().create_background_task(self._edited(buffer))

    async def _edited(self, buffer: Buffer) -> None:
        draft = buffer.text
        edited = await run_in_terminal(lambda: self._edit_elsewhere(self.whole(draft)), in_executor=True)
        if isinstance(edited, Problem):
            self._complain(edited.text)
        else:
            buffer.save_to_undo_stack()
            text = self._pastes.refold(draft, edited)
            buffer.document = Document(text, len(text))


class Folded(Processor):
    """Shows what stands for a paste in place of the one character that it is."""

    def __init__(self, seen: Callable[[str], str]) -> None:
        self._seen = seen

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        if not pastes.has_mark(transformation_input.document.lines[transformation_input.lineno]):
            return Transformation(transformation_input.fragments)
        shown: StyleAndTextTuples = []
        for style, text, *_ in explode_text_fragments(transformation_input.fragments):
            seen = self._seen(text)
            shown.append((style if seen == text else f"{style} class:pasted", seen))
        begins = [0, *accumulate(len(text) for _, text, *_ in shown)]
        return Transformation(
            shown,
            source_to_display=lambda at: begins[at] if at < len(begins) else begins[-1] + at - len(begins) + 1,
            display_to_source=lambda at: bisect_right(begins, at) - 1,
        )


class Mode(Processor):
    """Shows vi's mode behind the text, where it moves nothing and no line reaches further than it must."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        app, fragments = get_app(), transformation_input.fragments
        is_last = transformation_input.lineno == transformation_input.document.line_count - 1
        if is_last and not app.is_done and app.output.get_size().columns >= tty.COLUMNS_MIN:
            sign = tty.mode_sign(app)
            return Transformation([*fragments, ("class:mode", tty.MODE_GAP + sign)] if sign else fragments)
        return Transformation(fragments)
