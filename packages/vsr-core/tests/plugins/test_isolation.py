from __future__ import annotations

import contextvars
import signal
import sys
import threading

import pytest
from vsr_core.plugins.isolation import Failed, IsolatedCall, Returned, explain, isolate, mask


def test_a_call_that_returns_gives_its_value_and_its_time():
    outcome = isolate(lambda: 7, timeout=5, name="seven")
    assert isinstance(outcome, Returned)
    assert outcome.value == 7
    assert outcome.seconds >= 0


@pytest.mark.parametrize("cause", [ValueError("bad"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_a_call_raises_becomes_an_answer(cause):
    def fail():
        raise cause

    outcome = isolate(fail, timeout=5, name="fail")
    assert isinstance(outcome, Failed)
    assert outcome.cause is cause
    assert outcome.error == type(cause).__name__


def test_a_call_that_hangs_is_given_up():
    outcome = isolate(lambda: threading.Event().wait(3), timeout=0.05, name="hang")
    assert outcome == Failed("TimeoutError", "it did not finish within 0.05 s")


def test_a_late_answer_is_there_for_whoever_asks_again():
    gate = threading.Event()
    call = IsolatedCall(lambda: gate.wait(5) and "late", "late")
    assert isinstance(call.wait(0.05), Failed)
    gate.set()
    for _ in range(100):
        outcome = call.wait(0.05)
        if isinstance(outcome, Returned):
            break
        threading.Event().wait(0.02)
    assert isinstance(outcome, Returned)
    assert outcome.value == "late"


def test_a_waiting_main_thread_can_be_interrupted():
    def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    timer = threading.Timer(0.1, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        isolate(lambda: threading.Event().wait(10), timeout=10, name="hang")
    timer.join()


def test_the_call_sees_the_context_variables_of_the_caller():
    variable = contextvars.ContextVar("variable", default="default")
    token = variable.set("caller")
    assert isolate(variable.get, timeout=5, name="context").value == "caller"
    variable.reset(token)


def test_a_reason_is_one_line_of_bounded_length():
    error, reason = explain(ValueError("first\n  second" + "x" * 5000))
    assert error == "ValueError"
    assert reason.startswith("first second")
    assert len(reason) == 500


def test_an_exit_says_so():
    assert explain(SystemExit("no licence")) == ("SystemExit", "it called sys.exit(no licence)")


def test_an_exception_whose_message_raises_is_still_explained():
    class EvilError(Exception):
        def __str__(self):
            return sys.exit(1)

    assert explain(EvilError()) == ("EvilError", "its message cannot be read")


def test_secrets_are_masked_also_where_repr_escaped_them():
    secret = "a\\b"
    assert mask(f"key {secret!r} or {secret}", [secret]) == "key '**********' or **********"


def test_a_masked_failure_keeps_its_exception_only_where_that_shows_no_secret():
    telling, silent = ValueError("sk-1 is wrong"), ValueError("it is wrong")
    assert Failed("ValueError", "sk-1 is wrong", telling).masked(["sk-1"]) == Failed(
        "ValueError", "********** is wrong", None
    )
    assert Failed("ValueError", "it is wrong", silent).masked(["sk-1"]).cause is silent
