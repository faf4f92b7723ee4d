"""A graph is described from its bytes, and what is wrong with it is told with the file."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from vsr_core.errors import CheckpointError
from vsr_onnx.graph import read_graph


@pytest.fixture
def encoder(small):
    return small(vocabulary=50, logits=4)


def test_ports_weights_and_versions_are_read(encoder, tmp_path):
    graph = read_graph(encoder.write(tmp_path / "model.onnx", ("hidden_1", "logits")))
    assert [(port.name, port.element_type) for port in graph.inputs] == [
        (name, "int64") for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    assert [port.name for port in graph.outputs] == ["hidden_1", "logits"]
    assert graph.opsets == {"": 17}
    assert graph.vocabulary == 50
    assert (graph.quantized, graph.dtype, graph.data_files) == (False, "float32", ())
    assert graph.weights_by_name["w1"].shape == (32, 32)


def test_weights_beside_the_graph_are_found(encoder, tmp_path):
    graph = read_graph(encoder.write(tmp_path / "model.onnx", external=True))
    assert graph.data_files == ("model.onnx.data",)


def test_missing_and_short_weights_are_told_with_their_file(encoder, tmp_path):
    path = encoder.write(tmp_path / "model.onnx", external=True)
    data = tmp_path / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"model\.onnx\.data: has \d+ bytes.*copy both from one export"):
        read_graph(path)
    data.unlink()
    with pytest.raises(CheckpointError, match=r"model\.onnx\.data: is missing.*copy it beside the graph"):
        read_graph(path)


def test_weights_elsewhere_are_refused(encoder, tmp_path):
    model = encoder.model()
    onnx.external_data_helper.convert_model_to_external_data(model, location="w.bin", size_threshold=0)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../w.bin"
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(CheckpointError, match="not beside it"):
        read_graph(tmp_path / "model.onnx")


@pytest.mark.parametrize("content", [b"", b"hello world" * 20, b"\x08\x0a"])
def test_a_file_without_a_graph_is_refused(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.onnx: .*export or fetch it again"):
        read_graph(tmp_path / "model.onnx")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_a_graph_that_was_cut_short_is_refused(encoder, tmp_path, share):
    path = encoder.write(tmp_path / "model.onnx")
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(CheckpointError, match="damaged or cut short"):
        read_graph(path)


def quantized_lookup():
    nodes = [
        helper.make_node("DequantizeLinear", ["packed", "scale", "zero"], ["table"]),
        helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"]),
    ]
    weights = {"packed": np.ones((9, 2), np.int8), "scale": np.array(0.5, np.float32), "zero": np.array(0, np.int8)}
    graph = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "s"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", 2])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph)


def test_a_quantized_graph_is_known_by_its_weights_whatever_it_is_called(tmp_path):
    (tmp_path / "model.onnx").write_bytes(quantized_lookup().SerializeToString())
    graph = read_graph(tmp_path / "model.onnx")
    assert graph.quantized
    assert graph.vocabulary == 9
