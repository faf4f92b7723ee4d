"""The backend says what it can do and what it finds, without importing ONNX Runtime before that is needed."""

import importlib.metadata
import subprocess
import sys

import pytest
from vsr_core import Runtime
from vsr_core.contract import BackendContext, CapabilityQuery, Refused, Supported
from vsr_core.errors import CapabilityUnmetError, ConfigError
from vsr_core.plugins import BackendInstances, PluginHost, PluginSettings
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.testing import write_bert
from vsr_onnx.adapter import OnnxAdapter
from vsr_onnx.options import OnnxOptions

SERVED = (
    Capability.EMBEDDING,
    Capability.SEQUENCE_CLASSIFICATION,
    Capability.PAIR_CLASSIFICATION,
    Capability.TOKEN_CLASSIFICATION,
    Capability.RERANKING,
)


@pytest.fixture
def adapter():
    return OnnxAdapter(BackendContext(name="onnx", threads=1))


@pytest.mark.parametrize("capability", Capability)
@pytest.mark.parametrize("artifact", Artifact)
def test_encoders_are_served_from_graphs_of_any_family_and_nothing_else(adapter, capability, artifact):
    declared = adapter.capabilities()
    served = capability in SERVED and artifact in (Artifact.ONNX, Artifact.QUANTIZED)
    for family in ("bert", "mmbert", "a-plugins-own"):
        verdict = declared.decide(CapabilityQuery(capability=capability, family=family, artifact=artifact))
        assert isinstance(verdict, Supported if served else Refused)
        assert served or verdict.reason


def test_features_are_declared_where_they_hold(adapter):
    declared = adapter.capabilities()

    def holds(feature, capability=Capability.EMBEDDING, artifact=Artifact.ONNX):
        return declared.supports(CapabilityQuery(capability=capability, artifact=artifact, feature=feature))

    everywhere = {Feature.LAYER_EXIT, Feature.PROVIDER_SELECTION, Feature.UNLOAD}
    everywhere |= {Feature.CONCURRENT_LOAD, Feature.HOT_SWAP}
    assert {feature for feature in Feature if holds(feature)} == everywhere | {Feature.BATCHING, Feature.DIMENSIONS}
    assert {feature for feature in Feature if holds(feature, Capability.RERANKING)} == everywhere | {Feature.BATCHING}
    assert not holds(Feature.BATCHING, artifact=Artifact.QUANTIZED)
    assert not any(holds(feature, Capability.GENERATION) for feature in Feature)


def test_declaring_imports_no_runtime():
    program = (
        "import sys; from vsr_core.contract import BackendContext; from vsr_onnx.adapter import OnnxAdapter;"
        "OnnxAdapter(BackendContext(name='onnx')).capabilities();"
        "sys.exit(bool({'onnxruntime', 'onnx', 'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_serving_needs_neither_torch_nor_onnx(exported):
    folder, _ = exported()
    program = (
        "import sys; from vsr_core import Runtime\n"
        f"with Runtime({{'catalog': {{'m': {{'source': {str(folder)!r}}}}}}}) as vsr: vsr.embed('a', model='onnx:m')\n"
        "sys.exit(bool({'onnx', 'torch', 'transformers', 'google.protobuf'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_probe_reports_the_providers_that_start(adapter):
    found = adapter.probe()
    assert (found.usable, found.reason) == (True, None)
    assert "CPUExecutionProvider" in found.providers
    assert "cpu" in found.devices
    for name, version in found.versions.items():
        assert name.startswith("onnxruntime")
        assert version == importlib.metadata.version(name)


def test_a_provider_that_is_built_in_and_does_not_start_is_noted_and_not_listed(adapter, monkeypatch):
    import onnxruntime
    from vsr_onnx import providers

    built_in = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: built_in)
    monkeypatch.setattr(providers, "starts", lambda provider: provider == "CPUExecutionProvider")
    found = adapter.probe()
    assert found.providers == ("CPUExecutionProvider",)
    assert "CUDAExecutionProvider built in, and not to be started here" in found.notes


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


def test_weights_that_are_no_graph_are_refused_before_they_are_loaded(tmp_path):
    folder = write_bert(tmp_path / "m")
    with (
        Runtime({"catalog": {"m": {"source": str(folder)}}, "backends": {"onnx": {}}}) as vsr,
        pytest.raises(CapabilityUnmetError, match="export the checkpoint with 'vsr export'"),
    ):
        vsr.embed("a", model="onnx:m")


def test_the_installed_plugin_offers_the_backend_with_its_options():
    host = PluginHost.discover(PluginSettings(only=("vsr-onnx",)), environ={})
    assert list(host.backends) == ["onnx"]
    assert BackendInstances(host).probe("onnx").usable


def test_options_are_checked_against_the_list(exported):
    folder, _ = exported()

    def configured(**options):
        return Runtime({"catalog": {"m": {"source": str(folder)}}, "backends": {"onnx": options}})

    with configured(arena=False, graph_optimization="basic") as vsr:
        assert vsr.embed("a", model="onnx:m").vectors.shape == (1, 32)
    for wrong in ({"session.intra_op.spin": "1"}, {"arenas": True}, {"graph_optimization": "most"}):
        with configured(**wrong) as vsr, pytest.raises(ConfigError, match=next(iter(wrong))):
            vsr.embed("a", model="onnx:m")


def test_options_have_the_defaults_of_a_server_that_shares_its_processor():
    options = OnnxOptions()
    assert (options.spinning, options.denormals_as_zero, options.graph_optimization) == (False, True, "all")
