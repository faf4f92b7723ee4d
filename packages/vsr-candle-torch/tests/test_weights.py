"""Weights are read whole and exactly, or refused by the name of what is wrong."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from vsr_candle_torch.weights import read_tensors
from vsr_core.errors import CheckpointError


@pytest.fixture
def broken(folder, tmp_path):
    """A copy of the checkpoint, its tensors edited by a function."""

    def edit(change):
        where = tmp_path / "broken"
        shutil.copytree(folder, where)
        tensors = load_file(where / "model.safetensors")
        change(tensors)
        save_file(tensors, where / "model.safetensors")
        return where

    return edit


KEY = "encoder.layer.1.output.dense.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(KEY), f"the tensor '{KEY}' is missing"),
        (lambda t: t.update({KEY: t[KEY][:-1].copy()}), r"has shape \[31, 64\], the configuration says \[32, 64\]"),
        (lambda t: t.update({KEY: t[KEY].astype(np.int32)}), "not of a float dtype"),
        (lambda t: t.update({KEY: np.where(np.eye(32, 64) > 0, np.nan, t[KEY]).astype(np.float32)}), "NaN or infinity"),
        (
            lambda t: t.update({"encoder.layer.3.output.dense.bias": np.zeros(32, np.float32)}),
            "does not have: 'encoder",
        ),
        (lambda t: t.pop("embeddings.word_embeddings.weight"), "not weights of this family"),
    ],
)
def test_anything_but_the_expected_tensors_is_refused_by_name(broken, load, change, message):
    with pytest.raises(CheckpointError, match=message):
        load(broken(change))


def test_names_may_carry_the_prefix_of_a_head(broken, load, sequences):
    def prefix(tensors):
        for key in list(tensors):
            tensors[f"bert.{key}"] = tensors.pop(key)
        tensors["cls.predictions.bias"] = np.zeros(3, np.float32)

    assert load(broken(prefix)).bytes == load().bytes


def test_a_truncated_file_is_refused_with_its_name(folder, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes((folder / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be read as safetensors"):
        read_tensors(tmp_path, ["model.safetensors"])


def test_a_missing_file_is_refused_with_its_name(tmp_path):
    with pytest.raises(CheckpointError, match=r"nothing\.safetensors"):
        read_tensors(tmp_path, ["nothing.safetensors"])


def test_a_tensor_in_two_files_is_refused(folder, tmp_path):
    for name in ("a.safetensors", "b.safetensors"):
        shutil.copy(folder / "model.safetensors", tmp_path / name)
    with pytest.raises(CheckpointError, match="stands in another weight file too"):
        read_tensors(tmp_path, ["a.safetensors", "b.safetensors"])


def test_the_file_may_be_overwritten_once_it_is_read(folder, tmp_path):
    path = tmp_path / "model.safetensors"
    shutil.copy(folder / "model.safetensors", path)
    tensors = read_tensors(tmp_path, ["model.safetensors"])
    before = tensors[KEY].clone()
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert (tensors[KEY] == before).all()
