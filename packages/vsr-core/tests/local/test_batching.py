from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vsr_core.contract import BatchingHints
from vsr_core.errors import (
    DeadlineExceededError,
    InputTooLongError,
    InvalidInputError,
    OverloadedError,
)
from vsr_core.local import ComputeThreads, RowWant, WantHidden, WorkingMemory, WorkItem


class TestResults:
    def test_a_request_gets_one_result_per_item_in_order(self, toy, batcher, item, alone):
        engine = toy()
        items = [item(5, 6, 7), item(8), item(9, 10)]
        results = batcher(engine).submit(items).result(10)
        assert [row.shape for [row] in results] == [(3, 8), (1, 8), (2, 8)]
        for each, [row] in zip(items, results, strict=True):
            np.testing.assert_array_equal(row, alone(engine, each)[0])

    def test_a_request_without_items_is_done_at_once(self, toy, batcher):
        assert batcher(toy()).submit([]).result(0) == []

    def test_an_item_may_want_several_rows_of_one_sequence(self, toy, batcher, item):
        engine = toy()
        rows = (RowWant(WantHidden(), 1), RowWant(WantHidden()), RowWant(WantHidden(), 2))
        twin = WorkItem(np.array([5, 6], np.int32), np.zeros(2, np.int32), 0, rows)
        [[first, last, middle]] = batcher(engine).submit([twin]).result(10)
        assert len(engine.batches[0].lengths) == 1
        assert not np.allclose(first, middle)
        assert not np.allclose(middle, last)

    def test_equal_sequences_of_a_batch_run_once(self, toy, batcher, item, hold):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        ticket = each.submit([item(6, 7), item(7, 6), item(6, 7)])
        engine.gate.set()
        [[first], [second], [third]] = ticket.result(10)
        held.result(10)
        assert engine.batches[-1].offsets.tolist() == [0, 2, 4]
        assert [row.sequence for row in engine.batches[-1].rows].count(0) == 2
        np.testing.assert_array_equal(first, third)
        assert not np.array_equal(first, second)

    def test_equal_tokens_with_another_prompt_are_another_sequence(self, toy, batcher, item, hold):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        ticket = each.submit([item(6, 7), item(6, 7, prompt_tokens=1)])
        engine.gate.set()
        ticket.result(10)
        held.result(10)
        assert sorted(engine.batches[-1].prompt_tokens.tolist()) == [0, 1]

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=60), cap=st.sampled_from([1, 16, 64, 4096]))
    def test_a_result_does_not_depend_on_its_neighbours_or_on_the_batch_size(
        self, toy, batcher, item, lengths, cap, alone
    ):
        engine, rng = toy(concurrency=2), random.Random(3)
        items = [item(*rng.choices(range(5, 15), k=length)) for length in lengths]
        results = batcher(engine, BatchingHints(max_batch_tokens=cap)).submit(items).result(10)
        for each, [row] in zip(items, results, strict=True):
            np.testing.assert_allclose(row, alone(engine, each)[0], atol=1e-5)


