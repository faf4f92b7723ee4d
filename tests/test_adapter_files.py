"""Adapters that PEFT saved are read as PEFT computes them, and what it would load wrongly or in part is refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from vsr_candle_torch.adapted import AdaptableEngine
from vsr_candle_torch.families import CONTRIBUTED
from vsr_candle_torch.networks import blueprint
from vsr_core.catalog import CORE_FAMILIES, read_document, specify
from vsr_core.catalog.adapters import AdapterConfig
from vsr_core.contract import BackendId, CatalogEntry, LoadRequest
from vsr_core.errors import CheckpointError
from vsr_core.local import BatchRow, RaggedBatch, WantHidden, WantLogits
from vsr_core.local.adapters import read_adapter
from vsr_core.testing import write_encoder

from tests.peft_files import edit_config, edit_tensors, train

FAMILIES = {family.name: family for family in (*CORE_FAMILIES, *CONTRIBUTED)}
TARGETS = {"SEQ_CLS": "sequence", "TOKEN_CLS": "token", "FEATURE_EXTRACTION": "none"}
NAMED = ["query", "key", "value", "dense", "Wqkv", "Wo", "Wi"]  # PEFT takes the classifier for one of all-linear
IDS = np.random.default_rng(3).integers(5, 60, 11).astype(np.int32)


@pytest.fixture(scope="session")
def bases(tmp_path_factory):
    """The folder of a family's tiny base, which has the head of a text classifier."""
    made = {}

    def of(family, head="sequence"):
        if (family, head) not in made:
            made[family, head] = write_encoder(tmp_path_factory.mktemp(f"{family}-{head}"), family, head=head)
        return made[family, head]

    return of


@pytest.fixture(scope="session")
def engines(bases):
    """The engine of a base, in float32."""
    made = {}

    def of(family, head="sequence"):
        if (family, head) not in made:
            folder = bases(family, head)
            entry = CatalogEntry(name="m", source=str(folder), pooling=("mean",) if head == "embedding" else ())
            spec = specify(entry, folder, families=FAMILIES)
            request = LoadRequest(backend_id=BackendId("torch", "m"), entry=entry, path=folder, spec=spec)
            network = blueprint(request, json.loads((folder / "config.json").read_text())).build(torch.float32)
            made[family, head] = AdaptableEngine(network, threads=1)
        return made[family, head]

    return of


def read(folder, engine, task):
    config = AdapterConfig.read(read_document(folder, "adapter_config.json"))
    return read_adapter(folder, config, engine.anatomy, target=TARGETS[task], where="the adapter")


def answer(engine, adapter, task):
    engine.attach(adapter)
    try:
        batch = RaggedBatch(
            ids=IDS,
            type_ids=np.zeros_like(IDS),
            offsets=np.array([0, len(IDS)], np.int32),
            prompt_tokens=np.zeros(1, np.int32),
            rows=(BatchRow(0, WantHidden() if task == "FEATURE_EXTRACTION" else WantLogits(), adapter=adapter.key),),
        )
        (row,) = engine.run(batch).rows
    finally:
        engine.detach(adapter.key)
    return row


@pytest.mark.parametrize("task", list(TARGETS))
@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_every_task_of_every_family_is_read_as_peft_computes_it(family, task, bases, engines, tmp_path):
    trained = train(bases(family), tmp_path / "a", task, target_modules=NAMED if task == "TOKEN_CLS" else "all-linear")
    adapter = read(trained.folder, engines(family), task)
    np.testing.assert_allclose(answer(engines(family), adapter, task), trained.answer(IDS), atol=1e-4)


