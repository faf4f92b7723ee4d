"""What each call of the facade asks a backend for, on both facades; and what it asks of whom."""

import asyncio

import pytest
from vsr_core import AsyncRuntime, Runtime
from vsr_core.contract import (
    EmbeddingRequest,
    PairClassificationRequest,
    RerankingRequest,
    SequenceClassificationRequest,
    TokenClassificationRequest,
)
from vsr_core.errors import CapabilityUnmetError, InvalidInputError, ModelNotFoundError
from vsr_core.testing import write_encoder


@pytest.fixture
def config(checkpoint, heads):
    catalog = {name: {"source": str(heads / name)} for name in ("sequence", "nli", "token", "reranker")}
    return {
        "catalog": {**catalog, "mini": {"source": str(checkpoint)}},
        "roles": {"classification": {"default": ["toy:sequence"], "entails": ["toy:nli"]}},
    }


@pytest.fixture
def vsr(config, host):
    with Runtime(config, host=host) as runtime:
        yield runtime


def asked(runtime):
    return runtime._core.instances.adapter("toy").asked


ASKED = {
    "classify": (
        lambda r: r.classify(["a", "b"], layer=2, logits=True, truncate="window"),
        SequenceClassificationRequest(texts=("a", "b"), layer=2, logits=True, truncate="window"),
    ),
    "classify unless told otherwise": (
        lambda r: r.classify("a"),
        SequenceClassificationRequest(texts=("a",), layer=None, logits=False, truncate="error"),
    ),
    "nli": (
        lambda r: r.nli([("a", "b"), ["c", "d"]], model="entails", layer=1, logits=True, truncate="end"),
        PairClassificationRequest(pairs=(("a", "b"), ("c", "d")), layer=1, logits=True, truncate="end"),
    ),
    "nli of one pair unless told otherwise": (
        lambda r: r.nli(("a", "b"), model="nli"),
        PairClassificationRequest(pairs=(("a", "b"),), layer=None, logits=False, truncate="error"),
    ),
    "tag": (
        lambda r: r.tag(["a"], aggregation="max", layer=3, truncate="window"),
        TokenClassificationRequest(texts=("a",), aggregation="max", layer=3, truncate="window"),
    ),
    "tag unless told otherwise": (
        lambda r: r.tag("a"),
        TokenClassificationRequest(texts=("a",), aggregation="simple", layer=None, truncate="error"),
    ),
    "embed": (lambda r: r.embed("a", truncate="start"), EmbeddingRequest(texts=("a",), truncate="start")),
    "embed unless told otherwise": (lambda r: r.embed("a"), EmbeddingRequest(texts=("a",), truncate="end")),
    "rerank by a reranker": (
        lambda r: r.rerank("q", ["a", "b"], top_n=1, model="reranker", truncate="window"),
        RerankingRequest(query="q", documents=("a", "b"), top_n=1, truncate="window"),
    ),
    "rerank by vectors": (
        lambda r: r.rerank("q", ["a"], model="mini", truncate="error"),
        EmbeddingRequest(texts=("q", "a"), truncate="error"),
    ),
}


@pytest.mark.parametrize(("call", "request_"), ASKED.values(), ids=ASKED)
def test_arguments_reach_the_backend_on_both_facades(config, host, call, request_):
    with Runtime(config, host=host) as blocking:
        call(blocking)
        assert asked(blocking) == [request_]

    async def main():
        async with AsyncRuntime(config, host=host) as awaiting:
            await call(awaiting)
            return list(asked(awaiting))

    assert asyncio.run(main()) == [request_]


def test_each_text_has_a_label_with_its_probability_among_all(vsr):
    response = vsr.classify(["a", "b"], logits=True)
    assert response.envelope.backend_id.model == "sequence"
    for result in response.results:
        assert list(result.distribution) == ["business", "law", "health", "other"]
        assert sum(result.distribution.values()) == pytest.approx(1)
        assert result.score == max(result.distribution.values()) == result.distribution[result.label]
        assert len(result.logits) == 4
    assert vsr.classify("b").results[0].score == response.results[1].score


def test_each_pair_has_a_label_and_its_order_matters(vsr):
    response = vsr.nli([("a", "b"), ("b", "a")], model="entails")
    assert len(response.results) == 2
    assert set(response.results[0].distribution) == {"entailment", "neutral", "contradiction"}
    assert response.results[0].distribution != response.results[1].distribution


def test_spans_say_where_they_are_in_code_points(vsr):
    (result,) = vsr.tag("\U0001f600 the WHO in Genf").results
    assert [(span.start, span.end, span.text) for span in result.spans] == [(6, 9, "WHO")]


