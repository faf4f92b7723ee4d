"""What is refused before anything is traced, and that nothing is left behind."""

import dataclasses
import sys

import pytest
from safetensors.numpy import load_file, save_file
from vsr_core.errors import CheckpointError, PluginError
from vsr_core.taxonomy import Artifact
from vsr_onnx.export import export

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def source(written):
    return written("bert", "sequence")


@pytest.fixture
def request_(source, tmp_path, order):
    return order(source, tmp_path / "out")


def test_a_package_that_is_missing_is_named_with_the_extra(request_, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(PluginError, match=r'onnxscript.*pip install "vsr-onnx\[export\]"') as caught:
        export(request_)
    assert caught.value.distribution == "vsr-onnx"
    assert list(tmp_path.iterdir()) == []


def test_a_family_that_is_not_exported_is_refused_by_name(request_, tmp_path):
    spec = dataclasses.replace(request_.spec, family="qwen3")
    with pytest.raises(CheckpointError, match="'qwen3' is not exported, only albert, bert"):
        export(dataclasses.replace(request_, spec=spec))
    assert list(tmp_path.iterdir()) == []


def test_weights_in_another_form_are_refused(request_):
    spec = dataclasses.replace(request_.spec, artifact=Artifact.LORA_ADAPTER)
    with pytest.raises(CheckpointError, match="only whole safetensors"):
        export(dataclasses.replace(request_, spec=spec))


@pytest.mark.parametrize("lost", ["bert.encoder.layer.1.output.dense.weight", "classifier.weight"])
def test_a_checkpoint_that_lacks_a_tensor_is_refused(written, tmp_path, order, lost):
    source = written("bert", "sequence")
    tensors = load_file(source / "model.safetensors")
    del tensors[lost]
    save_file(tensors, source / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"lack .*{lost}"):
        export(order(source, tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("raised", [KeyboardInterrupt, OSError(28, "No space left on device"), SystemExit])
def test_an_export_that_is_stopped_leaves_nothing(request_, tmp_path, monkeypatch, raised):
    def stop(*_):
        raise raised

    monkeypatch.setattr("vsr_onnx.export.graph.write_graph", stop)
    with pytest.raises(raised if isinstance(raised, type) else type(raised)):
        export(request_)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_torch_cannot_trace_is_one_line(request_, tmp_path, monkeypatch):
    def forward(*_, **__):
        raise ValueError("no way")

    monkeypatch.setattr("transformers.BertModel.forward", forward)
    with pytest.raises(PluginError, match="torch cannot trace the model") as caught:
        export(request_)
    assert "\n" not in caught.value.message
    assert "\x1b" not in caught.value.message
    assert list(tmp_path.iterdir()) == []
