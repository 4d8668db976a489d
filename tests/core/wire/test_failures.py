"""What to do about a failed call, for how long to wait, and what to say."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.effects import Reason
from bantam.core.events import Failure, Fault
from bantam.core.wire import failures
from bantam.core.wire.failures import Remedy
from tests.servers import FAILURES, Json
from tests.strategies import any_text, json_values, wild_text

pytestmark = pytest.mark.core
SENT = ("temperature", "stop", "stream_options", "max_tokens", "max_completion_tokens")
any_failures = st.sampled_from(FAILURES) | st.builds(
    Failure,
    st.sampled_from(Fault),
    any_text | json_values.map(json.dumps),
    st.sampled_from([0, 302, 400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 500, 503, 529]),
    st.none() | st.floats(0, 200),
)


def http(status: int, text: str) -> Failure:
    return Failure(Fault.HTTP, text, status)


@given(any_failures, st.sets(st.sampled_from(SENT)))
def test_every_failure_has_a_remedy_and_one_line_of_words(failure: Failure, sent: set[str]) -> None:
    remedy = failures.remedy(failure, sent)
    name = failures.refused_parameter(failure, sent)
    assert name is None or name in sent
    assert remedy is not Remedy.WITHHOLD or name is not None
    said = failures.explain(failure)
    assert "\n" not in said
    assert len(said) < failures.WORDS_MAX + 100


@given(any_failures)
def test_nothing_is_withheld_that_was_not_sent(failure: Failure) -> None:
    assert failures.remedy(failure) is not Remedy.WITHHOLD


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_transient_answers_are_tried_again(status: int) -> None:
    assert failures.remedy(http(status, "busy")) is Remedy.RETRY


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 301])
def test_permanent_answers_stop(status: int) -> None:
    assert failures.remedy(http(status, "no")) is Remedy.STOP


@pytest.mark.parametrize(
    ("failure", "remedy"),
    [
        (Failure(Fault.NETWORK, "reset"), Remedy.RETRY),
        (Failure(Fault.SILENCE, "nothing for 300 s"), Remedy.RETRY),
        (Failure(Fault.CERTIFICATE, "expired"), Remedy.STOP),
        (Failure(Fault.REQUEST, "bad URL"), Remedy.STOP),
        (Failure(Fault.LIMIT, "the answer is larger than 64 MB"), Remedy.STOP),
        (Failure(Fault.ANSWER, "neither text nor calls"), Remedy.RETRY),
        (Failure(Fault.ANSWER, "overloaded", 529), Remedy.RETRY),
        (Failure(Fault.ANSWER, "no such model", 404), Remedy.STOP),
        (Failure(Fault.ANSWER, "maximum context length"), Remedy.COMPACT),
        (Failure(Fault.ANSWER, "<html> maximum context length, insufficient_quota", failures.PAGE), Remedy.RETRY),
        (http(429, '{"error": {"code": "insufficient_quota"}}'), Remedy.STOP),
        (http(400, "Invalid assistant message: content or tool_calls must be set"), Remedy.STRIP),
        (http(422, "messages.3: content blocks must be non-empty"), Remedy.STRIP),
        (http(500, "Invalid assistant message"), Remedy.RETRY),
        (http(400, "context_length_exceeded"), Remedy.COMPACT),
        (http(413, "too large"), Remedy.COMPACT),
        (http(400, "property 'messages.2.reasoning_content' is unsupported"), Remedy.STRIP_REASONING),
        (http(400, "unknown field reasoning_details"), Remedy.STRIP_REASONING),
        (http(400, "Unsupported parameter: 'temperature'"), Remedy.WITHHOLD),
        (http(401, "Unsupported parameter: 'temperature'"), Remedy.STOP),
    ],
)
def test_the_remedy_fits_the_failure(failure: Failure, remedy: Remedy) -> None:
    assert failures.remedy(failure, SENT) is remedy


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"error": {"message": "Unsupported value", "param": "temperature"}}', "temperature"),
        ('{"detail": [{"loc": ["body", "stop"], "msg": "extra_forbidden"}]}', "stop"),
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("'max_tokens' is not supported, use 'max_completion_tokens'", "max_completion_tokens"),
        ("unknown field messages.stop", None),
        ("temperature must be below 2", None),
        ("unsupported: frequency_penalty", None),
        ("unexpected stopping", None),
    ],
)
def test_a_refused_parameter_is_the_one_that_the_server_names(text: str, name: str | None) -> None:
    assert failures.refused_parameter(http(400, text), SENT) == name


@given(st.integers(1, 9), st.none() | st.floats(0, failures.WAIT_MAX_S))
def test_a_wait_is_fibonacci_or_what_the_server_asks(attempt: int, asked: float | None) -> None:
    fibonacci = (1, 1, 2, 3, 5, 8, 13, 21, 34)[attempt - 1]
    assert failures.delay(attempt, Failure(Fault.HTTP, "", 429, asked)) == (max(fibonacci, asked or 0), asked or 0)


def test_all_waits_together_are_a_minute_and_a_half() -> None:
    waits = [failures.delay(attempt, http(503, "")) for attempt in range(1, 11)]
    assert sum(wait[0] for wait in waits if wait) == 88  # fib(11) - 1
    assert waits[-1] is None


def test_a_server_that_asks_for_more_than_two_minutes_is_told_so() -> None:
    failure = Failure(Fault.HTTP, "later", 429, 120.5)
    assert failures.delay(1, failure) is None
    assert failures.explain(failure) == "the API answered 429: later (the server asks to wait 120.5 s)"


@pytest.mark.parametrize("text", ["<html></html>", "hello", '{"a": 1}'])
def test_what_some_other_program_says_is_tried_twice_again_and_then_stays(text: str) -> None:
    page = failures.no_answer(text)
    assert failures.remedy(page) is Remedy.RETRY
    assert [failures.delay(attempt, page) for attempt in (1, 2, 3)] == [(1, 0), (1, 0), None]
    assert failures.retries_max(page) == 2
    assert failures.used_up(page) is Reason.FAILED
    assert "is the endpoint right?" in failures.explain(page)


def test_words_alone_are_quoted_and_may_pass() -> None:
    for told in (False, True):
        alone = failures.words_alone("\nInternal Server\nError", told)
        assert failures.explain(alone).endswith("the words: Internal Server Error")
        assert failures.delay(9, alone) == (34, 0)
        assert failures.remedy(failures.words_alone("insufficient_quota", told)) is Remedy.STOP


@pytest.mark.parametrize("text", ["", " \n", ": ping\n\n", "data: \n\n"])
def test_nothing_is_a_server_that_went_away_and_may_come_back(text: str) -> None:
    nothing = failures.no_answer(text)
    assert failures.delay(9, nothing) == (34, 0)
    assert failures.used_up(nothing) is failures.used_up(http(503, "")) is Reason.TRANSIENT
    assert failures.retries_max(nothing) == 9


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (http(400, ""), "the API answered 400: without a word"),
        (http(400, '{"error": {"message": "a  b"}}'), "the API answered 400: a b"),
        (http(400, '{"error": "no"}'), "the API answered 400: no"),
        (http(422, '{"detail": [{"msg": "bad"}]}'), "the API answered 422: bad"),
        (http(400, '{"x": 1}'), 'the API answered 400: {"x": 1}'),
        (
            http(400, '{"message": " ", "error": {"type": "t"}}'),
            'the API answered 400: {"message": " ", "error": {"type": "t"}}',
        ),
        (Failure(Fault.ANSWER, '{"error": {"message": "no"}}', 503), "the API answered 503 inside a 200: no"),
        (Failure(Fault.NETWORK, "refused"), "refused"),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_server(failure: Failure, line: str) -> None:
    assert failures.explain(failure) == line


@given(wild_text, json_values)
def test_an_error_inside_a_200_keeps_only_a_status_that_is_one(text: str, code: Json) -> None:
    failure = failures.in_body(text, {"error": {"code": code}})
    assert failure.status == 0 or (400 <= failure.status < 600 and str(code) == str(failure.status))
    assert failures.in_body(text, {"code": "503"}).status == 503


@given(any_text)
def test_short_words_are_one_line(text: str) -> None:
    assert len(failures.short(text)) <= failures.WORDS_MAX + 1
    assert failures.short(text * 100).split() == failures.short(text * 100).split(" ") or not text.strip()
