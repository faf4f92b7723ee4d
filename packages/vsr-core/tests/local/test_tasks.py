from __future__ import annotations

from dataclasses import replace

import pytest
from vsr_core.contract import (
    CallContext,
    CatalogEntry,
    EmbeddingRequest,
    PairClassificationRequest,
    RerankingRequest,
    SequenceClassificationRequest,
    TokenClassificationRequest,
)
from vsr_core.errors import CapabilityError, CheckpointError
from vsr_core.taxonomy import Capability

CALL = CallContext(request_id="q1")
ASKED = {
    Capability.EMBEDDING: EmbeddingRequest(texts=("cat",)),
    Capability.SEQUENCE_CLASSIFICATION: SequenceClassificationRequest(texts=("cat",)),
    Capability.PAIR_CLASSIFICATION: PairClassificationRequest(pairs=(("cat", "dog"),)),
    Capability.TOKEN_CLASSIFICATION: TokenClassificationRequest(texts=("cat",)),
    Capability.RERANKING: RerankingRequest(query="cat", documents=("dog",)),
}


@pytest.fixture
def serve(build, spec, toy):
    """Builds a model for the capabilities named; its head has as many outputs as labels."""

    def make(*capabilities, labels=("x",), load=None, **changes):
        changes = {"activation": "sigmoid", **changes}
        engine = toy(labels=len(labels), token_head=Capability.TOKEN_CLASSIFICATION in capabilities)
        return build(engine, spec=replace(spec, capabilities=capabilities, labels=labels, **changes), load=load)

    return make


@pytest.mark.parametrize("capability", ASKED, ids=str)
def test_each_capability_is_served_and_no_other(serve, capability):
    handle = serve(capability)
    assert handle.info.capabilities == (capability,)
    for other, request in ASKED.items():
        if other is capability:
            assert handle.infer_blocking(request, CALL).envelope.request_id == "q1"
        else:
            with pytest.raises(CapabilityError, match=f"loaded for {capability}"):
                handle.infer_blocking(request, CALL)


@pytest.mark.parametrize(
    "several",
    [
        (Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION),
        (Capability.RERANKING, Capability.SEQUENCE_CLASSIFICATION),
        (Capability.EMBEDDING, Capability.SEQUENCE_CLASSIFICATION),
    ],
    ids=" and ".join,
)
def test_one_handle_serves_several_capabilities_on_one_base(serve, several):
    handle = serve(*several)
    assert handle.info.capabilities == several
    assert handle.base.leases == 1
    for capability in several:
        assert handle.infer_blocking(ASKED[capability], CALL)


@pytest.mark.parametrize("left_out", [Capability.ADAPTER_SERVING, Capability.MULTI_TASK, Capability.SPANS])
def test_what_nobody_serves_in_process_is_left_out(serve, left_out):
    assert serve(left_out, Capability.EMBEDDING).info.capabilities == (Capability.EMBEDDING,)
    with pytest.raises(CapabilityError, match=f"a model for {left_out}, which this backend does not serve"):
        serve(left_out)


def test_labels_of_the_request_come_before_those_of_the_files(serve):
    handle = serve(Capability.SEQUENCE_CLASSIFICATION, load={"labels": ("mine",)})
    assert handle.infer_blocking(ASKED[Capability.SEQUENCE_CLASSIFICATION], CALL).results[0].label == "mine"
    assert handle.info.labels == ("mine",)


def test_a_sequence_head_without_labels_numbers_them(serve):
    handle = serve(Capability.SEQUENCE_CLASSIFICATION, labels=())
    handle.base.engine.head = handle.base.engine.table[:8, :4]
    assert handle.infer_blocking(ASKED[Capability.SEQUENCE_CLASSIFICATION], CALL).results[0].label.startswith("LABEL_")
    assert handle.info.labels is None


def test_a_token_head_without_labels_is_refused(serve):
    with pytest.raises(CheckpointError, match="set 'labels' in the catalog entry"):
        serve(Capability.TOKEN_CLASSIFICATION, labels=())


@pytest.mark.parametrize("capability", [each for each in ASKED if each is not Capability.EMBEDDING], ids=str)
@pytest.mark.parametrize("facts", [{"temperature": 0.0}, {"threshold": 2.0}, {"positive_labels": ("nobody",)}], ids=str)
def test_a_calibration_that_makes_no_sense_is_refused_at_load(serve, capability, facts):
    with pytest.raises(CheckpointError, match=next(iter(facts))):
        serve(capability, load={"entry": CatalogEntry(name="model", **facts)})


@pytest.mark.parametrize("capability", ASKED, ids=str)
def test_the_depth_of_the_load_request_is_served_unasked(serve, capability):
    handle = serve(capability, load={"layer": 1})
    assert handle.info.default_layer == 1
    assert handle.infer_blocking(ASKED[capability], CALL).envelope.layer == 1
    with pytest.raises(CheckpointError, match="layer=2 is not offered; there are: 1, 3"):
        serve(capability, load={"layer": 2})


def test_dimensions_of_a_model_without_vectors_are_refused(serve):
    with pytest.raises(CheckpointError, match="dimensions=4 applies to vectors"):
        serve(Capability.RERANKING, load={"dimensions": 4})
