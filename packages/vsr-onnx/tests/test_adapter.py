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
from vsr_onnx.adapter import OnnxAdapter

REASON = "this version of vsr-onnx has no engine yet: it cannot run ONNX models"


@pytest.fixture
def adapter():
    return OnnxAdapter(BackendContext(name="onnx"))


def test_every_capability_and_every_feature_is_refused_with_the_reason(adapter):
    declared = adapter.capabilities()
    for capability in Capability:
        for feature in (None, *Feature):
            query = CapabilityQuery(capability=capability, artifact=Artifact.ONNX, family="bert", feature=feature)
            assert declared.decide(query) == Refused("not_implemented", REASON)


def test_declaring_imports_no_runtime():
    program = (
        "import sys; from vsr_core.contract import BackendContext; from vsr_onnx.adapter import OnnxAdapter;"
        "OnnxAdapter(BackendContext(name='onnx')).capabilities();"
        "sys.exit('onnxruntime' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_probe_reports_the_runtime_and_that_there_is_no_engine(adapter):
    found = adapter.probe()
    assert (found.usable, found.reason) == (False, REASON)
    assert "CPUExecutionProvider" in found.providers
    assert "cpu" in found.devices
    for name, version in found.versions.items():
        assert name.startswith("onnxruntime")
        assert version == importlib.metadata.version(name)
    assert any("compiled into ONNX Runtime" in note for note in found.notes)


def test_two_flavours_at_once_are_noted(adapter, monkeypatch):
    both = {"onnxruntime": ["onnxruntime-gpu", "onnxruntime", "onnxruntime"]}
    monkeypatch.setattr("vsr_onnx.adapter.packages_distributions", lambda: both)
    monkeypatch.setattr("vsr_onnx.adapter.version", lambda name: "1.0")
    found = adapter.probe()
    assert found.versions == {"onnxruntime": "1.0", "onnxruntime-gpu": "1.0"}
    assert found.notes[-1] == (
        "onnxruntime and onnxruntime-gpu overwrite each other's files: uninstall all of them, then install one"
    )


def test_a_runtime_that_cannot_be_imported_is_an_answer(adapter, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    found = adapter.probe()
    assert not found.usable
    assert found.reason.startswith("ONNX Runtime cannot be imported: ")


def test_loading_fails_with_the_same_reason(adapter):
    request = LoadRequest(
        backend_id=BackendId("onnx", "minilm"),
        entry=CatalogEntry(name="minilm"),
        path=Path("minilm"),
        spec=ModelSpec(capabilities=(Capability.EMBEDDING,), family="bert", artifact=Artifact.ONNX),
    )
    with pytest.raises(LoadError, match=REASON) as caught:
        adapter.load(request)
    assert caught.value.backend_id == "onnx:minilm"


def test_the_installed_plugin_offers_the_backend():
    host = PluginHost.discover(PluginSettings(only=("vsr-onnx",)), environ={})
    assert list(host.backends) == ["onnx"]
    assert BackendInstances(host).probe("onnx").reason == REASON
