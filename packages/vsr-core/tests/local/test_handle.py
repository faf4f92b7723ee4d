from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from vsr_core.contract import (
    BatchingHints,
    CallContext,
    EmbeddingRequest,
    GenerationRequest,
    ModelInfo,
    RerankingRequest,
    SequenceClassificationRequest,
)
from vsr_core.errors import (
    CapabilityError,
    DeadlineExceededError,
    InferenceError,
    NonFiniteOutputError,
    NotReadyError,
    OverloadedError,
    VsrError,
)
from vsr_core.wire import from_json, to_json

CALL = CallContext(request_id="q1")
LONG = "the cat sat " * 400


def request(*texts, **options):
    return EmbeddingRequest(texts=texts, **options)


def within(seconds):
    return CallContext(request_id="q1", deadline=time.monotonic() + seconds, timeout=seconds)


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.001)


def idle(handle):
    stats = handle.base.batcher.stats()
    return (stats.queued_items, stats.queued_tokens, stats.running_items) == (0, 0, 0)


def test_blocking_and_asynchronous_callers_get_the_same_answer(build):
    handle = build()
    asked = request("the cat sat", "", LONG)
    blocking = handle.infer_blocking(asked, CALL)
    awaited = asyncio.run(handle.infer(asked, CALL))
    np.testing.assert_array_equal(blocking.vectors, awaited.vectors)
    assert blocking.envelope == awaited.envelope


def test_a_handle_answers_from_any_thread_and_any_loop(build):
    handle = build()
    expected = handle.infer_blocking(request("the dog ran"), CALL).vectors
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(lambda _: asyncio.run(handle.infer(request("the dog ran"), CALL)).vectors, range(32)):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_concurrent_requests_share_batches_and_keep_their_own_answers(build, toy):
    engine = toy()
    handle = build(engine)
    texts = ["cat " * (1 + number % 9) + "dog" for number in range(60)]
    expected = [handle.infer_blocking(request(text), CALL).vectors[0] for text in texts]
    before = len(engine.batches)

    async def all_at_once():
        return await asyncio.gather(*(handle.infer(request(text), CALL) for text in texts))

    for response, vector in zip(asyncio.run(all_at_once()), expected, strict=True):
        np.testing.assert_allclose(response.vectors[0], vector, atol=1e-6)
    assert len(engine.batches) - before < 60


def test_long_requests_are_tokenised_off_the_event_loop(build, monkeypatch):
    handle = build()
    tokenizer, used = handle.base.tokenizer, []
    encode = type(tokenizer).encode
    monkeypatch.setattr(
        type(tokenizer), "encode", lambda *a, **k: (used.append(threading.current_thread()), encode(*a, **k))[1]
    )

    async def both():
        await handle.infer(request("short"), CALL)
        await handle.infer(request(LONG), CALL)

    asyncio.run(both())
    assert used[0] is threading.main_thread()
    assert used[1] is not threading.main_thread()


class TestRefusals:
    @pytest.mark.parametrize(
        "asked",
        [
            SequenceClassificationRequest(texts=("a",)),
            RerankingRequest(query="q", documents=("d",)),
            GenerationRequest(messages=()),
        ],
        ids=lambda asked: asked.capability.value,
    )
    def test_other_capabilities_are_refused_with_the_reason(self, build, asked):
        handle = build()
        with pytest.raises(CapabilityError, match="loaded for embedding") as caught:
            handle.infer_blocking(asked, CALL)
        assert (caught.value.backend_id, caught.value.reason) == ("toy:model", "it is loaded for embedding")
        with pytest.raises(CapabilityError):
            asyncio.run(handle.infer(asked, CALL))

    def test_it_does_not_stream(self, build):
        with pytest.raises(CapabilityError, match="does not stream"):
            build().stream(GenerationRequest(messages=()), CALL)

    def test_an_error_of_the_engine_reaches_the_caller(self, build):
        with pytest.raises(InferenceError, match="the toy broke"):
            build().infer_blocking(request("poison"), CALL)

    def test_a_tokenizer_that_breaks_is_an_error_of_this_model(self, build, monkeypatch):
        handle = build()

        def broken(*_, **__):
            raise RuntimeError("lost")

        monkeypatch.setattr(type(handle.base.tokenizer), "encode", broken)
        with pytest.raises(InferenceError, match="toy:model failed while preparing a request: RuntimeError: lost"):
            handle.infer_blocking(request("the"), CALL)

    def test_overload_reaches_both_kinds_of_callers(self, build, toy):
        engine = toy()
        handle = build(engine, load={"batching": BatchingHints(max_queue_items=1)})
        engine.gate.clear()
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(handle.infer_blocking, request("the"), CALL)]
            wait_until(lambda: engine.running == 1)
            waiting.append(pool.submit(handle.infer_blocking, request("cat"), CALL))
            wait_until(lambda: handle.base.batcher.stats().queued_items == 1)
            with pytest.raises(OverloadedError):
                handle.infer_blocking(request("dog"), CALL)
            with pytest.raises(OverloadedError):
                asyncio.run(handle.infer(request("dog"), CALL))
            engine.gate.set()
            for future in waiting:
                assert future.result(10).vectors.shape == (1, 8)


class TestNonFinite:
    def test_it_is_an_error_that_names_the_texts(self, build):
        with pytest.raises(NonFiniteOutputError, match=r"for texts\[1\], texts\[2\]: the values are withheld"):
            build().infer_blocking(request("the", "nan", "cat nan"), CALL)

    def test_other_requests_of_the_batch_are_unaffected(self, build, toy):
        engine = toy()
        handle = build(engine)

        async def mixed():
            engine.gate.clear()
            tasks = [asyncio.create_task(handle.infer(request(text), CALL)) for text in ("the", "cat", "nan", "dog")]
            await asyncio.sleep(0)
            engine.gate.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

        first, second, third, fourth = asyncio.run(mixed())
        assert isinstance(third, NonFiniteOutputError)
        assert all(np.isfinite(each.vectors).all() for each in (first, second, fourth))


