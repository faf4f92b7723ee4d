from __future__ import annotations

import pytest
from vsr_core.local import ComputeThreads


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