class TestBatches:
    def test_an_idle_engine_does_not_wait_for_more(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        for _ in range(3):
            each.submit([item(5)]).result(10)
        assert [len(batch.lengths) for batch in engine.batches] == [1, 1, 1]

    def test_callers_share_batches(self, toy, batcher, item, hold):
        engine = toy()
        each = batcher(engine)
        tickets = [hold(engine, each, item)] + [each.submit([item(5, 6 + number)]) for number in range(6)]
        engine.gate.set()
        for ticket in tickets:
            ticket.result(10)
        assert [len(batch.rows) for batch in engine.batches] == [1, 6]

    def test_batches_stay_within_the_padded_tokens(self, toy, batcher, item):
        engine = toy()
        lengths = [1, 30, 8, 7, 9, 31, 8, 2, 1, 64, 8]
        items = [item(*([5] * (length - 1)), 5 + place) for place, length in enumerate(lengths)]
        batcher(engine, BatchingHints(max_batch_tokens=32)).submit(items).result(10)
        for batch in engine.batches:
            count, longest = len(batch.lengths), int(batch.lengths.max())
            assert count == 1 or count * longest <= 32

    def test_batches_stay_within_the_memory_limit(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine, memory=WorkingMemory(8 * 4 * 8))  # eight tokens
        each.submit([item(5, 6, 7, number) for number in range(5, 15)]).result(10)
        assert max(len(batch.lengths) for batch in engine.batches) == 2

    def test_a_text_that_cannot_fit_into_memory_is_refused(self, toy, batcher, item, idle):
        each = batcher(toy(), memory=WorkingMemory(8 * 4 * 8))
        with pytest.raises(InputTooLongError, match=r"a sequence of 9 tokens .* 8 tokens would fit") as caught:
            each.submit([item(5), item(*range(9))])
        assert (caught.value.limit, caught.value.actual, caught.value.unit) == (8, 9, "tokens")
        assert idle(each)

    def test_a_later_short_text_does_not_starve_an_older_long_one(self, toy, batcher, item, hold):
        engine = toy()
        each = batcher(engine, BatchingHints(max_batch_tokens=16))
        hold(engine, each, item)
        long = each.submit([item(*([6] * 16))])
        short = [each.submit([item(7, number)]) for number in range(5, 15)]
        engine.gate.set()
        for ticket in [long, *short]:
            ticket.result(10)
        assert engine.batches[1].lengths.tolist() == [16]

    def test_the_engine_runs_as_many_batches_at_once_as_it_says_and_no_more(self, toy, batcher, item, wait_until):
        engine = toy(concurrency=3)
        engine.gate.clear()
        each = batcher(engine)
        tickets = [each.submit([item(*([5] * length))]) for length in (1, 10, 100, 1000, 5000)]
        wait_until(lambda: engine.running == 3)
        assert each.stats().running_batches == 3
        engine.gate.set()
        for ticket in tickets:
            ticket.result(10)
        assert engine.most_running == 3

    def test_a_batch_alone_gets_all_threads_and_a_shared_engine_gives_equal_shares(
        self, toy, batcher, item, wait_until
    ):
        engine = toy(concurrency=2)
        each = batcher(engine, threads=ComputeThreads(8))
        each.submit([item(5)]).result(10)
        engine.gate.clear()
        tickets = [each.submit([item(*([5] * length))]) for length in (2, 50, 2000)]
        wait_until(lambda: engine.running == 2)
        engine.gate.set()
        for ticket in tickets:
            ticket.result(10)
        granted = [batch.threads for batch in engine.batches]
        assert granted[0] == 8
        assert granted[2] == 4

    def test_a_batch_beside_another_takes_no_more_than_its_share(self, toy, batcher, item, wait_until):
        engine = toy(concurrency=3)
        engine.gate.clear()
        each = batcher(engine, threads=ComputeThreads(9))
        ticket = each.submit([item(5), item(*([6] * 100))])
        wait_until(lambda: engine.running == 2)
        engine.gate.set()
        ticket.result(10)
        assert [batch.threads for batch in engine.batches] == [3, 3]

    def test_without_a_budget_threads_are_left_to_the_engine(self, toy, batcher, item):
        engine = toy()
        batcher(engine).submit([item(5)]).result(10)
        assert engine.batches[0].threads is None

    def test_totals_count_real_and_padded_tokens(self, toy, batcher, item, wait_until, hold, idle):
        engine = toy()
        each = batcher(engine)
        tickets = [hold(engine, each, item), each.submit([item(*([5] * 9), 6), item(*([5] * 10))])]
        engine.gate.set()
        for ticket in tickets:
            ticket.result(10)
        wait_until(lambda: idle(each))
        stats = each.stats()
        assert (stats.batches, stats.items, stats.tokens, stats.padded_tokens) == (2, 3, 21, 21)


class TestAdmission:
    def test_too_many_items_are_refused_with_a_time_to_come_back(self, toy, batcher, item, small_queue, hold):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        each.submit([item(5)] * 4)
        with pytest.raises(OverloadedError) as caught:
            each.submit([item(5)] * 2)
        assert caught.value.retry_after > 0
        assert caught.value.retryable
        assert caught.value.backend_id == "toy:model"

    def test_too_many_tokens_are_refused(self, toy, batcher, item, small_queue, hold):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        each.submit([item(*([5] * 39))])
        each.submit([item(5)])
        with pytest.raises(OverloadedError):
            each.submit([item(5)])

    def test_a_request_is_admitted_whole_or_not_at_all(self, toy, batcher, item, small_queue, hold):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        each.submit([item(5)] * 3)
        with pytest.raises(OverloadedError):
            each.submit([item(5)] * 3)
        assert each.stats().queued_items == 3
        each.submit([item(5)] * 2)

    def test_requests_that_are_queued_together_share_a_batch_and_equal_sequences(self, toy, batcher, item):
        engine = toy()
        first, second = batcher(engine).submit_all([[item(5, 6)], [item(5, 6), item(7)]])
        [[alike], [other]] = second.result(10)
        np.testing.assert_array_equal(first.result(10)[0][0], alike)
        assert other.shape == (1, 8)
        [batch] = engine.batches
        assert (len(batch.lengths), len(batch.rows)) == (2, 3)

    def test_of_requests_that_are_queued_together_all_are_admitted_or_none(self, toy, batcher, item, small_queue, hold):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        each.submit([item(5)] * 2)
        with pytest.raises(OverloadedError):
            each.submit_all([[item(5)] * 2, [item(5)] * 2])
        assert each.stats().queued_items == 2
        each.submit_all([[item(5)] * 2, [item(5)]])
        assert each.stats().queued_items == 5

    def test_a_request_without_items_among_others_is_done_at_once(self, toy, batcher, item):
        none, one = batcher(toy()).submit_all([[], [item(5)]])
        assert (none.result(0), len(one.result(10))) == ([], 1)

    def test_a_request_larger_than_the_queue_is_told_to_be_split(self, toy, batcher, item, small_queue):
        each = batcher(toy(), small_queue)
        with pytest.raises(InputTooLongError, match="split the request") as caught:
            each.submit([item(5)] * 6)
        assert (caught.value.unit, caught.value.limit, caught.value.actual) == ("sequences", 5, 6)
        with pytest.raises(InputTooLongError) as caught:
            each.submit([item(*([5] * 41))])
        assert caught.value.unit == "tokens"

    def test_room_comes_back_as_work_is_done(self, toy, batcher, item, small_queue, idle):
        each = batcher(toy(), small_queue)
        for _ in range(20):
            each.submit([item(5, 6)] * 5).result(10)
        assert idle(each)

    def test_the_time_to_come_back_follows_the_recent_speed(self, toy, batcher, item, small_queue, hold):
        engine = toy(delay=0.05)
        each = batcher(engine, small_queue)
        each.submit([item(5)]).result(10)
        hold(engine, each, item)
        each.submit([item(5)] * 5)
        with pytest.raises(OverloadedError) as caught:
            each.submit([item(5)] * 4)
        assert 0.1 < caught.value.retry_after < 10

    def test_expired_work_makes_room(self, toy, batcher, item, small_queue, hold):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        late = each.submit([item(5)] * 5, deadline=time.monotonic() + 0.01)
        time.sleep(0.02)
        each.submit([item(5)] * 5)
        with pytest.raises(DeadlineExceededError):
            late.result(0)

    def test_a_sequence_without_tokens_is_refused(self, toy, batcher, item):
        with pytest.raises(InvalidInputError, match="without tokens"):
            batcher(toy()).submit([item()])
