"""Similarity by each function that checkpoints name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from vsr_core.contract import BackendId, EmbeddingResponse, Envelope, Usage
from vsr_core.errors import NonFiniteOutputError
from vsr_core.runtime.derived import rerank_by_vectors, score, similarities

ONE = np.array([3.0, 4.0], np.float32)
MANY = np.array([[3.0, 4.0], [-4.0, 3.0], [0.0, 0.0], [6.0, 8.0]], np.float32)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("cosine", [1, 0, 0, 1]),
        ("dot", [25, 0, 0, 50]),
        ("euclidean", [0, -np.sqrt(50), -5, -5]),
        ("manhattan", [0, -8, -7, -7]),
    ],
)
def test_each_function_is_higher_the_closer(function, expected):
    np.testing.assert_allclose(score(ONE, MANY, function), expected, atol=1e-6)


@given(arrays(np.float32, (4, 3), elements=st.floats(-1e3, 1e3, width=32)))
def test_a_cosine_is_finite_and_within_bounds_for_any_vectors(vectors):
    scores = score(vectors[0], vectors[1:], "cosine")
    assert np.isfinite(scores).all()
    assert (np.abs(scores) <= 1 + 1e-5).all()


def response(vectors, tokens):
    envelope = Envelope(backend_id=BackendId("toy", "m"), usage=Usage(input_tokens=tokens))
    return EmbeddingResponse(envelope=envelope, vectors=np.array(vectors, np.float32))


def test_ties_keep_the_order_of_the_request():
    ranked = rerank_by_vectors([response([ONE, *MANY], 5)], "cosine", top_n=None)
    assert [result.index for result in ranked.results] == [0, 3, 1, 2]


def test_query_and_documents_may_come_in_two_answers_whose_tokens_add_up():
    ranked = rerank_by_vectors([response([ONE], 2), response(MANY, 9)], "dot", top_n=1)
    assert [result.index for result in ranked.results] == [3]
    assert ranked.envelope.usage.input_tokens == 11
    assert (
        rerank_by_vectors([response([ONE], 2), response(MANY, None)], "dot", top_n=1).envelope.usage.input_tokens
        is None
    )


def test_a_score_beyond_float32_is_an_error_and_no_infinity():
    long = response(np.full((2, 4), 1e20, np.float32), 3)
    for derive in (lambda: similarities(long, "dot"), lambda: rerank_by_vectors([long], "dot", top_n=None)):
        with pytest.raises(NonFiniteOutputError, match="toy:m gave vectors so long"):
            derive()
