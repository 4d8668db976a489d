"""What strangers and accidents could do: the key's way, and the files of the user alone."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from scripts.fakemodel import Reply
from tests.program import Place, place, serving
from tests.pty_helpers import Bantam

KEY = "sk-marker-0123456789"
HALVES = KEY[:11], KEY[11:]
HELLO = Reply(text="pelican")


def delta(**members: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": members}]}


def everything(folder: Path) -> str:
    """All that was kept, apart from what the test itself has put there."""
    files = [p for p in folder.rglob("*") if p.is_file() and p.name not in ("model.cfg", "key")]
    return "\n".join(p.read_bytes().decode(errors="replace") for p in files)


def test_the_key_in_pieces_is_nowhere(tmp_path: Path) -> None:
    """Printed by a command in two writes, said by a model in two deltas, put into arguments, echoed in an error."""
    filler = "head -c 49969 /dev/zero | tr '\\0' x"  # so that the head that is kept ends within a key
    (tmp_path / "key").write_text(KEY)
    halves = "cut -c 1-11 ../key | tr -d '\\n'; sleep 0.3; cut -c 12- ../key"
    slow = f"{halves}; {filler}; cat ../key; {filler}; {filler}; cat ../key"
    arguments = json.dumps({"command": f"echo {KEY} > used"})
    at = arguments.index(KEY) + 9
    calls = [
        {"index": 0, "id": "c", "function": {"name": "shell_exec", "arguments": arguments[:at]}},
        {"index": 0, "function": {"arguments": arguments[at:]}},
    ]
    in_pieces = Reply(
        chunks=[
            delta(reasoning_content="so " + HALVES[0]), delta(reasoning_content=HALVES[1]),
            delta(content=HALVES[0]), delta(content=HALVES[1]),
            delta(tool_calls=calls[:1]), delta(tool_calls=calls[1:]),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        ],
        pause_s=0.05,
    )  # fmt: skip
    echoed = Reply(status=401, body=json.dumps({"error": {"message": f"bad key {KEY}"}}))
    script = [Reply(calls=[("shell_exec", {"command": slow})]), in_pieces, HELLO, echoed]
    with serving(script) as fake:
        here = place(tmp_path, fake)
        here.environment["OPENAI_API_KEY"] = KEY
        ran = here.run(piped=f"my key is {KEY}\n/save\n/list\n")
        again = here.run("-p", f"{KEY}?")
        sent = "".join(json.dumps(request.body) for request in fake.requests)
    assert again.status == 1
    assert (here.work / "used").read_text() == "[key]\n"
    shown = ran.out + ran.err + again.out + again.err
    assert "[key]" in sent
    assert "bad key [key]" in again.err
    for text in (shown, sent, everything(tmp_path)):
        assert KEY not in text
    assert KEY[:9] not in sent  # nor cut in two by what is left out of a long output


def test_a_key_that_is_typed_is_in_no_file(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        chat = Bantam(tmp_path, fake.endpoint, OPENAI_API_KEY=KEY)
        chat.prompt()
        chat.ask(f"is {KEY} safe?")
        chat.ask(f"/cfg api_key {KEY}2")
        chat.ask("and now?")
        chat.leave()
        assert fake.requests[-1].headers["authorization"] == f"Bearer {KEY}2"
        sent = "".join(json.dumps(request.body) for request in fake.requests)
    assert KEY not in everything(tmp_path)
    assert KEY not in sent


# --- trust


def stranger(folder: Path) -> Place:
    here = Place(folder, "http://api.invalid/v1")
    here.environment["OPENAI_API_KEY"] = KEY
    here.environment["NO_PROXY"] = "*"
    return here


def test_a_folder_is_trusted_until_it_points_elsewhere(tmp_path: Path) -> None:
    here = stranger(tmp_path)
    refused = here.run("-p", "x")
    assert (refused.status, refused.out) == (2, "")
    assert "bantam trust" in refused.err
    trusted = here.run("trust")
    assert trusted.status == 0
    assert trusted.out.startswith("OPENAI_API_KEY may go to http://api.invalid/v1 from ")
    assert here.run("-p", "x").status != 2
    assert here.run("trust").out.startswith("nothing to do: ")
    here.configure(endpoint="http://other.invalid/v1", model="x")
    assert here.run("-p", "x").status == 2
    here.configure(endpoint="http://api.invalid/v1", model="x")
    assert here.run("trust", "forget").status == 0
    assert here.run("-p", "x").status == 2
    assert KEY not in everything(tmp_path)


def test_trust_is_for_one_folder(tmp_path: Path) -> None:
    here = stranger(tmp_path)
    here.run("trust")
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.cfg").write_text((here.work / "model.cfg").read_text())
    assert here.run("-C", str(other), "-p", "x").status == 2
    assert here.run("-C", str(here.work), "-p", "x").status != 2


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}\n[1]\n", b"[" * 10_000, None])
def test_a_broken_list_of_trust_trusts_nobody_and_can_be_added_to(tmp_path: Path, data: bytes | None) -> None:
    here = stranger(tmp_path)
    place = here.home / ".bantam" / "trusted.jsonl"
    place.parent.mkdir()
    if data is None:
        place.mkdir()
    else:
        place.write_bytes(data)
    assert here.run("-p", "x").status == 2
    ran = here.run("trust")
    assert (ran.status, ran.err.count("\n")) == ((2, 1) if data is None else (0, 0))
    if data is not None and data.endswith(b"\n"):
        assert here.run("-p", "x").status != 2


def test_the_chat_asks_once_and_remembers(tmp_path: Path) -> None:
    chat = Bantam(tmp_path, "http://api.invalid/v1", OPENAI_API_KEY=KEY, NO_PROXY="*")
    chat.expect("Send the key there, now and from now on? [y/N] ")
    chat.send("n\n")
    assert chat.end() == 2
    chat = Bantam(tmp_path, "http://api.invalid/v1", OPENAI_API_KEY=KEY, NO_PROXY="*")
    chat.expect("[y/N] ")
    chat.send("y\n")
    chat.prompt()
    chat.leave()
    chat = Bantam(tmp_path, "http://api.invalid/v1", OPENAI_API_KEY=KEY, NO_PROXY="*")
    chat.prompt()
    chat.leave()
    assert "[y/N]" not in chat.all


def test_trust_takes_no_other_word(tmp_path: Path) -> None:
    ran = stranger(tmp_path).run("trust", "everyone")
    assert (ran.status, ran.out, ran.err) == (2, "", "bantam: bantam trust takes nothing, or: forget\n")


# --- files


def test_only_the_user_may_read_what_a_run_keeps(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with serving([HELLO]) as fake:
            here = place(tmp_path, fake)
            here.environment["OPENAI_API_KEY"] = KEY
            here.run(piped="x\n/save\n")
            (here.home / ".bantam/sessions/autosave.json").chmod(0o644)
            (here.home / ".bantam").chmod(0o755)
            here.run(piped="y\n")
            here.configure(endpoint="http://api.invalid/v1")
            here.run("trust")
    finally:
        os.umask(old)
    for path in (here.home / ".bantam", *(here.home / ".bantam").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    "id", ["../x", "../../etc/hostname", "/etc/hostname", "a/../../x", "..", "x" * 300, "CON", "-rf"]
)
def test_no_id_reads_outside_and_the_session_goes_on(tmp_path: Path, id: str) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        (here.home / ".bantam/sessions").mkdir(parents=True)
        for outside in (here.home / ".bantam/x.json", here.home / "x.json"):
            outside.write_text(json.dumps({"messages": [{"role": "user", "content": "outside"}]}))
        ran = here.run(piped=f"first\n/load {id}\nsecond\n")
        said = fake.requests[-1].body["messages"]
    assert (ran.status, ran.err.count("\n")) == (1, 1)
    assert [m["content"] for m in said[1:]] == ["first", "pelican", "second"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    with serving([HELLO]) as fake:
        here = place(tmp_path, fake)
        sessions = here.home / ".bantam" / "sessions"
        sessions.mkdir(parents=True)
        mine = tmp_path / "mine.json"
        mine.write_text('{"messages": []}')
        for name in ("autosave", "link"):
            (sessions / f"{name}.json").symlink_to(mine)
        ran = here.run(piped="/load link\nx\n")
    assert "there is no session link" in ran.err
    assert mine.read_text() == '{"messages": []}'
    assert not (sessions / "autosave.json").is_symlink()
