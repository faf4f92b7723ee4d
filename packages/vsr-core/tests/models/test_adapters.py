"""Adapters keep their base loaded, and the least recently used one goes where there are too many."""

import asyncio

import numpy as np
import pytest
from safetensors.numpy import save_file
from vsr_core.contract import BackendId, CallContext, CatalogEntry
from vsr_core.errors import NotReadyError
from vsr_core.models import ModelPool, ModelSources
from vsr_core.plugins import BackendInstances
from vsr_core.plugins.adapting import InstanceSettings

CALL = CallContext(request_id="r")
BASE, NAMES = BackendId("toy", "mini"), ("a", "b", "c")
A, B, C = (BackendId("toy", name) for name in NAMES)
LORA = '{"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 2, "lora_alpha": 2, "target_modules": ["query"]}'


@pytest.fixture
def catalog(tmp_path, checkpoint):
    folder = tmp_path / "lora"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(LORA)
    save_file({"base_model.model.classifier.weight": np.ones((2, 8), np.float32)}, folder / "adapter_model.safetensors")
    adapters = {name: CatalogEntry(name=name, base="mini", adapter="lora", labels=("x", "y")) for name in NAMES}
    return {"mini": CatalogEntry(name="mini", source=checkpoint.name)} | adapters


@pytest.fixture
def pool(tmp_path, host, catalog):
    instances = BackendInstances(host, {"toy": InstanceSettings(name="toy", adapter="toy", max_adapters=2)})
    sources = ModelSources(catalog, host.families, relative_to=tmp_path)
    pool = ModelPool(instances, sources, close_handle=lambda handle: asyncio.run(handle.close()))
    yield pool
    pool.close(5)


def use(pool, *ids):
    for backend_id in ids:
        pool.lease(backend_id, CALL).release()


def test_a_base_tells_which_adapters_are_loaded_on_it(pool):
    use(pool, B, A)
    assert pool.info(BASE).adapters == ("a", "b")
    pool.unload(A)
    assert pool.info(BASE).adapters == ("b",)


def test_one_adapter_too_many_sends_the_least_recently_used_one_away(pool):
    use(pool, A, B, A, C)
    assert pool.loaded() == (A, C, BASE)
    use(pool, B)
    assert pool.loaded() == (B, C, BASE)


def test_an_adapter_that_is_sent_away_answers_what_it_was_asked_first(pool):
    lease = pool.lease(A, CALL)
    use(pool, B, C)
    assert A not in pool.loaded()
    assert not lease.handle.closed
    lease.release()


def test_an_adapter_that_is_swapped_does_not_count_twice(pool):
    use(pool, A, B)
    pool.swap(B)
    assert pool.loaded() == (A, B, BASE)


def test_a_base_is_not_unloaded_under_its_adapters(pool):
    use(pool, A, B)
    with pytest.raises(NotReadyError, match="toy:mini is the base of adapters that are loaded: unload a, b first"):
        pool.unload(BASE)
    assert pool.loaded() == (A, B, BASE)
    for backend_id in (A, B, BASE):
        assert pool.unload(backend_id, timeout=5)


def test_after_a_swap_of_the_base_its_adapters_stay_on_the_old_one_until_they_are_loaded_anew(pool):
    use(pool, A)
    pool.swap(BASE)
    assert pool.info(BASE).adapters == ()
    pool.swap(A)
    assert pool.info(BASE).adapters == ("a",)
