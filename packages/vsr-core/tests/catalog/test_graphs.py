from __future__ import annotations

import pytest
from vsr_core.catalog import exit_graphs
from vsr_core.catalog.graphs import exit_layer, is_quantized
from vsr_core.catalog.weights import available
from vsr_core.taxonomy import Artifact


@pytest.mark.parametrize(
    "name",
    [
        "model_quantized.onnx",
        "onnx/model_int8.onnx",
        "model_uint8.onnx",
        "model_qint8_avx512_vnni.onnx",
        "model_quint8_avx2.onnx",
        "model_qint8_arm64.onnx",
        "model_q4f16.onnx",
        "model_bnb4.onnx",
        "model-int8.onnx",
        "openvino_model_qint8_quantized.xml",
    ],
)
def test_a_quantised_graph_says_so_at_the_end_of_its_name(name):
    assert is_quantized(name)


@pytest.mark.parametrize(
    "name", ["model.onnx", "model_O4.onnx", "model_fp16.onnx", "quantized/model.onnx", "int8.d.xml"]
)
def test_other_graphs_are_not_taken_for_quantised_ones(name):
    assert not is_quantized(name)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("onnx/layer-6/model.onnx", 6),
        ("layer-11/openvino_model.xml", 11),
        ("onnx/model_layer_6.onnx", 6),
        ("model.onnx", None),
        ("model_layer_0.onnx", None),
        ("player-6/model.onnx", None),
    ],
)
def test_a_graph_of_an_earlier_layer_is_known_by_its_name(name, layer):
    assert exit_layer(name) == layer


def test_exits_belong_to_the_graph_they_are_named_after():
    names = ["model.onnx", "model_layer_6.onnx", "model_layer_6.onnx.data", "model_layer_2.onnx", "other_layer_3.onnx"]

    found = available(names)[Artifact.ONNX]

    assert found == ("model.onnx", "model_layer_2.onnx", "model_layer_6.onnx", "model_layer_6.onnx.data")
    assert exit_graphs(found, 12) == {2: "model_layer_2.onnx", 6: "model_layer_6.onnx", 12: "model.onnx"}


def test_exits_in_folders_may_be_all_there_is():
    names = [f"onnx/layer-{layer}/model.onnx{suffix}" for layer in (6, 12) for suffix in ("", ".data")]

    found = available(names)[Artifact.ONNX]

    assert exit_graphs(found, 12) == {6: "onnx/layer-6/model.onnx", 12: "onnx/layer-12/model.onnx"}
    assert set(found) == set(names)


def test_exits_of_two_models_are_not_guessed_between():
    assert available(["a_layer_2.onnx", "b_layer_4.onnx"]) == {Artifact.ONNX: ()}


def test_a_quantised_graph_never_stands_in_for_another():
    names = ["onnx/model.onnx", "onnx/model_quantized.onnx"]

    assert available(names) == {
        Artifact.ONNX: ("onnx/model.onnx",),
        Artifact.QUANTIZED: ("onnx/model_quantized.onnx",),
    }
    assert available(names[1:]) == {Artifact.QUANTIZED: ("onnx/model_quantized.onnx",)}
    assert available(["a_int8.onnx", "a_int8.xml", "a_int8.bin"]) == {Artifact.QUANTIZED: ()}


def test_graphs_may_lie_at_the_top_where_the_transformer_has_a_folder():
    assert available(["0_Transformer/config.json", "model.onnx"], "0_Transformer") == {Artifact.ONNX: ("model.onnx",)}


def test_the_head_of_an_export_is_not_taken_for_a_model():
    assert available(["head.safetensors", "model.onnx"]) == {Artifact.ONNX: ("model.onnx",)}
