"""Embeddings of every family against transformers, pooled as sentence-transformers says, by code of this file's own."""

from typing import get_args

import numpy as np
import pytest
import torch
from vsr_core import Runtime
from vsr_core.errors import CapabilityUnmetError
from vsr_core.testing import DenseShape, EncoderFamily, EncoderShape, write_encoder, write_sentence_transformer

from tests.oracle import TEXTS, Reference, config_of

FAMILIES = get_args(EncoderFamily)
MODES = ["cls", "mean", "max", "last", "weighted_mean", "mean_sqrt_len"]
HIDDEN = {"minilm": 384, "mmbert": 16}
LAYERS = {"minilm": 2}
PROMPTED = [("modernbert", mode) for mode in MODES] + [("bert", "mean"), ("xlm_roberta", "mean"), ("deberta", "cls")]
CLOSE = 1e-4


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("encoders")
    return {family: write_encoder(root / family, family) for family in FAMILIES}


@pytest.fixture(scope="module")
def references(folders):
    return {family: Reference(folder) for family, folder in folders.items()}


@pytest.fixture(scope="module")
def states(references):
    """Token vectors of each text by itself, with a mask of ones, by family."""
    found = {}
    for family, reference in references.items():
        alone = [torch.from_numpy(rows)[None] for rows in reference.answers(TEXTS)]
        found[family] = [(rows, torch.ones(rows.shape[:2], dtype=torch.long)) for rows in alone]
    return found


@pytest.fixture(scope="module")
def vsr(folders):
    catalog = {
        f"{family}-{mode}": {"source": str(folder), "pooling": [mode]}
        for family, folder in folders.items()
        for mode in MODES
    }
    for family, folder in folders.items():
        layers = list(range(1, LAYERS.get(family, 4) + 1))
        catalog[f"{family}-exits"] = {"source": str(folder), "pooling": ["mean"], "layers": layers}
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32", "threads": 1}}}) as runtime:
        yield runtime


def pooled(hidden, mask, mode):
    """Pool token vectors ``[texts, tokens, hidden]`` under a mask, as sentence-transformers 5 and 6 define the modes."""
    weights = mask.unsqueeze(-1).float()
    first, last = mask.argmax(1), mask.shape[1] - 1 - mask.flip(1).argmax(1)
    rows = torch.arange(len(mask))
    if mode == "cls":
        return hidden[rows, first]
    if mode == "last":
        return hidden[rows, last]
    if mode == "max":
        return hidden.masked_fill(weights == 0, -1e9).amax(1)
    if mode == "weighted_mean":
        weights = weights * torch.arange(1, mask.shape[1] + 1).view(1, -1, 1)
    total, count = (hidden * weights).sum(1), weights.sum(1).clamp(min=1e-9)
    return total / (count.sqrt() if mode == "mean_sqrt_len" else count)


def expected(reference, texts, modes):
    hidden, mask = reference.padded(texts)
    return torch.cat([pooled(hidden, mask, mode) for mode in modes], 1).numpy()


def assert_together_and_alone(vsr, model, vectors, **options):
    np.testing.assert_allclose(vsr.embed(TEXTS, model=model, **options).vectors, vectors, atol=CLOSE, rtol=0)
    for text, vector in zip(TEXTS, vectors, strict=True):
        found = vsr.embed(text, model=model, **options).vectors[0]
        np.testing.assert_allclose(found, vector, atol=CLOSE, rtol=0, err_msg=text[:40])


def test_the_texts_reach_beyond_windows_and_limits(references):
    for reference in references.values():
        lengths = [len(reference.tokenizer.encode(text)) for text in TEXTS]
        assert min(lengths) == 2
        assert max(lengths) == reference.limit
        assert sum(8 < length < reference.limit for length in lengths) >= 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", FAMILIES)
def test_pooled_vectors_are_those_of_transformers(vsr, states, family, mode):
    vectors = torch.cat([pooled(rows, mask, mode) for rows, mask in states[family]]).numpy()
    assert_together_and_alone(vsr, f"{family}-{mode}", vectors)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "deberta"])
def test_a_layer_exit_is_a_model_of_so_many_layers(vsr, references, family):
    natives = LAYERS.get(family, 4)
    for layer in range(1, natives + 1):
        states = references[family].exit_at(layer).answers(TEXTS)
        vectors = np.stack([row.mean(0) for row in states])
        assert_together_and_alone(vsr, f"{family}-exits", vectors, layer=layer)


