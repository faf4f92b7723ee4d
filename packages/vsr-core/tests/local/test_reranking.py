from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from vsr_core.contract import CallContext, CatalogEntry, InputReport, RerankingRequest
from vsr_core.errors import CheckpointError, InferenceError, InputTooLongError, InvalidInputError, NonFiniteOutputError
from vsr_core.local import activate
from vsr_core.taxonomy import Capability

CALL = CallContext(request_id="q1")
DOCUMENTS = ("the cat sat", "dog", "a mat", "ran fast", "")
LONG = "the cat sat on a mat fast dog ran " * 4


@pytest.fixture
def reranker(build, spec, toy):
    """Builds a reranker with the toy's head of one output."""
    head = replace(
        spec, capabilities=(Capability.RERANKING,), labels=None, activation="sigmoid", pooling=None, dimensions=()
    )

    def make(engine=None, *, load=None, **changes):
        return build(engine or toy(labels=1), spec=replace(head, **changes), load=load)

    return make


def rank(handle, query, *documents, **options):
    return handle.infer_blocking(RerankingRequest(query=query, documents=documents, **options), CALL)


def by_index(response):
    return {result.index: result.score for result in response.results}


def test_documents_come_by_falling_score_with_their_place_in_the_request(reranker):
    response = rank(reranker(), "cat", *DOCUMENTS)
    scores = [result.score for result in response.results]
    assert scores == sorted(scores, reverse=True)
    assert sorted(by_index(response)) == [0, 1, 2, 3, 4]
    assert len(set(scores)) == 5
    assert response.score_kind == "probability"


def test_a_score_does_not_depend_on_the_other_documents(reranker):
    handle = reranker()
    together = by_index(rank(handle, "cat", *DOCUMENTS))
    for index, document in enumerate(DOCUMENTS):
        assert by_index(rank(handle, "cat", document))[0] == pytest.approx(together[index], abs=1e-6)


def test_a_score_depends_on_the_query(reranker):
    handle = reranker()
    assert by_index(rank(handle, "cat", "dog")) != by_index(rank(handle, "mat", "dog"))


def test_equal_documents_keep_the_order_of_the_request(reranker):
    response = rank(reranker(), "cat", "dog", "mat", "dog", "dog", "mat")
    order = [result.index for result in response.results]
    assert order in ([0, 2, 3, 1, 4], [1, 4, 0, 2, 3])


def test_top_n_cuts_after_scoring(reranker):
    handle = reranker()
    whole = rank(handle, "cat", *DOCUMENTS)
    cut = rank(handle, "cat", *DOCUMENTS, top_n=2)
    assert [result.index for result in cut.results] == [result.index for result in whole.results[:2]]
    assert len(cut.envelope.inputs) == 5
    assert len(rank(handle, "cat", *DOCUMENTS, top_n=99).results) == 5


def test_without_an_activation_scores_are_logits(reranker):
    logits = rank(reranker(activation="none"), "cat", *DOCUMENTS)
    probabilities = rank(reranker(), "cat", *DOCUMENTS)
    assert logits.score_kind == "logit"
    expected = {index: activate(np.float64([score]), "sigmoid").item() for index, score in by_index(logits).items()}
    assert by_index(probabilities) == pytest.approx(expected)


def test_temperature_divides_the_logits(reranker):
    logits = by_index(rank(reranker(activation="none"), "cat", *DOCUMENTS))
    cooled = rank(reranker(load={"entry": CatalogEntry(name="model", temperature=3.0)}), "cat", *DOCUMENTS)
    expected = {
        index: activate(np.float64([score]), "sigmoid", temperature=3.0).item() for index, score in logits.items()
    }
    assert by_index(cooled) == pytest.approx(expected)


def test_the_envelope_reports_every_document_in_request_order(reranker):
    envelope = rank(reranker(load={"layer": 1}), "cat", "dog", LONG).envelope
    assert envelope.inputs == (
        InputReport(tokens=5, total_tokens=5, truncated=False),
        InputReport(tokens=16, total_tokens=40, truncated=True, cut=("second",)),
    )
    assert (envelope.usage.input_tokens, envelope.layer, envelope.requested_layer) == (21, 1, None)


