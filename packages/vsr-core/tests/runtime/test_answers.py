"""A backend's answer is believed only where it is what the contract says; what it raises is told as its failure."""

import asyncio

import numpy as np
import pytest
from vsr_core import AsyncRuntime, Runtime
from vsr_core.contract import BackendId, EmbeddingResponse, Envelope, RerankingRequest, RerankingResponse, RerankResult
from vsr_core.errors import InferenceError, NonFiniteOutputError
from vsr_core.runtime.answers import checked_ranking, checked_vectors
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


@pytest.mark.parametrize("results", [[], [(0, 1.0)], [(0, 1.0), (0, 0.5)], [(0, 1.0), (2, 0.5)], [(-1, 1.0), (0, 1.0)]])
def test_a_ranking_names_each_document_once(results):
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
