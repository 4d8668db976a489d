"""The approval policy: which commands run, ask or are denied, whatever a shell lets one write."""

import re
import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bantam.core.base.problem import Problem
from bantam.core.rules import approval, shellwords
from bantam.core.rules.approval import Always, Decision, Exactly, Never, Policy, Rule, Rules, judge
from bantam.core.rules.shellparts import Part, Word
from tests.commandlines import SIGNS, compound, spoilt
from tests.strategies import any_text, wild_text

pytestmark = pytest.mark.core


def read(text: str) -> Policy:
    found = approval.parse(text)
    assert not isinstance(found, Problem)
    return found


def decide(rules: str, command: str) -> Decision:
    return judge(read(rules), command).decision


def rank(decision: Decision) -> int:
    return [*Decision].index(decision)


WRAPPERS = "; ".join(f"allow {name} *" for name in ("sh -c", "eval", "env", "sudo", "xargs", "timeout", "find", "time"))
RULES = f"allow ok *; ask hm *; deny no *; allow say *; allow break; {WRAPPERS}"
LEAVES = {"ok": Decision.ALLOW, "hm": Decision.ASK, "no": Decision.DENY, "other": Decision.ASK}

words = st.text("ab*/-=.é[!", min_size=1, max_size=5)
patterns = st.lists(words, min_size=1, max_size=4).map(tuple)
rules = st.builds(Rule, st.sampled_from(Decision), patterns) | st.builds(Exactly, st.text() | wild_text)
policies = st.one_of(
    st.just(Never()), st.just(Always()), st.lists(rules, min_size=1, max_size=4).map(lambda drawn: Rules(tuple(drawn)))
)
leaves = st.tuples(st.sampled_from([*LEAVES]), st.sampled_from(["", " x", " 'a; b'", ' "$y" z', " 2>&1", " \\;"])).map(
    "".join
)
lines = compound(leaves)
soup = st.lists(st.sampled_from([*SIGNS, "ok", "no", " ", " "]), max_size=25).map("".join)


# --- the text of a policy


@given(policies)
def test_a_policy_is_read_as_it_was_written(drawn: Policy) -> None:
    text = approval.render(drawn)
    assert approval.parse(text) == drawn
    assert [text] == text.strip().splitlines()


@given(any_text | st.lists(st.sampled_from(["allow", "ask", " ", ";", '"', "x", "*", "\\", "|"])).map("".join))
def test_any_text_is_a_policy_or_a_problem_in_one_line(text: str) -> None:
    found = approval.parse(text)
    if isinstance(found, Problem):
        assert found.text.startswith("approve: ")
        assert found.text.isprintable()
    else:
        assert approval.parse(approval.render(found)) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Never()),
        (" never ", Never()),
        ("ask", Always()),
        (
            "allow git status;ask  git *; deny rm *;",
            Rules(
                (
                    Rule(Decision.ALLOW, ("git", "status")),
                    Rule(Decision.ASK, ("git", "*")),
                    Rule(Decision.DENY, ("rm", "*")),
                )
            ),
        ),
        ('allow "a; b \\"c\\""; ask x', Rules((Exactly('a; b "c"'), Rule(Decision.ASK, ("x",))))),
        ("allow ls; permit cat", "rule 2, 'permit cat': a rule begins with allow, ask or deny"),
        ("always", "rule 1, 'always': a rule begins with allow, ask or deny"),
        ("deny", "rule 1, 'deny': the words of a command are missing, such as deny git *"),
        ("allow a && b", "rule 1, 'allow a && b': '&' cannot be in a rule"),
        ("allow a; deny 'rm'", 'rule 2, "deny \'rm\'": "\'" cannot be in a rule'),
        ('deny "rm x"', "rule 1, 'deny \"rm x\"': '\"' cannot be in a rule"),
        ('allow "\\x"', "rule 1, allow '\"\\\\x\"': this is no JSON string"),
        (";", "there is no rule; write never, ask or rules"),
    ],
)
def test_the_text_of_a_policy_means(text: str, expected: Policy | str) -> None:
    found = approval.parse(text)
    if isinstance(expected, str):
        assert isinstance(found, Problem)
        assert found.text.startswith(f"approve: {expected}")
    else:
        assert found == expected


# --- one command


@given(st.lists(st.text("ab*", min_size=1, max_size=3), min_size=1, max_size=4), st.lists(st.text("ab"), max_size=5))
def test_a_pattern_matches_as_the_same_regular_expression(pattern: list[str], command: list[str]) -> None:
    each = ["(?:[^ ]* )*" if word == "*" else word.replace("*", "[^ ]*") + " " for word in pattern]
    text = "".join(f"{word} " for word in ["a", *command])
    found = decide(f"deny {' '.join(pattern)}; allow *", shlex.join(["a", *command]))
    assert (found is Decision.DENY) == bool(re.fullmatch("".join(each), text))