WRONG = {
    "unknown truncation": (lambda r: r.classify("a", truncate="middle"), "'error', 'end', 'start', 'window'"),
    "windows of a text that gets one vector": (
        lambda r: r.embed("a", model="mini", truncate="window"),
        "truncate must be one of 'error', 'end', 'start', not 'window'",
    ),
    "unknown truncation of pairs": (lambda r: r.nli(("a", "b"), model="nli", truncate=1), "truncate must be one of"),
    "unknown truncation of tagging": (lambda r: r.tag("a", truncate="END"), "truncate must be one of"),
    "unknown aggregation": (lambda r: r.tag("a", aggregation="sum"), "'none', 'simple', 'first', 'average', 'max'"),
    "unhashable aggregation": (lambda r: r.tag("a", aggregation=["max"]), "aggregation must be one of"),
    "logits that are no truth value": (lambda r: r.classify("a", logits=1), "logits must be True or False"),
    "logits of pairs likewise": (lambda r: r.nli(("a", "b"), model="nli", logits="yes"), "logits must be"),
    "layer zero": (lambda r: r.classify("a", layer=0), "layer must be a positive whole number"),
    "no text": (lambda r: r.classify([]), "texts is empty"),
    "no text to tag": (lambda r: r.tag(None), "texts must be a string or a list"),
    "a pair that is a text": (lambda r: r.nli(["ab"], model="nli"), r"pairs\[0\] must be a pair"),
    "a pair of three": (lambda r: r.nli([("a", "b"), ("a", "b", "c")], model="nli"), r"pairs\[1\].*3 items"),
    "no time": (lambda r: r.classify("a", timeout=0), "timeout must be"),
    "hints that are no mapping": (lambda r: r.tag("a", hints=3), "hints must be a mapping"),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_refused_by_the_plain_call_of_both_facades(config, host, call, message):
    with Runtime(config, host=host) as blocking, pytest.raises(InvalidInputError, match=message):
        call(blocking)
    awaiting = AsyncRuntime(config, host=host)
    with pytest.raises(InvalidInputError, match=message):
        call(awaiting)  # never awaited: there is nothing to await
    assert asked(awaiting) == []
    asyncio.run(awaiting.aclose())


UNMET = {
    "a reranker does not classify": (lambda r: r.classify("a", model="reranker"), "the model is for reranking"),
    "an embedder does not classify": (lambda r: r.classify("a", model="mini"), "the model is for embedding"),
    "a classifier of texts does not judge pairs": (
        lambda r: r.nli(("a", "b"), model="sequence"),
        "does not offer pair_classification: the model is for sequence_classification",
    ),
    "a classifier does not tag": (lambda r: r.tag("a", model="nli"), "does not offer token_classification"),
    "a classifier does not embed": (lambda r: r.embed("a", model="sequence"), "does not offer embedding"),
    "a classifier does not rerank": (lambda r: r.rerank("a", ["b"], model="sequence"), "does not offer reranking"),
    "a feature the backend lacks": (lambda r: r.classify("a", requires=["hot_swap"]), "hot_swap"),
    "a layer the backend cannot leave after": (lambda r: r.embed("a", model="mini", layer=1), "layer_exit"),
}


@pytest.mark.parametrize(("call", "reason"), UNMET.values(), ids=UNMET)
def test_a_model_for_something_else_is_refused_with_the_reason(vsr, call, reason):
    with pytest.raises(CapabilityUnmetError, match=reason):
        call(vsr)
    assert asked(vsr) == []


def test_an_entry_that_states_reranking_makes_a_reranker_of_a_classifier(host, tmp_path):
    folder = write_encoder(tmp_path / "one", "bert", head="sequence", labels=["relevant"])
    entry = {"source": str(folder), "capability": "reranking"}
    with Runtime({"catalog": {"stated": entry}}, host=host) as vsr:
        assert vsr.rerank("q", ["a", "q"]).results[0].index == 1
        with pytest.raises(CapabilityUnmetError, match="the model is for reranking"):
            vsr.classify("a")


def test_tagging_uses_the_roles_of_its_own_kind(config, host):
    config["roles"]["token_classification"] = {"default": ["toy:token"]}
    with Runtime(config, host=host) as vsr:
        assert vsr.tag("a").envelope.backend_id.model == "token"
        assert vsr.classify("a").envelope.backend_id.model == "sequence"
        with pytest.raises(ModelNotFoundError, match="no token_classification role"):
            vsr.tag("a", model="entails")


def test_threshold_and_positive_labels_decide_what_has_passed_and_nothing_else(heads, host):
    entry = {"source": str(heads / "sequence"), "threshold": 0.0}
    catalog = {"any": entry, "some": {**entry, "positive_labels": ["law"]}, "none": {**entry, "threshold": 1.0}}
    texts = [f"text {number}" for number in range(20)]
    with Runtime({"catalog": catalog}, host=host) as vsr:
        assert all(result.passed for result in vsr.classify(texts, model="any").results)
        for result in vsr.classify(texts, model="some").results:
            assert result.passed == (result.label == "law")
        assert not any(result.passed for result in vsr.classify(texts, model="none").results)
