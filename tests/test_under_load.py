"""Hundreds of callers while models come and go: whoever waits is answered right, and nothing stays behind."""

import asyncio
import gc
import random
import threading
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from vsr_core import AsyncRuntime, Runtime
from vsr_core.contract import BackendId, CallContext
from vsr_core.errors import DeadlineExceededError
from vsr_core.local import Batcher, EncoderHandle
from vsr_core.testing import write_encoder

CALLERS, ROUNDS, THREADS, PAUSE = 200, 4, 24, 0.04
KINDS = {"classify": ("bert", "sequence"), "embed": ("modernbert", "embedding"), "tag": ("bert", "token")}
CLOSE = {"atol": 1e-5, "rtol": 0}
WORDS = ("the", "cat", "dog", "river", "bank", "running", "naïve", "😀", "12")


def make_texts(rng):
    return ["", *(" ".join(rng.choices(WORDS, k=count)) for count in (1, 1, 2, 3, 5, 5, 8, 13, 21, 34))]


@dataclass(frozen=True)
class Caller:
    """What one caller asks, round after round, and how patient it is.

    :param gives_up: seconds after which it is cancelled; ``timeout`` is what it gives each of its requests.
    """

    asks: tuple[tuple[str, tuple[str, ...]], ...]
    gives_up: float | None = None
    timeout: float | None = None

    @property
    def lots(self):
        """What may become of it."""
        if self.gives_up is not None:
            return {"answered", "cancelled"}
        return {"answered"} if self.timeout is None else {"answered", "late"}