EXAMPLE = "allow git status; ask git *; deny rm *; allow cat *; allow echo *; allow CI=1 make *; allow ./x; " + WRAPPERS


@pytest.mark.parametrize(
    ("expected", "commands"),
    [
        ("allow", ["git status", " git  'status' # now", "cat"]),
        ("allow", ["cat x >/dev/null 2>&1", "cat < x | cat", "echo $x *"]),
        ("allow", ["", "# rm x", "x=1", "CI=1 make all"]),
        ("allow", ["./x", "cat \\\n x", "echo '$(rm x)'", 'echo "it\'s $((1+2))"']),
        ("allow", ["cat <<'E'\n$(rm x)\nE", "cat <<-E\n\trm x\n\tE"]),
        ("allow", ["for f in *; do cat $f; done", "x=$(cat y); echo ${x:-z}"]),
        ("allow", ["sh -c 'cat x'", "timeout -k 1 5 cat x", "find . -exec cat {} +"]),
        (
            "allow",
            ["eval cat x", "env cat", "(cat);cat", "env", "env -- cat", "env A=1", "case x in\n\n a) cat;; esac"],
        ),
        ("allow", ["case $x in (a|b) cat;; *) echo a;; esac", "if cat; then echo; fi"]),
        ("allow", ["cat && { echo; }", "echo `cat`"]),
        ("ask", ["git", "git push", "gitk", "/tmp/git status"]),
        ("ask", ["git status -s", "other", "CI=2 make", "FOO=1 cat x"]),
        ("ask", ["cat x > y", "cat x >> $y", "cat &> y", "cat >| y"]),
        ("ask", ["cat <> y", "> y", "{ cat; } > y", "PATH=/tmp; cat"]),
        ("ask", ["$x y", "~/x", "c*t x", "{cat,x}", "c$x", "$(cat x)"]),
        ("ask", ["`cat`", "c\\\nat", "\\\ncat", "x+=1 cat", "''"]),
        ("ask", ["cat() { cat; }; cat", "alias cat=x", "function cat { cat; }", ". x"]),
        ("ask", ["trap cat EXIT", "[[ a ]]", "((1))"]),
        ("ask", ["cat $((x))", "cat ${x@P}", "cat $'a'b'", "cat $[1]", "echo 'x"]),
        ("ask", ['echo "x', "cat )", "(cat", "cat;;"]),
        ("ask", ["cat <<E\nx", "cat <<E\nx\\\nE\nE", "12>/dev/null cat"]),
        ("ask", ["for PATH in x; do cat; done", "echo &>/dev/null a"]),
        ("ask", ["echo x | sh", "sh -s", "sh -c $x", "sh <<E\ncat\nE"]),
        ("ask", ["sudo -X cat", "timeout $x cat", "xargs cat y; x"]),
        ("ask", ["eval $x", "find $x", "ssh host", "su -c cat"]),
        ("ask", ["watch cat", "env -S cat", "command cat", "time { cat; }"]),
        ("ask", ["find . -exec sh -c 'cat {}' \\;", "xargs -I{} sh -c 'cat {}'"]),
        ("ask", ["xargs git status", "sh -c 'cat > y'"]),
        ("deny", ["rm", "rm x", "'rm' x", 'r"m" x', "\\rm x"]),
        ("deny", ["/bin/rm x", "RM x", "FOO=1 rm x", "rm $x", "> y rm x"]),
        ("deny", ["sudo rm x", "sudo -u me rm x", "sudo -Z rm x", "env A=1 rm x"]),
        ("deny", ["nohup rm x", "time rm x", "exec rm x"]),
        ("deny", ["command rm x", "xargs rm", "nice -n 5 rm x", "timeout 5 rm x"]),
        ("deny", ["busybox rm x", "$SUDO rm x", "su -c 'rm x'"]),
        ("deny", ["sh -c 'cat; rm x'", "bash -lc 'rm x'", 'sh -c "rm $x"']),
        ("deny", ["eval rm x", "sudo -Z sh -c 'rm x'", "ssh h rm x"]),
        ("deny", ["find . -exec rm {} \\;", "find . -ok cat {} \\; -exec rm {} +"]),
        ("deny", ["find $x -exec rm {} +", "sh ./rm x"]),
        ("deny", ["cat | rm", "cat & rm", "cat\nrm", "(rm)"]),
        ("deny", ["cat $(rm)", 'cat "`rm`"', "cat <(rm)", "cat <<E\n$(rm x)\nE"]),
        ("deny", ["f() { rm x; }", "case x in a) rm;; esac", "if x; then rm; fi"]),
        ("deny", ["time { rm x; }", "echo 'x; rm x", "${!x} rm"]),
        ("deny", ["! rm", "x=$(rm)", "cat > $(rm)"]),
        ("deny", ["for x in $(rm); do cat; done", "env env env rm", "sh -c 'sh -c \"rm\"'"]),
    ],
)
def test_a_command_is_judged(expected: str, commands: list[str]) -> None:
    assert {command: decide(EXAMPLE, command).value for command in commands} == dict.fromkeys(commands, expected)


