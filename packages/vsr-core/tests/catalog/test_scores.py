from __future__ import annotations

import pytest
from vsr_core.catalog.scores import score_problems
from vsr_core.contract import CatalogEntry
from vsr_core.taxonomy import Capability

SEQUENCE, PAIR = Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION
TOKEN, RERANKING = Capability.TOKEN_CLASSIFICATION, Capability.RERANKING


def keys(*capabilities, labels=None, count=None, activation="softmax", **stated):
    """The keys of an entry that do not go with a head."""
    found = score_problems(
        CatalogEntry(name="m", **stated), capabilities=capabilities, labels=labels, count=count, activation=activation
    )
    return [problem.partition(": ")[0] for problem in found]


@pytest.mark.parametrize(
    ("activation", "threshold", "wrong"),
    [
        ("softmax", 0.0, []),
        ("sigmoid", 1.0, []),
        ("softmax", 1.01, ["threshold"]),
        ("sigmoid", -0.01, ["threshold"]),
        ("none", -7.5, []),
        ("none", 12.0, []),
        ("none", float("inf"), ["threshold"]),
    ],
)
def test_a_threshold_is_a_score_the_model_can_give(activation, threshold, wrong):
    assert keys(SEQUENCE, count=2, activation=activation, threshold=threshold) == wrong


@pytest.mark.parametrize("capability", [SEQUENCE, PAIR, RERANKING])
def test_raw_scores_are_not_calibrated(capability):
    assert keys(capability, count=1, activation="none", temperature=1.0) == []
    assert keys(capability, count=1, activation="none", temperature=2.0) == ["calibration.temperature"]
    assert keys(capability, count=1, activation="sigmoid", temperature=2.0) == []


@pytest.mark.parametrize(
    ("labels", "count", "positive", "wrong"),
    [
        (("a", "b"), 2, ("b",), False),
        (("a", "b"), 2, ("c",), True),
        (("a", "b"), 2, ("LABEL_0",), True),
        (("B-a", "O"), 2, ("a",), True),
        (None, 2, ("LABEL_0", "LABEL_1"), False),
        (None, 2, ("LABEL_2",), True),
        (None, 2, ("yes",), True),
        (None, None, ("LABEL_2",), False),
        (None, None, ("LABEL_02",), True),
        (None, None, ("yes",), True),
    ],
)
def test_a_positive_label_is_one_the_classifier_answers(labels, count, positive, wrong):
    assert keys(SEQUENCE, labels=labels, count=count, positive_labels=positive) == ["positive_labels"] * wrong


def test_a_positive_label_of_a_tagger_may_be_an_entity():
    assert keys(TOKEN, labels=("O", "B-PER", "I-PER"), positive_labels=("PER", "B-PER")) == []
    assert keys(TOKEN, labels=("O", "B-PER", "I-PER"), positive_labels=("LOC",)) == ["positive_labels"]


@pytest.mark.parametrize("labels", [("O",), ("B-PER", "I-PER")])
def test_labels_that_no_scheme_reads_are_told_before_anything_is_loaded(labels):
    assert keys(TOKEN, labels=labels) == ["labels"]


def test_what_stands_for_no_span_is_no_positive_label_and_a_flat_name_is_whole():
    assert keys(TOKEN, labels=("O", "B-PER", "I-PER"), positive_labels=("O",)) == ["positive_labels"]
    assert keys(TOKEN, labels=("O", "E-MAIL", "PHONE", "NAME"), positive_labels=("MAIL",)) == ["positive_labels"]


def test_a_tagger_has_names_for_its_labels():
    assert keys(TOKEN, count=3) == ["labels"]
    assert keys(TOKEN, count=3, labels=("O", "B-PER", "I-PER")) == []


def test_what_is_wrong_with_an_entrys_labels_is_not_said_again():
    assert keys(TOKEN, count=3, labels=None, positive_labels=("x",)) == ["labels"]
    found = score_problems(
        CatalogEntry(name="m", labels="missing.json", positive_labels=("x",)),
        capabilities=(TOKEN,),
        labels=None,
        count=3,
        activation="softmax",
    )
    assert found == []


def test_one_label_has_no_softmax():
    assert keys(SEQUENCE, count=1) == ["labels"]
    assert keys(SEQUENCE, labels=("a",)) == ["labels"]
    assert keys(SEQUENCE, count=1, activation="sigmoid") == []
    assert keys(SEQUENCE, count=2) == []


@pytest.mark.parametrize(
    ("count", "activation", "wrong"),
    [(1, "sigmoid", False), (1, "none", False), (None, "sigmoid", False), (1, "softmax", True), (3, "sigmoid", True)],
)
def test_a_reranker_has_one_output_and_no_softmax(count, activation, wrong):
    assert keys(RERANKING, count=count, activation=activation) == ["capabilities"] * wrong


@pytest.mark.parametrize("stated", [{"threshold": 0.5}, {"positive_labels": ("LABEL_0",)}])
@pytest.mark.parametrize("capability", [RERANKING, Capability.EMBEDDING])
def test_what_no_answer_would_show_is_refused(capability, stated):
    assert keys(capability, count=1, activation="sigmoid", **stated) == list(stated)
    assert keys(capability, SEQUENCE, count=1, activation="sigmoid", **stated) == []


def test_a_ranking_says_why_it_has_no_threshold():
    found = score_problems(
        CatalogEntry(name="m", threshold=0.5), capabilities=(RERANKING,), labels=None, count=1, activation="sigmoid"
    )
    assert found == [
        "threshold: has no effect, since a ranking does not say which documents passed; leave it out",
    ]


def test_vectors_have_neither_labels_nor_a_temperature():
    entry = CatalogEntry(name="m", labels=("a",), temperature=2.0)

    def found(capability):
        return score_problems(entry, capabilities=(capability,), labels=("a",), count=None, activation=None)

    assert [problem.partition(": ")[0] for problem in found(Capability.EMBEDDING)] == [
        "labels",
        "calibration.temperature",
    ]
    assert found(Capability.GUARD) == []