def make_callers(rng, texts, *, cancelling):
    def asks():
        return tuple(
            (rng.choice(list(KINDS)), tuple(rng.choices(texts, k=rng.choice([1, 1, 1, 2, 4])))) for _ in range(ROUNDS)
        )

    callers = [Caller(asks()) for _ in range(CALLERS)]
    for number, place in enumerate(rng.sample(range(CALLERS), CALLERS // 3)):
        impatience = {"timeout": rng.choice([1e-6, 0.002, 0.02, 0.1])}
        if cancelling and number % 2:
            impatience = {"gives_up": rng.choice([0.0, 0.002, 0.02, 0.05, 0.3])}
        callers[place] = Caller(callers[place].asks, **impatience)
    return callers


@pytest.fixture(scope="module", autouse=True)
def _torchs_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    root = tmp_path_factory.mktemp("load")
    catalog = {
        kind: {"source": str(write_encoder(root / kind, family, head=head))} for kind, (family, head) in KINDS.items()
    }
    catalog["embed"]["pooling"] = ["mean"]
    return {"catalog": catalog, "backends": {"torch": {"precision": "fp32", "threads": 2}}}


@pytest.fixture(scope="module")
def texts():
    return make_texts(random.Random(1))


@pytest.fixture(scope="module")
def expected(config, texts):
    """What each text is answered when nothing else goes on, by kind and text."""
    with Runtime(config) as vsr:
        return {(kind, text): read(kind, request(vsr, kind, [text]))[0] for kind in KINDS for text in texts}


def request(vsr, kind, texts, **options):
    """The answer of a runtime, or the awaitable of one; long texts are read in windows where that can be."""
    truncate = "end" if kind == "embed" else "window"
    return getattr(vsr, kind)(list(texts), model=kind, truncate=truncate, **options)


def read(kind, response):
    """An answer per text: what must be equal, and what must be close."""
    if kind == "embed":
        return [((), row) for row in response.vectors]
    if kind == "classify":
        return [((each.label, each.tokens), list(each.distribution.values())) for each in response.results]
    return [
        ([(span.start, span.end, span.label) for span in each.spans], [span.score for span in each.spans])
        for each in response.results
    ]


def assert_answered(kind, texts, response, expected):
    answers = read(kind, response)
    assert len(answers) == len(texts)
    for text, (facts, values) in zip(texts, answers, strict=True):
        same, close = expected[kind, text]
        assert facts == same
        np.testing.assert_allclose(values, close, **CLOSE)


@pytest.fixture
def traces(monkeypatch):
    """A weak reference to every handle and every ticket made during a test."""
    found = []
    build, submit = EncoderHandle.__init__, Batcher.submit

    def traced_build(self, *args, **options):
        build(self, *args, **options)
        found.append(weakref.ref(self))

    def traced_submit(self, *args, **options):
        ticket = submit(self, *args, **options)
        found.append(weakref.ref(ticket))
        return ticket

    monkeypatch.setattr(EncoderHandle, "__init__", traced_build)
    monkeypatch.setattr(Batcher, "submit", traced_submit)
    return found


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.005)


def assert_nothing_stays(traces, threads):
    until(lambda: set(threading.enumerate()) <= threads)
    gc.collect()
    assert len(traces) > CALLERS
    assert [trace() for trace in traces if trace() is not None] == []


def assert_at_rest(vsr):
    """The queues of what is loaded are empty, no request is counted as running, and every worker lives."""
    pool = vsr._core.pool
    loaded = pool.loaded()
    assert set(loaded) == {BackendId("torch", kind) for kind in KINDS}
    for backend_id in loaded:
        with pool.lease(backend_id, CallContext(request_id="rest")) as lease:
            batcher = lease.handle.base.batcher
            until(lambda batcher=batcher: batcher.stats().running_batches == 0)
            stats = batcher.stats()
            assert (stats.queued_items, stats.queued_tokens, stats.running_items, stats.workers) == (0, 0, 0, 2)
            assert lease._loaded.users == 1
    until(lambda: not any(slot.draining or slot.pending for slot in pool._slots.values()))


class Churn:
    """Loads, swaps and unloads models on a thread of its own until it is told to stop."""

    def __init__(self, do, *, seed):
        self._do = do
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.done = Counter()
        self.failure = None

    def _run(self):
        try:
            while not self._stop.is_set() or len(self.done) < 3 or min(self.done.values()) < 2:
                action = self._rng.choice(["load", "swap", "unload", "unload"])
                self._do(action, self._rng.choice(list(KINDS)))
                self.done[action] += 1
        except BaseException as error:
            self.failure = repr(error)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        assert self.failure is None


def test_awaiting_callers_are_answered_while_models_come_and_go(config, texts, expected, traces):
    callers = make_callers(random.Random(7), texts, cancelling=True)
    lots, pauses = [], random.Random(17)

    async def ask(vsr, caller):
        for kind, asked in caller.asks:
            response = await request(vsr, kind, asked, timeout=caller.timeout)
            assert_answered(kind, asked, response, expected)
            await asyncio.sleep(pauses.uniform(0, PAUSE))

    async def watch(vsr, caller):
        task = asyncio.create_task(ask(vsr, caller))
        if caller.gives_up is not None:
            asyncio.get_running_loop().call_later(caller.gives_up, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            lots.append((caller, "cancelled"))
        except DeadlineExceededError:
            lots.append((caller, "late"))
        else:
            lots.append((caller, "answered"))

    async def main():
        loop = asyncio.get_running_loop()
        async with AsyncRuntime(config) as vsr:

            def do(action, model):
                asyncio.run_coroutine_threadsafe(getattr(vsr, action)(model), loop).result()

            churn = Churn(do, seed=2)
            await asyncio.to_thread(churn.__enter__)
            try:
                await asyncio.gather(*(watch(vsr, caller) for caller in callers))
            finally:
                await asyncio.to_thread(churn.__exit__)
            for kind in KINDS:
                await vsr.load(kind)
            await asyncio.to_thread(assert_at_rest, vsr)
            assert min(churn.done.values()) > 0

    threads = set(threading.enumerate())
    asyncio.run(main())
    assert_lots(lots)
    assert {lot for _, lot in lots} == {"answered", "cancelled", "late"}
    assert_nothing_stays(traces, threads)


def assert_lots(lots):
    assert len(lots) == CALLERS
    assert [(caller, lot) for caller, lot in lots if lot not in caller.lots] == []


def test_blocking_callers_are_answered_while_models_come_and_go(config, texts, expected, traces):
    callers = make_callers(random.Random(8), texts, cancelling=False)

    def ask(vsr, caller):
        try:
            for kind, asked in caller.asks:
                response = request(vsr, kind, asked, timeout=caller.timeout)
                assert_answered(kind, asked, response, expected)
        except DeadlineExceededError:
            return caller, "late"
        return caller, "answered"

    threads = set(threading.enumerate())
    with Runtime(config) as vsr:
        with (
            Churn(lambda action, model: getattr(vsr, action)(model), seed=3) as churn,
            ThreadPoolExecutor(THREADS) as callers_at_work,
        ):
            lots = list(callers_at_work.map(lambda caller: ask(vsr, caller), callers))
        for kind in KINDS:
            vsr.load(kind)
        assert_at_rest(vsr)
        assert {info.state for info in vsr.models()} == {"ready"}
    assert_lots(lots)
    assert {lot for _, lot in lots} == {"answered", "late"}
    assert min(churn.done.values()) > 0
    assert_nothing_stays(traces, threads)


def test_both_facades_at_once_do_not_disturb_each_other(config, texts, expected):
    rng = random.Random(9)
    asks = [(rng.choice(list(KINDS)), [rng.choice(texts)]) for _ in range(60)]

    async def awaited():
        async with AsyncRuntime(config) as vsr:
            return await asyncio.gather(*(request(vsr, kind, asked) for kind, asked in asks))

    with Runtime(config) as vsr, ThreadPoolExecutor(8) as pool:
        other = pool.submit(asyncio.run, awaited())
        blocking = list(pool.map(lambda each: request(vsr, *each), asks))
        for (kind, asked), one, two in zip(asks, blocking, other.result(), strict=True):
            assert_answered(kind, asked, one, expected)
            assert_answered(kind, asked, two, expected)