def test_everything_that_can_be_read_may_be_allowed_and_everything_at_all_denied() -> None:
    for command in ("cat x > y", "A=1 x", "> y", "PATH=x", "sudo -u me x", "sh x", "[ -f x ] && y", "cat ~/x"):
        assert decide("deny rm *; allow *", command) is Decision.ALLOW
        assert decide("allow other *; deny *", command) is Decision.DENY


@pytest.mark.parametrize(
    "command",
    [
        *("$x y", "~/x", "c*t", "{a,b}", "x+=1 y", "''"),
        *("a\x1b", "f() { x; }", "x=(a)", "echo @(a|b)", "[[ a ]]", "((1))"),
        *("alias a=b", ". x", "trap x EXIT", "hash -p x y"),
        *("printf -v x y", "[ -v x ]", "su -c x", "watch x", "coproc x"),
        *("sh", "sh -s", "sh -c -e x", "sh /dev/stdin", "sh -o x"),
        *("ssh h", "sudo -Z x", "timeout 5 -x y", "timeout", "nice -n"),
        *("cat $((x))", "cat $[1]", "cat ${x@P}", "cat $'\\'' y '"),
        *('cat "$\\\nx"', "cat\\", "ca\\\nt", "12>/dev/null x"),
        *("echo &>/dev/null x", "cat <<E 'a\nb'\nE", "cat <<E\na\\\nE\nE"),
        *("cat <<$x\n", "cat <<E", "cat > (x)", "a; )"),
        *("echo '", 'echo "', "echo `x", "echo `\\x`", "echo $(", "a ;; b", "esac", "case a b", "case x in a", "for"),
        *("for x y; do b; done", "select x in a; do b; done", "find $x"),
        *("find . -exec x", "find . -exec x + y", "xargs $x"),
    ],
)
def test_what_cannot_be_read_asks_even_if_all_the_rest_is_allowed(command: str) -> None:
    assert decide("deny rm *; allow *", command) is Decision.ASK
    assert decide("deny rm *; allow *", f"{command}\nrm x") is not Decision.ALLOW
    assert decide("allow other *; deny *", command) is Decision.DENY


def test_where_a_command_begins_is_not_guessed_in_favour_of_allow() -> None:
    assert decide("allow find *; allow x", "find . -exec x + y \\;") is Decision.ASK
    assert decide("allow *; deny rm *", "$SUDO rm x") is Decision.DENY
    assert decide("allow command *", "command -v rm") is Decision.ALLOW
    assert decide("allow command *", "command rm") is Decision.ASK
    assert decide("deny Rm *; allow *", "rM x") is Decision.DENY
    assert decide("deny rm *; allow *", 'echo \'x; r"m" y') is Decision.DENY
    assert decide("allow cat *", "path=x; cat") is Decision.ASK
    assert decide("deny A=* *; allow *", "A=1 x") is Decision.DENY
    assert decide("allow x; deny *", ")") is Decision.DENY


def test_the_first_rule_that_matches_wins() -> None:
    assert decide("deny a *; allow a b", "a b") is Decision.DENY
    assert decide("allow a b; deny a *", "a b") is Decision.ALLOW
    assert decide('deny a *; allow "a b"', "a b") is Decision.DENY
    assert decide('allow "a $(b)"; deny *', "a $(b)") is Decision.ALLOW


def test_what_only_the_running_shell_knows_may_be_what_a_rule_is_about() -> None:
    assert decide("deny git push -f *; allow git *", "git push $x") is Decision.ASK
    assert decide("deny git push -f *; allow git *", "git pull $x") is Decision.ALLOW
    assert decide("ask git push; deny git *; allow *", "git $x") is Decision.DENY


def test_without_rules_the_command_is_not_looked_at() -> None:
    assert {judge(Never(), command).decision for command in ("rm", "'", "$x")} == {Decision.ALLOW}
    assert {judge(Always(), command).decision for command in ("ls", "'", "")} == {Decision.ASK}


