from __future__ import annotations

from dataclasses import replace

import pytest
from vsr_core.contract import PoolingSpec
from vsr_core.local import compatibility_key, label_key, space_of


def test_the_key_is_stable_and_short(spec):
    key = compatibility_key(spec, dtype="float32")
    assert key == compatibility_key(replace(spec, max_tokens=99, prompts=None), dtype="float32")
    assert key.startswith("emb-")
    assert len(key) == 28


@pytest.mark.parametrize(
    "changes",
    [
        {"content_hash": "other"},
        {"normalize": False},
        {"pooling": PoolingSpec(modes=("cls",))},
        {"pooling": PoolingSpec(modes=("mean",), include_prompt=False)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_whatever_moves_the_vectors_changes_the_key(spec, changes):
    assert compatibility_key(replace(spec, **changes), dtype="float32") != compatibility_key(spec, dtype="float32")


def test_the_compute_dtype_is_part_of_the_key(spec):
    assert compatibility_key(spec, dtype="bfloat16") != compatibility_key(spec, dtype="float32")


@pytest.mark.parametrize(("content_hash", "dtype"), [(None, "float32"), ("c0ffee", None)])
def test_what_is_not_known_gives_no_key(spec, content_hash, dtype):
    assert compatibility_key(replace(spec, content_hash=content_hash), dtype=dtype) is None


def test_a_shallower_exit_and_fewer_dimensions_are_spaces_of_their_own(spec):
    spec = replace(spec, native_dimensions=8)
    assert space_of("emb-1", spec, dimensions=8, layer=3) == "emb-1"
    assert space_of("emb-1", spec, dimensions=8, layer=None) == "emb-1"
    assert space_of("emb-1", spec, dimensions=4, layer=1) == "emb-1-l1-d4"
    assert space_of(None, spec, dimensions=4, layer=1) is None


def test_labels_have_one_key_in_whatever_order_and_none_without_names():
    key = label_key(("safe", "unsafe"))
    assert key == label_key(["unsafe", "safe"])
    assert key.startswith("lab-")
    assert len(key) == 28
    assert label_key(("safe, unsafe",)) != key
    assert label_key(()) is label_key(None) is None
