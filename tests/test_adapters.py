"""Adapters on torch, from a configuration: each answers as PEFT does, whatever is loaded, swapped or unloaded beside."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tokenizers import Tokenizer
from vsr_core import Runtime
from vsr_core.errors import CapabilityUnmetError, CheckpointError, LoadError, NotReadyError
from vsr_core.testing import write_encoder

from tests.evidence import ADAPTABLE
from tests.peft_files import edit_config, edit_tensors, train

TEXTS = ("What does the contract say?", "abc", "one two three four five six seven")
INTENTS = ("question", "order", "complaint")
TAGS = ("O", "B-PER", "I-PER")
CLOSE = {"atol": 1e-4, "rtol": 0}
UPPER = {"target_modules": ["query", "value"], "layers_to_transform": [1]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A base, three adapters of it by name, and what PEFT answers to each text."""
    folder = tmp_path_factory.mktemp("adapters")
    base = write_encoder(folder / "base", "bert", head="sequence", labels=("no", "yes"))
    adapters = {
        "intent": train(base, folder / "intent", "SEQ_CLS", labels=INTENTS, seed=1, target_modules=["query", "dense"]),
        "other": train(base, folder / "other", "SEQ_CLS", labels=("x", "y"), seed=2, **UPPER),
        "names": train(base, folder / "names", "TOKEN_CLS", labels=TAGS, seed=3, target_modules=["value"], r=5),
    }
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    ids = [np.array(tokenizer.encode(text).ids) for text in TEXTS]
    return folder, {name: [one.answer(row) for row in ids] for name, one in adapters.items()}


@pytest.fixture
def serve(made):
    """Makes runtimes over the base and adapters of it, on torch in float32; closes them in the end."""
    runtimes = []

    def start(*names, folder=None, base="base", max_adapters=64, **entries):
        at = folder or made[0]
        listed = {name: {"base": "base", "adapter": str(at / name)} for name in names}
        listed |= {name: {"base": "base"} | entry for name, entry in entries.items()}
        runtime = Runtime(
            {
                "catalog": {"base": {"source": str(made[0] / base)}}
                | {name: entry | {"backends": ["torch"]} for name, entry in listed.items()},
                "backends": {"torch": {"precision": "fp32", "threads": 2, "max_adapters": max_adapters}},
            }
        )
        runtimes.append(runtime)
        return runtime

    yield start
    for runtime in runtimes:
        runtime.close()


@pytest.fixture
def copy(made, tmp_path):
    """Copies an adapter, so that its files can be changed."""
    return lambda name: shutil.copytree(made[0] / name, tmp_path / name)


def logits(runtime, name):
    return [np.array(one.logits) for one in runtime.classify(TEXTS, model=f"torch:{name}", logits=True).results]


def assert_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **CLOSE)


def info(runtime, name):
    return next(one for one in runtime.models() if str(one.backend_id) == f"torch:{name}")


def test_each_adapter_answers_as_peft_does_and_the_base_as_before(serve, made):
    runtime = serve("intent", "other", "names")
    alone = logits(runtime, "base")
    assert_close(logits(runtime, "intent"), made[1]["intent"])
    assert_close(logits(runtime, "other"), made[1]["other"])
    assert_close(logits(runtime, "base"), alone)
    tagged = runtime.tag(TEXTS, model="torch:names", aggregation="none")
    for result, expected in zip(tagged.results, made[1]["names"], strict=True):
        best = expected[1:-1].argmax(-1)
        assert [span.label for span in result.spans] == [TAGS[index] for index in best if index]


TASKS = {
    "embedding": ("FEATURE_EXTRACTION", (), {"pooling": "mean"}),
    "sequence_classification": ("SEQ_CLS", INTENTS, {}),
    "pair_classification": ("SEQ_CLS", INTENTS, {}),
    "token_classification": ("TOKEN_CLS", TAGS, {}),
    "reranking": ("SEQ_CLS", ("relevant",), {}),
}
CAMEMBERT = {"model_type": "camembert", "architectures": ["CamembertForSequenceClassification"]}  # RoBERTa renamed
NAMED = ["query", "value", "dense", "Wqkv", "Wo", "Wi"]


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """The folder of a family's base, and its tokenizer."""
    made = {}

    def of(family):
        if family not in made:
            line = "roberta" if family == "camembert" else family
            folder = write_encoder(tmp_path_factory.mktemp(family), line, head="sequence")
            if family == "camembert":
                config = json.loads((folder / "config.json").read_text())
                (folder / "config.json").write_text(json.dumps(config | CAMEMBERT))
            made[family] = folder, Tokenizer.from_file(str(folder / "tokenizer.json"))
        return made[family]

    return of


