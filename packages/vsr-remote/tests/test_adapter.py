from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from vsr_core.contract import (
    BackendContext,
    BackendId,
    CapabilityQuery,
    CatalogEntry,
    LoadRequest,
    ModelSpec,
    Refused,
)
from vsr_core.errors import LoadError, ModelNotFoundError
from vsr_core.plugins import BackendInstances, InstanceSettings, PluginHost, PluginSettings
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_remote.adapter import RemoteAdapter

REASON = "this version of vsr-remote speaks no provider's dialect yet"


@pytest.fixture
def host():
    return PluginHost.discover(PluginSettings(only=("vsr-remote",)), environ={})


def test_every_capability_and_every_feature_is_refused_with_the_reason():
    declared = RemoteAdapter(BackendContext(name="openai")).capabilities()
    for capability in Capability:
        for feature in (None, *Feature):
            query = CapabilityQuery(capability=capability, artifact=Artifact.REMOTE, feature=feature)
            assert declared.decide(query) == Refused("not_implemented", REASON)


def test_both_providers_have_an_open_namespace_and_need_a_configuration(host):
    assert list(host.backends) == ["ollama", "openai"]
    for contribution in host.backends.values():
        assert contribution.descriptor.open_namespace
        assert contribution.descriptor.configured_only
    with pytest.raises(ModelNotFoundError, match="only where the configuration has an instance of it"):
        BackendInstances(host).adapter("openai")


@pytest.mark.parametrize("adapter", ["openai", "ollama"])
def test_a_configured_instance_says_why_it_cannot_be_used(host, adapter):
    instances = BackendInstances(host, {"work": InstanceSettings(name="work", adapter=adapter)})
    assert instances.names() == ("work",)
    found = instances.probe("work")
    assert (found.usable, found.reason) == (False, REASON)
    assert found.versions == {"httpx": importlib.metadata.version("httpx")}


def test_loading_fails_with_the_same_reason():
    request = LoadRequest(
        backend_id=BackendId("work", "gpt-4o"),
        entry=CatalogEntry(name="gpt-4o"),
        path=Path(),
        spec=ModelSpec(capabilities=(Capability.GENERATION,), family="gpt", artifact=Artifact.REMOTE),
    )
    with pytest.raises(LoadError, match=REASON) as caught:
        RemoteAdapter(BackendContext(name="work")).load(request)
    assert caught.value.backend_id == "work:gpt-4o"
