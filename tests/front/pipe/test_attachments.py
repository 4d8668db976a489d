"""`-a` and `/attach` in a pipe, with the real program: what is sent, and what is refused before anything is."""

from base64 import b64decode
from pathlib import Path

import pytest

from tests.program import Place, Reply, place, serving

PNG = b"\x89PNG\r\n\x1a\nrest"
USAGE = {"prompt_tokens": 1200, "completion_tokens": 34, "prompt_tokens_details": {"cached_tokens": 1000}, "cost": 0.5}


def files(here: Place) -> None:
    (here.work / "a.png").write_bytes(PNG)
    (here.work / "notes.txt").write_text("one\ntwo\n")


def test_files_go_along_with_a_prompt_as_what_they_are(tmp_path: Path) -> None:
    with serving([Reply("seen")]) as fake:
        here = place(tmp_path, fake)
        files(here)
        ran = here.run("-a", "a.png", "-a", "notes.txt", "-p", "look")
        content = fake.requests[0].body["messages"][-1]["content"]
    assert (ran.status, ran.out) == (0, "seen\n")
    assert [part["type"] for part in content] == ["text", "image_url", "text"]
    assert content[0]["text"] == "look"
    assert b64decode(content[1]["image_url"]["url"].removeprefix("data:image/png;base64,")) == PNG
    assert content[2]["text"] == '<file name="notes.txt">\none\ntwo\n</file>'


def test_a_file_goes_with_one_message_and_is_in_what_is_kept(tmp_path: Path) -> None:
    with serving([Reply("one"), Reply("two"), Reply("three")]) as fake:
        here = place(tmp_path, fake)
        files(here)
        ran = here.run(piped="/attach a.png\nlook\nand now?\n")
        assert ran.status == 0, ran.err
        kept = here.autosave()
        again = here.run("--resume", "-p", "go on")
        assert again.out == "three\n"
        sent = [[m["content"] for m in r.body["messages"] if m["role"] == "user"] for r in fake.requests]
    assert [isinstance(content, str) for content in sent[1]] == [False, True]
    assert [m["content"] for m in kept if m["role"] == "user"] == sent[1]
    assert sent[2] == [*sent[1], "go on"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone.png", "cannot read gone.png: No such file or directory; nothing was attached"),
        (".", "cannot read .: Is a directory; nothing was attached"),
        ("/dev/null", "/dev/null is no file; nothing was attached"),
        ("binary", "binary is neither a picture (PNG, JPEG, GIF, WebP) nor UTF-8 text; nothing was attached"),
        ("large", "large is too large: a text may have 1 MB; nothing was attached"),
        ("empty", "empty is empty; nothing was attached"),
    ],
)
def test_what_cannot_go_along_is_one_line_and_nothing_is_sent(name: str, why: str, tmp_path: Path) -> None:
    with serving([Reply("no")]) as fake:
        here = place(tmp_path, fake)
        (here.work / "binary").write_bytes(b"\x00\x01")
        (here.work / "large").write_bytes(b"x" * 1_000_001)
        (here.work / "empty").write_bytes(b"")
        ran = here.run("-a", name, "-p", "look")
        assert (ran.status, ran.out, ran.err) == (2, "", f"bantam: {why}\n")
        lines = here.run(piped=f"/attach {name}\n")
        assert (lines.status, lines.err) == (1, f"{why}\n")
        assert fake.requests == []


def test_an_at_sign_in_a_pipe_is_text(tmp_path: Path) -> None:
    with serving([Reply("yes")]) as fake:
        here = place(tmp_path, fake)
        files(here)
        here.run("-p", "look at @notes.txt")
        assert fake.requests[0].body["messages"][-1]["content"] == "look at @notes.txt"


def test_usage_says_tokens_cost_and_the_window(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with serving([Reply("one", usage=USAGE), Reply("two")]) as fake:
        ran = place(tmp_path, fake, context_window="1000").run(piped="hi\n/usage\n")
        unknown = place(tmp_path / "b", fake).run(piped="hi\n/usage\n")
    told = ran.out.splitlines()
    spent = "1 model call, 1,200 tokens in (1,000 from a cache), 34 out, $0.5000"
    assert f"this turn  {spent}" in told
    assert f"all turns  {spent}" in told
    assert any(line.startswith("context    about ") and "of 1,000 tokens (" in line for line in told)
    assert "1 model call, 0 tokens in, 0 out, cost unknown" in unknown.out
    assert "the size of the window is unknown" in unknown.out


def test_the_first_prompt_of_a_chat_needs_a_terminal(tmp_path: Path) -> None:
    ran = Place(tmp_path).run("-i", "hello")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("bantam: -i is for the chat")
