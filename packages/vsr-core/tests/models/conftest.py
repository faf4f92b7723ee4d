"""A pool over the toy backend and one tiny checkpoint."""

import asyncio

import pytest
from vsr_core.contract import BackendId, CatalogEntry
from vsr_core.models import ModelPool, ModelSources
from vsr_core.plugins import BackendInstances, PluginHost
from vsr_core.testing import ToyPlugin, write_bert

TOY = BackendId("toy", "mini")


@pytest.fixture
def host():
    host = PluginHost.discover(entry_points=())
    host.register(ToyPlugin(), name="toy")
    return host


@pytest.fixture
def instances(host):
    return BackendInstances(host)


@pytest.fixture
def toy(instances):
    return instances.adapter("toy")


@pytest.fixture
def sources(tmp_path, host):
    write_bert(tmp_path / "mini")
    catalog = {
        "mini": CatalogEntry(name="mini", source="mini"),
        "gone": CatalogEntry(name="gone", source="nowhere"),
    }
    return ModelSources(catalog, host.families, relative_to=tmp_path)


@pytest.fixture
def pool(instances, sources):
    pool = ModelPool(instances, sources, close_handle=lambda handle: asyncio.run(handle.close()), hold_off=0.3)
    yield pool
    pool.close(5)
