"""Families run by transformers' own code answer as that code does, and refuse what it would only log."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file
from vsr_core.errors import CheckpointError
from vsr_core.local import BatchShape
from vsr_core.testing import write_tokenizer

SIZES = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = {"intermediate_size": 48, "max_position_embeddings": 80, "initializer_range": 0.4}
CONFIGS = {
    "albert": transformers.AlbertConfig(**SIZES, **WIDE, embedding_size=16),
    "camembert": transformers.CamembertConfig(**SIZES, **WIDE, type_vocab_size=1),
    "distilbert": transformers.DistilBertConfig(
        vocab_size=120, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=80, initializer_range=0.4
    ),
    "electra": transformers.ElectraConfig(**SIZES, **WIDE, embedding_size=16),
    "mpnet": transformers.MPNetConfig(**SIZES, **WIDE),
}
LABELS = dict(enumerate(["one", "two", "three"]))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A random model of a family as transformers saves it, with a tokenizer beside it."""
    folders = {}

    def save(family, head="sequence"):
        if (family, head) not in folders:
            kinds = {
                "embedding": transformers.AutoModel,
                "sequence": transformers.AutoModelForSequenceClassification,
                "token": transformers.AutoModelForTokenClassification,
            }
            torch.manual_seed(3)
            config = type(CONFIGS[family])(**CONFIGS[family].to_dict() | {"id2label": LABELS})
            folder = tmp_path_factory.mktemp(family)
            kinds[head].from_config(config).save_pretrained(folder)
            write_tokenizer(folder, "bert", max_tokens=64)
            folders[family, head] = folder
        return folders[family, head]

    return save


@pytest.mark.parametrize("family", sorted(CONFIGS))
@pytest.mark.parametrize("head", ["sequence", "token"])
def test_logits_are_those_of_the_reference(saved, load, logits, sequences, reference_logits, family, head):
    where = saved(family, head)
    for ids, ours in zip(sequences, logits(load(where), sequences), strict=True):
        np.testing.assert_allclose(ours, reference_logits(where, head, ids), atol=1e-4)


@pytest.mark.parametrize("family", sorted(CONFIGS))
def test_hidden_states_are_those_of_the_reference(saved, load, hidden, sequences, model, family):
    where = saved(family, "embedding")
    network = load(where)
    states = hidden(network, sequences, {network.layers})[network.layers]
    for ids, ours in zip(sequences, states, strict=True):
        with torch.inference_mode():
            theirs = model(where)(torch.from_numpy(ids.astype(np.int64))[None]).last_hidden_state[0].numpy()
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_one_batch_may_be_asked_for_states_and_logits_at_once(written, load, pack, sequences):
    network = load(written("deberta", "sequence"))
    last = frozenset({network.layers})
    both = network.run(pack(sequences), hidden=last, logits=last)
    alone = network.run(pack(sequences), hidden=frozenset(), logits=last)
    for one, other in zip(both.logits[network.layers], alone.logits[network.layers], strict=True):
        torch.testing.assert_close(one, other)
    assert both.hidden[network.layers].shape == (sum(map(len, sequences)), network.hidden_size)


def test_an_earlier_layer_has_no_head(written, load, pack, sequences):
    network = load(written("deberta", "sequence"))
    with pytest.raises(ValueError, match="after its last layer alone"):
        network.run(pack(sequences), hidden=frozenset(), logits=frozenset({1}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("classifier.weight"), "lack 'classifier.weight'"),
        (lambda t: t.update({"classifier.bias": np.zeros(4, np.float32)}), "hold other shapes for 'classifier.bias'"),
        (lambda t: t.update({"extra.weight": np.zeros(3, np.float32)}), "nobody uses: 'extra.weight'"),
    ],
)
def test_what_transformers_would_only_log_is_refused(tmp_path, saved, load, change, message):
    where = tmp_path / "m"
    shutil.copytree(saved("distilbert"), where)
    tensors = load_file(where / "model.safetensors")
    change(tensors)
    save_file(tensors, where / "model.safetensors")
    with pytest.raises(CheckpointError, match=message):
        load(where)


@pytest.mark.parametrize("bad", [np.int8, np.int32])
def test_weights_that_are_no_numbers_with_a_point_are_refused(tmp_path, saved, load, bad):
    where = tmp_path / "m"
    shutil.copytree(saved("distilbert"), where)
    tensors = load_file(where / "model.safetensors")
    tensors["classifier.weight"] = tensors["classifier.weight"].astype(bad)
    save_file(tensors, where / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"'classifier\.weight' is of dtype torch\.int\d+, not of a float dtype"):
        load(where)


def test_a_head_without_names_has_as_many_outputs_as_its_weights(tmp_path, written, load, logits, sequences):
    where = tmp_path / "m"
    shutil.copytree(written("deberta", "sequence"), where)
    config = json.loads((where / "config.json").read_text())
    named = [config.pop(key) for key in ("id2label", "label2id")]
    (where / "config.json").write_text(json.dumps(config))
    found = logits(load(where), sequences[:1])[0]
    assert found.shape == (len(named[0]),)


def test_the_file_of_the_weights_may_have_any_name(tmp_path, written, load, logits, sequences):
    where = tmp_path / "m"
    shutil.copytree(written("deberta", "sequence"), where)
    expected = logits(load(where), sequences[:1])[0]
    (where / "model.safetensors").rename(where / "weights.safetensors")
    np.testing.assert_array_equal(logits(load(where), sequences[:1])[0], expected)


def test_loading_leaves_torchs_default_dtype_alone(written, load):
    seen = set()
    original = torch.set_default_dtype
    torch.set_default_dtype = lambda dtype: (seen.add(dtype), original(dtype))
    try:
        load(written("deberta", "sequence"), dtype=torch.bfloat16)
    finally:
        torch.set_default_dtype = original
    assert seen <= {torch.float32}


def test_loading_draws_no_progress_bar_and_leaves_transformers_logging_as_it_was(saved, load, capfd):
    from transformers.utils import logging

    logging.enable_progress_bar()
    before = logging.get_verbosity()
    try:
        load(saved("electra"))
        assert logging.is_progress_bar_enabled()
        assert logging.get_verbosity() == before
    finally:
        logging.disable_progress_bar()
    assert capfd.readouterr().err == ""


def test_the_plan_grows_with_the_square_of_the_length(written, load):
    network = load(written("deberta", "sequence"))
    plans = [network.plan_bytes(BatchShape(1, tokens, tokens)) for tokens in (1000, 2000)]
    assert 3.5 < plans[1] / plans[0] < 4


def test_a_vocabulary_that_is_no_number_is_refused(tmp_path, written, load):
    where = tmp_path / "m"
    shutil.copytree(written("deberta", "sequence"), where)
    config = json.loads((where / "config.json").read_text()) | {"vocab_size": "many"}
    (where / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="vocab_size"):
        load(where)
