import numpy as np
import pytest
from vsr_core.errors import CheckpointError
from vsr_onnx.export.forms import open_onnx
from vsr_onnx.export.quantizing import compare, quantize
from vsr_onnx.export.reading import read_source

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def subject(exported, order, tmp_path_factory):
    result = exported("bert", "sequence")
    request = order(result.source, tmp_path_factory.mktemp("quantized") / "out", layers=(1,))
    return request, read_source(request), result.folder / "model.onnx"


def test_vectors_that_are_less_alike_are_refused_with_the_layer(subject):
    request, source, graph = subject
    run = open_onnx(graph)
    noise = np.random.default_rng(0)

    def rough(feeds, outputs):
        first, last = run(feeds, outputs)
        return [first, last + noise.normal(0, 0.2, last.shape).astype(np.float32)]

    with pytest.raises(CheckpointError, match=r"after layer 3 .* under 0\.995"):
        compare(request, source, run, rough)


def test_not_a_number_is_refused(subject):
    request, source, graph = subject
    run = open_onnx(graph)
    with pytest.raises(CheckpointError, match="mean cosine of nan"):
        compare(request, source, run, lambda *arguments: [state * np.nan for state in run(*arguments)])


def test_matrices_that_narrow_stay_float32(subject, tmp_path):
    import onnx

    for file in subject[2].parent.glob("model.onnx*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    quantize(tmp_path / "model.onnx", tmp_path / "small.onnx")
    graph = onnx.load(str(tmp_path / "small.onnx")).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    left = [shapes[node.input[1]] for node in graph.node if node.op_type == "MatMul" and node.input[1] in shapes]
    assert left == [(48, 32)] * 3
    assert sum(node.op_type == "MatMulInteger" for node in graph.node) == 5 * 3