class TestLongDocuments:
    @pytest.mark.parametrize("truncate", ["end", "start"])
    def test_they_are_cut_beside_the_whole_query(self, reranker, truncate):
        words = LONG.split()
        kept = words[:12] if truncate == "end" else words[-12:]
        handle = reranker()
        cut, whole = rank(handle, "query", LONG, truncate=truncate), rank(handle, "query", " ".join(kept))
        assert by_index(cut)[0] == pytest.approx(by_index(whole)[0], abs=1e-6)

    def test_they_can_be_refused(self, reranker):
        with pytest.raises(InputTooLongError, match=r"documents\[1\] has 40 tokens, the limit is 16") as caught:
            rank(reranker(), "query", "dog", LONG, truncate="error")
        assert caught.value.param == "documents[1]"

    def test_in_windows_the_best_one_counts(self, reranker):
        handle, words = reranker(), LONG.split()
        windows = [" ".join(words[a:b]) for a, b in [(0, 12), (9, 21), (18, 30), (24, 36)]]
        response = rank(handle, "query", LONG, "dog", truncate="window")
        best = max(by_index(rank(handle, "query", *windows)).values())
        assert by_index(response)[0] == pytest.approx(best, abs=1e-6)
        assert response.envelope.inputs[0] == InputReport(tokens=40, total_tokens=40, truncated=False, windows=4)
        assert response.envelope.inputs[1].windows is None

    def test_a_query_that_leaves_no_room_is_named(self, reranker):
        with pytest.raises(InputTooLongError, match="query has 36 tokens, the limit is 12") as caught:
            rank(reranker(), LONG, "dog", truncate="window")
        assert caught.value.param == "query"


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"labels": ("no", "yes"), "activation": "softmax"}, "has 2 outputs: serve the model as 'pair_classif"),
            ({"labels": ("no", "yes")}, "has 2 outputs"),
            ({"activation": "softmax"}, "has a softmax over its outputs"),
            ({"activation": None}, "no file states how logits become scores"),
            ({"max_tokens": 3}, "max_tokens=3 leaves no room beside 3 special tokens of a pair"),
        ],
    )
    def test_a_head_that_gives_no_single_score_is_refused_at_load(self, reranker, toy, changes, message):
        engine = toy()
        with pytest.raises(CheckpointError, match=message):
            reranker(engine, **changes)
        assert engine.closed == 1

    def test_more_outputs_than_one_are_an_error_when_they_come(self, reranker, toy):
        with pytest.raises(InferenceError, match=r"the shape \[2\] where \[1\] was expected"):
            rank(reranker(toy(labels=2)), "cat", "dog")

    def test_nan_names_the_documents(self, reranker):
        with pytest.raises(NonFiniteOutputError, match=r"for documents\[1\]: "):
            rank(reranker(), "cat", "dog", "nan")

    @pytest.mark.parametrize(
        ("changes", "param"),
        [
            ({"query": 3}, "query"),
            ({"query": None}, "query"),
            ({"query": "\ud800"}, "query"),
            ({"documents": ()}, "documents"),
            ({"documents": ("a", 3)}, "documents[1]"),
            ({"documents": ("a", "\ud800")}, "documents[1]"),
            ({"top_n": 0}, "top_n"),
            ({"top_n": -1}, "top_n"),
            ({"truncate": "middle"}, "truncate"),
        ],
    )
    def test_what_cannot_be_ranked_is_refused_by_name(self, reranker, changes, param):
        asked = RerankingRequest(**{"query": "cat", "documents": ("dog",), **changes})
        with pytest.raises(InvalidInputError) as caught:
            reranker().infer_blocking(asked, CALL)
        assert caught.value.param == param
        assert "[0]" not in caught.value.message

    def test_an_empty_query_is_legal(self, reranker):
        assert len(rank(reranker(), "", "dog", "").results) == 2


@pytest.mark.parametrize(
    ("query", "documents", "characters"),
    [("abc", ("de", "f"), 9), ("abc", "de", 5), ("abc", None, 3), (None, ("de", 3), 2)],
)
def test_the_query_counts_with_each_document(reranker, query, documents, characters):
    task = reranker()._tasks[Capability.RERANKING]
    assert task.size(RerankingRequest(query=query, documents=documents)) == characters
