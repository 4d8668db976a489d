"""What goes along with a message: what a file is says its content, and text stays what it was."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.base.problem import Problem
from bantam.core.words import attach

pytestmark = pytest.mark.core
PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff\xe0": "image/jpeg",
    b"GIF89a": "image/gif",
    b"RIFF\x10\x00\x00\x00WEBPVP8 ": "image/webp",
}


@given(st.sampled_from(sorted(PICTURES)), st.binary(max_size=50), st.text(max_size=20))
def test_a_picture_is_known_by_its_content_and_comes_back_whole(head: bytes, rest: bytes, name: str) -> None:
    made = attach.part(name, head + rest)
    assert not isinstance(made, Problem)
    kind, _, data = made["image_url"]["url"].partition(";base64,")
    assert (kind, b64decode(data)) == (f"data:{PICTURES[head]}", head + rest)
    assert messages.images_of(messages.user("look", (made,))) == 1


@given(st.text(min_size=1).filter(lambda text: "\0" not in text), st.text(max_size=20))
def test_a_text_stands_in_a_block_that_it_cannot_close(text: str, name: str) -> None:
    data = text.encode(errors="replace")
    made = attach.part(name, data)
    if attach.image_type(data):
        return
    assert not isinstance(made, Problem)
    first, _, rest = made["text"].partition("\n")
    fence = first.split()[0].removeprefix("<")
    inside = rest.removesuffix(f"</{fence}>")
    assert rest.count(f"</{fence}>") == 1
    assert inside in (data.decode().removeprefix("\ufeff"), data.decode().removeprefix("\ufeff") + "\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "n is empty"),
        (b"\x7fELF\x00\x01", "n is neither a picture (PNG, JPEG, GIF, WebP) nor UTF-8 text"),
        (b"caf\xe9", "n is neither"),
        (b"x" * (attach.TEXT_BYTES_MAX + 1), "n is too large: a text may have 1 MB"),
        (b"GIF89a" + b"x" * attach.IMAGE_BYTES_MAX, "n is too large: a picture may have 5 MB"),
    ],
)
def test_what_cannot_go_along_is_told_in_one_line(data: bytes, why: str) -> None:
    made = attach.part("n", data)
    assert isinstance(made, Problem)
    assert made.text.startswith(why)
    assert "\n" not in made.text


def test_a_text_may_be_as_large_as_the_limit() -> None:
    assert not isinstance(attach.part("n", b"x" * attach.TEXT_BYTES_MAX), Problem)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("look at @a.png and @b/c.txt", ("a.png", "b/c.txt")),
        ("@a\n@a", ("a",)),
        ('see @"my file.txt"!', ("my file.txt",)),
        ("mail me@example.com", ()),
        ("an @ alone, and @", ()),
        ('@"open', ("open",)),
    ],
)
def test_a_prompt_names_paths_behind_an_at_sign(text: str, paths: tuple[str, ...]) -> None:
    assert attach.mentions(text) == paths


@given(st.text(alphabet='@" ab\n/'))
def test_whatever_a_prompt_is_its_mentions_are_paths(text: str) -> None:
    assert all(path and "\n" not in path and path in text for path in attach.mentions(text))
