from __future__ import annotations

import math

import numpy as np
import pytest
from safetensors.numpy import save_file
from vsr_core.catalog import HeadLayout
from vsr_core.errors import CheckpointError
from vsr_core.local import NumpyHead

HIDDEN, LABELS = 6, 3
RNG = np.random.default_rng(3)
TENSORS = {
    "dense.weight": RNG.normal(size=(HIDDEN, HIDDEN)),
    "dense.bias": RNG.normal(size=HIDDEN),
    "norm.weight": RNG.normal(size=HIDDEN),
    "norm.bias": RNG.normal(size=HIDDEN),
    "classifier.weight": RNG.normal(size=(LABELS, HIDDEN)),
    "classifier.bias": RNG.normal(size=LABELS),
}
SEQUENCES = [RNG.normal(size=(length, HIDDEN)).astype(np.float32) for length in (4, 1, 7)]
gelu = np.vectorize(lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)))


@pytest.fixture
def read(tmp_path):
    """Writes the tensors named, and reads the head of a layout from them."""

    def make(layout, *names, **changes):
        tensors = {name: TENSORS[name] for name in (*names, "classifier.weight", "classifier.bias")} | changes
        save_file({name: value.astype(np.float32) for name, value in tensors.items()}, tmp_path / "head.safetensors")
        return NumpyHead.read(tmp_path, layout, hidden_size=HIDDEN)

    return make


def classify(x):
    return x @ TENSORS["classifier.weight"].T + TENSORS["classifier.bias"]


def dense(x):
    return x @ TENSORS["dense.weight"].T + TENSORS["dense.bias"]


def norm(x, eps=1e-5):
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return scaled * TENSORS["norm.weight"] + TENSORS["norm.bias"]


def test_a_bert_head_reads_the_first_token_through_its_pooler(read):
    layout = HeadLayout(kind="sequence", labels=LABELS, pool="cls", dense=True, activation="tanh")
    head = read(layout, "dense.weight", "dense.bias")
    for hidden in SEQUENCES:
        found = head.logits(hidden)
        assert (found.shape, found.dtype) == ((LABELS,), np.float32)
        np.testing.assert_allclose(found, classify(np.tanh(dense(hidden[0]))), rtol=1e-5, atol=1e-5)


def test_a_modernbert_head_pools_the_mean_and_normalises_before_the_classifier(read):
    layout = HeadLayout(kind="sequence", labels=LABELS, pool="mean", dense=True, activation="gelu", norm_eps=1e-5)
    head = read(layout, "dense.weight", "norm.weight", **{"norm.bias": TENSORS["norm.bias"]})
    for hidden in SEQUENCES:
        inner = gelu(hidden.mean(0, dtype=float) @ TENSORS["dense.weight"].T)
        np.testing.assert_allclose(head.logits(hidden), classify(norm(inner)), rtol=1e-5, atol=1e-5)


def test_a_head_of_tokens_answers_each_token(read):
    layout = HeadLayout(kind="token", labels=LABELS, dense=True, activation="gelu", norm_eps=1e-5)
    head = read(layout, "dense.weight", "dense.bias", "norm.weight", "norm.bias")
    found = head.logits_of(SEQUENCES)
    assert [logits.shape for logits in found] == [(4, LABELS), (1, LABELS), (7, LABELS)]
    for hidden, logits in zip(SEQUENCES, found, strict=True):
        np.testing.assert_allclose(logits, classify(norm(gelu(dense(hidden)))), rtol=1e-5, atol=1e-5)


def test_many_tokens_are_answered_as_few_are(read):
    head = read(HeadLayout(kind="token", labels=LABELS))
    hidden = np.resize(SEQUENCES[2], (9001, HIDDEN))
    np.testing.assert_allclose(head.logits(hidden), classify(hidden), rtol=1e-5, atol=1e-5)


def test_several_sequences_are_answered_as_each_alone(read):
    head = read(HeadLayout(kind="sequence", labels=LABELS, pool="mean"))
    for together, hidden in zip(head.logits_of(SEQUENCES), SEQUENCES, strict=True):
        np.testing.assert_allclose(together, head.logits(hidden), rtol=1e-6, atol=1e-6)


def test_states_that_are_not_finite_give_logits_that_are_not(read):
    head = read(HeadLayout(kind="sequence", labels=LABELS, pool="cls", dense=True, activation="gelu"), "dense.weight")
    assert not np.isfinite(head.logits(np.full((2, HIDDEN), np.nan, np.float32))).any()


def test_tensors_that_are_missing_misshapen_or_left_over_are_refused(read, tmp_path):
    with pytest.raises(CheckpointError, match=r"head\.safetensors' is missing"):
        NumpyHead.read(tmp_path, HeadLayout(kind="token", labels=LABELS), hidden_size=HIDDEN)
    with pytest.raises(CheckpointError, match=r"has no 'norm\.weight' \[6\]"):
        read(HeadLayout(kind="token", labels=LABELS, norm_eps=1e-5))
    with pytest.raises(CheckpointError, match=r"'classifier\.weight' should be \[2, 6\], the file has \[3, 6\]"):
        read(HeadLayout(kind="token", labels=2))
    with pytest.raises(CheckpointError, match=r"has 'dense\.bias', which the head in the manifest does not use"):
        read(HeadLayout(kind="token", labels=LABELS), "dense.weight", "dense.bias")
