from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from vsr_core.contract import CallContext, Choice, DenseSpec, EmbeddingRequest, FeatureState
from vsr_core.errors import CapabilityError, CheckpointError, NotReadyError
from vsr_core.local import ComputeThreads
from vsr_core.taxonomy import Capability, Feature


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_tokens": None}, "set 'max_tokens' in the catalog entry"),
        ({"max_tokens": 2}, "max_tokens=2 leaves no room"),
        ({"pooling": None}, "set 'pooling' in the catalog entry"),
        ({"hidden_size": None, "dimensions": ()}, "'hidden_size' is missing"),
        ({"default_prompt": "poem"}, "the default prompt 'poem' is not among its prompts"),
        ({"dense": (DenseSpec(path="2_Dense", in_features=8, out_features=8),)}, "2_Dense' is missing"),
    ],
)
def test_a_spec_that_cannot_be_served_is_refused_and_everything_is_freed(build, toy, spec, changes, message):
    engine, before = toy(), threading.active_count()
    with pytest.raises(CheckpointError, match=message):
        build(engine, spec=replace(spec, **changes))
    assert engine.closed == 1
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("load", "message"),
    [({"dimensions": 5}, "dimensions=5 is not offered; there are: 4, 8"), ({"layer": 2}, "there are: 1, 3")],
)
def test_defaults_that_are_not_offered_are_refused(build, toy, load, message):
    engine = toy()
    with pytest.raises(CheckpointError, match=message):
        build(engine, load=load)
    assert engine.closed == 1


def test_a_tokenizer_of_another_model_is_refused(build, toy):
    engine = toy()
    with pytest.raises(CheckpointError, match="different models"):
        build(engine, vocab_size=7)
    assert engine.closed == 1


def test_a_missing_tokenizer_is_refused(build, toy, toy_folder):
    (toy_folder / "tokenizer.json").unlink()
    engine = toy()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        build(engine)
    assert engine.closed == 1


def test_a_model_for_something_else_is_refused(build, toy, spec):
    engine = toy()
    with pytest.raises(CapabilityError, match="a model for guard"):
        build(engine, spec=replace(spec, capabilities=(Capability.GUARD,)))
    assert engine.closed == 1


def test_a_weight_file_stands_for_its_folder(build, toy_folder):
    (toy_folder / "model.onnx").write_bytes(b"")
    assert build(load={"path": toy_folder / "model.onnx"}).info.state == "ready"


def test_what_the_engine_says_of_a_feature_holds(build):
    said = FeatureState(feature=Feature.PROVIDER_SELECTION, supported=False, reason="one device")
    batching = FeatureState(feature=Feature.BATCHING, supported=False, reason="one by one")
    features = build(features=[said, batching]).info.features
    assert said in features
    assert [state for state in features if state.feature is Feature.BATCHING] == [batching]


def test_provider_and_threads_are_passed_on(build, toy):
    engine = toy()
    handle = build(engine, provider=Choice(requested="auto", actual="CPU"), threads=ComputeThreads(3))
    response = handle.infer_blocking(EmbeddingRequest(texts=("cat",)), CallContext(request_id="q"))
    assert response.envelope.provider == "CPU"
    assert engine.batches[0].threads == 3


def test_a_base_that_was_freed_takes_no_new_lease(build):
    handle = build()
    handle.base.release()
    with pytest.raises(NotReadyError, match="load it again"):
        handle.base.lease()


def test_handles_of_one_base_share_its_engine(build, toy):
    engine = toy()
    handle = build(engine)
    twin = type(handle)(handle.base, list(handle._tasks.values()), info=handle.info)
    assert handle.base.leases == 2
    call, request = CallContext(request_id="q"), EmbeddingRequest(texts=("cat",))
    np.testing.assert_array_equal(
        twin.infer_blocking(request, call).vectors, handle.infer_blocking(request, call).vectors
    )
    assert len(engine.batches) == 2
