from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from vsr_core.contract import CallContext, DenseSpec, EmbeddingRequest, InputReport, PoolingSpec
from vsr_core.errors import InferenceError, InputTooLongError, InvalidInputError
from vsr_core.local import EngineOutput

CALL = CallContext(request_id="q1")


def embed(handle, *texts, **options):
    return handle.infer_blocking(EmbeddingRequest(texts=texts, **options), CALL)


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_vectors_are_float32_one_row_per_text_and_normalised(build):
    response = embed(build(), "the cat", "the dog ran")
    assert (response.vectors.dtype, response.vectors.shape) == (np.float32, (2, 8))
    np.testing.assert_allclose(np.linalg.norm(response.vectors, axis=1), 1, rtol=1e-6)
    assert response.normalized is True


def test_the_envelope_says_what_was_really_done(build):
    response = embed(build(), "the cat", "the " * 30, dimensions=4, layer=1)
    envelope = response.envelope
    assert str(envelope.backend_id) == "toy:model"
    assert (envelope.request_id, envelope.revision) == ("q1", "r1")
    assert (envelope.device, envelope.dtype, envelope.provider) == ("cpu", "float32", None)
    assert (envelope.requested_dimensions, envelope.dimensions) == (4, 4)
    assert (envelope.requested_layer, envelope.layer) == (1, 1)
    assert envelope.inputs == (
        InputReport(tokens=4, total_tokens=4, truncated=False),
        InputReport(tokens=16, total_tokens=32, truncated=True),
    )
    assert envelope.usage.input_tokens == 20


def test_unasked_the_native_dimensions_and_depth_are_served(build):
    envelope = embed(build(), "the cat").envelope
    assert (envelope.requested_dimensions, envelope.dimensions) == (None, 8)
    assert (envelope.requested_layer, envelope.layer) == (None, 3)


def test_the_load_request_may_set_other_defaults(build):
    handle = build(load={"dimensions": 4, "layer": 1})
    response = embed(handle, "the cat")
    assert response.vectors.shape == (1, 4)
    assert response.envelope.layer == handle.info.default_layer == 1
    assert embed(handle, "the cat", dimensions=8, layer=3).vectors.shape == (1, 8)


def test_dimensions_are_truncated_first_and_normalised_then(build, spec):
    raw = embed(build(spec=replace(spec, normalize=False)), "the cat").vectors[0]
    truncated = embed(build(), "the cat", dimensions=4).vectors[0]
    np.testing.assert_allclose(truncated, raw[:4] / np.linalg.norm(raw[:4]), rtol=1e-5)


def test_a_model_that_does_not_normalise_is_left_alone(build, spec):
    response = embed(build(spec=replace(spec, normalize=None)), "the cat", dimensions=4)
    assert response.normalized is False
    assert np.linalg.norm(response.vectors[0]) != pytest.approx(1.0)


def test_an_earlier_exit_gives_another_vector_in_another_space(build):
    handle = build()
    full, early = embed(handle, "the cat"), embed(handle, "the cat", layer=1)
    assert cosine(full.vectors[0], early.vectors[0]) < 0.999
    assert full.space == handle.info.compatibility_key
    assert early.space not in (None, full.space)
    assert embed(handle, "the cat", layer=3).space == full.space


@pytest.mark.parametrize("text", ["", " ", "\t\n"])
def test_an_empty_or_blank_text_has_the_vector_of_the_special_tokens(build, text):
    response = embed(build(), text, "the cat")
    assert response.envelope.inputs[0] == InputReport(tokens=2, total_tokens=2, truncated=False)
    assert np.isfinite(response.vectors).all()
    np.testing.assert_allclose(response.vectors[0], embed(build(), "").vectors[0], atol=1e-6)


class TestPrompts:
    def test_a_named_prompt_stands_before_each_text(self, build):
        handle = build()
        prompted, written = embed(handle, "cat", prompt="query"), embed(handle, "query: cat")
        np.testing.assert_allclose(prompted.vectors, written.vectors, atol=1e-6)
        assert prompted.envelope.inputs == written.envelope.inputs

    def test_the_default_prompt_is_used_unasked(self, build, spec):
        handle = build(spec=replace(spec, default_prompt="query"))
        np.testing.assert_array_equal(embed(handle, "cat").vectors, embed(handle, "cat", prompt="query").vectors)
        assert not np.allclose(embed(handle, "cat").vectors, embed(handle, "cat", prompt="document").vectors)

    def test_an_unknown_prompt_is_refused_with_those_there_are(self, build):
        with pytest.raises(InvalidInputError, match="'poem'; there are: 'document', 'query'") as caught:
            embed(build(), "cat", prompt="poem")
        assert caught.value.param == "prompt"

    @pytest.mark.parametrize("in_engine", [True, False])
    def test_the_prompt_can_be_left_out_of_the_pool(self, build, spec, toy, in_engine):
        pooling = PoolingSpec(modes=("mean",), include_prompt=False)
        engine = toy(reduces=frozenset({"mean"}) if in_engine else frozenset())
        handle = build(engine, spec=replace(spec, pooling=pooling, normalize=False))
        vector = embed(handle, "cat", prompt="query").vectors[0]
        whole = embed(build(spec=replace(spec, normalize=False)), "query: cat").vectors[0]
        assert not np.allclose(vector, whole)
        assert engine.batches[0].prompt_tokens.tolist() == [3]


