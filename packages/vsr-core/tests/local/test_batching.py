from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import random
import threading
import time
import weakref
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vsr_core.contract import BatchingHints
from vsr_core.errors import (
    DeadlineExceededError,
    InferenceError,
    InputTooLongError,
    InvalidInputError,
    NotReadyError,
    OverloadedError,
)
from vsr_core.local import ComputeThreads, RowWant, Ticket, WantHidden, WorkItem
from vsr_core.local.ragged import assemble
from vsr_core.local.tickets import Entry


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.001)


def hold(engine, batcher, item):
    """Put the only worker into the engine and keep it there."""
    engine.gate.clear()
    ticket = batcher.submit([item(5)])
    wait_until(lambda: batcher.stats().running_batches == 1)
    return ticket


def idle(batcher):
    """Whether nothing waits and nothing runs."""
    stats = batcher.stats()
    return (stats.queued_items, stats.queued_tokens, stats.running_items) == (0, 0, 0)


def alone(engine, item):
    """What the engine answers to an item that has a batch for itself."""
    ticket = Ticket(1, deadline=None, withdraw=lambda _: None)
    return engine.run(assemble([Entry(ticket, 0, item)], threads=None)).rows


class TestResults:
    def test_a_request_gets_one_result_per_item_in_order(self, toy, batcher, item):
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

    def test_equal_sequences_of_a_batch_run_once(self, toy, batcher, item):
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

    def test_equal_tokens_with_another_prompt_are_another_sequence(self, toy, batcher, item):
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
    def test_a_result_does_not_depend_on_its_neighbours_or_on_the_batch_size(self, toy, batcher, item, lengths, cap):
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

    def test_callers_share_batches(self, toy, batcher, item):
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
        each = batcher(engine, memory_limit=8 * 4 * 8)  # eight tokens
        each.submit([item(5, 6, 7, number) for number in range(5, 15)]).result(10)
        assert max(len(batch.lengths) for batch in engine.batches) == 2

    def test_a_text_that_cannot_fit_into_memory_is_refused(self, toy, batcher, item):
        each = batcher(toy(), memory_limit=8 * 4 * 8)
        with pytest.raises(InputTooLongError, match="288 bytes") as caught:
            each.submit([item(*range(9))])
        assert caught.value.unit == "bytes"
        assert idle(each)

    def test_a_later_short_text_does_not_starve_an_older_long_one(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine, BatchingHints(max_batch_tokens=16))
        hold(engine, each, item)
        long = each.submit([item(*([6] * 16))])
        short = [each.submit([item(7, number)]) for number in range(5, 15)]
        engine.gate.set()
        for ticket in [long, *short]:
            ticket.result(10)
        assert engine.batches[1].lengths.tolist() == [16]

    def test_the_engine_runs_as_many_batches_at_once_as_it_says_and_no_more(self, toy, batcher, item):
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

    def test_a_batch_alone_gets_all_threads_and_a_shared_engine_gives_equal_shares(self, toy, batcher, item):
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

    def test_a_batch_beside_another_takes_no_more_than_its_share(self, toy, batcher, item):
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

    def test_totals_count_real_and_padded_tokens(self, toy, batcher, item):
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
    def test_too_many_items_are_refused_with_a_time_to_come_back(self, toy, batcher, item, small_queue):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        each.submit([item(5)] * 4)
        with pytest.raises(OverloadedError) as caught:
            each.submit([item(5)] * 2)
        assert caught.value.retry_after > 0
        assert caught.value.retryable
        assert caught.value.backend_id == "toy:model"

    def test_too_many_tokens_are_refused(self, toy, batcher, item, small_queue):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        each.submit([item(*([5] * 39))])
        each.submit([item(5)])
        with pytest.raises(OverloadedError):
            each.submit([item(5)])

    def test_a_request_is_admitted_whole_or_not_at_all(self, toy, batcher, item, small_queue):
        engine = toy()
        each = batcher(engine, small_queue)
        hold(engine, each, item)
        each.submit([item(5)] * 3)
        with pytest.raises(OverloadedError):
            each.submit([item(5)] * 3)
        assert each.stats().queued_items == 3
        each.submit([item(5)] * 2)

    def test_a_request_larger_than_the_queue_is_told_to_be_split(self, toy, batcher, item, small_queue):
        each = batcher(toy(), small_queue)
        with pytest.raises(InputTooLongError, match="split the request") as caught:
            each.submit([item(5)] * 6)
        assert (caught.value.unit, caught.value.limit, caught.value.actual) == ("texts", 5, 6)
        with pytest.raises(InputTooLongError) as caught:
            each.submit([item(*([5] * 41))])
        assert caught.value.unit == "tokens"

    def test_room_comes_back_as_work_is_done(self, toy, batcher, item, small_queue):
        each = batcher(toy(), small_queue)
        for _ in range(20):
            each.submit([item(5, 6)] * 5).result(10)
        assert idle(each)

    def test_the_time_to_come_back_follows_the_recent_speed(self, toy, batcher, item, small_queue):
        engine = toy(delay=0.05)
        each = batcher(engine, small_queue)
        each.submit([item(5)]).result(10)
        hold(engine, each, item)
        each.submit([item(5)] * 5)
        with pytest.raises(OverloadedError) as caught:
            each.submit([item(5)] * 4)
        assert 0.1 < caught.value.retry_after < 10

    def test_expired_work_makes_room(self, toy, batcher, item, small_queue):
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


