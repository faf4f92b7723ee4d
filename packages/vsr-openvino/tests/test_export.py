"""An export to OpenVINO IR, run with OpenVINO itself, against transformers."""

import sys

import numpy as np
import openvino
import openvino.opset13 as opset
import pytest
import torch
from transformers import AutoModelForSequenceClassification  # the import alone may take as long as a test may
from transformers.utils import logging
from vsr_core import Runtime
from vsr_core.catalog import check_files, read_manifest
from vsr_core.errors import InvalidInputError, PluginError
from vsr_core.local import NumpyHead
from vsr_core.testing import EncoderShape, write_encoder
from vsr_openvino.reading import read_graph
from vsr_openvino.runner import OpenVinoRunner

pytestmark = pytest.mark.timeout(120)  # tracing takes seconds, and many of them on a busy machine

LENGTHS = (3, 61, 1, 12)
"""With a window of 8, the short ones have many windows of padding alone."""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source") / "m"
    return write_encoder(folder, "modernbert", head="sequence", shape=EncoderShape(layers=3))


@pytest.fixture(scope="module")
def exported(source):
    with Runtime({"catalog": {"m": {"source": str(source)}}}) as runtime:
        return runtime.export("m", to="openvino", out=source.with_name("out"), layers=[1])


@pytest.fixture(scope="module")
def model(source):
    logging.disable_progress_bar()
    return AutoModelForSequenceClassification.from_pretrained(source, dtype=torch.float32).eval()


def test_exits_and_head_are_those_of_transformers_among_much_padding(exported, model):
    manifest = read_manifest(exported.folder)
    check_files(exported.folder, manifest)
    compiled = openvino.Core().compile_model(
        str(exported.folder / "openvino_model.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    source = np.random.default_rng(3)
    ids, mask = np.zeros((4, 61), np.int64), np.zeros((4, 61), np.int64)
    for row, length in enumerate(LENGTHS):
        ids[row, :length], mask[row, :length] = source.integers(5, 90, length), 1
    found = compiled({"input_ids": ids, "attention_mask": mask})
    head = NumpyHead.read(exported.folder, manifest.head, hidden_size=32)
    for row, length in enumerate(LENGTHS):
        with torch.no_grad():
            output = model(torch.from_numpy(ids[row : row + 1, :length]), output_hidden_states=True)
            first = model.model.final_norm(output.hidden_states[1])[0]
        np.testing.assert_allclose(found["hidden_1"][row, :length], first.numpy(), atol=1e-4)
        logits = head.logits(found["hidden_3"][row, :length])
        np.testing.assert_allclose(logits, output.logits[0].numpy(), atol=1e-4)


def test_weights_are_float32_and_the_report_says_what_was_written(exported):
    manifest = read_manifest(exported.folder)
    assert {"openvino_model.xml", "openvino_model.bin", "head.safetensors"} <= set(manifest.files)
    assert not [name for name in exported.files if name.endswith(".onnx")]
    assert exported.layers == manifest.exit_layers == (1, 3)
    assert exported.max_abs == manifest.tolerance.max_abs <= 1e-4
    assert "openvino" in manifest.versions
    graph = openvino.Core().read_model(str(exported.folder / "openvino_model.xml"))
    constants = {str(node.get_element_type()) for node in graph.get_ops() if node.get_type_name() == "Constant"}
    assert not {name for name in constants if "16" in name}


def test_a_runtime_answers_from_the_folder(exported, source):
    catalog = {"a": {"source": str(source)}, "b": {"source": str(exported.folder)}}
    with Runtime({"catalog": catalog}) as runtime:
        answer = runtime.classify("the law of the sea", model="openvino:b", layer=1)
    assert answer.results[0].label in ("business", "law", "health", "other")


def test_8_bits_are_refused_with_the_way_out(source, tmp_path):
    with (
        Runtime({"catalog": {"m": {"source": str(source)}}}) as runtime,
        pytest.raises(InvalidInputError, match="export to 'onnx'") as caught,
    ):
        runtime.export("m", to="openvino", out=tmp_path / "out", quantize="int8")
    assert caught.value.param == "quantize"
    assert list(tmp_path.iterdir()) == []


def test_without_vsr_onnx_the_extra_is_named(source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vsr_onnx.export", None)
    with (
        Runtime({"catalog": {"m": {"source": str(source)}}}) as runtime,
        pytest.raises(PluginError, match=r'pip install "vsr-openvino\[export\]"'),
    ):
        runtime.export("m", to="openvino", out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_attention_is_planned_as_fused_where_the_compiled_graph_has_no_softmax_left(exported, compiler, tmp_path):
    fused = read_graph(exported.folder / "openvino_model.xml")
    assert OpenVinoRunner([fused], compiler(), native="hidden_3").fuses_attention
    ids = opset.parameter([-1, -1], np.int64, name="input_ids")
    ids.output(0).set_names({"input_ids"})
    scores = opset.softmax(opset.convert(ids, np.float32), axis=1)
    scores.output(0).set_names({"hidden_1"})
    openvino.save_model(openvino.Model([scores], [ids], "m"), tmp_path / "m.xml", compress_to_fp16=False)
    assert not OpenVinoRunner([read_graph(tmp_path / "m.xml")], compiler(), native="hidden_1").fuses_attention
