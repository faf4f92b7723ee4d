"""Runners give the numbers of the graph, layer by layer, and compute no more than what is asked for."""

import gc
import weakref

import numpy as np
import pytest
from vsr_core.errors import InferenceError
from vsr_onnx.graph import read_graph
from vsr_onnx.options import OnnxOptions
from vsr_onnx.providers import CPU
from vsr_onnx.runner import open_exits, open_graph
from vsr_onnx.session import SessionFactory

FACTORY = SessionFactory(options=OnnxOptions(), threads=1, backend_id="onnx:m")
ON_CPU = [(CPU, {})]
EXITS = ("hidden_1", "hidden_2", "hidden_3")


@pytest.fixture
def encoder(small):
    return small(vocabulary=50)


def feeds_of(*rows):
    longest = max(map(len, rows))
    ids = np.array([[*row, *[0] * (longest - len(row))] for row in rows])
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


@pytest.fixture(params=["whole", "beside", "files"])
def runner(request, encoder, tmp_path):
    if request.param == "files":
        graphs = {name: (read_graph(encoder.write(tmp_path / f"{name}.onnx", (name,))), name) for name in EXITS}
        return open_exits(graphs, ON_CPU, factory=FACTORY)
    graph = read_graph(encoder.write(tmp_path / "model.onnx", EXITS, external=request.param == "beside"))
    return open_graph(graph, EXITS, ON_CPU, factory=FACTORY)


@pytest.mark.parametrize("wanted", [("hidden_1",), ("hidden_3",), ("hidden_3", "hidden_1"), EXITS])
def test_layers_asked_for_in_any_order_are_those_of_the_model(runner, encoder, wanted):
    rows = ([3, 9, 4], [7], [1, 2, 3, 4, 5, 6])
    found = runner.run(feeds_of(*rows), wanted)
    assert (runner.inputs, runner.outputs) == (("input_ids", "attention_mask", "token_type_ids"), EXITS)
    for name, values in zip(wanted, found, strict=True):
        for row, value in zip(rows, values, strict=True):
            np.testing.assert_allclose(value[: len(row)], encoder.forward(row, int(name[-1])), atol=1e-5)


def test_a_shallow_layer_does_not_run_the_deeper_ones(runner):
    """The deeper parts are taken away, so that running one would fail."""
    before = runner.run(feeds_of([3, 9]), ("hidden_1",))
    runner._parts = runner._parts[:1]
    np.testing.assert_array_equal(runner.run(feeds_of([3, 9]), ("hidden_1",))[0], before[0])
    with pytest.raises(IndexError):
        runner.run(feeds_of([3, 9]), ("hidden_3",))


def test_later_runs_leave_earlier_answers_alone(runner):
    (first,) = runner.run(feeds_of([3, 9]), ("hidden_3",))
    kept = first.copy()
    runner.run(feeds_of([8, 1]), ("hidden_3",))
    np.testing.assert_array_equal(first, kept)


def test_ids_beyond_the_vocabulary_are_told_with_the_file(runner):
    with pytest.raises(InferenceError, match=r"\.onnx: a token id is beyond the graph's vocabulary"):
        runner.run(feeds_of([3, 50]), ("hidden_1",))


def test_closing_frees_the_sessions(runner):
    assert runner.provider == CPU
    sessions = [weakref.ref(part.session) for part in runner._parts]
    runner.close()
    gc.collect()
    assert [session() for session in sessions] == [None] * len(sessions)


def test_half_precision_comes_out_as_float32(encoder, tmp_path):
    from onnx import TensorProto, helper

    model = encoder.model(("hidden_3",))
    model.graph.node.append(helper.make_node("Cast", ["hidden_3"], ["half"], to=TensorProto.FLOAT16))
    model.graph.output[0].name = "half"
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    (tmp_path / "half.onnx").write_bytes(model.SerializeToString())
    runner = open_graph(read_graph(tmp_path / "half.onnx"), ("half",), ON_CPU, factory=FACTORY)
    (found,) = runner.run(feeds_of([3, 9]), ("half",))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0], encoder.forward([3, 9]), atol=1e-2)
