"""Classifiers, taggers, rerankers and judges of pairs against transformers' own classes."""

from typing import get_args

import numpy as np
import pytest
import torch
from vsr_core import Runtime
from vsr_core.testing import EncoderFamily, write_encoder

from tests.oracle import LONG, TEXTS, Reference

FAMILIES = get_args(EncoderFamily)
LEAVING = [family for family in FAMILIES if family != "deberta"]
CLOSE = 1e-4
LABELS = ("business", "law", "health", "other")
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
MULTI, REGRESSION = {"problem_type": "multi_label_classification"}, {"problem_type": "regression"}
HEADS = {
    "sequence": {"head": "sequence", "seed": 1},
    "multi": {"head": "sequence", "seed": 2, **MULTI},
    "regression": {"head": "sequence", "labels": ("LABEL_0",), "seed": 3, **REGRESSION},
    "token": {"head": "token", "seed": 4},
    "nli": {"head": "nli", "seed": 5},
    "reranker": {"head": "reranker", "seed": 6},
    "scorer": {"head": "reranker", "seed": 6, "dialect": "older"},
}
QUERY = "query: the bank of the river"
PAIRS = [(QUERY, text) for text in TEXTS] + [(LONG, "red cat"), (LONG, LONG), ("", ""), ("one", "two")]


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("heads")
    found = {
        f"{family}-{name}": write_encoder(root / f"{family}-{name}", family, **options)
        for family in FAMILIES
        for name, options in HEADS.items()
    }
    for family in ("modernbert", "mmbert"):
        for head in ("sequence", "token"):
            name = f"{family}-{head}-cls"
            config = {"classifier_pooling": "cls", "classifier_bias": True, "norm_bias": True}
            found[name] = write_encoder(root / name, family, head=head, config=config, seed=7)
    return found


@pytest.fixture(scope="module")
def vsr(folders):
    catalog = {name: {"source": str(folder)} for name, folder in folders.items()}
    for family in FAMILIES:
        catalog[f"{family}-pairs"] = {
            "source": str(folders[f"{family}-sequence"]),
            "capability": "pair_classification",
        }
        catalog[f"{family}-warm"] = {"source": str(folders[f"{family}-sequence"]), "calibration": {"temperature": 2.5}}
        for head in ("sequence", "token", "nli"):
            layers = [1] if family == "minilm" else [1, 3]
            catalog[f"{family}-{head}-exits"] = {"source": str(folders[f"{family}-{head}"]), "layers": layers}
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32", "threads": 1}}}) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def reference(folders):
    found = {}

    def reference(name):
        if name not in found:
            found[name] = Reference(folders[name], "token" if "-token" in name else "sequence")
        return found[name]

    return reference


def softmax(logits):
    return torch.from_numpy(np.asarray(logits, np.float64)).softmax(-1).numpy()


def sigmoid(logits):
    return torch.from_numpy(np.asarray(logits, np.float64)).sigmoid().numpy()


def assert_results(results, logits, *, labels, activation):
    probabilities = activation(np.stack(logits))
    assert len(results) == len(logits)
    for result, row, scores in zip(results, logits, probabilities, strict=True):
        np.testing.assert_allclose(result.logits, row, atol=CLOSE, rtol=0)
        assert tuple(result.distribution) == labels
        np.testing.assert_allclose(list(result.distribution.values()), scores, atol=CLOSE, rtol=0)
        assert result.label == labels[int(scores.argmax())]
        assert result.score == pytest.approx(scores.max(), abs=CLOSE)


def together_and_alone(ask, items, **options):
    """The results for all items at once, and for each by itself."""
    return [ask(items, **options).results, [ask([item], **options).results[0] for item in items]]


@pytest.mark.parametrize("name", [*FAMILIES, "modernbert-cls", "mmbert-cls"])
def test_one_label_of_several(vsr, reference, name):
    family, _, rest = name.partition("-")
    model = "-".join(filter(None, [family, "sequence", rest]))
    logits = reference(model).answers(TEXTS)
    for results in together_and_alone(vsr.classify, TEXTS, model=model, logits=True, truncate="end"):
        assert_results(results, logits, labels=LABELS, activation=softmax)


