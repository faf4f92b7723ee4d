from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from vsr_openvino.compiling import dtype_of
from vsr_openvino.reading import read_graph
from vsr_openvino.runner import OpenVinoRunner


@pytest.fixture
def runner(tmp_path, model, write_ir, compiler):
    def make(native="hidden_2", outputs=("hidden_1", "hidden_2"), **stated):
        graph = read_graph(write_ir(tmp_path / "openvino_model.xml", model, outputs=outputs))
        return OpenVinoRunner([graph], compiler(**stated), native=native)

    return make


def feeds(*sequences):
    longest = max(map(len, sequences))
    ids, mask = np.zeros((2, len(sequences), longest), np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)], mask[row, : len(sequence)] = sequence, 1
    return {"input_ids": ids, "attention_mask": mask}


def multiplications(part):
    """How many products of matrices a compiled graph computes."""
    kinds = [node.get_rt_info()["layerType"].astype(str) for node in part.compiled.get_runtime_model().get_ops()]
    return sum(kind in ("FullyConnected", "MatMul") for kind in kinds)


def test_answers_are_those_of_the_reference_together_and_alone(runner, model):
    compiled = runner()
    sequences = [[5, 6, 7, 8, 9], [1], [2, 3]]
    together = compiled.run(feeds(*sequences), ["hidden_2", "hidden_1"])
    for row, sequence in enumerate(sequences):
        alone = compiled.run(feeds(sequence), ["hidden_2"])[0][0]
        expected = [model.hidden(sequence, layer) for layer in (2, 1)]
        for found, states in zip([together[0][row], together[1][row]], expected, strict=True):
            np.testing.assert_allclose(found[: len(sequence)], states, atol=1e-5)
        np.testing.assert_allclose(alone, together[0][row][: len(sequence)], atol=1e-6)
    assert all(array.dtype == np.float32 for array in together)


def test_an_early_exit_computes_no_more_than_its_own_layers(runner):
    compiled = runner()
    compiled.run(feeds([1, 2]), ["hidden_1"])
    parts = compiled._owners["hidden_1"]._compiled
    assert {indices: multiplications(part) for indices, part in parts.items()} == {(1,): 2, (0,): 1}


def test_what_is_asked_for_together_comes_from_one_run(runner):
    compiled = runner()
    for outputs in (["hidden_1", "hidden_2"], ["hidden_2", "hidden_1"], ["hidden_2"]):
        compiled.run(feeds([1, 2]), outputs)
    assert set(compiled._owners["hidden_1"]._compiled) == {(1,), (0, 1)}


def test_a_graph_with_one_output_is_not_kept_beside_what_was_compiled_of_it(runner, model):
    compiled = runner(outputs=("hidden_2",))
    assert compiled._owners["hidden_2"]._model is None
    np.testing.assert_allclose(compiled.run(feeds([4, 2]), ["hidden_2"])[0][0], model.hidden([4, 2]), atol=1e-5)


def test_threads_beyond_the_pool_wait_and_get_their_own_answers(runner, model):
    compiled = runner()

    def ask(number):
        sequence = [number % 50, 7, *range(number % 11)]
        outputs = [["hidden_2"], ["hidden_1"], ["hidden_1", "hidden_2"]][number % 3]
        found = compiled.run(feeds(sequence, [1, 2]), outputs)
        layers = [int(name[-1]) for name in outputs]
        return max(
            np.abs(answer[0][: len(sequence)] - model.hidden(sequence, layer)).max()
            for answer, layer in zip(found, layers, strict=True)
        )

    with ThreadPoolExecutor(8) as threads:
        assert max(threads.map(ask, range(200))) < 1e-5


def test_a_later_run_leaves_earlier_answers_alone(runner):
    compiled = runner()
    first = compiled.run(feeds([1, 2, 3]), ["hidden_2"])[0]
    kept = first.copy()
    for number in range(2 * compiled.concurrency):
        compiled.run(feeds([number, 9, 9]), ["hidden_2"])
    np.testing.assert_array_equal(first, kept)


def test_ids_beyond_the_vocabulary_are_an_error_instead_of_zeros(runner, model):
    with pytest.raises(ValueError, match=f"token id {len(model.embedding)} is outside"):
        runner().run(feeds([1, len(model.embedding)]), ["hidden_2"])


def test_a_failed_run_fails_alone(runner, model):
    compiled = runner()
    for _ in range(2 * compiled.concurrency):
        with pytest.raises(KeyError, match="attention_mask"):
            compiled.run({"input_ids": np.array([[1]])}, ["hidden_2"])
        with pytest.raises(RuntimeError):
            compiled.run(feeds([1, 2]) | {"attention_mask": np.ones((1, 5), np.int64)}, ["hidden_2"])
    np.testing.assert_allclose(compiled.run(feeds([4, 2]), ["hidden_2"])[0][0], model.hidden([4, 2]), atol=1e-5)


def test_latency_has_one_request_and_throughput_one_for_each_stream(runner):
    assert runner(performance="latency").concurrency == 1
    assert runner(threads=1).concurrency == 1
    compiled = runner(threads=2)
    assert compiled.concurrency == compiled.compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")


def test_threads_and_dtype_are_as_they_were_told(runner, model):
    sequence = list(range(40))
    compiled = runner(threads=1)
    assert compiled.compiled.get_property("INFERENCE_NUM_THREADS") == 1
    assert dtype_of(compiled.compiled) == "float32"
    assert np.abs(compiled.run(feeds(sequence), ["hidden_2"])[0][0] - model.hidden(sequence)).max() < 1e-5


def test_bf16_is_what_is_computed_in_where_it_was_asked_for(runner, model, compiler):
    if "BF16" not in compiler().core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this CPU has no native bf16")
    sequence = list(range(40))
    compiled = runner(dtype="bfloat16")
    assert dtype_of(compiled.compiled) == "bfloat16"
    assert 1e-4 < np.abs(compiled.run(feeds(sequence), ["hidden_2"])[0][0] - model.hidden(sequence)).max() < 0.05
