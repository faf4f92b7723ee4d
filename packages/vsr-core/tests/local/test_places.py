from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from vsr_core.local import TextTokenizer


def characters(text, normalizer=None, **options):
    """The places of a tokenizer that makes one token of each character."""
    names = ["[UNK]", *sorted(set("abcdefghijklmnopqrstuvwxyz\u00e9\u2581 "))]
    tokenizer = Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, [], unk_token="[UNK]"))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    [encoded] = TextTokenizer(tokenizer, **options).encode_with_offsets([text], max_tokens=64)
    return encoded.offsets.tolist()


def test_offsets_count_code_points_and_not_bytes():
    assert characters("\u65e5\U0001f600a") == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("prepend", [normalizers.Prepend("\u2581"), None])
def test_a_space_put_before_the_text_has_no_width(prepend):
    tokenizer = Tokenizer(models.BPE({"[UNK]": 0, "\u2581": 1, "a": 2, "b": 3}, [], unk_token="[UNK]"))
    if prepend is None:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    else:
        tokenizer.normalizer = prepend
    [encoded] = TextTokenizer(tokenizer).encode_with_offsets(["ab"], max_tokens=8)
    assert encoded.offsets.tolist() == [[0, 0], [0, 1], [1, 2]]


def test_a_character_that_looks_like_a_space_marker_keeps_its_width():
    assert characters("\u2581a") == [[0, 1], [1, 2]]


def test_a_mark_composed_with_its_letter_belongs_to_it():
    assert characters("e\u0301a", normalizers.NFC()) == [[0, 2], [2, 3]]


def test_a_mark_that_was_dropped_belongs_to_its_letter():
    dropped = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    assert characters("ae\u0323\u0301", dropped) == [[0, 1], [1, 4]]


def test_a_mark_that_is_a_token_keeps_its_place():
    assert characters("e\u0301a") == [[0, 1], [1, 2], [2, 3]]


def test_letters_made_of_one_character_share_its_place():
    assert characters("\ufb01a", normalizers.NFKC()) == [[0, 1], [0, 1], [1, 2]]


def test_lowercasing_that_lengthens_a_text_moves_nothing():
    text = "\u0130ab"
    places = characters(text, lowercase=True)
    assert places[-2:] == [[1, 2], [2, 3]]
    assert {tuple(place) for place in places[:-2]} == {(0, 1)}
