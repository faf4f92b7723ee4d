from __future__ import annotations

import numpy as np
import pytest
from vsr_core.contract import PoolingSpec
from vsr_core.local import RowWant, WantHidden, WantPooled, WorkItem, pool

MEAN, BOTH = PoolingSpec(modes=("mean",)), PoolingSpec(modes=("mean", "max"))


@pytest.fixture
def run(batcher):
    """Runs one sequence of three tokens for several wants."""

    def run(engine, *wants, prompt_tokens=0):
        ids = np.array([5, 6, 7], np.int32)
        rows = tuple(RowWant(want) for want in wants)
        return batcher(engine).submit([WorkItem(ids, np.zeros_like(ids), prompt_tokens, rows)]).result(10)[0]

    return run


def test_an_engine_that_pools_is_left_to_it(toy, run):
    engine = toy(reduces=frozenset({"mean", "max"}))
    run(engine, WantPooled(MEAN), WantPooled(BOTH))
    assert {row.want.tag for row in engine.batches[0].rows} == {"pooled"}


def test_what_an_engine_does_not_pool_is_pooled_here(toy, run):
    engine = toy(reduces=frozenset({"mean"}))
    mean, both, hidden = run(engine, WantPooled(MEAN), WantPooled(BOTH), WantHidden())
    assert [row.want.tag for row in engine.batches[0].rows] == ["pooled", "hidden", "hidden"]
    np.testing.assert_allclose(mean, pool(hidden, MEAN), atol=1e-6)
    np.testing.assert_allclose(both, pool(hidden, BOTH), atol=1e-6)


def test_prompts_are_left_out_here_as_in_the_engine(toy, run):
    spec = PoolingSpec(modes=("mean",), include_prompt=False)
    [here] = run(toy(), WantPooled(spec), prompt_tokens=2)
    [there] = run(toy(reduces=frozenset({"mean"})), WantPooled(spec), prompt_tokens=2)
    np.testing.assert_allclose(here, there, atol=1e-6)
