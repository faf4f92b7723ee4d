"""``vsr merge``: an adapter and its base as one checkpoint, which PEFT, transformers and every backend agree with."""

import json
import shutil

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification
from transformers.utils import logging
from vsr_core import Runtime
from vsr_core.cli import main
from vsr_core.errors import CheckpointError, InvalidInputError
from vsr_core.testing import write_encoder

from tests.peft_files import edit_tensors, train

TEXTS = ("What does the contract say?", "abc", "one two three four five six seven")
LABELS = {"SEQ_CLS": ("question", "order", "complaint"), "TOKEN_CLS": ("O", "B-PER", "I-PER"), "FEATURE_EXTRACTION": ()}
CLASSES = {
    "SEQ_CLS": AutoModelForSequenceClassification,
    "TOKEN_CLS": AutoModelForTokenClassification,
    "FEATURE_EXTRACTION": AutoModel,
}
NAMED = ["query", "value", "dense", "Wqkv", "Wo", "Wi"]
POOLED = {"FEATURE_EXTRACTION": {"pooling": "mean"}}


def config(base, adapter, *, pooled=False, **stated):
    under = {"source": str(base)} | ({"pooling": "mean"} if pooled else {})
    catalog = {"base": under, "task": {"base": "base", "adapter": str(adapter), **stated}}
    return {
        "catalog": {name: entry | {"backends": ["torch"]} for name, entry in catalog.items()},
        "backends": {"torch": {"precision": "fp32"}},
    }


@pytest.fixture(scope="module")
def quiet():
    logging.set_verbosity_error()
    logging.disable_progress_bar()


@pytest.mark.parametrize("task", LABELS)
@pytest.mark.parametrize(
    ("family", "head"),
    [("bert", "sequence"), ("bert", "embedding"), ("roberta", "sequence"), ("modernbert", "sequence")],
)
def test_the_merged_model_is_what_peft_makes_of_the_two(task, family, head, tmp_path, quiet):
    base = write_encoder(tmp_path / "base", family, head=head)
    trained = train(base, tmp_path / "a", task, labels=LABELS[task], target_modules=NAMED)
    with Runtime(config(base, trained.folder, pooled=head == "embedding", **POOLED.get(task, {}))) as runtime:
        report = runtime.merge("torch:task", out=tmp_path / "merged")
    assert report.max_abs <= 1e-4
    model, loading = CLASSES[task].from_pretrained(report.folder, dtype=torch.float32, output_loading_info=True)
    assert not loading["missing_keys"] - {"pooler.dense.weight", "pooler.dense.bias"}
    tokenizer = Tokenizer.from_file(str(report.folder / "tokenizer.json"))
    for text in TEXTS:
        ids = np.array(tokenizer.encode(text).ids)
        with torch.inference_mode():
            output = model.eval()(torch.from_numpy(ids)[None])
        found = output.logits if "logits" in output else output.last_hidden_state
        np.testing.assert_allclose(found[0].numpy(), trained.answer(ids), atol=1e-4)


@pytest.fixture
def adapter(tmp_path):
    base = write_encoder(tmp_path / "base", "bert", head="sequence", labels=("no", "yes"))
    return base, train(base, tmp_path / "a", "SEQ_CLS", labels=LABELS["SEQ_CLS"]).folder


def test_a_merged_model_serves_in_the_adapters_place(adapter, tmp_path):
    base, folder = adapter
    with Runtime(config(base, folder)) as runtime:
        expected = runtime.classify(TEXTS, model="task").results
        merged = runtime.merge("task", out=tmp_path / "merged").folder
    with Runtime({"catalog": {"m": {"source": str(merged)}}, "backends": {"torch": {"precision": "fp32"}}}) as runtime:
        for one, other in zip(runtime.classify(TEXTS, model="torch:m").results, expected, strict=True):
            assert one.label == other.label
            np.testing.assert_allclose(list(one.distribution.values()), list(other.distribution.values()), atol=1e-5)


def test_the_command_tells_what_it_made(adapter, tmp_path, capsys):
    base, folder = adapter
    (tmp_path / "vsr.json").write_text(json.dumps(config(base, folder)))
    arguments = [
        "merge",
        "torch:task",
        "--out",
        str(tmp_path / "out"),
        "--config",
        str(tmp_path / "vsr.json"),
        "--json",
    ]
    assert main(arguments) == 0
    body = json.loads(capsys.readouterr().out)
    assert (tmp_path / "out" / "model.safetensors").is_file()
    assert body["files"] == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert main(arguments) == 1
    assert "not empty" in capsys.readouterr().err


def test_what_is_no_adapter_is_refused(adapter, tmp_path):
    with Runtime(config(*adapter)) as runtime, pytest.raises(InvalidInputError, match="'base' is no adapter"):
        runtime.merge("base", out=tmp_path / "out")


def test_a_damaged_adapter_leaves_nothing_behind(adapter, tmp_path):
    base, folder = adapter
    copy = shutil.copytree(folder, tmp_path / "copy")
    edit_tensors(copy, lambda tensors: dict(list(tensors.items())[1:]))
    before = set(tmp_path.iterdir())
    with Runtime(config(base, copy)) as runtime, pytest.raises(CheckpointError, match="missing"):
        runtime.merge("task", out=tmp_path / "out")
    assert set(tmp_path.iterdir()) == before
