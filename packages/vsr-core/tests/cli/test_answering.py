import time

import pytest
from vsr_core.cli import answering
from vsr_core.contract import InputReport
from vsr_core.errors import DeadlineExceededError, InvalidInputError
from vsr_core.testing import ToyHandle

TEXTS = [f"text {number}" for number in range(11)]
LINES = "\n".join(TEXTS).encode()


@pytest.mark.parametrize(
    ("command", "results"), [("embed", "vectors"), ("classify", "results"), ("nli", "results"), ("tag", "results")]
)
def test_many_texts_are_asked_for_in_parts_and_stay_in_order(vsr, kinds, monkeypatch, command, results):
    lines = LINES.replace(b" ", b"\t") if command == "nli" else LINES
    monkeypatch.setattr(answering, "_PART", 4)
    parts = vsr(command, "--json", stdin=lines).body
    monkeypatch.setattr(answering, "_PART", 100)
    whole = vsr(command, "--json", stdin=lines).body
    assert parts[results] == whole[results]
    assert parts["envelope"]["inputs"] == whole["envelope"]["inputs"]
    assert parts["envelope"]["usage"]["input_tokens"] == whole["envelope"]["usage"]["input_tokens"] > 0
    assert (parts["count"], len(parts["envelope"]["inputs"])) == (11, 11)


def test_the_time_covers_all_parts():
    assert answering._remaining(None, time.monotonic(), done=256) is None
    assert 0 < answering._remaining(9.0, time.monotonic() - 5, done=256) <= 4
    with pytest.raises(DeadlineExceededError, match="when 256 inputs were answered"):
        answering._remaining(5.0, time.monotonic() - 10, done=256)


def test_a_deadline_that_passes_within_a_later_part_is_the_one_the_user_set(vsr, mini, monkeypatch):
    embed = ToyHandle._embed

    def slow(handle, request, call):
        if "text 9" in request.texts:
            assert 0 < call.timeout < 60
            raise DeadlineExceededError(f"the deadline of {call.timeout:g} s passed", timeout=call.timeout)
        return embed(handle, request, call)

    monkeypatch.setattr(ToyHandle, "_embed", slow)
    monkeypatch.setattr(answering, "_PART", 4)
    assert vsr("embed", "--timeout", "60", stdin=LINES).err == "vsr: 60 s passed when 8 inputs were answered\n"
    assert vsr("embed", "--timeout", "60", "--json", stdin=LINES).error["timeout"] == 60


def test_a_deadline_that_passes_within_the_first_part_is_told_as_it_is(vsr, mini, monkeypatch):
    def slow(handle, request, call):
        raise DeadlineExceededError(f"the deadline of {call.timeout:g} s passed", timeout=call.timeout)

    monkeypatch.setattr(ToyHandle, "_embed", slow)
    assert vsr("embed", "--timeout", "60", stdin=LINES).err == "vsr: the deadline of 60 s passed\n"


def test_an_error_about_a_later_part_says_from_where_it_counts(vsr, mini, monkeypatch):
    embed = ToyHandle._embed

    def refuse(handle, request, call):
        if "text 9" in request.texts:
            raise InvalidInputError("texts[1] is odd", param="texts[1]")
        return embed(handle, request, call)

    monkeypatch.setattr(ToyHandle, "_embed", refuse)
    assert vsr("embed", stdin=LINES).err == "vsr: texts[1] is odd\n"
    monkeypatch.setattr(answering, "_PART", 4)
    ran = vsr("embed", stdin=LINES)
    assert ran.code == 1
    assert ran.err == "vsr: texts[1] is odd\n  the message counts from input 8, with which this part begins\n"
    assert vsr("embed", "--json", stdin=LINES).error["notes"] == [ran.err.splitlines()[1].strip()]


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (InputReport(tokens=4, total_tokens=9, truncated=True), "yes, of 9"),
        (InputReport(tokens=4, truncated=True), "yes"),
        (
            InputReport(tokens=9, total_tokens=20, truncated=True, cut=("first", "second")),
            "yes, of 20 (first and second)",
        ),
        (InputReport(truncated=False), "no"),
        (InputReport(truncated=False, windows=3), "no, 3 windows"),
        (InputReport(), "-"),
    ],
)
def test_what_became_of_an_input_is_told_in_a_few_words(report, text):
    assert answering.truncation_text(report) == text
