from __future__ import annotations

import importlib.metadata
import subprocess
import sys
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
from vsr_core.errors import LoadError
from vsr_core.plugins import BackendInstances, PluginHost, PluginSettings
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_openvino.adapter import OpenVinoAdapter

REASON = "this version of vsr-openvino has no engine yet: it cannot run models"


@pytest.fixture
def adapter():
    return OpenVinoAdapter(BackendContext(name="openvino"))


def test_every_capability_and_every_feature_is_refused_with_the_reason(adapter):
    declared = adapter.capabilities()
    for capability in Capability:
        for feature in (None, *Feature):
            query = CapabilityQuery(capability=capability, artifact=Artifact.OPENVINO_IR, feature=feature)
            assert declared.decide(query) == Refused("not_implemented", REASON)


def test_declaring_imports_no_runtime():
    program = (
        "import sys; from vsr_core.contract import BackendContext; from vsr_openvino.adapter import OpenVinoAdapter;"
        "OpenVinoAdapter(BackendContext(name='openvino')).capabilities();"
        "sys.exit('openvino' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_probe_reports_devices_dtypes_and_that_there_is_no_engine(adapter):
    found = adapter.probe()
    assert (found.usable, found.reason) == (False, REASON)
    assert found.versions == {"openvino": importlib.metadata.version("openvino")}
    assert "cpu" in found.devices
    assert "float32" in found.dtypes
    assert any(note.startswith("cpu is ") for note in found.notes)


def test_a_runtime_that_cannot_be_imported_is_an_answer(adapter, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    found = adapter.probe()
    assert not found.usable
    assert found.reason.startswith("OpenVINO cannot be used: ")


def test_loading_fails_with_the_same_reason(adapter):
    request = LoadRequest(
        backend_id=BackendId("openvino", "minilm"),
        entry=CatalogEntry(name="minilm"),
        path=Path("minilm"),
        spec=ModelSpec(capabilities=(Capability.EMBEDDING,), family="bert", artifact=Artifact.OPENVINO_IR),
    )
    with pytest.raises(LoadError, match=REASON) as caught:
        adapter.load(request)
    assert caught.value.backend_id == "openvino:minilm"


def test_the_installed_plugin_offers_the_backend():
    host = PluginHost.discover(PluginSettings(only=("vsr-openvino",)), environ={})
    assert list(host.backends) == ["openvino"]
    assert BackendInstances(host).probe("openvino").reason == REASON
