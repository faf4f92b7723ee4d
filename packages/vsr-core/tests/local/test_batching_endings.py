from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import random
import threading
import time
import weakref
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest
from vsr_core.contract import BatchingHints
from vsr_core.errors import (
    DeadlineExceededError,
    InferenceError,
    NotReadyError,
)
from vsr_core.local import ComputeThreads, WorkingMemory


class TestDeadlines:
    def test_what_expires_in_the_queue_never_runs(self, toy, batcher, item, wait_until, hold, idle):
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

    def test_deadlines_of_finished_requests_are_forgotten(self, toy, batcher, item, wait_until):
        each = batcher(toy())
        first = weakref.ref(each.submit([item(6)], deadline=time.monotonic() + 600))
        wait_until(lambda: first() is None or first().done())
        for _ in range(200):
            each.submit([item(6)], deadline=time.monotonic() + 600).result(10)
        wait_until(lambda: gc.collect() >= 0 and first() is None)


class TestCancellation:
    def test_a_cancelled_request_leaves_the_queue_at_once(self, toy, batcher, item, hold):
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

    def test_a_running_request_can_be_cancelled_and_its_result_is_discarded(self, toy, batcher, item, hold):
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

    def test_cancelling_wakes_whoever_waits(self, toy, batcher, item, hold):
        engine = toy()
        each = batcher(engine)
        hold(engine, each, item)
        ticket = each.submit([item(6)])
        threading.Timer(0.02, ticket.cancel).start()
        done, _ = concurrent.futures.wait([ticket], timeout=10)
        assert done == {ticket}
        assert ticket.cancel()

    def test_cancelled_requests_leave_no_husks_behind_while_the_engine_is_stuck(self, toy, batcher, item, hold):
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

    def test_a_storm_of_cancellations_from_threads_leaves_nothing_behind(self, toy, batcher, item, wait_until, idle):
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

    def test_a_storm_of_cancellations_from_asyncio_leaves_nothing_behind(self, toy, batcher, item, wait_until, idle):
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
    def test_a_poisoned_request_fails_alone(self, toy, batcher, item, vocabulary, wait_until, hold, idle):
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

    def test_a_failed_request_takes_its_queued_items_along(self, toy, batcher, item, vocabulary, wait_until, idle):
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
        each = batcher(engine, memory=WorkingMemory(10_000))

        def plan(shape):
            if shape.sequences > 1 or shape.longest == 7:
                raise RuntimeError("no plan")
            return 1

        engine.plan_bytes = plan
        assert len(each.submit([item(6), item(8), item(9)]).result(10)) == 3
        assert {len(batch.lengths) for batch in engine.batches} == {1}
        with pytest.raises(InferenceError, match="planning a batch: RuntimeError: no plan"):
            each.submit([item(*range(5, 12))])

    def test_a_callback_that_raises_harms_nobody(self, toy, batcher, item, caplog, hold):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        held.add_done_callback(lambda _: exec("raise SystemExit"))
        other = each.submit([item(6)])
        engine.gate.set()
        assert other.result(10)
        assert each.stats().workers == 1


class TestWorkers:
    def test_a_worker_that_is_lost_leaves_nobody_waiting(
        self, toy, batcher, item, hold, wait_until, monkeypatch, caplog
    ):
        engine = toy()
        each = batcher(engine)
        running = hold(engine, each, item)
        waiting = each.submit([item(6)])

        def fault(*args):
            raise RuntimeError("a fault of ours")

        monkeypatch.setattr(each._throughput, "record", fault)
        engine.gate.set()
        for ticket in (running, waiting):
            with pytest.raises(NotReadyError, match="lost a worker thread to RuntimeError"):
                ticket.result(10)
        with pytest.raises(NotReadyError):
            each.submit([item(6)])
        wait_until(lambda: each.stats().workers == 0)
        assert "ended before its time" in caplog.text

    def test_a_lone_request_always_goes_to_the_lead_which_alone_runs_wide(self, toy, batcher, item):
        engine = toy(concurrency=3)
        each = batcher(engine, threads=ComputeThreads(6))
        for length in range(5, 105):
            each.submit([item(length % 7 + 2)]).result(10)
        assert {batch.threads for batch in engine.batches} == {6}


class TestLifecycle:
    def test_draining_refuses_new_work_and_finishes_the_rest(self, toy, batcher, item, hold):
        engine = toy()
        each = batcher(engine)
        tickets = [hold(engine, each, item), each.submit([item(6)])]
        assert not each.drain(timeout=0.01)
        with pytest.raises(NotReadyError, match="is draining"):
            each.submit([item(7)])
        engine.gate.set()
        assert each.drain(timeout=10)
        assert all(ticket.done() for ticket in tickets)

    def test_cancelling_the_last_waiting_request_ends_a_drain(self, toy, batcher, item, hold):
        engine = toy()
        each = batcher(engine)
        tickets = [hold(engine, each, item), each.submit([item(6)])]
        with ThreadPoolExecutor(1) as pool:
            drained = pool.submit(each.drain, 10)
            tickets[1].cancel()
            engine.gate.set()
            assert drained.result(10)

    def test_closing_fails_what_waits_and_finishes_what_runs(self, toy, batcher, item, hold):
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

    def test_a_request_may_close_the_batcher_from_its_callback(self, toy, batcher, item, wait_until, hold):
        engine = toy()
        each = batcher(engine)
        held = hold(engine, each, item)
        held.add_done_callback(lambda _: each.close())
        engine.gate.set()
        held.result(10)
        wait_until(lambda: each.stats().workers == 0)

    def test_the_heartbeat_ages_while_a_batch_runs_and_not_while_idle(self, toy, batcher, item, wait_until, hold):
        engine = toy()
        each = batcher(engine)
        assert each.stats().heartbeat_age == 0.0
        held = hold(engine, each, item)
        wait_until(lambda: each.stats().heartbeat_age > 0.01)
        engine.gate.set()
        held.result(10)
        wait_until(lambda: each.stats().heartbeat_age == 0.0)

    def test_a_finished_request_and_its_data_are_not_kept(self, toy, batcher, item, wait_until):
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
