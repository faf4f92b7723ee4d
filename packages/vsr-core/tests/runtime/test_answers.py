"""A backend's answer is believed only where it is what the contract says; what it raises is told as its failure."""

import asyncio

import numpy as np
import pytest
from vsr_core import AsyncRuntime, Runtime
from vsr_core.contract import (
    BackendId,
    ClassificationResponse,
    ClassificationResult,
    EmbeddingResponse,
    Envelope,
    RerankingRequest,
    RerankingResponse,
    RerankResult,
    Span,
    TaggingResponse,
    TaggingResult,
)
from vsr_core.errors import InferenceError, NonFiniteOutputError
from vsr_core.runtime.answers import checked_labels, checked_ranking, checked_spans, checked_vectors
from vsr_core.taxonomy import ErrorClass
from vsr_core.testing import ToyHandle

ENVELOPE = Envelope(backend_id=BackendId("toy", "m"))
GOOD = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "vectors",
    [GOOD[:1], GOOD[0], GOOD.astype(np.float64), GOOD.tolist(), None],
    ids=["too few", "one dimension", "another dtype", "a list", "nothing"],
)
def test_vectors_of_another_form_are_a_malformed_answer(vectors):
    with pytest.raises(InferenceError, match="toy:m answered with") as caught:
        checked_vectors(EmbeddingResponse(envelope=ENVELOPE, vectors=vectors), 2)
    assert caught.value.error_class is ErrorClass.MALFORMED_RESPONSE


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_withheld(value):
    vectors = GOOD.copy()
    vectors[1, 2] = value
    with pytest.raises(NonFiniteOutputError):
        checked_vectors(EmbeddingResponse(envelope=ENVELOPE, vectors=vectors), 2)


@pytest.mark.parametrize(
    "results",
    [[], [(0, 1.0)], [(0, 1.0), (0, 0.5)], [(0, 1.0), (2, 0.5)], [(-1, 1.0), (0, 1.0)], [(0, 0.5), (1, 1.0)]],
    ids=["nothing", "too few", "one twice", "one too many", "one before the first", "the best last"],
)
def test_a_ranking_names_each_document_once_and_the_best_first(results):
    request = RerankingRequest(query="q", documents=("a", "b"))
    ranking = tuple(RerankResult(index=index, score=score) for index, score in results)
    with pytest.raises(InferenceError):
        checked_ranking(RerankingResponse(envelope=ENVELOPE, results=ranking), request)


def test_a_ranking_of_the_best_is_that_long_and_finite():
    request = RerankingRequest(query="q", documents=("a", "b"), top_n=1)
    good = RerankingResponse(envelope=ENVELOPE, results=(RerankResult(index=1, score=0.5),))
    assert checked_ranking(good, request) is good
    bad = RerankingResponse(envelope=ENVELOPE, results=(RerankResult(index=1, score=float("nan")),))
    with pytest.raises(NonFiniteOutputError):
        checked_ranking(bad, request)


def labelled(label="yes", score=0.75, **rest):
    result = ClassificationResult(label=label, score=score, **rest)
    return ClassificationResponse(envelope=ENVELOPE, results=(result,))


@pytest.mark.parametrize(
    "response",
    [
        labelled(distribution={"yes": 0.75, "no": 0.25}, logits=(1.0, -0.1)),
        labelled(distribution={"yes": 1.0 + 1e-7, "no": 0.0}),
        labelled(score=-17.5, distribution_reason="a regression"),
    ],
    ids=["probabilities", "one more than 1 by rounding", "a raw score"],
)
def test_a_label_with_finite_numbers_is_believed(response):
    assert checked_labels(response, 1) is response


@pytest.mark.parametrize("count", [0, 2])
def test_there_are_as_many_labels_as_inputs(count):
    with pytest.raises(InferenceError, match=f"1 results for {count} inputs") as caught:
        checked_labels(labelled(), count)
    assert caught.value.error_class is ErrorClass.MALFORMED_RESPONSE


@pytest.mark.parametrize(
    "response",
    [
        labelled(score=float("nan")),
        labelled(distribution={"yes": float("inf")}),
        labelled(logits=(0.0, float("nan"))),
    ],
    ids=["score", "distribution", "logits"],
)
def test_a_label_with_a_number_that_is_not_finite_is_withheld(response):
    with pytest.raises(NonFiniteOutputError):
        checked_labels(response, 1)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (labelled(distribution={"yes": 1.5, "no": 0.0}), "outside 0 to 1"),
        (labelled(distribution={"yes": 0.5, "no": -0.5}), "outside 0 to 1"),
        (labelled(distribution={"no": 1.0}), "'yes', which is not in its distribution"),
        (labelled(score=None), "no number"),
    ],
)
def test_a_label_that_contradicts_itself_is_a_malformed_answer(response, message):
    with pytest.raises(InferenceError, match=message) as caught:
        checked_labels(response, 1)
    assert caught.value.error_class is ErrorClass.MALFORMED_RESPONSE


TEXT = "Anna sieht Köln \U0001f600"


def tagged(*places, text=None, score=0.5):
    spans = tuple(
        Span(start=start, end=end, label="X", score=score, text=TEXT[start:end] if text is None else text)
        for start, end in places
    )
    return TaggingResponse(envelope=ENVELOPE, results=(TaggingResult(spans=spans),))


def test_spans_that_lie_in_their_text_are_believed():
    for response in (tagged(), tagged((0, 4), (0, 10), (11, 15), (16, 17))):
        assert checked_spans(response, [TEXT]) is response


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (tagged((4, 4)), "not where it says"),
        (tagged((-4, 3)), "not where it says"),
        (tagged((11, 99)), "not where it says"),
        (tagged((5, 2)), "not where it says"),
        (tagged((0, 4), text="Otto"), "not where it says"),
        (tagged((11, 15), (0, 4)), "not sorted by start"),
    ],
    ids=["empty", "before the text", "beyond the text", "backwards", "another text", "out of order"],
)
def test_spans_that_lie_elsewhere_are_a_malformed_answer(response, message):
    with pytest.raises(InferenceError, match=message) as caught:
        checked_spans(response, [TEXT])
    assert caught.value.error_class is ErrorClass.MALFORMED_RESPONSE


def test_spans_of_another_number_of_texts_are_a_malformed_answer():
    with pytest.raises(InferenceError, match="1 results for 2 texts"):
        checked_spans(tagged(), [TEXT, TEXT])


def test_a_span_with_a_score_that_is_not_finite_is_withheld():
    with pytest.raises(NonFiniteOutputError):
        checked_spans(tagged((0, 4), score=float("inf")), [TEXT])


@pytest.mark.parametrize("error", [RuntimeError("odd"), SystemExit(5), MemoryError(), TimeoutError("of its own")])
def test_whatever_a_handle_raises_is_its_failure_on_both_facades(monkeypatch, host, checkpoint, error):
    def fail(*args):
        raise error

    monkeypatch.setattr(ToyHandle, "_embed", fail)
    config = {"catalog": {"mini": {"source": str(checkpoint)}}}
    with (
        Runtime(config, host=host) as vsr,
        pytest.raises(InferenceError, match=f"toy:mini failed: {type(error).__name__}"),
    ):
        vsr.embed("a", timeout=5)

    async def main():
        async with AsyncRuntime(config, host=host) as vsr:
            with pytest.raises(InferenceError, match=type(error).__name__):
                await vsr.embed("a", timeout=5)

    asyncio.run(main())
