"""The engine answers rows: pooled, hidden, from any layer, from any thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from vsr_candle_torch.engine import TorchEngine
from vsr_core.contract import PoolingSpec
from vsr_core.local import BatchRow, BatchShape, RaggedBatch, WantHidden, WantLogits, WantPooled, pool

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


def test_a_row_may_want_the_logits_and_another_the_vectors_of_the_same_text(written, load, sequences, logits):
    network = load(written("bert", "sequence"))
    engine = TorchEngine(network, threads=2)
    assert "logits" in engine.reduces
    rows = [BatchRow(1, MEAN), BatchRow(2, WantLogits()), BatchRow(2, WantLogits(), layer=1), BatchRow(0, WantHidden())]
    pooled, last, first, states = engine.run(batch(sequences, rows)).rows
    np.testing.assert_allclose(last, logits(network, sequences)[2], atol=1e-6)
    np.testing.assert_allclose(first, logits(network, sequences, layer=1)[2], atol=1e-6)
    assert (pooled.shape, states.shape) == ((32,), (len(sequences[0]), 32))


def test_a_model_without_a_head_gives_no_logits(engine, sequences):
    assert "logits" not in engine.reduces
    with pytest.raises(ValueError, match="without a classification head"):
        engine.run(batch(sequences, [BatchRow(0, WantLogits())]))


def test_the_plan_grows_with_the_tokens_and_covers_the_hidden_states(engine):
    plans = [engine.plan_bytes(BatchShape(1, tokens, tokens)) for tokens in (2000, 4000, 8000)]
    assert plans[2] - plans[1] == pytest.approx(2 * (plans[1] - plans[0]), rel=0.05)
    assert plans[0] >= 2000 * 32 * 4
