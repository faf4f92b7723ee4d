from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from vsr_core.catalog import (
    ExitLayer,
    ExportManifest,
    ExportSource,
    ExportTolerance,
    HeadLayout,
    check_files,
    read_manifest,
    write_manifest,
)
from vsr_core.contract import PoolingSpec
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Capability

DIGEST = hashlib.sha256(b"graph").hexdigest()
WHOLE = ExportManifest(
    family="modernbert",
    architecture="ModernBertForSequenceClassification",
    capabilities=(Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION),
    hidden_size=8,
    layers=4,
    exits=(ExitLayer(layer=2, output="hidden_2", final_norm=True), ExitLayer(layer=4, output="hidden_4")),
    max_tokens=64,
    inputs=("input_ids", "attention_mask"),
    files={"head.safetensors": DIGEST, "model.onnx": DIGEST},
    pooling=PoolingSpec(modes=("mean", "cls"), include_prompt=False),
    head=HeadLayout(kind="sequence", labels=3, pool="mean", dense=True, activation="gelu", norm_eps=1e-5),
    quantization="int8-dynamic",
    tolerance=ExportTolerance(max_abs=1e-6, texts=20, cosine=0.996),
    source=ExportSource(content_hash="c0ffee", revision="main"),
    versions={"onnx": "1.2", "torch": "2.0"},
)
PLAIN = replace(
    WHOLE, pooling=None, head=None, quantization=None, tolerance=None, source=ExportSource(), max_tokens=None
)


@pytest.fixture
def changed(tmp_path):
    """Writes a whole manifest, with a section of it changed, and gives its folder."""

    def write(**changes):
        write_manifest(tmp_path, WHOLE)
        content = json.loads((tmp_path / "vsr_manifest.json").read_text()) | changes
        kept = {key: value for key, value in content.items() if value != "absent"}
        (tmp_path / "vsr_manifest.json").write_text(json.dumps(kept))
        return tmp_path

    return write


@pytest.mark.parametrize("manifest", [WHOLE, PLAIN])
def test_what_is_written_is_read_back(manifest, tmp_path):
    write_manifest(tmp_path, manifest)

    assert read_manifest(tmp_path) == manifest
    assert manifest.exit_layers == (2, 4)


def test_a_folder_without_one_has_none(tmp_path):
    assert read_manifest(tmp_path) is None


@pytest.mark.parametrize("schema", [2, "absent"])
def test_another_schema_is_not_guessed_at(schema, changed):
    with pytest.raises(CheckpointError, match=r"vsr_manifest\.json: schema .* is not one this version reads \(1\)"):
        read_manifest(changed(schema=schema))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"family": "absent"}, "has no 'family'"),
        ({"layers": 0}, "'layers' must be a whole number above zero"),
        ({"exits": []}, "'exits' must end with the native depth, 4"),
        ({"exits": [{"layer": 2, "output": "a"}]}, "'exits' must end with the native depth, 4"),
        ({"exits": [{"layer": 4, "output": "a"}, {"layer": 2, "output": "b"}]}, "'exits' must rise by layer"),
        ({"exits": [{"layer": 2, "output": "a"}, {"layer": 4, "output": "a"}]}, "'exits' must rise by layer"),
        ({"exits": [{"layer": 4}]}, "has no 'output'"),
        ({"exits": [4]}, "'exits' must be a list of objects"),
        ({"inputs": ["attention_mask"]}, "must have 'input_ids'"),
        ({"capabilities": ["flying"]}, "a list of known capabilities"),
        ({"pooling": {"modes": ["median"]}}, "'modes' must be a list of"),
        ({"head": {"kind": "sequence", "labels": 2}}, "a 'pool' if, and only if, its kind is 'sequence'"),
        ({"head": {"kind": "token", "labels": 2, "pool": "cls"}}, "a 'pool' if, and only if"),
        ({"head": {"kind": "token", "labels": 2, "activation": "mish"}}, "'activation' must be null or one of"),
        ({"head": {"kind": "token", "labels": 2, "norm_eps": -1}}, "'norm_eps' must be a number of zero or more"),
        ({"files": {"model.onnx": DIGEST}}, r"must list 'head\.safetensors'"),
        ({"files": {"model.onnx": "1234"}}, r"'model\.onnx' must be a SHA-256"),
        ({"files": {"../model.onnx": DIGEST}}, "leaves the model's folder"),
        ({"files": {}}, "'files' must be an object with the SHA-256 of every file"),
        ({"files": [DIGEST]}, "'files' must be an object"),
        ({"quantization": "int3"}, "'quantization' must be null or one of 'int8-dynamic'"),
        ({"tolerance": {"max_abs": float("nan"), "texts": 1}}, "'max_abs' must be a number"),
    ],
)
def test_a_malformed_manifest_is_refused_by_key(changes, reason, changed):
    with pytest.raises(CheckpointError, match=reason):
        read_manifest(changed(**changes))


def test_files_are_checked_one_by_one(tmp_path):
    for name in WHOLE.files:
        (tmp_path / name).write_bytes(b"graph")
    check_files(tmp_path, WHOLE)

    (tmp_path / "model.onnx").write_bytes(b"another graph")
    with pytest.raises(CheckpointError, match=r"model\.onnx: its SHA-256 is .* says .*export the model again"):
        check_files(tmp_path, WHOLE)

    (tmp_path / "model.onnx").unlink()
    with pytest.raises(CheckpointError, match=r"model\.onnx: vsr_manifest\.json lists it, and it cannot be read"):
        check_files(tmp_path, WHOLE)
