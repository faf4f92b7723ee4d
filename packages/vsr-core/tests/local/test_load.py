"""Many callers at once, some impatient, some unlucky: whoever is answered is answered right, and nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import random
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from vsr_core.contract import BatchingHints, CallContext, Response, SequenceClassificationRequest
from vsr_core.errors import DeadlineExceededError, InferenceError, NonFiniteOutputError, OverloadedError
from vsr_core.taxonomy import Capability

CALLERS, ROOM, WORKERS = 200, 260, 2
CALL = CallContext(request_id="q1")
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "fast", "slow"]


@dataclass(frozen=True)
class Caller:
    """One request of the storm, and how its sender behaves."""

    texts: tuple[str, ...]
    gives_up: bool = False
    hurries: bool = False

    @property
    def request(self):
        return SequenceClassificationRequest(texts=self.texts, logits=True, truncate="window")

    @property
    def lot(self):
        if self.gives_up or self.hurries:
            return asyncio.CancelledError if self.gives_up else DeadlineExceededError
        for word, error in (("poison", InferenceError), ("nan", NonFiniteOutputError)):
            if any(word in text for text in self.texts):
                return error
        return Response


def make_callers(rng):
    def text():
        return " ".join(rng.choices(WORDS, k=rng.choice([0, 1, 3, 8, 14, 15, 40])))

    callers = [Caller(tuple(text() for _ in range(rng.choice([1, 1, 1, 2, 3])))) for _ in range(CALLERS)]
    for number, place in enumerate(rng.sample(range(CALLERS // 3), 36)):
        unlucky = {0: {"texts": ("the poison",)}, 1: {"texts": ("cat", "nan dog")}}
        callers[place] = replace(
            callers[place], **unlucky.get(number, {"gives_up": True} if number % 2 else {"hurries": True})
        )
    return callers


@pytest.fixture
def make_handle(build, spec, toy):
    """Builds a classifier of texts with two workers and a bounded queue."""
    head = replace(
        spec,
        capabilities=(Capability.SEQUENCE_CLASSIFICATION,),
        activation="softmax",
        labels=("x", "y", "z"),
        pooling=None,
        dimensions=(),
    )

    def make(**hints):
        hints = BatchingHints(**{"max_batch_tokens": 96, **hints})
        return build(toy(concurrency=WORKERS), spec=head, load={"batching": hints})

    return make


@pytest.fixture
def reference(make_handle):
    """What each text is answered when it has the model to itself."""
    handle = make_handle()

    def ask(texts):
        asked = [SequenceClassificationRequest(texts=(text,), logits=True, truncate="window") for text in texts]
        return np.array([handle.infer_blocking(each, CALL).results[0].logits for each in asked])

    return ask


def engine_of(handle):
    return handle.base.engine


def logits_of(response):
    return np.array([result.logits for result in response.results])


async def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        await asyncio.sleep(0.001)


async def occupy_workers(handle):
    """Keep every worker busy with a request of its own, so that whatever comes next waits."""
    engine = engine_of(handle)
    engine.gate.clear()
    busy = []
    for number in range(WORKERS):
        busy.append(asyncio.create_task(handle.infer(SequenceClassificationRequest(texts=(WORDS[number],)), CALL)))
        await until(lambda count=number + 1: engine.running == count)
    return busy


async def storm(handle, callers):
    """Send every caller's request while the engine stands still, lose the impatient, and let it run."""
    stats = handle.base.batcher.stats
    busy = await occupy_workers(handle)
    hurry = CallContext(request_id="q2", deadline=time.monotonic() + 0.4, timeout=0.4)
    tasks = [asyncio.create_task(handle.infer(each.request, hurry if each.hurries else CALL)) for each in callers]
    await asyncio.sleep(0)
    crowded = stats().queued_items
    for task, caller in zip(tasks, callers, strict=True):
        if caller.gives_up:
            task.cancel()
    await asyncio.gather(
        *(task for task, each in zip(tasks, callers, strict=True) if each.hurries), return_exceptions=True
    )
    waiting = stats()
    engine_of(handle).gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.gather(*busy)
    return crowded, waiting, outcomes


def items_of(handle, caller):
    return handle._tasks[Capability.SEQUENCE_CLASSIFICATION].prepare(caller.request).items


