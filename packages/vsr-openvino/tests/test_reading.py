from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import helper, save_model
from vsr_core.errors import CheckpointError
from vsr_openvino.reading import explain, read_graph
from vsr_openvino.runner import OpenVinoRunner


def test_a_graph_says_what_it_reads_and_gives(tmp_path, model, write_ir, write_onnx):
    for graph in (
        read_graph(write_ir(tmp_path / "openvino_model.xml", model)),
        read_graph(write_onnx(tmp_path / "model.onnx", model)),
        read_graph(write_onnx(tmp_path / "beside" / "model.onnx", model, external=True)),
    ):
        assert graph.inputs == ("input_ids", "attention_mask")
        assert graph.outputs == {"hidden_1": 0, "hidden_2": 1}
        assert graph.vocabulary == len(model.embedding)
        assert graph.stored_dtype is None
        assert graph.bytes >= model.embedding.nbytes + sum(weight.nbytes for weight in model.layers)


def test_weights_held_in_a_narrower_dtype_are_noticed(tmp_path, model, write_ir):
    graph = read_graph(write_ir(tmp_path / "openvino_model.xml", model, compress=True))
    assert (graph.stored_dtype, graph.vocabulary) == ("float16", len(model.embedding))


def test_an_ir_without_its_weights_is_refused(tmp_path, model, write_ir):
    path = write_ir(tmp_path / "openvino_model.xml", model)
    path.with_suffix(".bin").unlink()
    with pytest.raises(CheckpointError, match=r"openvino_model\.bin is missing.*copy it beside"):
        read_graph(path)


@pytest.mark.parametrize(
    ("file", "keep", "reason"),
    [
        ("openvino_model.bin", 100, "Incorrect weights in bin file"),
        ("openvino_model.xml", 1000, r"offset \d+"),
        ("openvino_model.xml", 0, "cannot be read"),
    ],
)
def test_an_ir_that_was_cut_short_is_refused(tmp_path, model, write_ir, file, keep, reason):
    path = write_ir(tmp_path / "openvino_model.xml", model)
    (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:keep])
    with pytest.raises(CheckpointError, match=rf"openvino_model\.xml cannot be read: .*{reason}|{reason}"):
        read_graph(path)


def test_an_onnx_file_without_its_external_data_is_refused(tmp_path, model, write_onnx):
    path = write_onnx(tmp_path / "model.onnx", model, external=True)
    data = tmp_path / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"model\.onnx cannot be read: .*model\.onnx\.data.*files beside it"):
        read_graph(path)
    data.unlink()
    with pytest.raises(CheckpointError, match=r"model\.onnx cannot be read: model\.onnx\.data is missing.*copy that"):
        read_graph(path)


def test_an_ir_of_a_newer_openvino_is_refused_with_the_way_out(tmp_path, model, write_ir):
    path = write_ir(tmp_path / "openvino_model.xml", model)
    path.write_text(path.read_text().replace('version="opset1"', 'version="opset99"'))
    with pytest.raises(CheckpointError, match=r"openvino_model\.xml cannot be read: .*opset99: .*upgrade that"):
        read_graph(path)


def test_an_operation_openvino_does_not_know_is_named(tmp_path, model):
    proto = model.proto()
    proto.graph.node.insert(0, helper.make_node("Frobnicate", ["input_ids"], ["other"]))
    proto.graph.node[1].input[1] = "other"
    save_model(proto, tmp_path / "model.onnx")
    with pytest.raises(CheckpointError, match="Frobnicate"):
        read_graph(tmp_path / "model.onnx")


@pytest.mark.parametrize("dims", [(1, "sequence"), ("batch", 128), (1, 128)])
def test_a_graph_of_fixed_sizes_is_refused(tmp_path, model, write_onnx, dims):
    with pytest.raises(CheckpointError, match=r"'input_ids' is not of the shape.*named dimensions"):
        read_graph(write_onnx(tmp_path / "model.onnx", model, dims=dims))


def test_a_graph_that_does_not_read_the_text_is_refused(tmp_path, model):
    proto = model.proto()
    proto.graph.node[0].input[1] = "attention_mask"  # as a trace with one tensor for both inputs has it
    save_model(proto, tmp_path / "model.onnx")
    with pytest.raises(CheckpointError, match=re.escape("nothing in the graph reads its input 'input_ids'")):
        read_graph(tmp_path / "model.onnx")


@pytest.mark.parametrize("external", [True, False])
def test_files_replaced_after_they_were_read_change_nothing(tmp_path, draw, model, write_onnx, compiler, external):
    path = write_onnx(tmp_path / "model.onnx", model, external=external)
    graph = read_graph(path)
    write_onnx(path, draw(seed=5), external=external)  # in place, so that a mapped file would change under us
    runner = OpenVinoRunner([graph], compiler(), native="hidden_2")
    ids = np.array([[3, 1, 4]])
    answer = runner.run({"input_ids": ids, "attention_mask": np.ones_like(ids)}, ["hidden_2"])[0][0]
    np.testing.assert_allclose(answer, model.hidden(ids[0]), atol=1e-5)


def test_an_error_is_told_without_the_places_in_openvinos_sources():
    text = "Exception from src/a.cpp:84:\nCheck 'x' failed at src/b.cpp:9:\nEmpty weights data in bin file!\n\n"
    assert explain(RuntimeError(text)) == "Empty weights data in bin file"
    assert explain(ValueError("")) == "ValueError"
