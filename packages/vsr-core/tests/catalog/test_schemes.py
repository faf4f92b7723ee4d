from __future__ import annotations

import pytest
from vsr_core.catalog.schemes import read_scheme
from vsr_core.errors import CheckpointError


def joined(labels, sequence):
    """The labels of consecutive tokens as spans of (entity, first token, token after the last)."""
    scheme = read_scheme(labels)
    numbers = [labels.index(name) for name in sequence]
    spans = []
    for place, number in enumerate(numbers):
        label = scheme.labels[number]
        if label.role == "outside":
            continue
        if place and scheme.continues(numbers[place - 1], number):
            spans[-1] = (*spans[-1][:2], place + 1)
        else:
            spans.append((label.entity, place, place + 1))
    return spans


BIO = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
BIOES = ("O", "B-PER", "I-PER", "E-PER", "S-PER", "B-LOC", "I-LOC", "E-LOC", "S-LOC")


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (BIO, "BIO"),
        (("O", "I-PER", "I-LOC"), "BIO"),
        (("B-PER", "I-PER", "o"), "BIO"),
        (BIOES, "BIOES"),
        (("O", "B-PER", "I-PER", "L-PER", "U-PER"), "BIOES"),
        (("O", "B-PER", "I-PER", "E-PER", "S-PER", "S-DAY"), "BIOES"),
        (("O", "PER", "LOC"), "flat"),
        (("supported", "hallucinated"), "flat"),
        (("O", "E-MAIL", "PHONE"), "flat"),
        (("O", "E-MAIL", "S-CLASS"), "flat"),
        (("O", "I-BEAM", "PHONE", "NAME"), "flat"),
        (("O", "b-per", "i-per"), "flat"),
        (("O", "B-", "I-"), "flat"),
    ],
)
def test_the_labels_say_which_scheme_they_follow(labels, kind):
    assert read_scheme(labels).kind == kind


def test_entities_are_labels_less_their_prefix():
    assert [label.entity for label in read_scheme(BIO).labels] == ["O", "PER", "PER", "LOC", "LOC"]


@pytest.mark.parametrize(
    ("sequence", "spans"),
    [
        ("O B-PER I-PER O", [("PER", 1, 3)]),
        ("B-PER B-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("O I-PER I-PER", [("PER", 1, 3)]),
        ("B-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),
        ("I-PER I-LOC I-PER", [("PER", 0, 1), ("LOC", 1, 2), ("PER", 2, 3)]),
        ("I-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("I-PER O I-PER", [("PER", 0, 1), ("PER", 2, 3)]),
    ],
)
def test_bio_labels_open_continue_and_close(sequence, spans):
    assert joined(BIO, sequence.split()) == spans


@pytest.mark.parametrize(
    ("sequence", "spans"),
    [
        ("B-PER I-PER E-PER S-PER", [("PER", 0, 3), ("PER", 3, 4)]),
        ("B-PER E-PER I-PER", [("PER", 0, 2), ("PER", 2, 3)]),
        ("S-PER I-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("B-PER S-PER E-PER", [("PER", 0, 1), ("PER", 1, 2), ("PER", 2, 3)]),
        ("O E-PER O", [("PER", 1, 2)]),
        ("B-PER E-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),
        ("I-PER E-PER", [("PER", 0, 2)]),
    ],
)
@pytest.mark.parametrize("letters", ["ES", "LU"])
def test_bioes_and_bilou_labels_close_too(sequence, spans, letters):
    table = str.maketrans("ES", letters)
    labels = tuple(label[0].translate(table) + label[1:] for label in BIOES)
    assert joined(labels, [label[0].translate(table) + label[1:] for label in sequence.split()]) == spans


def test_flat_labels_join_neighbours():
    assert joined(("O", "PER", "LOC"), ["PER", "PER", "LOC", "O", "LOC"]) == [
        ("PER", 0, 2),
        ("LOC", 2, 3),
        ("LOC", 4, 5),
    ]


def test_flat_labels_need_no_outside():
    assert joined(("yes", "no"), ["yes", "yes", "no"]) == [("yes", 0, 2), ("no", 2, 3)]


def test_a_label_without_a_prefix_among_prefixed_ones_continues():
    labels = (*BIO, "MISC")
    assert read_scheme(labels).kind == "BIO"
    assert joined(labels, ["MISC", "MISC", "B-PER", "MISC"]) == [("MISC", 0, 2), ("PER", 2, 3), ("MISC", 3, 4)]


def test_a_name_that_looks_prefixed_stays_whole_among_bio_labels():
    assert joined((*BIO, "E-MAIL"), ["E-MAIL", "E-MAIL"]) == [("E-MAIL", 0, 2)]


def test_prefixed_labels_without_an_outside_are_refused():
    with pytest.raises(CheckpointError, match="'B-PER' and so on have prefixes, and none is 'O'"):
        read_scheme(("B-PER", "I-PER"))


def test_labels_that_mark_nothing_are_refused():
    with pytest.raises(CheckpointError, match="beside 'O'"):
        read_scheme(("O",))