class TestDeadlines:
    def test_what_expires_in_the_queue_never_runs(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        late = each.submit([item(6)] * 3, deadline=time.monotonic() + 0.02)
        time.sleep(0.03)
        engine.gate.set()
        with pytest.raises(DeadlineExceededError):
            late.result(10)
        held.result(10)
        assert not any(6 in batch.ids for batch in engine.batches)
        wait_until(lambda: idle(each))

    def test_what_is_already_late_fails_without_running(self, toy, batcher, item):
        engine = toy()
        with pytest.raises(DeadlineExceededError):
            batcher(engine).submit([item(6)], deadline=time.monotonic() - 1).result(10)
        assert engine.batches == []

    def test_a_deadline_ahead_changes_nothing(self, toy, batcher, item):
        assert len(batcher(toy()).submit([item(6)], deadline=time.monotonic() + 60).result(10)) == 1

    def test_deadlines_of_finished_requests_are_forgotten(self, toy, batcher, item):
        each = batcher(toy())
        first = weakref.ref(each.submit([item(6)], deadline=time.monotonic() + 600))
        wait_until(lambda: first() is None or first().done())
        for _ in range(200):
            each.submit([item(6)], deadline=time.monotonic() + 600).result(10)
        wait_until(lambda: gc.collect() >= 0 and first() is None)


class TestCancellation:
    def test_a_cancelled_request_leaves_the_queue_at_once(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        ticket = each.submit([item(6, 7)] * 3)
        assert ticket.cancel()
        assert each.stats().queued_tokens == 0
        engine.gate.set()
        held.result(10)
        with pytest.raises(CancelledError):
            ticket.result(0)
        each.submit([item(8)]).result(10)
        assert not any(6 in batch.ids for batch in engine.batches)

    def test_a_running_request_can_be_cancelled_and_its_result_is_discarded(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        assert held.cancel()
        engine.gate.set()
        assert each.submit([item(8)]).result(10)
        assert held.cancelled()

    def test_a_finished_request_cannot_be_cancelled(self, toy, batcher, item):
        ticket = batcher(toy()).submit([item(6)])
        ticket.result(10)
        assert not ticket.cancel()
        assert ticket.result(0)

    def test_cancelling_wakes_whoever_waits(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        hold(engine, each, item)
        ticket = each.submit([item(6)])
        threading.Timer(0.02, ticket.cancel).start()
        done, _ = concurrent.futures.wait([ticket], timeout=10)
        assert done == {ticket}
        assert ticket.cancel()

    def test_cancelled_requests_leave_no_husks_behind_while_the_engine_is_stuck(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        hold(engine, each, item)
        gone = []
        for _ in range(500):
            ticket = each.submit([item(6)] * 4, deadline=time.monotonic() + 600)
            gone.append(weakref.ref(ticket))
            ticket.cancel()
            del ticket
        gc.collect()
        assert sum(ref() is not None for ref in gone) < 100

    def test_a_storm_of_cancellations_from_threads_leaves_nothing_behind(self, toy, batcher, item):
        engine = toy(concurrency=2, delay=0.0005)
        each = batcher(engine)
        outcomes = []

        def caller(seed):
            rng = random.Random(seed)
            for _ in range(15):
                ticket = each.submit([item(*([5 + rng.randrange(8)] * rng.randint(1, 30)))] * rng.randint(1, 5))
                if rng.random() < 0.6:
                    time.sleep(rng.random() * 0.002)
                    ticket.cancel()
                outcomes.append(ticket)

        with ThreadPoolExecutor(50) as pool:
            list(pool.map(caller, range(50)))
        concurrent.futures.wait(outcomes, timeout=15)
        wait_until(lambda: idle(each))
        assert len(outcomes) == 750
        assert all(ticket.cancelled() or all(len(result) == 1 for result in ticket.result(0)) for ticket in outcomes)

    def test_a_storm_of_cancellations_from_asyncio_leaves_nothing_behind(self, toy, batcher, item):
        engine = toy(delay=0.0005)
        each = batcher(engine)

        async def caller(rng):
            await asyncio.wait_for(
                asyncio.wrap_future(each.submit([item(*([6] * rng.randint(1, 20)))] * 3)), rng.random() * 0.02
            )

        async def storm():
            rng = random.Random(5)
            return await asyncio.gather(*(caller(rng) for _ in range(200)), return_exceptions=True)

        outcomes = asyncio.run(storm())
        assert {type(outcome) for outcome in outcomes} <= {TimeoutError, type(None)}
        assert TimeoutError in {type(outcome) for outcome in outcomes}
        wait_until(lambda: idle(each))
        assert each.submit([item(7)]).result(10)


class TestFailures:
    def test_a_poisoned_request_fails_alone(self, toy, batcher, item, vocabulary):
        engine = toy()
        each = batcher(engine)
        hold(engine, each, item)
        good = [each.submit([item(6, number)]) for number in range(7, 11)]
        bad = each.submit([item(6, vocabulary["poison"]), item(6, 6)])
        engine.gate.set()
        for ticket in good:
            assert len(ticket.result(10)) == 1
        with pytest.raises(InferenceError, match=r"toy:model failed .* RuntimeError: the toy broke") as caught:
            bad.result(10)
        assert caught.value.backend_id == "toy:model"
        assert isinstance(caught.value.__cause__, RuntimeError)
        wait_until(lambda: idle(each))

    @pytest.mark.parametrize(
        "failure", [MemoryError(), SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration("x")], ids=repr
    )
    def test_whatever_an_engine_raises_is_answered_and_the_worker_lives_on(
        self, toy, batcher, item, vocabulary, failure
    ):
        each = batcher(toy(failure=failure))
        for _ in range(3):
            with pytest.raises(InferenceError, match=type(failure).__name__):
                each.submit([item(vocabulary["poison"])]).result(10)
            assert each.submit([item(6)]).result(10)
        assert each.stats().workers == 1

    def test_a_failed_request_takes_its_queued_items_along(self, toy, batcher, item, vocabulary):
        engine = toy()
        each = batcher(engine, BatchingHints(max_batch_tokens=1))
        with pytest.raises(InferenceError):
            each.submit([item(vocabulary["poison"])] + [item(6)] * 50).result(10)
        wait_until(lambda: idle(each))
        assert len(engine.batches) < 50

    def test_an_engine_that_answers_too_few_rows_is_an_error(self, toy, batcher, item):
        engine = toy()
        run = engine.run
        engine.run = lambda batch: type(run(batch))(())
        with pytest.raises(InferenceError, match="0 rows for 1"):
            batcher(engine).submit([item(6)]).result(10)

    def test_a_long_message_is_cut_and_kept_on_one_line(self, toy, batcher, item, vocabulary):
        each = batcher(toy(failure=RuntimeError("many\nlines " * 200)))
        with pytest.raises(InferenceError) as caught:
            each.submit([item(vocabulary["poison"])]).result(10)
        assert len(caught.value.message) < 400
        assert "\n" not in caught.value.message

    def test_an_exception_without_a_readable_message_is_answered(self, toy, batcher, item, vocabulary):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError

        each = batcher(toy(failure=Mute()))
        with pytest.raises(InferenceError, match=r"running a batch: Mute$"):
            each.submit([item(vocabulary["poison"])]).result(10)
        assert each.submit([item(6)]).result(10)

    def test_a_plan_that_fails_is_answered_and_keeps_batches_small(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine, memory_limit=10_000)

        def plan(shape):
            if shape.sequences > 1 or shape.longest == 7:
                raise RuntimeError("no plan")
            return 1

        engine.plan_bytes = plan
        assert len(each.submit([item(6), item(8), item(9)]).result(10)) == 3
        assert {len(batch.lengths) for batch in engine.batches} == {1}
        with pytest.raises(InferenceError, match="planning a batch: RuntimeError: no plan"):
            each.submit([item(*range(5, 12))])

    def test_a_callback_that_raises_harms_nobody(self, toy, batcher, item, caplog):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        held.add_done_callback(lambda _: exec("raise SystemExit"))
        other = each.submit([item(6)])
        engine.gate.set()
        assert other.result(10)
        assert each.stats().workers == 1


class TestLifecycle:
    def test_draining_refuses_new_work_and_finishes_the_rest(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        tickets = [hold(engine, each, item), each.submit([item(6)])]
        assert not each.drain(timeout=0.01)
        with pytest.raises(NotReadyError, match="is draining"):
            each.submit([item(7)])
        engine.gate.set()
        assert each.drain(timeout=10)
        assert all(ticket.done() for ticket in tickets)

    def test_cancelling_the_last_waiting_request_ends_a_drain(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        tickets = [hold(engine, each, item), each.submit([item(6)])]
        with ThreadPoolExecutor(1) as pool:
            drained = pool.submit(each.drain, 10)
            tickets[1].cancel()
            engine.gate.set()
            assert drained.result(10)

    def test_closing_fails_what_waits_and_finishes_what_runs(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        running, waiting = hold(engine, each, item), each.submit([item(6)])
        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(each.close)
            with pytest.raises(NotReadyError, match="is closed"):
                waiting.result(10)
            assert not closing.done()
            engine.gate.set()
            closing.result(10)
        assert running.result(0)
        with pytest.raises(NotReadyError):
            each.submit([item(7)])

    def test_closing_again_does_nothing(self, toy, batcher):
        each = batcher(toy())
        each.close()
        each.close()
        assert each.drain(timeout=0)

    def test_closing_ends_the_threads(self, toy, batcher, item):
        before = threading.active_count()
        each = batcher(toy(concurrency=4))
        assert threading.active_count() == before + 4
        assert each.stats().workers == 4
        each.submit([item(6)]).result(10)
        each.close()
        assert threading.active_count() == before
        assert each.stats().workers == 0

    def test_a_request_may_close_the_batcher_from_its_callback(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        held.add_done_callback(lambda _: each.close())
        engine.gate.set()
        held.result(10)
        wait_until(lambda: each.stats().workers == 0)

    def test_the_heartbeat_ages_while_a_batch_runs_and_not_while_idle(self, toy, batcher, item):
        engine = toy()
        each = batcher(engine)
        assert each.stats().heartbeat_age == 0.0
        held = hold(engine, each, item)
        wait_until(lambda: each.stats().heartbeat_age > 0.01)
        engine.gate.set()
        held.result(10)
        wait_until(lambda: each.stats().heartbeat_age == 0.0)

    def test_a_finished_request_and_its_data_are_not_kept(self, toy, batcher, item):
        each = batcher(toy())
        ticket = each.submit([item(6, 7)])
        ticket.result(10)
        kept = weakref.ref(ticket)
        del ticket
        wait_until(lambda: gc.collect() >= 0 and kept() is None)

    def test_an_idle_batcher_uses_no_processor_time(self, toy, batcher, item):
        each = batcher(toy(concurrency=4))
        each.submit([item(6)]).result(10)
        before = time.process_time()
        time.sleep(0.3)
        assert time.process_time() - before < 0.1
