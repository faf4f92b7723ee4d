"""A pool over the toy backend and one tiny checkpoint."""

import asyncio

import pytest
from vsr_core.contract import CatalogEntry
from vsr_core.models import ModelPool, ModelSources
from vsr_core.plugins import BackendInstances


@pytest.fixture
def instances(host):
    return BackendInstances(host)


@pytest.fixture
def toy(instances):
    return instances.adapter("toy")


@pytest.fixture
def sources(tmp_path, host, checkpoint):
    catalog = {
        "mini": CatalogEntry(name="mini", source=checkpoint.name),
        "gone": CatalogEntry(name="gone", source="nowhere"),
    }
    return ModelSources(catalog, host.families, relative_to=tmp_path)


@pytest.fixture
def pool(instances, sources):
    pool = ModelPool(instances, sources, close_handle=lambda handle: asyncio.run(handle.close()), hold_off=0.3)
    yield pool
    pool.close(5)
