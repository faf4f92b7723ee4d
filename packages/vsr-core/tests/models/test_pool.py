"""Models are loaded once, lent, swapped and unloaded under load, and no request is refused for it."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from vsr_core.contract import BackendId, CallContext, EmbeddingRequest
from vsr_core.errors import (
    CheckpointError,
    DeadlineExceededError,
    LoadError,
    ModelNotFoundError,
    NotReadyError,
    RuntimeClosedError,
)

TOY = BackendId("toy", "mini")


def call(timeout=None):
    deadline = None if timeout is None else time.monotonic() + timeout
    return CallContext(request_id="r", deadline=deadline, timeout=timeout)


def embed(lease):
    return lease.handle.infer_blocking(EmbeddingRequest(texts=("a",)), call())


def test_a_model_is_loaded_on_first_use_and_kept(pool, toy):
    for _ in range(3):
        with pool.lease(TOY, call()) as lease:
            assert embed(lease).vectors.shape == (1, 8)
    assert len(toy.loads) == 1
    assert pool.loaded() == (TOY,)
    assert toy.load_threads == {"vsr-load"}


def test_what_was_loaded_is_shown_with_its_timing(pool):
    assert pool.info(TOY).state == "not_loaded"
    assert pool.info(TOY).family == "bert"
    info = pool.load(TOY)
    assert (info.state, info.memory_bytes, info.source) == ("ready", 32, "mini")
    assert info.load_seconds > 0
    assert info.loaded_at <= time.time()
    assert info.content_hash
    assert pool.info(TOY) == info


def test_many_who_ask_at_once_wait_for_one_load(pool, toy):
    gate = threading.Event()
    toy.before_load = gate.wait

    def ask(_):
        with pool.lease(TOY, call(10)) as lease:
            return embed(lease).envelope.revision

    with ThreadPoolExecutor(16) as threads:
        answers = threads.map(ask, range(32))
        assert pool.info(TOY).state in ("not_loaded", "loading")
        gate.set()
        assert set(answers) == {"1"}
    assert len(toy.loads) == 1


def test_the_deadline_covers_loading_and_the_load_goes_on(pool, toy):
    gate = threading.Event()
    toy.before_load = gate.wait
    with pytest.raises(DeadlineExceededError, match="still loading"):
        pool.lease(TOY, call(0.05))
    gate.set()
    with pool.lease(TOY, call(5)):
        assert len(toy.loads) == 1


def test_a_failed_load_fails_all_who_wait_and_is_not_repeated_at_once(pool, toy):
    tries = []

    def fail():
        tries.append(1)
        raise OSError("disk on fire")

    toy.before_load = fail
    with pytest.raises(LoadError, match="OSError: disk on fire") as first:
        pool.lease(TOY, call())
    with pytest.raises(LoadError) as second:
        pool.lease(TOY, call())
    assert second.value.message == first.value.message
    assert 0 < second.value.retry_after <= 0.3
    assert len(tries) == 1
    assert pool.info(TOY).state == "failed"
    assert "disk on fire" in pool.info(TOY).state_reason


def test_after_the_hold_off_or_on_demand_a_failed_load_is_tried_again(pool, toy):
    toy.before_load = lambda: (_ for _ in ()).throw(SystemExit("a library gave up"))
    with pytest.raises(LoadError, match="SystemExit"):
        pool.lease(TOY, call())
    toy.before_load = None
    assert pool.load(TOY).state == "ready"


def test_a_missing_file_is_a_checkpoint_error_and_harms_nobody_else(pool):
    with pytest.raises(CheckpointError):
        pool.load(BackendId("toy", "gone"))
    assert "nowhere" in pool.info(BackendId("toy", "gone")).state_reason
    assert pool.load(TOY).state == "ready"


def test_an_unknown_model_or_backend_is_not_found(pool):
    with pytest.raises(ModelNotFoundError):
        pool.load(BackendId("toy", "nobody"))
    with pytest.raises(ModelNotFoundError):
        pool.load(BackendId("nowhere", "mini"))


def test_unloading_waits_for_the_last_request_and_closes_once(pool, toy):
    lease = pool.lease(TOY, call())
    (handle,) = toy.open_handles
    with pytest.raises(NotReadyError, match="1 requests"):
        pool.unload(TOY, timeout=0.05)
    assert embed(lease).envelope.revision == "1"
    assert pool.info(TOY).state == "draining"
    lease.release()
    lease.release()
    deadline = time.monotonic() + 5
    while not handle.closed and time.monotonic() < deadline:
        time.sleep(0.005)
    assert handle.closed
    assert pool.unload(TOY) is False


def test_a_request_during_an_unload_loads_the_model_anew(pool, toy):
    with pool.lease(TOY, call()):
        with pytest.raises(NotReadyError):
            pool.unload(TOY, timeout=0.01)
        with pool.lease(TOY, call()) as fresh:
            assert embed(fresh).envelope.revision == "2"


def test_a_swap_puts_a_new_generation_in_place_and_drains_the_old(pool, toy):
    old = pool.lease(TOY, call())
    assert pool.swap(TOY).revision == "2"
    assert embed(old).envelope.revision == "1"
    with pool.lease(TOY, call()) as new:
        assert embed(new).envelope.revision == "2"
    assert len(toy.open_handles) == 2
    old.release()
    pool.load(TOY)
    assert pool.unload(TOY, timeout=5)
    assert not toy.open_handles


def test_a_swap_that_fails_leaves_the_old_generation(pool, toy):
    pool.load(TOY)
    toy.before_load = lambda: (_ for _ in ()).throw(ValueError("bad file"))
    with pytest.raises(LoadError):
        pool.swap(TOY)
    with pool.lease(TOY, call()) as lease:
        assert embed(lease).envelope.revision == "1"
    assert pool.info(TOY).state == "ready"


def test_a_swap_that_takes_too_long_says_so_and_goes_on(pool, toy):
    pool.load(TOY)
    gate = threading.Event()
    toy.before_load = gate.wait
    with pytest.raises(DeadlineExceededError):
        pool.swap(TOY, timeout=0.05)
    gate.set()
    assert pool.swap(TOY, timeout=5).revision in ("2", "3")


def test_under_load_swaps_and_unloads_fail_no_request(pool, toy):
    stop = threading.Event()
    served, failures = [0], []

    def work():
        while not stop.is_set():
            try:
                with pool.lease(TOY, call(10)) as lease:
                    embed(lease)
                served[0] += 1
                time.sleep(0.001)  # eight threads that never wait would leave the load thread hardly any turn
            except BaseException as error:
                failures.append(error)
                return

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(10):
            pool.swap(TOY, timeout=10)
            pool.unload(TOY, timeout=10)
    finally:
        stop.set()
        for worker in workers:
            worker.join(10)
    assert not failures
    assert served[0] > 0
    pool.close(10)
    assert not toy.open_handles


def test_waiting_for_a_load_does_not_block_the_event_loop(pool, toy):
    gate = threading.Event()
    toy.before_load = gate.wait

    async def main():
        waiting = [asyncio.ensure_future(pool.lease_async(TOY, call(10))) for _ in range(4)]
        with pytest.raises(DeadlineExceededError):
            await pool.lease_async(TOY, call(0.02))
        waiting[0].cancel()
        gate.set()
        leases = await asyncio.gather(*waiting[1:])
        for lease in leases:
            lease.release()
        return len(leases)

    assert asyncio.run(main()) == 3
    assert len(toy.loads) == 1


def test_a_load_that_fails_reaches_those_who_await_it(pool, toy):
    toy.before_load = lambda: (_ for _ in ()).throw(ValueError("bad"))

    async def main():
        results = await asyncio.gather(*(pool.lease_async(TOY, call()) for _ in range(3)), return_exceptions=True)
        return [type(result) for result in results]

    assert asyncio.run(main()) == [LoadError] * 3


def test_a_generation_published_behind_a_callers_back_leaves_no_load_pending(pool, toy):
    slot_lock, pool._lock = pool._lock, None

    class Late:
        """Loads the model in the moment between a caller's look at it and the lock."""

        def __enter__(self):
            pool._lock = slot_lock
            pool.load(TOY)
            slot_lock.acquire()

        def __exit__(self, *error):
            slot_lock.release()

    pool._lock = Late()
    with pool.lease(TOY, call(5)) as lease:
        assert embed(lease).envelope.revision == "1"
    assert pool.swap(TOY, timeout=5).revision == "2"
    assert pool.unload(TOY, timeout=5)
    assert pool.info(TOY).state == "not_loaded"
    with pool.lease(TOY, call(5)) as lease:
        assert embed(lease).envelope.revision == "3"


def test_closing_takes_no_longer_than_it_may(pool, toy):
    gate = threading.Event()
    toy.before_load = gate.wait
    waiting = threading.Thread(target=pool.load, args=(TOY,))
    waiting.start()
    while pool.info(TOY).state != "loading":
        time.sleep(0.005)
    pool.close(0.1)
    assert pool.info(TOY).state == "loading"
    gate.set()
    waiting.join(5)
    pool.close(5)
    assert not toy.open_handles


def test_a_closed_pool_lends_nothing_and_leaves_nothing_open(pool, toy):
    before = set(threading.enumerate())
    pool.load(TOY)
    pool.close(5)
    pool.close(5)
    assert not toy.open_handles
    with pytest.raises(RuntimeClosedError):
        pool.lease(TOY, call())
    with pytest.raises(RuntimeClosedError):
        pool.swap(TOY)
    assert not any(thread.name == "vsr-load" for thread in set(threading.enumerate()) - before)
