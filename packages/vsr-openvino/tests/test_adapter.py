"""The backend says what it can do, looks at this host, and refuses the rest with the reason it listed."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest
from vsr_core import Runtime
from vsr_core.contract import BackendContext, CapabilityQuery, Refused, Supported
from vsr_core.errors import CapabilityUnmetError
from vsr_core.plugins import BackendInstances, PluginHost, PluginSettings
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.testing import write_bert
from vsr_openvino.adapter import CAPABILITIES, OpenVinoBackend


@pytest.fixture
def backend():
    return OpenVinoBackend(BackendContext(name="openvino"))


@pytest.mark.parametrize("artifact", [Artifact.OPENVINO_IR, Artifact.ONNX])
def test_it_serves_encoders_from_ir_and_onnx_whatever_their_family(backend, artifact):
    rules = backend.capabilities()
    for capability in CAPABILITIES:
        for family in (None, "bert", "modernbert", "electra"):
            assert rules.supports(CapabilityQuery(capability=capability, family=family, artifact=artifact))
        assert isinstance(rules.overview(capability), Supported)
        for feature in (Feature.BATCHING, Feature.LAYER_EXIT, Feature.UNLOAD, Feature.HOT_SWAP):
            assert rules.supports(CapabilityQuery(capability=capability, artifact=artifact, feature=feature))
        widths = CapabilityQuery(capability=capability, artifact=artifact, feature=Feature.DIMENSIONS)
        assert rules.supports(widths) is (capability is Capability.EMBEDDING)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (CapabilityQuery(capability=Capability.EMBEDDING, artifact=Artifact.FULL), "vsr export"),
        (CapabilityQuery(capability=Capability.RERANKING, artifact=Artifact.GGUF), "reads OpenVINO IR and ONNX"),
        (CapabilityQuery(capability=Capability.EMBEDDING, artifact=Artifact.QUANTIZED), "states no tolerance"),
        (CapabilityQuery(capability=Capability.GENERATION, artifact=Artifact.OPENVINO_IR), "does not offer"),
        (CapabilityQuery(capability=Capability.MULTIMODAL_EMBEDDING, artifact=Artifact.ONNX), "does not offer"),
        (CapabilityQuery(capability=Capability.EMBEDDING, feature=Feature.STREAMING), "has no streaming"),
        (CapabilityQuery(capability=Capability.GENERATION, feature=Feature.BATCHING), "has no batching for this"),
    ],
)
def test_everything_else_is_refused_with_its_reason(backend, query, reason):
    verdict = backend.capabilities().decide(query)
    assert isinstance(verdict, Refused)
    assert reason in verdict.reason


def test_saying_so_imports_no_framework():
    code = (
        "import sys; from vsr_core.contract import BackendContext; from vsr_openvino.adapter import OpenVinoBackend;"
        "OpenVinoBackend(BackendContext(name='openvino')).capabilities();"
        "sys.exit(bool({'openvino', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_probe_reports_this_host(backend):
    found = backend.probe()
    assert (found.usable, found.reason) == (True, None)
    assert found.versions == {"openvino": importlib.metadata.version("openvino")}
    assert "cpu" in found.devices
    assert "float32" in found.dtypes
    assert any(note.startswith("cpu is ") for note in found.notes)


def test_a_runtime_that_cannot_be_imported_is_an_answer(backend, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.delitem(sys.modules, "vsr_openvino.untracked", raising=False)
    found = backend.probe()
    assert not found.usable
    assert found.reason.startswith("OpenVINO cannot be used: ")


def test_a_checkpoint_in_safetensors_is_refused_before_it_is_loaded(tmp_path):
    catalog = {"m": {"source": str(write_bert(tmp_path / "m")), "backends": ["openvino"]}}
    with Runtime({"catalog": catalog}) as vsr, pytest.raises(CapabilityUnmetError, match="vsr export"):
        vsr.embed("a", model="openvino:m")


def test_the_installed_plugin_offers_the_backend():
    host = PluginHost.discover(PluginSettings(only=("vsr-openvino",)), environ={})
    assert list(host.backends) == ["openvino"]
    assert BackendInstances(host).probe("openvino").usable