@pytest.mark.parametrize("family", FAMILIES)
def test_several_labels_at_once(vsr, reference, family):
    logits = reference(f"{family}-multi").answers(TEXTS)
    response = vsr.classify(TEXTS, model=f"{family}-multi", logits=True, truncate="end")
    assert_results(response.results, logits, labels=LABELS, activation=sigmoid)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_regression_gives_the_number_itself(vsr, reference, family):
    numbers = np.concatenate(reference(f"{family}-regression").answers(TEXTS))
    results = vsr.classify(TEXTS, model=f"{family}-regression", logits=True, truncate="end").results
    np.testing.assert_allclose([result.score for result in results], numbers, atol=CLOSE, rtol=0)
    np.testing.assert_allclose([result.logits[0] for result in results], numbers, atol=CLOSE, rtol=0)
    assert {result.distribution for result in results} == {None}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_temperature_divides_the_logits(vsr, reference, family):
    logits = reference(f"{family}-sequence").answers(TEXTS)
    results = vsr.classify(TEXTS, model=f"{family}-warm", truncate="end").results
    for result, row in zip(results, logits, strict=True):
        scores = softmax(row / 2.5)
        np.testing.assert_allclose(list(result.distribution.values()), scores, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_pairs_are_judged(vsr, reference, family):
    labels = ("entailment", "neutral", "contradiction")
    logits = reference(f"{family}-nli").answers(PAIRS)
    for results in together_and_alone(vsr.nli, PAIRS, model=f"{family}-nli", logits=True, truncate="end"):
        assert_results(results, logits, labels=labels, activation=softmax)


@pytest.mark.parametrize("family", FAMILIES)
def test_any_head_may_be_said_to_be_one_for_pairs(vsr, reference, family):
    logits = reference(f"{family}-sequence").answers(PAIRS)
    response = vsr.nli(PAIRS, model=f"{family}-pairs", logits=True, truncate="end")
    assert_results(response.results, logits, labels=LABELS, activation=softmax)


@pytest.mark.parametrize(
    ("family", "name"),
    [*((family, "reranker") for family in FAMILIES), ("roberta", "scorer"), ("modernbert", "scorer")],
)
def test_documents_are_scored_and_ordered(vsr, reference, family, name):
    model = f"{family}-{name}"
    scores = sigmoid(np.concatenate(reference(model).answers([(QUERY, text) for text in TEXTS])))
    response = vsr.rerank(QUERY, TEXTS, model=model)
    assert response.score_kind == "probability"
    found = {result.index: result.score for result in response.results}
    np.testing.assert_allclose([found[index] for index in range(len(TEXTS))], scores, atol=CLOSE, rtol=0)
    assert [result.score for result in response.results] == sorted(found.values(), reverse=True)
    for text, score in zip(TEXTS, scores, strict=True):
        assert vsr.rerank(QUERY, [text], model=model).results[0].score == pytest.approx(score, abs=CLOSE)


def test_a_reranker_without_activation_gives_logits(tmp_path):
    config = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}
    folder = write_encoder(tmp_path / "m", "xlm_roberta", head="reranker", config=config)
    logits = np.concatenate(Reference(folder, "sequence").answers([(QUERY, text) for text in TEXTS]))
    catalog = {"m": {"source": str(folder)}}
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32", "threads": 1}}}) as vsr:
        response = vsr.rerank(QUERY, TEXTS, model="m")
    assert response.score_kind == "logit"
    found = {result.index: result.score for result in response.results}
    np.testing.assert_allclose([found[index] for index in range(len(TEXTS))], logits, atol=CLOSE, rtol=0)


def tagged(reference, text):
    """The tokens with a label beside ``O``, white space around them left out: start, end, label, score.

    A token that is a space put before a word stands for no character, whatever its offsets say.
    """
    encoding, rows = reference.tokenizer.encode(text), softmax(reference.answer(text))
    spans = []
    for written, (start, end), row in zip(encoding.tokens, encoding.offsets, rows, strict=True):
        token = text[start:end]
        label = TAGS[int(row.argmax())]
        if label == "O" or not token.strip() or written in ("▁", "Ġ"):
            continue
        start += len(token) - len(token.lstrip())
        spans.append((start, start + len(token.strip()), label, row.max()))
    return sorted(spans)


def assert_tagged(results, references):
    for result, expected in zip(results, references, strict=True):
        found = sorted((span.start, span.end, span.label, span.score) for span in result.spans)
        assert [span[:3] for span in found] == [span[:3] for span in expected]
        np.testing.assert_allclose([span[3] for span in found], [span[3] for span in expected], atol=CLOSE, rtol=0)


@pytest.mark.parametrize("name", [*FAMILIES, "modernbert-cls", "mmbert-cls"])
def test_every_token_has_its_label(vsr, reference, name):
    family, _, rest = name.partition("-")
    model = "-".join(filter(None, [family, "token", rest]))
    expected = [tagged(reference(model), text) for text in TEXTS]
    assert len({span[2] for spans in expected for span in spans}) >= 3
    for results in together_and_alone(vsr.tag, TEXTS, model=model, aggregation="none", truncate="end"):
        assert_tagged(results, expected)


@pytest.mark.parametrize("family", LEAVING)
def test_heads_are_applied_where_the_model_is_left(vsr, reference, family):
    for layer in [1] if family == "minilm" else [1, 3]:
        options = {"layer": layer, "truncate": "end"}
        sequence = reference(f"{family}-sequence").exit_at(layer).answers(TEXTS)
        found = vsr.classify(TEXTS, model=f"{family}-sequence-exits", logits=True, **options).results
        assert_results(found, sequence, labels=LABELS, activation=softmax)
        pairs = reference(f"{family}-nli").exit_at(layer).answers(PAIRS[-6:])
        found = vsr.nli(PAIRS[-6:], model=f"{family}-nli-exits", logits=True, **options).results
        assert_results(found, pairs, labels=("entailment", "neutral", "contradiction"), activation=softmax)
        tokens = reference(f"{family}-token").exit_at(layer)
        found = vsr.tag(TEXTS, model=f"{family}-token-exits", aggregation="none", **options).results
        assert_tagged(found, [tagged(tokens, text) for text in TEXTS])
