"""Heads give the logits of the transformers class they were saved from, or are refused: none is made up."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from vsr_core.errors import CheckpointError

FAMILIES = ["bert", "roberta", "xlm_roberta", "modernbert", "mmbert", "deberta"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", ["sequence", "token"])
def test_logits_are_those_of_the_reference(written, load, logits, sequences, reference_logits, family, head):
    where = written(family, head)
    together = logits(load(where), sequences)
    spread = 0.0
    for ids, ours in zip(sequences, together, strict=True):
        theirs = reference_logits(where, head, ids)
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
        spread = max(spread, float(np.ptp(theirs)))
    assert spread > 2


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_modernbert_head_pools_as_its_configuration_says(written, load, logits, sequences, reference_logits, pooling):
    flags = {"classifier_pooling": pooling, "classifier_bias": True, "norm_bias": True, "classifier_activation": "relu"}
    where = written("modernbert", "sequence", config=flags)
    for ids, ours in zip(sequences, logits(load(where), sequences), strict=True):
        np.testing.assert_allclose(ours, reference_logits(where, "sequence", ids), atol=1e-4)


def test_a_head_may_sit_on_an_earlier_layer(written, load, logits, hidden, sequences, model):
    import torch

    where = written("bert", "sequence")
    network = load(where)
    classifier = model(where, "sequence")
    with torch.inference_mode():
        state = torch.from_numpy(hidden(network, sequences, {2})[2][4])[None]
        expected = classifier.classifier(classifier.bert.pooler(state))[0].numpy()
    np.testing.assert_allclose(logits(network, sequences, layer=2)[4], expected, atol=1e-4)
    assert np.abs(logits(network, sequences)[4] - expected).max() > 0.1


@pytest.mark.parametrize(
    ("family", "head", "missing"),
    [
        ("bert", "sequence", "bert.pooler.dense.weight"),
        ("bert", "sequence", "classifier.weight"),
        ("roberta", "sequence", "classifier.dense.bias"),
        ("roberta", "sequence", "classifier.out_proj.weight"),
        ("modernbert", "sequence", "head.dense.weight"),
        ("modernbert", "token", "head.norm.weight"),
        ("deberta", "sequence", "pooler.dense.weight"),
        ("deberta", "token", "classifier.bias"),
    ],
)
def test_a_head_that_is_not_whole_is_refused_and_named(tmp_path, written, load, family, head, missing):
    where = tmp_path / "m"
    shutil.copytree(written(family, head), where)
    tensors = load_file(where / "model.safetensors")
    del tensors[missing]
    save_file(tensors, where / "model.safetensors")
    with pytest.raises(CheckpointError, match=missing):
        load(where)


def test_a_pooling_that_is_not_computed_here_is_refused(tmp_path, written, load):
    where = tmp_path / "m"
    shutil.copytree(written("modernbert", "sequence"), where)
    config = json.loads((where / "config.json").read_text()) | {"classifier_pooling": "max"}
    (where / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="classifier_pooling 'max' is not computed here"):
        load(where)