class TestRefusals:
    @pytest.mark.parametrize("dimensions", [0, -1, 5, 16])
    def test_dimensions_that_are_not_offered_are_refused_with_those_that_are(self, build, dimensions):
        with pytest.raises(
            InvalidInputError, match=f"dimensions={dimensions} is not offered; there are: 4, 8"
        ) as caught:
            embed(build(), "cat", dimensions=dimensions)
        assert caught.value.param == "dimensions"

    @pytest.mark.parametrize("layer", [0, 2, 4])
    def test_layers_that_are_not_offered_are_refused_with_those_that_are(self, build, layer):
        with pytest.raises(InvalidInputError, match=f"layer={layer} is not offered; there are: 1, 3") as caught:
            embed(build(), "cat", layer=layer)
        assert caught.value.param == "layer"

    def test_a_model_without_exits_offers_its_depth_alone(self, build, spec):
        handle = build(spec=replace(spec, exit_layers=()))
        assert embed(handle, "cat", layer=3).envelope.layer == 3
        with pytest.raises(InvalidInputError, match="there are: 3"):
            embed(handle, "cat", layer=1)

    def test_windows_do_not_apply_to_embedding(self, build):
        with pytest.raises(InvalidInputError, match="one vector per text") as caught:
            embed(build(), "cat", truncate="window")
        assert caught.value.param == "truncate"

    @pytest.mark.parametrize("texts", [(), ("cat", 3), ("cat", "\ud800"), None, 7])
    def test_what_is_no_text_is_refused(self, build, texts):
        with pytest.raises(InvalidInputError) as caught:
            build().infer_blocking(EmbeddingRequest(texts=texts), CALL)
        assert caught.value.param.startswith("texts")

    def test_truncation_can_be_refused(self, build):
        with pytest.raises(InputTooLongError, match="32 tokens, the limit is 16"):
            embed(build(), "the " * 30, truncate="error")


class TestPooling:
    @pytest.mark.parametrize("modes", [("cls",), ("last",), ("mean", "max"), ("weighted_mean", "cls", "mean_sqrt_len")])
    def test_the_engine_and_the_pipeline_pool_alike(self, build, spec, toy, modes):
        spec = replace(spec, pooling=PoolingSpec(modes=modes), dimensions=())
        there = embed(build(toy(reduces=frozenset(modes)), spec=spec), "the cat sat", "dog")
        here = embed(build(toy(), spec=spec), "the cat sat", "dog")
        assert there.vectors.shape == (2, 8 * len(modes))
        np.testing.assert_allclose(there.vectors, here.vectors, atol=1e-6)

    def test_an_engine_is_not_asked_for_a_mode_it_does_not_know(self, build, spec, toy):
        engine = toy(reduces=frozenset({"mean"}))
        spec = replace(spec, pooling=PoolingSpec(modes=("mean", "max")), dimensions=())
        assert embed(build(engine, spec=spec), "the cat").vectors.shape == (1, 16)
        assert engine.batches[0].rows[0].want.tag == "hidden"

    def test_vectors_of_another_width_than_promised_are_an_error(self, build, toy):
        engine = toy(reduces=frozenset({"mean"}))
        engine.answer = lambda batch, row: np.zeros(5, np.float32)
        with pytest.raises(InferenceError, match=r"the shape \[5\] where \[8\] was expected"):
            embed(build(engine), "the cat")

    def test_an_engine_may_answer_with_one_matrix(self, build, toy):
        engine = toy(reduces=frozenset({"mean"}))
        expected = embed(build(), "the cat", "dog").vectors
        run = engine.run
        engine.run = lambda batch: EngineOutput(np.stack(run(batch).rows))
        np.testing.assert_allclose(embed(build(engine), "the cat", "dog").vectors, expected, atol=1e-6)


def test_dense_modules_come_after_pooling_and_before_truncation(build, spec, toy_folder):
    weight = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    save_file({"linear.weight": weight}, toy_folder / "dense.safetensors")
    dense = DenseSpec(path="dense.safetensors", in_features=8, out_features=6, bias=False, activation="tanh")
    plain = replace(spec, normalize=False)
    handle = build(spec=replace(plain, dense=(dense,), native_dimensions=6, dimensions=(2, 6)))
    pooled = embed(build(spec=plain), "the cat").vectors
    np.testing.assert_allclose(embed(handle, "the cat").vectors, np.tanh(pooled @ weight.T), atol=1e-6)
    assert embed(handle, "the cat", dimensions=2).vectors.shape == (1, 2)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.sampled_from("the cat dog sat"), max_size=40), min_size=1, max_size=20))
def test_a_text_has_one_vector_whatever_company_it_keeps(shared_handle, texts):
    together = embed(shared_handle, *texts).vectors
    alone = np.concatenate([embed(shared_handle, text).vectors for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.fixture
def shared_handle(build):
    return build()