def test_deberta_is_left_at_its_full_depth_only(vsr):
    with pytest.raises(CapabilityUnmetError, match="deberta"):
        vsr.embed(TEXTS, model="deberta-exits", layer=2)


@pytest.mark.parametrize("family", ["modernbert", "mmbert"])
@pytest.mark.parametrize("layers", [4, 7])
def test_the_older_dialect_of_modernbert_is_read_too(tmp_path, family, layers):
    shape = EncoderShape(hidden=16, heads=2, intermediate=24, layers=layers)
    folder = write_encoder(tmp_path / "m", family, shape=shape, dialect="older", seed=5)
    vectors = np.stack([states.mean(0) for states in Reference(folder).answers(TEXTS)])
    with Runtime(config_of(folder, pooling=["mean"])) as vsr:
        assert_together_and_alone(vsr, "model", vectors)


def test_biases_and_windows_of_modernbert_follow_the_configuration(tmp_path):
    biased = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias"), True)
    for window in (2, 5, 128):
        config = {**biased, "local_attention": window}
        folder = write_encoder(tmp_path / str(window), "modernbert", config=config)
        vectors = np.stack([states.max(0) for states in Reference(folder).answers(TEXTS)])
        with Runtime(config_of(folder, pooling=["max"])) as vsr:
            assert_together_and_alone(vsr, "model", vectors)


def sentence_transformer(folder, family, **options):
    write_encoder(folder, family)
    return write_sentence_transformer(folder, hidden=HIDDEN.get(family, 32), **options)


@pytest.mark.parametrize(
    ("family", "dialect"), [*((family, "current") for family in FAMILIES), ("bert", "older"), ("modernbert", "older")]
)
def test_a_sentence_transformers_folder_pools_and_normalises(tmp_path, family, dialect):
    modes = ["cls", "max", "mean"]
    folder = sentence_transformer(tmp_path / "m", family, pooling=modes, dialect=dialect, max_tokens=24)
    reference = Reference(folder)
    reference.tokenizer.enable_truncation(24)
    vectors = expected(reference, TEXTS, modes)
    with Runtime(config_of(folder)) as vsr:
        assert_together_and_alone(vsr, "model", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("activation", "dialect"),
    [("identity", "current"), ("tanh", "older"), ("relu", "current"), ("gelu", "older"), ("sigmoid", "current")],
)
def test_dense_modules_follow_the_pooling(tmp_path, dialect, activation):
    from safetensors.torch import load_file

    dense = [DenseShape(out=48, activation=activation), DenseShape(out=20, activation=activation, bias=False)]
    folder = sentence_transformer(tmp_path / "m", "modernbert", dense=dense, normalize=False, dialect=dialect)
    vectors = torch.from_numpy(expected(Reference(folder), TEXTS, ["mean"]))
    functions = {"identity": torch.nn.Identity(), "gelu": torch.nn.functional.gelu}
    for name in ("2_Dense", "3_Dense"):
        tensors = load_file(folder / name / "model.safetensors")
        vectors = torch.nn.functional.linear(vectors, tensors["linear.weight"], tensors.get("linear.bias"))
        vectors = functions.get(activation, getattr(torch, activation, None))(vectors)
    with Runtime(config_of(folder)) as vsr:
        assert_together_and_alone(vsr, "model", vectors.numpy())


@pytest.mark.parametrize(("family", "mode"), PROMPTED)
def test_prompts_go_before_the_text_and_out_of_the_pool_where_asked(tmp_path, family, mode):
    prompt = "query two: "
    options = {"pooling": mode, "normalize": False, "prompts": {"query": prompt, "document": ""}}
    folders = {
        name: sentence_transformer(tmp_path / name, family, include_prompt=name == "within", **options)
        for name in ("within", "without")
    }
    reference = Reference(folders["within"])
    hidden, mask = reference.padded([prompt + text for text in TEXTS])
    masked = mask.clone()
    masked[:, : len(reference.tokenizer.encode(prompt)) - 1] = 0
    plain = expected(reference, TEXTS, [mode])
    with Runtime(config_of(folders)) as vsr:
        assert_together_and_alone(vsr, "within", pooled(hidden, mask, mode).numpy(), prompt="query")
        assert_together_and_alone(vsr, "without", pooled(hidden, masked, mode).numpy(), prompt="query")
        assert_together_and_alone(vsr, "without", plain)
        assert_together_and_alone(vsr, "without", plain, prompt="document")