@pytest.mark.parametrize(
    ("capability", "family"),
    [
        pytest.param(capability, family, id=f"{capability}-{family}-lora_adapter")
        for capability in TASKS
        for family in ADAPTABLE
    ],
)
def test_an_adapter_serves_a_capability_on_a_family(capability, family, bases, tmp_path):
    folder, tokenizer = bases(family)
    task, labels, stated = TASKS[capability]
    trained = train(folder, tmp_path / "a", task, labels=labels, target_modules=NAMED)
    entry = {"base": "base", "adapter": str(trained.folder), "capability": capability, "backends": ["torch"], **stated}
    catalog = {"base": {"source": str(folder), "family": family, "backends": ["torch"]}, "a": entry}
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32"}}}) as runtime:
        found = ask(runtime, capability)
    pair = capability in ("pair_classification", "reranking")
    read = tokenizer.encode(*((TEXTS[0], TEXTS[2]) if pair else (TEXTS[0],)))
    types = np.array(read.type_ids) if any(read.type_ids) else None
    expected = trained.answer(np.array(read.ids), types)
    match capability:
        case "embedding":
            expected = expected.mean(0)
        case "token_classification":
            marked = [TAGS[best] for best in expected.argmax(-1)]
            expected = [
                tag  # of every token that has characters of its own
                for tag, (start, end) in zip(marked, read.offsets, strict=True)
                if tag != "O" and TEXTS[0][start:end].strip()
            ]
            assert found == expected
            return
        case "reranking":
            expected = 1 / (1 + np.exp(-expected[0]))
    np.testing.assert_allclose(found, expected, **CLOSE)


def ask(runtime, capability):
    """What the adapter says of the first text, or of the first with the last, in numbers or labels."""
    match capability:
        case "embedding":
            return runtime.embed(TEXTS[0], model="torch:a").vectors[0]
        case "sequence_classification":
            return runtime.classify(TEXTS[0], model="torch:a", logits=True).results[0].logits
        case "pair_classification":
            return runtime.nli([(TEXTS[0], TEXTS[2])], model="torch:a", logits=True).results[0].logits
        case "token_classification":
            return [span.label for span in runtime.tag(TEXTS[0], model="torch:a", aggregation="none").results[0].spans]
    return runtime.rerank(TEXTS[0], [TEXTS[2]], model="torch:a").results[0].score


def test_the_answer_names_base_and_adapter(serve, made):
    runtime = serve("intent", "other")
    envelope = runtime.classify("a", model="torch:intent").envelope
    assert str(envelope.backend_id) == "torch:intent"
    assert envelope.adapter_revision is not None
    assert envelope.adapter_revision != runtime.classify("a", model="torch:other").envelope.adapter_revision
    assert runtime.classify("a", model="torch:base").envelope.adapter_revision is None


def test_an_adapter_is_described_with_its_base_and_what_it_shares(serve):
    runtime = serve("intent", "other")
    one, other = runtime.load("torch:intent"), runtime.load("torch:other")
    assert (one.adapter, str(one.base), one.artifact, one.labels) == ("intent", "torch:base", "lora_adapter", INTENTS)
    assert (one.shared_layers, other.shared_layers) == (0, 1)
    assert one.memory_bytes < info(runtime, "base").memory_bytes
    assert info(runtime, "base").adapters == ("intent", "other")


def test_threshold_and_calibration_are_those_of_the_adapter_s_entry(serve, made):
    entry = {"adapter": str(made[0] / "intent"), "threshold": 0.99, "calibration": {"temperature": 10.0}}
    runtime = serve("intent", soft=entry)
    sharp, soft = (runtime.classify("a", model=f"torch:{name}").results[0] for name in ("intent", "soft"))
    assert (soft.label, soft.passed, sharp.passed) == (sharp.label, False, None)
    assert soft.score < sharp.score


def test_an_adapter_of_vectors_pools_as_its_base_does(made, serve, tmp_path):
    base = write_encoder(made[0] / "vectors", "bert", head="embedding")
    trained = train(base, tmp_path / "moved", "FEATURE_EXTRACTION", target_modules=["query", "value"])
    runtime = Runtime(
        {
            "catalog": {
                "base": {"source": str(base), "pooling": "mean", "backends": ["torch"]},
                "moved": {"base": "base", "adapter": str(trained.folder), "backends": ["torch"]},
            },
            "backends": {"torch": {"precision": "fp32"}},
        }
    )
    with runtime:
        plain = runtime.embed(TEXTS, model="torch:base")
        moved = runtime.embed(TEXTS, model="torch:moved")
    ids = [np.array(Tokenizer.from_file(str(base / "tokenizer.json")).encode(text).ids) for text in TEXTS]
    assert_close(moved.vectors, [trained.answer(row).mean(0) for row in ids])
    assert moved.space != plain.space
    assert moved.space is not None