# --- compound commands


@given(lines)
def test_the_strictest_part_decides(line: str) -> None:
    expected = max((LEAVES[name] for name in re.findall(r"\b(?:ok|hm|no|other)\b", line)), key=rank)
    assert decide(RULES, line) is expected


@given(spoilt(lines), lines, st.sampled_from(["; ", "\n", " && ", " | ", " & "]))
def test_a_command_more_is_never_less_strict(line: str, other: str, sign: str) -> None:
    least = max(rank(decide(RULES, line)), rank(decide(RULES, other)))
    assert rank(decide(RULES, other + "\n" + line)) >= least
    assert rank(decide(RULES, f"{{ {other}\n}}{sign}{{ {line}\n}}")) >= least


@given(spoilt(lines), st.sampled_from(["sh -c @", "bash -lc @", "eval @", "ssh h @", "sudo -Z sh -c @", "su -c @"]))
def test_a_shell_around_it_is_never_less_strict(line: str, around: str) -> None:
    wrapped = around.replace("@", shlex.quote(line))
    assert rank(decide(RULES, wrapped)) >= rank(decide(RULES, line))


@given(
    leaves, st.sampled_from(["sudo ", "env ", "env A=1 ", "nohup ", "xargs ", "timeout 5 ", "A=1 ", "time ", "exec "])
)
def test_a_wrapper_is_never_less_strict(line: str, wrapper: str) -> None:
    assert rank(decide(RULES, wrapper + line)) >= rank(decide(RULES, line))


@given(st.data(), st.sampled_from(["no", "./no", "/usr/bin/no"]))
def test_quoting_letters_of_a_denied_command_does_not_help(data: st.DataObject, word: str) -> None:
    quotes = st.sampled_from(["@", "'@'", '"@"', "\\@", "''@", '@""'])
    written = "".join(data.draw(quotes).replace("@", letter) for letter in word)
    assert decide(RULES + "; allow *", f"{written} x") is Decision.DENY


# --- whatever comes


@given(any_text | wild_text | soup | spoilt(lines), policies)
def test_any_text_gets_a_verdict(command: str, drawn: Policy) -> None:
    verdict = judge(drawn, command)
    assert verdict in approval.verdicts(drawn, command)
    assert approval.explain(drawn, command).startswith(verdict.decision.value)


@pytest.mark.parametrize(
    "piece", ["$(", '"$(', "`", "(", "sh -c ", "sudo ", "{", "'\"", "<<E\n", "${!x} ", "a <<E $(", "x=( "]
)
def test_long_and_deep_commands_get_a_verdict(piece: str) -> None:
    assert decide("allow *", piece * 20_000) is Decision.ASK
    assert decide(RULES, piece * 2_000 + "\nno x") is not Decision.ALLOW


@pytest.mark.parametrize("around", ["$( @ )", "sudo @", "eval @", "echo $( @ )", "x <( @ )"])
def test_beyond_the_limit_of_nesting_it_asks(around: str) -> None:
    def nested(levels: int) -> str:
        command = "ok"
        for _ in range(levels):
            command = around.replace("@", command)
        return command

    inside = Part("ok", (Word("ok"),))
    found = [part for part in shellwords.find(nested(shellwords.NESTING_MAX)) if isinstance(part, Part)]
    assert any(part.words == inside.words and not part.anywhere for part in found)
    assert decide("allow *", nested(shellwords.NESTING_MAX + 1)) is Decision.ASK
    assert decide("allow *", nested(shellwords.NESTING_MAX * 50)) is Decision.ASK


# --- words for people, and their answers


def test_a_verdict_names_the_part_and_the_rule() -> None:
    found = approval.explain(read("allow cat *; ask git *; deny rm *"), "cat x | git push; $y; rm \x1b[1m; z > f")
    assert found.split("\n") == [
        "deny",
        "  deny   rm ␛[1m  (deny rm *)",
        "  ask    git push  (ask git *)",
        "  ask    $y  (its command is only known when it runs)",
        "  ask    z > f  (it writes a file)",
        "  allow  cat x  (allow cat *)",
    ]


@given(policies | st.just(read(RULES)), spoilt(lines) | any_text, spoilt(lines))
@example(read(RULES), "no x", "no y")
@example(read(RULES), "hm x", " hm x")
def test_what_is_remembered_is_allowed_and_nothing_else_changes(drawn: Policy, command: str, other: str) -> None:
    after = approval.remember(drawn, command)
    assert judge(after, command).decision is Decision.ALLOW
    if other != command and shellwords.find(other):
        assert judge(after, other).decision is judge(drawn, other).decision
    assert approval.remember(after, command) == after