class TestDeadlines:
    def test_a_deadline_that_has_passed_refuses_the_call(self, build):
        with pytest.raises(DeadlineExceededError):
            build().infer_blocking(request("the"), within(-1))

    def test_a_blocking_caller_is_let_go_while_the_engine_still_runs(self, build, toy):
        engine = toy()
        handle = build(engine)
        engine.gate.clear()
        with pytest.raises(DeadlineExceededError, match=r"0\.05 s passed") as caught:
            handle.infer_blocking(request("the"), within(0.05))
        assert caught.value.timeout == 0.05
        engine.gate.set()
        wait_until(lambda: idle(handle))

    def test_an_asynchronous_caller_is_let_go_while_the_engine_still_runs(self, build, toy):
        engine = toy()
        handle = build(engine)
        engine.gate.clear()
        with pytest.raises(DeadlineExceededError, match=r"0\.05 s passed"):
            asyncio.run(handle.infer(request("the"), within(0.05)))
        engine.gate.set()
        wait_until(lambda: idle(handle))

    def test_a_blocking_caller_takes_its_work_out_of_the_queue_when_time_is_up(self, build, toy):
        engine = toy()
        handle = build(engine)
        engine.gate.clear()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(handle.infer_blocking, request("the"), CALL)
            wait_until(lambda: engine.running == 1)
            with pytest.raises(DeadlineExceededError):
                handle.infer_blocking(request("cat"), within(0.05))
            assert handle.base.batcher.stats().queued_items == 0
            engine.gate.set()
            running.result(10)

    def test_work_whose_caller_gave_up_never_runs(self, build, toy):
        engine = toy()
        handle = build(engine)
        engine.gate.clear()

        async def give_up():
            running = asyncio.create_task(handle.infer(request("the"), CALL))
            while engine.running != 1:
                await asyncio.sleep(0.001)
            waiting = asyncio.create_task(handle.infer(request("mat mat"), CALL))
            while handle.base.batcher.stats().queued_items != 1:
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert handle.base.batcher.stats().queued_items == 0
            engine.gate.set()
            await running

        asyncio.run(give_up())
        assert len(engine.batches) == 1


class TestLifecycle:
    def test_a_closed_handle_says_so(self, build, toy):
        engine = toy()
        handle = build(engine)
        asyncio.run(handle.close())
        with pytest.raises(NotReadyError, match="toy:model is closed"):
            handle.infer_blocking(request("the"), CALL)
        assert handle.info.state == "not_loaded"
        assert (engine.closed, handle.base.closed, handle.base.leases) == (1, True, 0)

    def test_closing_twice_releases_once(self, build, toy):
        engine = toy()
        handle = build(engine)
        handle.base.lease()

        async def twice():
            await asyncio.gather(handle.close(), handle.close())

        asyncio.run(twice())
        assert handle.base.leases == 1
        assert engine.closed == 0
        handle.base.release()
        assert engine.closed == 1

    def test_closing_lets_running_requests_finish(self, build, toy):
        engine = toy()
        handle = build(engine)
        engine.gate.clear()

        async def close_while_running():
            running = asyncio.create_task(handle.infer(request("the"), CALL))
            while engine.running != 1:
                await asyncio.sleep(0.001)
            closing = asyncio.create_task(handle.close())
            await asyncio.sleep(0.01)
            assert engine.closed == 0
            engine.gate.set()
            await closing
            return await running

        assert asyncio.run(close_while_running()).vectors.shape == (1, 8)
        assert engine.closed == 1

    def test_a_storm_of_impatient_callers_leaves_nothing_behind(self, build, toy):
        handle = build(toy(delay=0.001, concurrency=2))

        async def storm():
            calls = [handle.infer(request("the cat " * (1 + n % 20)), within(0.001 * (1 + n % 40))) for n in range(200)]
            return await asyncio.gather(*calls, return_exceptions=True)

        outcomes = asyncio.run(storm())
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert all(isinstance(failure, VsrError) for failure in failures)
        wait_until(lambda: idle(handle))
        assert handle.infer_blocking(request("the"), CALL).vectors.shape == (1, 8)


class TestInfo:
    def test_it_tells_what_is_known_and_survives_json(self, build):
        info = build(memory_bytes=123, load_seconds=0.5).info
        assert info.state == "ready"
        assert (info.native_dimensions, info.dimensions, info.default_dimensions) == (8, (4, 8), 8)
        assert (info.native_layers, info.exit_layers, info.default_layer) == (3, (1, 3), 3)
        assert (info.max_tokens, info.advertised_max_tokens, info.memory_bytes) == (16, 32, 123)
        assert (info.device.actual, info.dtype.actual, info.stored_dtype) == ("cpu", "float32", "float32")
        assert info.source == "pkg://toy"
        assert from_json(ModelInfo, to_json(info)) == info

    def test_features_come_with_reasons(self, build, spec):
        states = {state.feature.value: state for state in build().info.features}
        assert states["matryoshka_dimensions"].supported
        assert states["layer_exit"].supported
        flat = build(spec=replace(spec, dimensions=(8,), exit_layers=(3,))).info
        missing = {state.feature.value: state.reason for state in flat.features if not state.supported}
        assert set(missing) == {"matryoshka_dimensions", "layer_exit", "streaming"}
        assert all(missing.values())
