from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from vsr_core.catalog.safetensors_header import dominant_dtype, read_safetensors_header
from vsr_core.errors import CheckpointError


def test_names_types_and_shapes_are_read(write):
    folder = write(
        {
            "m.safetensors": {
                "a": np.ones((2, 3), np.float16),
                "b": np.ones((4,), np.float32),
                "i": np.ones(99, np.int64),
            }
        }
    )

    tensors = read_safetensors_header(folder / "m.safetensors")

    assert (tensors["a"].dtype, tensors["a"].shape, tensors["a"].size) == ("float16", (2, 3), 12)
    assert dominant_dtype(tensors.values()) == "float32"


def test_a_truncated_file_is_refused_with_both_sizes(write):
    path = write({"m.safetensors": {"a": np.ones(100, np.float32)}}) / "m.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])

    with pytest.raises(CheckpointError, match=f"m.safetensors: {len(whole) - 7} bytes long, .* {len(whole)}"):
        read_safetensors_header(path)


def test_a_file_truncated_within_its_header_is_refused(write):
    path = write({"m.safetensors": {"a": np.ones(100, np.float32)}}) / "m.safetensors"
    path.write_bytes(path.read_bytes()[:20])

    with pytest.raises(CheckpointError, match="truncated"):
        read_safetensors_header(path)


def test_trailing_bytes_are_refused(write):
    path = write({"m.safetensors": {"a": np.ones(1, np.float32)}}) / "m.safetensors"
    path.write_bytes(path.read_bytes() + b"x")

    with pytest.raises(CheckpointError, match="damaged"):
        read_safetensors_header(path)


def described(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "too few"),
        (b"\xff" * 16, "truncated or no safetensors file"),
        (struct.pack("<Q", 4) + b"nope", "not JSON"),
        (described([]), "not an object"),
        (described({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"), "its shape needs 8"),
        (described({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"1234"), "does not describe"),
        (described({"a": {"shape": [1], "data_offsets": [0, 4]}}, b"1234"), "does not describe"),
        (
            described({n: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for n in "ab"}, b"1234"),
            "overlap or leave gaps",
        ),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS pointer"),
    ],
)
def test_damaged_files_are_refused_with_the_reason(content, reason, write):
    with pytest.raises(CheckpointError, match=reason):
        read_safetensors_header(write({"m.safetensors": content}) / "m.safetensors")
