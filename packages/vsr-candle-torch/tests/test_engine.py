"""The engine answers rows: pooled, hidden, from any layer, from any thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from vsr_candle_torch.engine import TorchEngine
from vsr_core.contract import PoolingSpec
from vsr_core.local import BatchRow, BatchShape, RaggedBatch, WantHidden, WantPooled, pool

MEAN = WantPooled(PoolingSpec(modes=("mean",)))
BOTH = WantPooled(PoolingSpec(modes=("cls", "mean")))


def batch(sequences, rows, threads=None):
    ids = np.concatenate(sequences)
    return RaggedBatch(
        ids=ids,
        type_ids=np.zeros_like(ids),
        offsets=np.cumsum([0, *map(len, sequences)], dtype=np.int32),
        prompt_tokens=np.zeros(len(sequences), np.int32),
        rows=tuple(rows),
        threads=threads,
    )


@pytest.fixture
def engine(load):
    return TorchEngine(load(), threads=2)


@pytest.mark.parametrize("want", [MEAN, BOTH])
def test_pooling_in_the_engine_is_that_of_the_pipeline(engine, sequences, want):
    rows = [BatchRow(index, want) for index in range(len(sequences))]
    pooled = engine.run(batch(sequences, rows)).rows
    hidden = engine.run(batch(sequences, [BatchRow(index, WantHidden()) for index in range(len(sequences))])).rows
    for ours, states in zip(pooled, hidden, strict=True):
        np.testing.assert_allclose(ours, pool(states, want.spec, prompt_tokens=0), atol=1e-6)


def test_rows_come_in_their_own_order_and_one_sequence_serves_several(engine, sequences):
    rows = [BatchRow(4, MEAN), BatchRow(0, WantHidden()), BatchRow(4, MEAN, layer=1), BatchRow(4, MEAN, layer=3)]
    deep, hidden, shallow, same = engine.run(batch(sequences, rows)).rows
    assert hidden.shape == (len(sequences[0]), 32)
    np.testing.assert_array_equal(deep, same)
    assert np.abs(deep - shallow).max() > 0.01


def test_the_number_of_threads_does_not_change_the_answer(engine, sequences):
    rows = [BatchRow(index, MEAN) for index in range(len(sequences))]
    one, two = (np.stack(engine.run(batch(sequences, rows, threads=n)).rows) for n in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_many_threads_may_run_at_once(engine, sequences):
    expected = [engine.run(batch([ids], [BatchRow(0, MEAN)])).rows[0] for ids in sequences]

    def ask(number):
        index = number % len(sequences)
        return np.abs(
            engine.run(batch([sequences[index]], [BatchRow(0, MEAN)], threads=1)).rows[0] - expected[index]
        ).max()

    with ThreadPoolExecutor(4) as threads:
        assert max(threads.map(ask, range(80))) < 1e-5
    assert threading.active_count() < 20


def test_the_plan_grows_with_the_tokens_and_covers_the_hidden_states(engine):
    small, large = (engine.plan_bytes(BatchShape(1, tokens, tokens)) for tokens in (10, 1000))
    assert large == 100 * small
    assert small >= 10 * 32 * 4
