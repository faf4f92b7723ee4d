"""What must hold whatever is asked: of batches, of numbers, of order, of places, of failures, and of what is declared."""

import asyncio
import itertools
from typing import get_args

import numpy as np
import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from transformers import DebertaV2Model  # noqa: F401 - here, since the import alone may take as long as a test may
from vsr_candle_torch.adapter import TorchBackend
from vsr_candle_torch.families import BORROWED, CONTRIBUTED, OWN
from vsr_core import AsyncRuntime, Runtime
from vsr_core.catalog import CORE_FAMILIES
from vsr_core.contract import Aggregation, BackendContext, CapabilityQuery, Refused, Supported
from vsr_core.errors import CapabilityUnmetError, InputTooLongError, InvalidInputError, NonFiniteOutputError
from vsr_core.plugins import UNASKED
from vsr_core.routing import Requirements
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.testing import EncoderFamily, write_encoder, write_tokenizer

from tests.oracle import TEXTS, Reference

FAMILIES = ("bert", "roberta", "modernbert", "deberta")
FP32 = {"precision": "fp32", "threads": 1}
CLOSE = {"atol": 1e-5, "rtol": 0}
HEADS = {"embed": "embedding", "classify": "sequence", "tag": "token", "rerank": "reranker", "nli": "nli"}
NAN = float("nan")
QUERY = "the red river"
WORDS = ("the", "cat", "dog", "river", "running", "x", "o2", "12.", "naïve", "日本", "😀")

few = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Writes the encoder of a family with a head, once."""
    folders = {}

    def write(family, head, **options):
        key = (family, head, repr(options))
        if key not in folders:
            place = tmp_path_factory.mktemp(family)
            own = family in get_args(EncoderFamily)
            folders[key] = (write_encoder if own else write_contributed)(place, family, head=head, **options)
        return folders[key]

    return write


def entry(folder, head, **stated):
    return {"source": str(folder), **({"pooling": ["mean"]} if head == "embedding" else {}), **stated}


def write_contributed(folder, family, *, head):
    """A tiny checkpoint of a family the core does not know, as transformers saves it; its tokenizer knows no limit."""
    after_padding = family in ("camembert", "mpnet")
    tokenizer = write_tokenizer(folder, "xlm_roberta" if after_padding else "bert", max_tokens=10**13)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    if family == "distilbert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
    if family in ("albert", "electra"):
        sizes["embedding_size"] = 16
    labels = {"sequence": ("entailment", "neutral", "contradiction"), "token": ("O", "B-X", "I-X"), "reranker": ("r",)}
    config = transformers.AutoConfig.for_model(
        family,
        vocab_size=tokenizer.vocabulary,
        pad_token_id=tokenizer.pad,
        bos_token_id=tokenizer.begin,
        eos_token_id=tokenizer.end,
        max_position_embeddings=66 if after_padding else 64,
        initializer_range=0.3,
        **sizes,
    )
    if head != "embedding":
        config.id2label = dict(enumerate(labels["sequence" if head == "nli" else head]))
        config.label2id = {label: index for index, label in config.id2label.items()}
    classes = {"embedding": transformers.AutoModel, "token": transformers.AutoModelForTokenClassification}
    torch.manual_seed(3)
    classes.get(head, transformers.AutoModelForSequenceClassification).from_config(config).save_pretrained(folder)
    return folder


def change(folder, alter):
    """Alter the tensors of a checkpoint by name."""
    path = str(folder / "model.safetensors")
    save_file(alter(load_file(path)), path)
    return folder


# --- an answer is that of the input alone


def numbers(task, vsr, texts, *, model):
    """The answer to each text as something to compare: numbers, and whatever must be equal."""
    match task:
        case "embed":
            return [(row, ()) for row in vsr.embed(texts, model=model).vectors]
        case "classify":
            results = vsr.classify(texts, model=model, truncate="end").results
            return [(list(result.distribution.values()), (result.tokens, result.truncated)) for result in results]
        case "nli":
            results = vsr.nli([(text, QUERY) for text in texts], model=model, truncate="end").results
            return [(list(result.distribution.values()), (result.tokens, result.truncated)) for result in results]
        case "tag":
            results = vsr.tag(texts, model=model, aggregation="none", truncate="end").results
            return [
                ([span.score for span in each.spans], [(span.start, span.end, span.label) for span in each.spans])
                for each in results
            ]
    ranked = vsr.rerank(QUERY, texts, model=model).results
    assert [result.score for result in ranked] == sorted((result.score for result in ranked), reverse=True)
    return [([result.score], ()) for result in sorted(ranked, key=lambda result: result.index)]


@pytest.fixture(scope="module")
def batching(written):
    """Every task of every family, on backends that batch differently."""
    catalog = {
        f"{family}-{task}": entry(written(family, head), head)
        for family, (task, head) in itertools.product(FAMILIES, HEADS.items())
    }
    backends = {
        "torch": FP32,
        "small": {**FP32, "adapter": "torch", "threads": 2, "batching": {"max_batch_tokens": 96}},
    }
    with Runtime({"catalog": catalog, "backends": backends}) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def alone(batching):
    """The answer to a text that has the model to itself."""
    known = {}

    def ask(task, model, text):
        if (model, text) not in known:
            [known[model, text]] = numbers(task, batching, [text], model=f"torch:{model}")
        return known[model, text]

    return ask


some_text = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
    st.tuples(st.sampled_from(WORDS[:4]), st.sampled_from(WORDS[:4])).map(" ".join),
    st.sampled_from(["", " ", "x", "the cat " * 40]),
    st.text(max_size=20),
)


@pytest.mark.parametrize("task", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
@settings(few, max_examples=6)
@given(texts=st.lists(some_text, min_size=1, max_size=12), backend=st.sampled_from(["torch", "small"]))
def test_an_answer_does_not_depend_on_what_shares_the_batch(batching, alone, family, task, texts, backend):
    model = f"{family}-{task}"
    answers = numbers(task, batching, texts, model=f"{backend}:{model}")
    assert len(answers) == len(texts)
    for text, (found, facts) in zip(texts, answers, strict=True):
        expected, known = alone(task, model, text)
        assert facts == known
        np.testing.assert_allclose(found, expected, **CLOSE, err_msg=repr(text))


@pytest.mark.parametrize("task", HEADS)
def test_a_request_of_hundreds_keeps_their_order_and_number(batching, task):
    texts = [f"{WORDS[number % 5]} {number}" * (1 + number % 3) for number in range(600)]
    order = np.random.default_rng(4).permutation(len(texts))
    model = f"torch:bert-{task}"
    straight = numbers(task, batching, texts, model=model)
    shuffled = numbers(task, batching, [texts[index] for index in order], model=model)
    assert len(straight) == len(shuffled) == len(texts)
    for index, (found, facts) in zip(order, shuffled, strict=True):
        assert facts == straight[index][1]
        np.testing.assert_allclose(found, straight[index][0], **CLOSE)


# --- finite numbers or an error


def overflowing(folder, word):
    """The checkpoint with an embedding of ``word`` that is finite and overflows in the first normalisation."""
    token = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(f"the {word}").ids[-2]

    def alter(tensors):
        [table] = [name for name in tensors if name.endswith(("word_embeddings.weight", "tok_embeddings.weight"))]
        tensors[table][token] = np.resize([3e38, -3e38], tensors[table].shape[1])
        return tensors

    return change(folder, alter)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """Checkpoints of every family and task to which the word ``query`` is poison, by name."""
    root = tmp_path_factory.mktemp("poisoned")
    return {
        f"{family}-{task}": entry(
            overflowing(write_encoder(root / f"{family}-{task}", family, head=head), "query"), head
        )
        for family, (task, head) in itertools.product(FAMILIES, HEADS.items())
    }


def ask_all(vsr, task, texts, model):
    """The awaitable of a request, and what its errors call the texts."""
    match task:
        case "rerank":
            return vsr.rerank(QUERY, texts, model=model), "documents"
        case "nli":
            return vsr.nli([(QUERY, text) for text in texts], model=model), "pairs"
    return getattr(vsr, task)(texts, model=model), "texts"


def test_what_is_not_finite_fails_by_name_and_alone(poisoned):
    async def main():
        async with AsyncRuntime({"catalog": poisoned, "backends": {"torch": FP32}}) as vsr:
            for name in poisoned:
                task = name.rpartition("-")[2]
                await vsr.load(name)
                well = [["the cat"], ["the red dog", "", "x" * 30], ["the river bank"], ["the blue dog"]]
                ill = ["the cat", "the query", "the red dog", "a query of it"]
                asked = [ask_all(vsr, task, texts, name) for texts in (*well[:2], ill, *well[2:])]
                outcomes = await asyncio.gather(*(awaitable for awaitable, _ in asked), return_exceptions=True)
                failure = outcomes.pop(2)
                assert isinstance(failure, NonFiniteOutputError), name
                listed = failure.message.partition(" for ")[2].partition(":")[0]
                assert listed == ", ".join(f"{asked[2][1]}[{index}]" for index in (1, 3))
                for texts, outcome in zip(well, outcomes, strict=True):
                    assert len(outcome.vectors if task == "embed" else outcome.results) == len(texts)

    asyncio.run(main())


@pytest.mark.parametrize("problem", ["single_label_classification", "multi_label_classification"])
@pytest.mark.parametrize("head", ["sequence", "token", "nli", "reranker"])
def test_extreme_logits_give_finite_scores(tmp_path, head, problem):
    def enlarge(tensors):
        return tensors | {"classifier.weight": tensors["classifier.weight"] * np.float32(1e36)}

    folder = change(write_encoder(tmp_path / "m", "bert", head=head, problem_type=problem), enlarge)
    stated = {} if head == "reranker" else {"calibration": {"temperature": 1e-3}}
    with Runtime({"catalog": {"m": entry(folder, head, **stated)}, "backends": {"torch": FP32}}) as vsr:
        if head == "token":
            assert {span.score for span in vsr.tag("the cat", model="m").results[0].spans} == {1.0}
        elif head == "reranker":
            assert {result.score for result in vsr.rerank("the", TEXTS, model="m").results} <= {0.0, 1.0}
        else:
            asked = (
                vsr.nli([("a", text) for text in TEXTS], model="m", truncate="end", logits=True)
                if (head == "nli")
                else vsr.classify(TEXTS, model="m", truncate="end", logits=True)
            )
            for result in asked.results:
                assert max(map(abs, result.logits)) > 1e33
                assert set(result.distribution.values()) <= {0.0, 1.0}
                assert result.score == max(result.distribution.values())


# --- places


FRAGMENTS = (
    *("the ", "cat", "The Cat, ", "running", "naïve", "e\u0301\u0323", "ﬁne", "İstanbul ", "ß", "ǆ", "x" * 30),
    *("\r\n", "\n", "\t", "\0", "\u200b", "\ufeff", "\u00a0", "  ", "😀", "👨‍👩‍👧", "🇩🇪", "\U0001d400"),
    *("שלום ", "مرحبا", "日本語", "각", "▁", "Ġ", "[SEP]", "<s>", "<0x41>", "##er", "\u0301", "-", "…", "'s ", "12.5"),
)
any_text = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join), st.text(max_size=60))


@pytest.fixture(scope="module")
def taggers(written):
    catalog = {family: entry(written(family, "token"), "token") for family in get_args(EncoderFamily)}
    with Runtime({"catalog": catalog, "backends": {"torch": FP32}}) as runtime:
        yield runtime


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm_roberta", "modernbert", "deberta", "mmbert"])
@settings(few, max_examples=15)
@given(text=any_text)
def test_spans_are_where_they_say_whatever_the_text(taggers, family, text):
    asked = [(mode, "window") for mode in get_args(Aggregation)] + [("none", "end"), ("simple", "start")]
    for mode, truncate in asked:
        [result] = taggers.tag([text], model=family, aggregation=mode, truncate=truncate).results
        for span in result.spans:
            assert 0 <= span.start < span.end <= len(text)
            assert text[span.start : span.end] == span.text
            assert span.text.strip() == span.text
            assert 0 <= span.score <= 1
        places = [(span.start, span.end) for span in result.spans]
        assert places == sorted(places)
        if mode in ("first", "average", "max"):
            assert all(before[1] <= after[0] for before, after in itertools.pairwise(places))


# --- after a failure


MISTAKES = {
    "too long": (InputTooLongError, {"texts": ["x", "the cat " * 100], "truncate": "error"}),
    "not finite": (NonFiniteOutputError, {"texts": ["the query"]}),
    "a lone surrogate": (InvalidInputError, {"texts": ["x", "\ud800"]}),
    "no text": (InvalidInputError, {"texts": [None]}),
    "a layer that is not offered": (InvalidInputError, {"texts": ["x"], "layer": 3}),
    "a layer beyond the model": (InvalidInputError, {"texts": ["x"], "layer": 99}),
    "too long even for windows": (InputTooLongError, {"texts": ["x " * 2_000_000], "truncate": "window"}),
}


@pytest.mark.parametrize("name", ["bert-classify", "roberta-tag", "modernbert-classify", "bert-embed"])
def test_after_any_failure_the_next_request_is_answered(poisoned, name):
    task = name.rpartition("-")[2]
    catalog = {"m": poisoned[name] | {"layers": [1, 2, 4]}}
    mistakes = dict(MISTAKES)
    if task == "embed":
        mistakes["too long even for windows"] = (InvalidInputError, {"texts": ["x"], "truncate": "window"})
    with Runtime({"catalog": catalog, "backends": {"torch": FP32}}) as vsr:
        [expected] = numbers(task, vsr, ["the cat"], model="m")
        for error, wrong in (*mistakes.values(), *reversed(mistakes.values())):
            with pytest.raises(error):
                getattr(vsr, task)(model="m", **wrong)
            [found] = numbers(task, vsr, ["the cat"], model="m")
            np.testing.assert_allclose(found[0], expected[0], **CLOSE)
        assert [info.state for info in vsr.models()] == ["ready"]


# --- what is declared


SERVED = {
    Capability.EMBEDDING: "embed",
    Capability.SEQUENCE_CLASSIFICATION: "classify",
    Capability.PAIR_CLASSIFICATION: "nli",
    Capability.TOKEN_CLASSIFICATION: "tag",
    Capability.RERANKING: "rerank",
}
EVERY_FAMILY = tuple(family.name for family in (*CORE_FAMILIES, *CONTRIBUTED))
ASKED = [capability for capability in Capability if capability.derived_from is None]


@pytest.fixture(scope="module")
def declared():
    return TorchBackend(BackendContext(name="torch", threads=1)).capabilities()


def cell(capability, family, feature=None):
    return CapabilityQuery(capability=capability, family=family, artifact=Artifact.FULL, feature=feature)


def statement(written, family, capability):
    head = HEADS[SERVED[capability]]
    if family in get_args(EncoderFamily):
        return entry(written(family, head), head)
    return entry(written(family, head), head, capability=[capability.value])


def test_what_is_declared_is_what_there_are_forwards_for(declared):
    for capability in ASKED:
        served = {family for family in EVERY_FAMILY if isinstance(declared.decide(cell(capability, family)), Supported)}
        assert served == ({*OWN, *BORROWED} if capability in SERVED else set())
        assert served == set(declared.families(capability))


@pytest.mark.parametrize("family", [*OWN, *BORROWED])
def test_what_is_declared_is_answered_and_every_other_feature_refused_for_the_reason_declared(
    written, declared, family
):
    catalog = {capability.value: statement(written, family, capability) for capability in SERVED}
    with Runtime({"catalog": catalog, "backends": {"torch": FP32}}) as vsr:
        for capability, feature in itertools.product(SERVED, Feature):
            assert refusal(vsr, capability, "torch:" + capability, feature) == reason(
                declared, capability, family, feature
            )
        assert {(info.family, info.state) for info in vsr.models()} == {(family, "not_loaded")}
        for capability, task in SERVED.items():
            assert len(numbers(task, vsr, TEXTS, model=capability.value)) == len(TEXTS)


def reason(declared, capability, family, feature=None):
    verdict = declared.decide(cell(capability, family, feature))
    return verdict.reason if isinstance(verdict, Refused) else None


def refusal(vsr, capability, model, *features):
    """Why asking for a capability and features is refused; None where it would be done."""
    try:
        vsr._core.planner.plan(Requirements.of(capability.kind, capability, requires=list(features)), model)
    except CapabilityUnmetError as error:
        return error.reason
    return None


@pytest.mark.parametrize("family", BORROWED)
def test_a_layer_is_refused_where_only_the_full_depth_is_run(written, declared, family):
    tasks = {capability: task for capability, task in SERVED.items() if task != "rerank"}
    catalog = {task: statement(written, family, capability) | {"layers": [1]} for capability, task in tasks.items()}
    with Runtime({"catalog": catalog, "backends": {"torch": FP32}}) as vsr:
        for capability, task in tasks.items():
            with pytest.raises(CapabilityUnmetError) as caught:
                getattr(vsr, task)([("a", "b")] if task == "nli" else ["a"], model=task, layer=1)
            assert caught.value.reason == reason(declared, capability, family, Feature.LAYER_EXIT)
        assert {info.state for info in vsr.models()} == {"not_loaded"}


def test_every_other_cell_is_refused_for_the_reason_declared(declared, tmp_path):
    save_file({"x": np.zeros(1, np.float32)}, str(tmp_path / "model.safetensors"))
    write_tokenizer(tmp_path, "bert", max_tokens=64)
    refused = {
        (family, capability): reason(declared, capability.derived_from or capability, family)
        for family, capability in itertools.product(EVERY_FAMILY, Capability)
        if capability not in UNASKED and reason(declared, capability.derived_from or capability, family)
    }
    catalog = {}
    for family, capability in refused:
        own = capability.derived_from or capability
        needed = {
            Capability.EMBEDDING: {"pooling": ["mean"]},
            Capability.TOKEN_CLASSIFICATION: {"labels": ["O", "B-X"]},
            Capability.SPANS: {"labels": ["O", "B-X"]},
            Capability.RERANKING: {"labels": ["relevant"]},
        }
        stated = needed.get(own, {})
        stated = {"source": str(tmp_path), "family": family, "capability": [own.value], **stated}
        catalog[f"{family}-{capability}"] = stated
    with Runtime({"catalog": catalog, "backends": {"torch": FP32}}) as vsr:
        for (family, capability), why in refused.items():
            assert refusal(vsr, capability, f"torch:{family}-{capability}") == why
        assert {info.state for info in vsr.models()} == {"not_loaded"}
    assert len(refused) > 150


@pytest.mark.parametrize("family", [family.name for family in CONTRIBUTED])
def test_a_contributed_family_answers_as_in_transformers(written, family):
    folders = {head: written(family, head) for head in ("embedding", "sequence", "token")}
    catalog = {head: entry(folder, head) for head, folder in folders.items()}
    with Runtime({"catalog": catalog, "backends": {"torch": FP32}}) as vsr:
        assert {info.max_tokens for info in map(vsr.load, folders)} == {64}
        for head, folder in folders.items():
            reference = Reference(folder, head)
            reference.tokenizer.enable_truncation(64)
            answers = reference.answers(TEXTS)
            if head == "embedding":
                found = vsr.embed(TEXTS, model=head).vectors
                expected = [rows.mean(0) for rows in answers]
            elif head == "sequence":
                results = vsr.classify(TEXTS, model=head, truncate="end", logits=True).results
                found, expected = [result.logits for result in results], answers
            else:
                continue
            np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
