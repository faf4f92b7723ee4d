from __future__ import annotations

import numpy as np
import pytest
from vsr_core.catalog import inspect_checkpoint
from vsr_core.catalog.weights import available
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Artifact

ONE = {"a": np.ones((2, 8), np.float32)}
TWO = {"b": np.ones((2, 8), np.float16)}


def test_safetensors_go_before_the_other_forms_and_all_are_known():
    names = ["model.safetensors", "onnx/model.onnx", "onnx/model_O4.onnx", "openvino_model.xml", "openvino_model.bin"]

    assert available(names) == {
        Artifact.FULL: ("model.safetensors",),
        Artifact.ONNX: ("onnx/model.onnx",),
        Artifact.OPENVINO_IR: ("openvino_model.xml", "openvino_model.bin"),
    }


def test_external_data_belongs_to_its_graph():
    names = ["a.onnx", "a.onnx.data", "a.onnx_data_1", "b.onnx.data"]

    assert available(names) == {Artifact.ONNX: ("a.onnx", "a.onnx.data", "a.onnx_data_1")}


def test_several_graphs_and_no_usual_name_are_not_guessed_between():
    assert available(["a.onnx", "b.onnx"]) == {Artifact.ONNX: ()}


def test_a_tokenizers_graph_is_not_the_model():
    names = ["openvino_tokenizer.xml", "openvino_tokenizer.bin", "m.xml", "m.bin"]

    assert available(names) == {Artifact.OPENVINO_IR: ("m.xml", "m.bin")}


def test_a_sharded_model_needs_its_index_to_agree(write, bert, families):
    files = {
        "config.json": bert,
        "model-00001-of-00002.safetensors": ONE,
        "model-00002-of-00002.safetensors": TWO,
        "model.safetensors.index.json": {
            "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
        },
    }

    facts = inspect_checkpoint(write(files), families)

    assert facts.weights == ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    assert "model.safetensors.index.json" in facts.files


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        ({"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}, "which is not there"),
        ({"a": "../../other.safetensors"}, "leaves the model's folder"),
        ({"missing": "model-00001-of-00002.safetensors"}, "does not hold it"),
    ],
)
def test_an_index_that_disagrees_is_refused(places, reason, write, bert, families):
    files = {
        "config.json": bert,
        "model-00001-of-00002.safetensors": ONE,
        "model.safetensors.index.json": {"weight_map": places},
    }

    with pytest.raises(CheckpointError, match=reason):
        inspect_checkpoint(write(files), families)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pkl", "tf_model.h5", "adapter_model.bin"])
def test_pickles_are_never_weights(name, write, bert, families):
    folder = write({"config.json": bert, name: b"\x80\x04."})

    assert "loading those would run code" in inspect_checkpoint(folder, families).refusals[0]
    with pytest.raises(CheckpointError, match="pickled weights are refused"):
        inspect_checkpoint(folder / name, families)


def test_a_graph_of_openvino_without_its_weights_is_named_with_what_is_missing(write, bert, families):
    files = {"config.json": bert, "openvino_model.xml": "<net/>", "openvino_tokenizer.xml": "<net/>"}
    (first, *_) = inspect_checkpoint(write(files), families).refusals
    assert first.startswith("openvino_model.xml has its weights in openvino_model.bin, which is missing")


def test_a_folder_without_weights_says_what_it_looked_for(write, bert, families):
    assert ".safetensors, .onnx" in inspect_checkpoint(write({"config.json": bert}), families).refusals[0]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "is empty"), (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer")]
)
def test_a_graph_that_is_not_there_yet_is_refused(content, reason, write, bert, families):
    with pytest.raises(CheckpointError, match=reason):
        inspect_checkpoint(write({"config.json": bert, "model.onnx": content}), families)


def test_an_ir_that_is_named_without_its_weights_is_refused(write, families):
    facts = inspect_checkpoint(write({"m.xml": "<net/>"}) / "m.xml", families)
    assert facts.refusals[0].startswith("m.xml has its weights in m.bin, which is missing: copy it too")


def test_an_ir_that_is_asked_for_without_its_weights_is_refused_beside_another_form(write, bert, families):
    folder = write({"config.json": bert, "model.onnx": b"\x08", "m.xml": "<net/>"})
    facts = inspect_checkpoint(folder, families, artifact=Artifact.OPENVINO_IR)
    assert facts.refusals[0].startswith("m.xml has its weights in m.bin, which is missing: copy it too")
    assert inspect_checkpoint(folder, families).refusals == ()


def test_a_graph_can_be_named_where_there_are_several(write, bert, families):
    folder = write({"config.json": bert, "a.onnx": b"\x08", "b.onnx": b"\x08", "b.onnx.data": b"1"})

    facts = inspect_checkpoint(folder / "b.onnx", families)

    assert facts.weights == ("b.onnx", "b.onnx.data")
    assert (facts.artifact, facts.family, facts.refusals) == (Artifact.ONNX, "bert", ())
    assert "several onnx weights" in inspect_checkpoint(folder, families).refusals[0]


def test_the_files_themselves_say_how_they_are_stored(write, bert, families):
    facts = inspect_checkpoint(
        write({"config.json": bert | {"torch_dtype": "float32"}, "model.safetensors": TWO}), families
    )

    assert facts.stored_dtype == "float16"


def test_quantized_and_merged_weights_are_told_from_plain_ones(write, bert, families):
    quantized = write(
        {"config.json": bert | {"quantization_config": {"quant_method": "gptq"}}, "model.safetensors": ONE}, "q"
    )
    merged = write({"config.json": bert, "model.safetensors": ONE, "lora_config.json": {}}, "m")

    assert inspect_checkpoint(quantized, families).artifact is Artifact.QUANTIZED
    assert inspect_checkpoint(merged, families).artifact is Artifact.MERGED_LORA
