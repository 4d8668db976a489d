"""`@path` and `-i` in the chat, on a real terminal."""

from pathlib import Path

from scripts.fakemodel import echo
from tests.pty_helpers import model, plain


def test_a_path_behind_an_at_sign_goes_along_and_a_name_is_text(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start()
        (tmp_path / "work" / "notes.txt").write_text("one\n")
        bantam.prompt()
        bantam.ask("read @notes.txt, please, @somebody")
        content = fake.requests[-1].body["messages"][-1]["content"]
        assert [part["text"] for part in content] == [
            "read @notes.txt, please, @somebody",
            '<file name="notes.txt">\none\n</file>',
        ]
        told = bantam.ask("and @src/gone.txt")
        assert "cannot read src/gone.txt: No such file or directory" in plain(told)
        assert len(fake.requests) == 1
        bantam.leave()


def test_a_chat_may_begin_with_a_prompt_and_stays(tmp_path: Path) -> None:
    with model(tmp_path, echo) as (fake, start):
        bantam = start(through='exec "$@" -i hello')
        bantam.prompt()
        bantam.prompt()
        assert fake.requests[0].body["messages"][-1]["content"] == "hello"
        bantam.ask("again")
        assert fake.requests[1].body["messages"][-1]["content"] == "again"
        bantam.leave()
