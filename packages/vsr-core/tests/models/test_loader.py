"""One thread loads and closes, in order, and survives whatever a job raises."""

import threading

import pytest
from vsr_core.models.loader import LoadThread


def test_jobs_run_in_order_on_one_thread():
    thread = LoadThread()
    seen = [thread.submit(lambda i=i: (i, threading.current_thread().name)) for i in range(5)]
    assert [future.result(5) for future in seen] == [(i, "vsr-load") for i in range(5)]
    thread.stop(5)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_a_job_that_raises_anything_does_not_end_the_thread(error):
    def fail():
        raise error

    thread = LoadThread()
    failed = thread.submit(fail)
    assert thread.submit(lambda: 7).result(5) == 7
    assert failed.exception() is error
    thread.stop(5)


def test_it_knows_itself_and_stops():
    thread = LoadThread("mine")
    assert not thread.current()
    assert thread.submit(thread.current).result(5)
    thread.stop(5)
    assert not any(each.name == "mine" for each in threading.enumerate())
    thread.stop(5)


def test_it_starts_again_for_what_comes_after_a_stop():
    thread = LoadThread("again")
    thread.submit(int).result(5)
    thread.stop(5)
    assert thread.submit(lambda: 1).result(5) == 1
    thread.stop(5)
