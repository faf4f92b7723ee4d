"""Texts that several tasks on one base ask about are tokenised once."""

from __future__ import annotations

import pytest
from vsr_core.errors import InputTooLongError
from vsr_core.local import TextTokenizer
from vsr_core.local.reading import TextReader, read_texts

TEXTS = ("the cat sat", "a dog ran fast on the mat")


class Counting(TextTokenizer):
    """Counts how often it is asked to tokenise."""

    asked = 0

    def encode(self, *args, **options):
        self.asked += 1
        return super().encode(*args, **options)

    def encode_with_offsets(self, *args, **options):
        self.asked += 1
        return super().encode_with_offsets(*args, **options)


@pytest.fixture
def tokenizer(wordpiece_tokenizer):
    return Counting(wordpiece_tokenizer)


def ids(readings):
    return [[sequence.ids.tolist() for sequence in reading.sequences] for reading in readings]


@pytest.mark.parametrize("truncate", ["error", "end", "start"])
def test_what_is_read_alike_is_tokenised_once_and_as_without_a_reader(tokenizer, truncate):
    reader = TextReader(offsets=False)
    one, two = (reader.read(tokenizer, TEXTS, max_tokens=16, truncate=truncate) for _ in range(2))
    assert tokenizer.asked == 1
    assert ids(one) == ids(two) == ids(read_texts(tokenizer, TEXTS, max_tokens=16, truncate=truncate))


@pytest.mark.parametrize("offsets", [True, False])
def test_offsets_are_there_for_all_where_one_task_wants_them(tokenizer, offsets):
    for reading in TextReader(offsets=offsets).read(tokenizer, TEXTS, max_tokens=16, truncate="error"):
        assert (reading.sequences[0].offsets is not None) == offsets


def test_another_limit_or_another_truncation_is_another_reading(tokenizer):
    reader = TextReader(offsets=False)
    asked = [(16, "end"), (5, "end"), (5, "start"), (5, "window")]
    read = [ids(reader.read(tokenizer, TEXTS, max_tokens=limit, truncate=truncate)) for limit, truncate in asked]
    assert all(one != other for index, one in enumerate(read) for other in read[:index])


def test_a_text_too_long_for_one_task_is_still_read_for_another(tokenizer):
    reader = TextReader(offsets=False)
    with pytest.raises(InputTooLongError):
        reader.read(tokenizer, TEXTS, max_tokens=6, truncate="error")
    assert len(reader.read(tokenizer, TEXTS, max_tokens=16, truncate="error")) == 2
