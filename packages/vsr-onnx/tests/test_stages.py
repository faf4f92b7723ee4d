"""A graph is cut so that every layer is computed once, and a shallow one without the deeper."""

import numpy as np
import onnx
import pytest
from vsr_onnx.graph import read_graph
from vsr_onnx.stages import ValueType, assemble, cut


@pytest.fixture
def graph(small, tmp_path):
    outputs = ("hidden_1", "hidden_2", "hidden_3")
    return read_graph(small(vocabulary=50).write(tmp_path / "model.onnx", outputs))


def test_each_node_is_in_one_stage_and_shallow_stages_have_the_fewest(graph):
    stages = cut(graph, ("hidden_3", "hidden_1"))
    assert [stage.gives for stage in stages] == [("hidden_1",), ("hidden_3",)]
    nodes = [id(node) for stage in stages for node in stage.nodes]
    assert len(nodes) == len(set(nodes))
    assert sum(node.op == "MatMul" for node in stages[0].nodes) == 1
    assert sum(node.op == "MatMul" for node in stages[1].nodes) == 2


def test_what_leads_to_no_output_wanted_is_left_out(graph):
    (stage,) = cut(graph, ("hidden_1",))
    assert sum(node.op == "MatMul" for node in stage.nodes) == 1


def test_a_stage_has_the_weights_it_reads_and_takes_the_rest_from_the_earlier(graph):
    first, second = cut(graph, ("hidden_1", "hidden_3"))
    assert first.feeds == ("input_ids", "attention_mask", "token_type_ids")
    assert second.feeds == ()
    assert set(second.takes) == set(first.passes) == {"h1", "mask", "count"}
    types = dict.fromkeys(second.takes, ValueType(1, ("batch", None, 32)))
    model = onnx.load_from_string(assemble(graph, second, types))
    assert {weight.name for weight in model.graph.initializer} == {"w2", "w3", "middle"}
    assert [port.name for port in model.graph.input] == list(second.takes)
    onnx.checker.check_model(model)


def test_two_outputs_of_one_depth_share_a_stage(small, tmp_path):
    encoder = small(vocabulary=50)
    graph = read_graph(encoder.write(tmp_path / "two.onnx", ("hidden_3", "last_hidden_state")))
    stages = cut(graph, ("hidden_3", "last_hidden_state"))
    assert sum(node.op == "MatMul" for stage in stages for node in stage.nodes) == 3


def test_constants_are_in_every_stage_that_reads_them(tmp_path):
    nodes = [
        onnx.helper.make_node("Constant", [], ["one"], value=onnx.numpy_helper.from_array(np.ones(1, np.float32))),
        onnx.helper.make_node("Add", ["x", "one"], ["a"]),
        onnx.helper.make_node("Add", ["a", "one"], ["b"]),
    ]
    ports = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in "xab"]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:]))
    onnx.save(model, tmp_path / "c.onnx")
    stages = cut(read_graph(tmp_path / "c.onnx"), ("a", "b"))
    assert [[node.op for node in stage.nodes] for stage in stages] == [["Constant", "Add"]] * 2
    assert stages[1].takes == ("a",)
