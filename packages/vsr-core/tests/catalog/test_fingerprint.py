from __future__ import annotations

import pytest
from vsr_core.catalog import hash_files
from vsr_core.errors import CheckpointError


def test_the_hash_covers_names_and_contents_and_nothing_else(write):
    one = write({"a": "1", "b": "2", "other": "x"}, "one")
    same = write({"a": "1", "b": "2", "other": "y"}, "same")
    renamed = write({"a": "2", "b": "1"}, "renamed")

    assert hash_files(one, ["a", "b"]) == hash_files(same, ["b", "a", "a"])
    assert hash_files(one, ["a", "b"]) != hash_files(renamed, ["a", "b"])
    assert hash_files(one / "a", ["a", "b"]) == hash_files(one, ["a", "b"])
    assert len(hash_files(one, [])) == 64


def test_a_missing_file_is_named(write):
    with pytest.raises(CheckpointError, match="missing"):
        hash_files(write({"a": "1"}), ["missing"])