def admitted(handle, callers):
    """Who finds room, by the rule: a request enters whole, if it fits."""
    found, taken = [], 0
    for caller in callers:
        count = len(items_of(handle, caller))
        found.append(taken + count <= ROOM)
        taken += count if found[-1] else 0
    return found


def assert_at_rest(handle):
    stats = handle.base.batcher.stats()
    assert (stats.queued_items, stats.queued_tokens, stats.running_items, stats.workers) == (0, 0, 0, WORKERS)


def test_every_caller_of_a_storm_gets_what_is_due(make_handle, reference, wait_until):
    handle = make_handle(max_queue_items=ROOM)
    callers = make_callers(random.Random(11))
    entered = admitted(handle, callers)
    crowded, waiting, outcomes = asyncio.run(storm(handle, callers))

    lots = [each.lot if inside else OverloadedError for each, inside in zip(callers, entered, strict=True)]
    assert Counter(lots).keys() == {
        Response,
        OverloadedError,
        asyncio.CancelledError,
        DeadlineExceededError,
        InferenceError,
        NonFiniteOutputError,
    }
    for outcome, lot in zip(outcomes, lots, strict=True):
        assert isinstance(outcome, lot)
        if lot is OverloadedError:
            assert outcome.retry_after > 0

    staying = [
        items_of(handle, each)
        for each, inside in zip(callers, entered, strict=True)
        if inside and not (each.gives_up or each.hurries)
    ]
    inside = [items_of(handle, each) for each, fits in zip(callers, entered, strict=True) if fits]
    assert crowded == sum(map(len, inside))
    assert waiting.queued_items == sum(map(len, staying))
    assert waiting.queued_tokens == sum(len(item.ids) for items in staying for item in items)

    for outcome, caller in zip(outcomes, callers, strict=True):
        if isinstance(outcome, Response):
            np.testing.assert_allclose(logits_of(outcome), reference(caller.texts), atol=1e-5)
    wait_until(lambda: handle.base.batcher.stats().running_batches == 0)
    assert_at_rest(handle)
    assert engine_of(handle).most_running == WORKERS


def test_a_storm_leaves_no_ticket_and_no_tokens_in_memory(make_handle, wait_until, monkeypatch):
    handle = make_handle(max_queue_items=ROOM)
    batcher, traces = handle.base.batcher, []
    submit = batcher.submit

    def traced(items, **options):
        traces.extend(weakref.ref(item.ids) for item in items)
        ticket = submit(items, **options)
        traces.append(weakref.ref(ticket))
        return ticket

    monkeypatch.setattr(batcher, "submit", traced)
    asyncio.run(storm(handle, make_callers(random.Random(5))))
    wait_until(lambda: batcher.stats().running_batches == 0)
    engine = engine_of(handle)
    engine.batches.clear()
    engine.failure = None  # the toy keeps what it raises, and with it the frames that held the batch
    gc.collect()
    assert len(traces) > 2 * CALLERS
    assert [trace() for trace in traces if trace() is not None] == []
    assert_at_rest(handle)


def test_blocking_callers_in_many_threads_get_their_own_answers(make_handle, reference, wait_until):
    handle, rng = make_handle(), random.Random(3)
    callers = [replace(each, gives_up=False, hurries=False) for each in make_callers(rng)]

    def ask(caller):
        try:
            return handle.infer_blocking(caller.request, CALL)
        except (InferenceError, NonFiniteOutputError) as error:
            return error

    with ThreadPoolExecutor(24) as pool:
        outcomes = list(pool.map(ask, callers))
    for outcome, caller in zip(outcomes, callers, strict=True):
        assert isinstance(outcome, caller.lot)
        if caller.lot is Response:
            np.testing.assert_allclose(logits_of(outcome), reference(caller.texts), atol=1e-5)
    wait_until(lambda: handle.base.batcher.stats().running_batches == 0)
    assert_at_rest(handle)


def test_after_a_storm_the_model_answers_as_before(make_handle, reference):
    handle = make_handle(max_queue_items=ROOM)
    asyncio.run(storm(handle, make_callers(random.Random(8))))
    text = " ".join(WORDS)
    response = handle.infer_blocking(SequenceClassificationRequest(texts=(text,), logits=True), CALL)
    np.testing.assert_allclose(logits_of(response), reference([text]), atol=1e-6)