SETTINGS = {
    "rslora": {"use_rslora": True, "r": 4},
    "ranks": {
        "target_modules": ["query", "value", "dense"],
        "rank_pattern": {"value": 2, r"layer\.1\..*query": 5},
        "alpha_pattern": {"layer.0.attention.self.value": 3, "dense": 7},
    },
    "ranks and rslora": {"target_modules": ["query", "value"], "rank_pattern": {"value": 8}, "use_rslora": True},
    "a regular expression": {"target_modules": r".*layer\.[12]\..*(key|output\.dense)"},
    "upper layers": {"target_modules": ["query", "dense"], "layers_to_transform": [1]},
    "one layer": {"target_modules": ["query"], "layers_to_transform": 1, "layers_pattern": "layer"},
    "exclusions": {"target_modules": ["query", "value", "dense"], "exclude_modules": ["pooler.dense", "value"]},
    "an exclusion by pattern": {"target_modules": ["query", "value"], "exclude_modules": r".*layer\.0\..*"},
    "full names": {"target_modules": ["bert.encoder.layer.0.attention.self.query"]},
    "the pooler": {"target_modules": ["query"], "modules_to_save": ["pooler"]},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_way_to_name_modules_ranks_and_scales_is_peft_s(settings, bases, engines, tmp_path):
    trained = train(bases("bert"), tmp_path / "a", "SEQ_CLS", **settings)
    adapter = read(trained.folder, engines("bert"), "SEQ_CLS")
    np.testing.assert_allclose(answer(engines("bert"), adapter, "SEQ_CLS"), trained.answer(IDS), atol=1e-4)


def test_the_head_of_modernbert_may_come_with_the_adapter(bases, engines, tmp_path):
    trained = train(
        bases("modernbert"), tmp_path / "a", "SEQ_CLS", target_modules=["Wqkv"], modules_to_save=["head", "classifier"]
    )
    adapter = read(trained.folder, engines("modernbert"), "SEQ_CLS")
    assert "head.norm.weight" in adapter.head
    np.testing.assert_allclose(answer(engines("modernbert"), adapter, "SEQ_CLS"), trained.answer(IDS), atol=1e-4)


def test_the_first_layer_is_the_lowest_that_is_changed(bases, engines, tmp_path):
    upper = train(bases("bert"), tmp_path / "a", "TOKEN_CLS", target_modules=["query"], layers_to_transform=[1])
    assert read(upper.folder, engines("bert"), "TOKEN_CLS").first_layer == 2


def test_the_key_of_an_adapter_is_that_of_its_content(bases, engines, tmp_path):
    one = train(bases("bert"), tmp_path / "a", "SEQ_CLS").folder
    shutil.copytree(one, tmp_path / "b")
    other = edit_config(tmp_path / "b", lora_dropout=0.5)
    key = read(one, engines("bert"), "SEQ_CLS").key
    assert read(other, engines("bert"), "SEQ_CLS").key == key
    edit_config(other, lora_alpha=6)
    assert read(other, engines("bert"), "SEQ_CLS").key != key


def refusal(folder, engine, task="SEQ_CLS"):
    with pytest.raises(CheckpointError) as caught:
        read(folder, engine, task)
    return caught.value.message


@pytest.fixture
def saved(bases, tmp_path):
    return train(bases("bert"), tmp_path / "a", "SEQ_CLS", target_modules=["query", "value"]).folder


QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda found: {name: one for name, one in found.items() if name != QUERY}, "query.lora_A.weight' is missing"),
        (lambda found: found | {QUERY.replace("query", "key"): found[QUERY]}, "key.lora_A.weight' is not expected"),
        (lambda found: found | {QUERY: found[QUERY][:2].copy()}, "has the shape [2, 32], expected [3, 32]"),
        (lambda found: found | {QUERY: found[QUERY] * np.float32("nan")}, "holds NaN or infinity"),
        (
            lambda found: {name: one * np.float32("lora_B" not in name) for name, one in found.items()},
            "every lora_B is zero",
        ),
        (
            lambda found: {name: one for name, one in found.items() if "classifier.weight" not in name},
            "'classifier.weight' is missing",
        ),
        (
            lambda found: found | {"base_model.model.classifier.bias": np.zeros(2, np.float32)},
            "different numbers of labels",
        ),
    ],
)
def test_tensors_other_than_the_configuration_says_are_refused(edit, said, saved, engines):
    assert said in refusal(edit_tensors(saved, edit), engines("bert"))


def test_another_rank_than_the_configuration_says_is_refused(saved, engines):
    assert "has the shape [3, 32], expected [4, 32]" in refusal(edit_config(saved, r=4), engines("bert"))


def test_an_adapter_of_another_family_is_refused(bases, engines, tmp_path):
    folder = train(bases("modernbert"), tmp_path / "a", "SEQ_CLS", target_modules=["Wqkv"]).folder
    assert "names none of the linear layers of the base" in refusal(folder, engines("bert"))


def test_an_adapter_of_another_task_is_refused(bases, engines, tmp_path):
    folder = train(bases("bert"), tmp_path / "a", "FEATURE_EXTRACTION", target_modules=["query"]).folder
    assert "are not expected" in refusal(folder, engines("bert"))


@pytest.mark.parametrize(("family", "part"), [("bert", "'pooler.dense.weight'"), ("modernbert", "'head.dense.weight'")])
def test_a_head_that_neither_has_is_refused(family, part, bases, engines, tmp_path):
    folder = train(bases(family), tmp_path / "a", "SEQ_CLS", target_modules=["query", "Wqkv"]).folder
    said = refusal(folder, engines(family, "token" if family == "bert" else "embedding"))
    assert part in said
    assert "modules_to_save" in said
