from __future__ import annotations

import json
import math

import numpy as np
import pytest
from safetensors.numpy import save_file
from vsr_core.contract import DenseSpec
from vsr_core.errors import CheckpointError
from vsr_core.local import apply_dense, load_dense

WEIGHT = np.array([[1, 0, 2], [0, -1, 0.5]], np.float32)
BIAS = np.array([0.5, -0.5], np.float32)
VECTORS = np.array([[1, 2, 3], [0, 0, 0]], np.float32)
PLAIN = VECTORS @ WEIGHT.T + BIAS


def spec(**changes):
    return DenseSpec(**({"path": "2_Dense", "in_features": 3, "out_features": 2, "activation": "identity"} | changes))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "2_Dense").mkdir()
    save_file({"linear.weight": WEIGHT, "linear.bias": BIAS}, tmp_path / "2_Dense" / "model.safetensors")
    return tmp_path


def run(folder, **changes):
    return apply_dense(VECTORS, load_dense(folder, [spec(**changes)]))


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("identity", lambda x: x),
        ("tanh", math.tanh),
        ("relu", lambda x: max(x, 0.0)),
        ("sigmoid", lambda x: 1 / (1 + math.exp(-x))),
        ("gelu", lambda x: 0.5 * x * (1 + math.erf(x / 2**0.5))),
    ],
)
def test_a_dense_module_is_a_linear_map_and_its_activation(folder, activation, function):
    result = run(folder, activation=activation)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, np.vectorize(function)(PLAIN.astype(float)), rtol=1e-6, atol=1e-6)


def test_the_path_may_name_the_file_itself(folder):
    np.testing.assert_array_equal(run(folder, path="2_Dense/model.safetensors"), PLAIN)


def test_modules_run_in_order(folder, tmp_path):
    save_file({"linear.weight": np.array([[2, 1]], np.float32)}, tmp_path / "3.safetensors")
    second = spec(path="3.safetensors", in_features=2, out_features=1, bias=False)
    modules = load_dense(folder, [spec(), second])
    np.testing.assert_allclose(apply_dense(VECTORS, modules)[:, 0], PLAIN @ [2, 1])


def test_a_module_may_have_no_bias(folder, tmp_path):
    save_file({"linear.weight": WEIGHT}, tmp_path / "2_Dense" / "model.safetensors")
    np.testing.assert_array_equal(run(folder, bias=False), VECTORS @ WEIGHT.T)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_float_widths_are_read(folder, dtype):
    save_file(
        {"linear.weight": WEIGHT.astype(dtype), "linear.bias": BIAS.astype(dtype)},
        folder / "2_Dense" / "model.safetensors",
    )
    np.testing.assert_array_equal(run(folder), PLAIN)


def test_bfloat16_is_read(folder):
    halves = [(array.view("<u4") >> 16).astype("<u2").tobytes() for array in (WEIGHT, BIAS)]
    header = {
        "linear.weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]},
        "linear.bias": {"dtype": "BF16", "shape": [2], "data_offsets": [12, 16]},
    }
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + b"".join(halves)
    (folder / "2_Dense" / "model.safetensors").write_bytes(content)
    np.testing.assert_array_equal(run(folder), PLAIN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "4_Dense"}, "4_Dense' is missing"),
        ({"in_features": 4}, r"'linear\.weight' should be \[2, 4\], the file has \[2, 3\]"),
        ({"bias": False}, "has a 'linear.bias'"),
    ],
)
def test_files_that_do_not_fit_the_spec_are_refused(folder, changes, message):
    with pytest.raises(CheckpointError, match=message):
        load_dense(folder, [spec(**changes)])


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"weight": WEIGHT}, r"'linear\.weight' should be \[2, 3\], the file has nothing"),
        ({"linear.weight": WEIGHT}, r"'linear\.bias' should be \[2\], the file has nothing"),
        ({"linear.weight": WEIGHT.astype(np.int8), "linear.bias": BIAS}, "the dtype I8"),
    ],
)
def test_tensors_that_are_missing_or_unusable_are_named(folder, tensors, message):
    save_file(tensors, folder / "2_Dense" / "model.safetensors")
    with pytest.raises(CheckpointError, match=message):
        load_dense(folder, [spec()])


def test_a_damaged_file_is_named(folder):
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"\x00" * 40)
    with pytest.raises(CheckpointError, match="no readable safetensors file"):
        load_dense(folder, [spec()])
