"""`approve=` where nobody can be asked, and `bantam policy`."""

from pathlib import Path

import pytest

from scripts.fakemodel import Reply
from tests.program import Place, place, serving

RULES = "allow git status; ask git *; deny rm *; allow echo *"


def asks(*commands: str) -> Reply:
    return Reply(calls=[("shell_exec", {"command": command}) for command in commands])


@pytest.mark.parametrize("mode", ["-p", "file", "-q", "lines", "--json"])
def test_where_nobody_can_be_asked_it_is_a_denial_at_once_and_status_4(tmp_path: Path, mode: str) -> None:
    with serving([asks("touch a"), Reply(text="sorry")]) as fake:
        here = place(tmp_path, fake, approve="ask")
        (here.work / "prompt.txt").write_text("do it")
        arguments = {"-p": ["-p", "x"], "file": ["prompt.txt"], "-q": ["-q", "prompt.txt"], "lines": []}
        ran = here.run(*arguments.get(mode, ["--json", "prompt.txt"]), piped="do it\n" if mode == "lines" else None)
        result = fake.requests[1].body["messages"][-1]["content"]
    assert ran.status == 4
    assert result == "not run: it needs an approval, and there is nobody to ask"
    assert not (here.work / "a").exists()
    assert "sorry" in ran.out
    if mode in ("-p", "-q"):
        assert ran.out == "sorry\n"
        assert "nobody is there to approve: touch a (approve=ask); rules in approve= of model.cfg" in ran.err


def test_rules_allow_deny_and_ask_command_by_command(tmp_path: Path) -> None:
    commands = ("echo hi", "rm -rf x", "echo a && rm b", "git push", "echo x > y")
    with serving([asks(*commands), Reply(text="done")]) as fake:
        here = place(tmp_path, fake, approve=RULES)
        ran = here.run("-p", "x")
        results = [m["content"] for m in fake.requests[1].body["messages"] if m["role"] == "tool"]
    assert ran.status == 4
    assert results[0] == "hi\n\n\nexit: 0"
    assert [result.startswith("not run: the rules") for result in results] == [False, True, True, False, False]
    assert results[3] == results[4] == "not run: it needs an approval, and there is nobody to ask"
    assert not (here.work / "y").exists()


def test_a_denial_by_a_rule_alone_is_no_failure(tmp_path: Path) -> None:
    with serving([asks("rm x"), Reply(text="then not")]) as fake:
        assert place(tmp_path, fake, approve=RULES).run("-p", "x").status == 0


@pytest.mark.parametrize(
    ("command", "status", "first"),
    [
        ("git status", 0, "allow"),
        ("git push", 4, "ask"),
        ("echo x; rm y", 1, "deny"),
        ("ls $(x", 4, "ask"),
        ("", 0, "allow"),
    ],
)
def test_policy_says_what_the_rules_do(tmp_path: Path, command: str, status: int, first: str) -> None:
    here = Place(tmp_path, approve=RULES)
    here.environment["OPENAI_API_KEY"] = "sk-marker-123"  # no question of trust: nothing is sent
    ran = here.run("policy", command)
    assert (ran.status, ran.out.split("\n")[0], ran.err) == (status, first, "")


def test_policy_judges_a_past_run_by_the_rules_of_now(tmp_path: Path) -> None:
    with serving([asks("git status", "echo x"), asks("rm y"), Reply(text="done")]) as fake:
        here = place(tmp_path, fake)
        here.run("-p", "x")
        id = next((here.home / ".bantam/logs").iterdir()).stem
        ran = here.run("-c", f"approve={RULES}", "policy", "--log", id)
    assert ran.status == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == ["allow", "allow", "deny", "of"]
    assert ran.out.endswith("of 3 commands: 2 allow, 0 ask, 1 deny\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["policy"],
        ["policy", "a", "b"],
        ["policy", "--log", "nope"],
        ["policy", "x", "--log", "y"],
        ["--log", "x", "-p", "y"],
    ],
)
def test_policy_wants_one_command_or_one_log(tmp_path: Path, arguments: list[str]) -> None:
    ran = Place(tmp_path, approve=RULES).run(*arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_rule_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    ran = Place(tmp_path, approve="allow ls; permit rm").run("-p", "x")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("bantam: model.cfg, line 3: approve: rule 2, 'permit rm': ")
