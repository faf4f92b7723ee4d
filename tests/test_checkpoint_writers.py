"""The checkpoints the tests are made of are what transformers would have saved."""

import json
from typing import get_args

import numpy as np
import pytest
from tokenizers import Tokenizer
from vsr_core.catalog import inspect_checkpoint
from vsr_core.catalog.families import CORE_FAMILIES
from vsr_core.testing import EncoderFamily, EncoderHead, EncoderShape, write_encoder

FAMILIES = get_args(EncoderFamily)
HEADS = get_args(EncoderHead)
TEXTS = [
    "the cat is on the river bank",
    "A Dog",
    "query answer two three green tree; 12:30 and running",
    "",
    "   ",
    "naïve ﬁne — 日本 😀 x",
    "the red cat and the blue dog in the green tree by the river bank, one two three of it is for the answer",
    "line\nbreak\ttab  two spaces",
    "zzz qqq!",
]


@pytest.fixture(scope="module")
def load():
    import torch
    import transformers

    classes = {"embedding": transformers.AutoModel, "token": transformers.AutoModelForTokenClassification}
    before = torch.get_num_threads()
    torch.set_num_threads(1)

    def load(folder, head):
        loader = classes.get(head, transformers.AutoModelForSequenceClassification)
        model, info = loader.from_pretrained(folder, output_loading_info=True)
        return model.eval(), {kind: names for kind, names in info.items() if names}

    yield load
    torch.set_num_threads(before)


def answers(model, folder):
    import torch

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    with torch.inference_mode():
        outputs = [model(torch.tensor([tokenizer.encode(text).ids]))[0][0] for text in TEXTS]
    return np.concatenate([np.atleast_2d(output.numpy()) for output in outputs])


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_is_one_transformers_wants_and_no_other(tmp_path, load, family, head):
    folder = write_encoder(tmp_path / "m", family, head=head)
    model, problems = load(folder, head)
    assert problems == {}
    assert [type(model).__name__] == json.loads((folder / "config.json").read_text())["architectures"]


@pytest.mark.parametrize("head", ["sequence", "token"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_logits_lie_apart(tmp_path, load, family, head, seed):
    folder = write_encoder(tmp_path / "m", family, head=head, seed=seed)
    model, _ = load(folder, head)
    assert np.ptp(answers(model, folder), axis=0).max() >= 2


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_is_peaked(tmp_path, family):
    import torch
    from transformers import AutoModel

    folder = write_encoder(tmp_path / "m", family)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXTS[2]).ids
    with torch.inference_mode():
        layers = model(torch.tensor([ids]), output_attentions=True).attentions
    assert np.mean([layer.amax(-1).mean().item() for layer in layers]) > 0.4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_files_tell_what_was_written(tmp_path, family):
    families = {descriptor.name: descriptor for descriptor in CORE_FAMILIES}
    for head in HEADS:
        facts = inspect_checkpoint(write_encoder(tmp_path / head, family, head=head), families)
        assert facts.family == family
        assert facts.refusals == ()
        assert facts.max_tokens == 64
        capability = {
            "sequence": "sequence_classification",
            "token": "token_classification",
            "nli": "sequence_classification",
        }
        assert facts.capabilities[0] == capability.get(head, head if head != "reranker" else "reranking")


@pytest.mark.parametrize("family", FAMILIES)
def test_tokenizers_read_texts_and_pairs_as_transformers_does(tmp_path, family):
    from transformers import AutoTokenizer

    folder = write_encoder(tmp_path / "m", family)
    plain, theirs = Tokenizer.from_file(str(folder / "tokenizer.json")), AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        assert plain.encode(text).ids == theirs(text)["input_ids"]
        assert plain.encode(text, TEXTS[2]).ids == theirs(text, TEXTS[2])["input_ids"]


@pytest.mark.parametrize("family", FAMILIES)
def test_words_are_whole_and_every_character_is_read(tmp_path, family):
    folder = write_encoder(tmp_path / "m", family)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = tokenizer.encode("the river bank; 12:30 and running 日本").tokens
    assert {token.strip("▁Ġ") for token in tokens} >= {"river", "bank", "and"}
    unknown = {"[UNK]", "<unk>", "日本"} & set(tokens)
    assert bool(unknown) == (family not in ("roberta", "modernbert", "mmbert"))


@pytest.mark.parametrize("family", ["modernbert", "mmbert"])
def test_both_dialects_of_modernbert_say_the_same(tmp_path, load, family):
    found = []
    for dialect in ("current", "older"):
        folder = write_encoder(tmp_path / dialect, family, head="sequence", dialect=dialect)
        model, problems = load(folder, "sequence")
        assert problems == {}
        found.append((model.config.layer_types, model.config.rope_parameters, answers(model, folder)))
    assert found[0][:2] == found[1][:2]
    assert set(found[0][0]) == {"full_attention", "sliding_attention"}
    np.testing.assert_array_equal(found[0][2], found[1][2])


def test_biases_of_modernbert_follow_the_configuration(tmp_path, load):
    biased = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True)
    for head in ("embedding", "sequence", "token"):
        _, problems = load(write_encoder(tmp_path / head, "modernbert", head=head, config=biased), head)
        assert problems == {}


def test_labels_problem_and_shape_are_written_as_given(tmp_path, load):
    folder = write_encoder(
        tmp_path / "m",
        "roberta",
        head="sequence",
        shape=EncoderShape(hidden=16, layers=2, heads=2, intermediate=8, positions=20),
        labels=("yes", "no"),
        problem_type="multi_label_classification",
    )
    model, problems = load(folder, "sequence")
    assert problems == {}
    assert model.config.id2label == {0: "yes", 1: "no"}
    assert model.config.problem_type == "multi_label_classification"
    assert model.config.max_position_embeddings == 22


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    first, again, other = (
        write_encoder(tmp_path / name, "bert", seed=seed) for name, seed in (("a", 3), ("b", 3), ("c", 4))
    )
    for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    assert (first / "model.safetensors").read_bytes() != (other / "model.safetensors").read_bytes()
