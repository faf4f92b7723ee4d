from __future__ import annotations

import threading

import pytest
from vsr_core.local import ComputeThreads
from vsr_core.local.threads import WorkerThreads


def test_one_borrower_may_have_everything():
    with ComputeThreads(4).borrow(8) as granted:
        assert granted == 4


def test_a_later_borrower_gets_what_is_left_and_at_least_one():
    threads = ComputeThreads(4)
    with threads.borrow(3) as first, threads.borrow(3) as second, threads.borrow(3) as third:
        assert (first, second, third) == (3, 1, 1)
        assert threads.lent == 5
    assert threads.lent == 0


def test_threads_come_back_from_a_block_that_raised():
    threads = ComputeThreads(2)
    with pytest.raises(ZeroDivisionError), threads.borrow(2):
        raise ZeroDivisionError
    assert threads.lent == 0


def test_the_default_is_what_this_process_may_use():
    assert ComputeThreads().total >= 1


def test_a_budget_of_none_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ComputeThreads(0)


def test_a_job_has_a_thread_of_its_own_and_the_next_one_takes_it_over():
    workers = WorkerThreads()
    seen = []
    gate = threading.Event()

    def note():
        seen.append((threading.get_ident(), threading.current_thread().name))

    first = workers.run(note, name="first")
    first.join()
    workers.run(note, name="second").join()
    waiting = workers.run(gate.wait, name="waiting")
    workers.run(note, name="beside").join()
    assert seen[0][0] == seen[1][0] != seen[2][0]
    assert [name for _, name in seen] == ["first", "second", "beside"]
    assert (first.alive, waiting.alive) == (False, True)
    gate.set()
    waiting.join()
    workers.close()


def test_closing_ends_the_threads_without_a_job_and_the_others_after_theirs():
    workers, gate = WorkerThreads(), threading.Event()
    idle = workers.run(lambda: None, name="idle")
    idle.join()
    busy = workers.run(gate.wait, name="busy")
    other = workers.run(lambda: None, name="other")
    other.join()
    workers.close()
    gate.set()
    for worker in (idle, busy, other):
        worker.thread.join(5)
        assert not worker.thread.is_alive()


def test_a_job_may_wait_for_itself_without_standing_still():
    workers, ready, found = WorkerThreads(), threading.Event(), []
    holder = []

    def job():
        ready.wait()
        holder[0].join()
        found.append(True)

    holder.append(workers.run(job, name="self"))
    ready.set()
    holder[0].join()
    assert found == [True]
    workers.close()


def test_wide_jobs_share_one_thread_and_a_second_one_meanwhile_is_narrow():
    threads, gate, seen = ComputeThreads(3), threading.Event(), []

    def wide(granted):
        seen.append((granted, threading.get_ident()))
        gate.wait(10)

    first = threading.Thread(target=lambda: threads.run(wide, wanted=3))
    first.start()
    while not seen:
        pass
    assert threads.run(lambda granted: (granted, threading.get_ident()), wanted=3) == (1, threading.get_ident())
    gate.set()
    first.join()
    again = threads.run(lambda granted: (granted, threading.get_ident()), wanted=3)
    assert again == seen[0]
    assert again[1] != first.ident
    assert threads.run(lambda granted: threading.get_ident(), wanted=1) == threading.get_ident()
    threads.workers.close()


def test_what_a_wide_job_raises_is_the_callers_and_the_next_one_runs():
    threads = ComputeThreads(2)
    with pytest.raises(ZeroDivisionError):
        threads.run(lambda granted: 1 // 0, wanted=2)
    assert threads.run(lambda granted: granted, wanted=2) == 2
    assert threads.lent == 0
    threads.workers.close()


def test_with_many_threads_jobs_that_share_them_run_wide_side_by_side():
    threads, together, seen = ComputeThreads(8), threading.Barrier(2), []

    def job(granted):
        together.wait(10)
        seen.append((granted, threading.get_ident()))

    callers = [threading.Thread(target=lambda: threads.run(job, wanted=4)) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert [granted for granted, _ in seen] == [4, 4]
    assert len({thread for _, thread in seen} | {caller.ident for caller in callers}) == 4
    threads.workers.close()
