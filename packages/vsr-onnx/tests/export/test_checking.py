"""A graph that is not what its source computes is found out, on a graph that is transformers itself with a fault."""

import numpy as np
import pytest
import torch
from vsr_core.errors import PluginError
from vsr_onnx.export.checking import measure
from vsr_onnx.export.reading import read_source

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def subject(written, order):
    folder = written("bert", "sequence")
    request = order(folder, folder / "out", layers=(1,))
    source = read_source(request)
    source.head.save(folder)
    return folder, request, source


@pytest.fixture
def run(subject):
    _, request, source = subject

    def graph(feeds, outputs):
        assert outputs == ["hidden_1", "hidden_3"]
        with torch.inference_mode():
            states = source.exits(request.layers, **{name: torch.from_numpy(ids) for name, ids in feeds.items()})
        return [state.numpy().copy() for state in states]

    return graph


def check(subject, graph):
    folder, request, source = subject
    return measure(graph, source, request, folder=folder, plugin="onnx")


def test_the_same_numbers_pass_with_the_largest_difference(subject, run):
    seen = []

    def watched(feeds, outputs):
        seen.append(feeds["attention_mask"])
        return run(feeds, outputs)

    found = check(subject, watched)
    assert found.max_abs < 1e-4
    lengths = [int(row.sum()) for mask in seen for row in mask]
    assert found.texts == len(lengths)
    assert (min(lengths), max(lengths)) == (1, 64)
    assert {len(mask) for mask in seen} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    "fault",
    [
        lambda states: [states[0] + np.float32(1e-3), states[1]],
        lambda states: [states[0], states[1] * np.float32("nan")],
        lambda states: [states[1], states[0]],
        lambda states: [states[0][:, ::-1], states[1]],
        lambda states: [states[0][..., :-1], states[1]],
    ],
    ids=["shifted", "not finite", "exits swapped", "tokens reversed", "narrower"],
)
def test_other_numbers_are_refused(subject, run, fault):
    with pytest.raises(PluginError, match="differs from transformers"):
        check(subject, lambda *arguments: fault(run(*arguments)))


def test_a_graph_that_forgets_its_mask_is_refused(subject, run):
    with pytest.raises(PluginError, match="differs from transformers"):
        check(
            subject, lambda feeds, outputs: run(feeds | {"attention_mask": np.ones_like(feeds["input_ids"])}, outputs)
        )


def test_a_head_that_is_not_the_models_is_refused(subject, run):
    folder, _, source = subject
    content = (folder / "head.safetensors").read_bytes()
    try:
        source.head.tensors["classifier.bias"][0] += 0.01
        source.head.save(folder)
        source.head.tensors["classifier.bias"][0] -= 0.01
        with pytest.raises(PluginError, match="differs from transformers"):
            check(subject, run)
    finally:
        (folder / "head.safetensors").write_bytes(content)