def test_two_threads_two_adapters_and_swaps_in_between_give_each_its_own_answers(serve, made):
    runtime = serve("intent", "other", "names")

    def ask(name):
        for number in range(500):
            text, expected = TEXTS[number % 3], made[1][name][number % 3]
            (result,) = runtime.classify(text, model=f"torch:{name}", logits=True).results
            np.testing.assert_allclose(result.logits, expected, **CLOSE)

    def swap():
        for _ in range(20):
            runtime.swap("torch:intent")
            runtime.unload("torch:other")

    with ThreadPoolExecutor(4) as threads:
        swapping = threads.submit(swap)
        asking = [threads.submit(ask, name) for name in ("intent", "other")]
        for one in (*asking, swapping):
            one.result()


def test_a_swap_publishes_the_new_version_and_says_so(serve, copy, made):
    folder = copy("intent")
    runtime = serve("intent", folder=folder.parent)
    before = runtime.classify("a", model="torch:intent").envelope.adapter_revision
    edit_config(folder, lora_alpha=1)
    runtime.swap("torch:intent")
    assert runtime.classify("a", model="torch:intent").envelope.adapter_revision != before
    edit_tensors(folder, lambda found: {name: one * np.float32("nan") for name, one in found.items()})
    now = logits(runtime, "intent")
    with pytest.raises(CheckpointError, match="NaN"):
        runtime.swap("torch:intent")
    assert_close(logits(runtime, "intent"), now)


def test_beyond_the_limit_the_least_recently_used_adapter_goes_and_comes_back(serve, made):
    runtime = serve("intent", "other", "names", max_adapters=2)
    for name in ("intent", "other", "intent"):
        logits(runtime, name)
    runtime.tag("a", model="torch:names")
    assert info(runtime, "base").adapters == ("intent", "names")
    assert_close(logits(runtime, "other"), made[1]["other"])
    assert info(runtime, "base").adapters == ("names", "other")


def test_a_base_stays_while_adapters_sit_on_it(serve, made):
    runtime = serve("intent", "other")
    logits(runtime, "intent")
    with pytest.raises(NotReadyError, match="base of adapters that are loaded: unload intent first"):
        runtime.unload("torch:base")
    runtime.swap("torch:base")
    assert_close(logits(runtime, "intent"), made[1]["intent"])
    assert runtime.unload("torch:intent")
    assert runtime.unload("torch:base")


def refusal(runtime, name="intent", error=CheckpointError):
    with pytest.raises(error) as caught:
        runtime.classify("a", model=f"torch:{name}")
    return caught.value.message


def test_labels_are_required_and_counted(serve, copy):
    folder = copy("intent")
    (folder / "labels.json").unlink()
    assert "labels: a LoRA adapter does not name its labels" in refusal(serve("intent", folder=folder.parent))
    stated = {"adapter": str(folder), "labels": ["a", "b"]}
    assert "labels: the entry names 2, the model has 3" in refusal(serve(intent=stated))


def test_another_task_than_the_adapter_was_trained_for_is_refused(serve, made):
    entry = {"adapter": str(made[0] / "names"), "capability": "sequence_classification"}
    assert "made for token_classification, not for sequence_classification" in refusal(serve(intent=entry))


def test_an_adapter_of_another_base_is_refused(serve, made):
    write_encoder(made[0] / "modern", "modernbert", head="sequence")
    assert "it is of another base, another task" in refusal(serve("intent", base="modern"))


def test_a_setting_that_is_not_computed_is_refused_before_loading(serve, copy):
    folder = edit_config(copy("intent"), use_dora=True)
    assert "use_dora=True scales the base's own weights (DoRA)" in refusal(serve("intent", folder=folder.parent))


def test_an_adapter_is_no_base(serve, made):
    runtime = serve("intent", other={"base": "intent", "adapter": str(made[0] / "other")})
    assert "its base torch:intent is an adapter itself" in refusal(runtime, "other", LoadError)


def test_changes_that_the_base_s_precision_swallows_are_refused(serve, copy):
    folder = copy("other")
    edit_tensors(
        folder, lambda found: {name: one * np.float32("lora_B" not in name or 1e-30) for name, one in found.items()}
    )
    assert "would answer as the base does" in refusal(serve("other", folder=folder.parent), "other")


def test_a_base_that_is_there_for_its_adapters_needs_no_pooling(tmp_path):
    base = write_encoder(tmp_path / "base", "bert")
    trained = train(base, tmp_path / "a", "SEQ_CLS", labels=INTENTS, target_modules=["query"])
    catalog = {"base": {"source": str(base)}, "a": {"base": "base", "adapter": str(trained.folder)}}
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32"}}}) as runtime:
        assert runtime.check().ok
        assert runtime.classify(TEXTS[0], model="torch:a").results[0].label in INTENTS
        with pytest.raises(CapabilityUnmetError, match="there for its adapters; state 'pooling'"):
            runtime.embed("a", model="torch:base")
