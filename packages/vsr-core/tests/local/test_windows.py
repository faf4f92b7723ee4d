from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import processors
from vsr_core.errors import InputTooLongError, InvalidInputError
from vsr_core.local import TextTokenizer
from vsr_core.local.windows import MAX_WINDOWS, encode_windows, fresh_tokens, merge_windows, most_tokens, window_starts

TEXT = "the cat sat on the mat a dog ran fast slow query the cat sat on"


@pytest.fixture
def tokenizer(wordpiece_tokenizer):
    return TextTokenizer(wordpiece_tokenizer)


def test_a_text_within_the_limit_is_one_window(tokenizer):
    [whole] = tokenizer.encode(["the cat sat"], max_tokens=5)
    [read] = encode_windows(tokenizer, ["the cat sat"], max_tokens=5)
    assert [window.ids.tolist() for window in read.windows] == [whole.ids.tolist()]
    assert (read.starts, read.fresh, read.total_tokens) == ((0,), (3,), 5)
    assert read.windows[0].offsets is None


@pytest.mark.parametrize("text", ["", "\n\t "])
def test_an_empty_text_is_one_window_of_special_tokens(tokenizer, vocabulary, text):
    [read] = encode_windows(tokenizer, [text], max_tokens=5)
    assert [window.ids.tolist() for window in read.windows] == [[vocabulary["[CLS]"], vocabulary["[SEP]"]]]
    assert (read.starts, read.fresh, read.total_tokens) == ((0,), (0,), 2)


def test_windows_overlap_by_a_quarter_and_the_last_is_moved_back_to_be_full(tokenizer):
    [read] = encode_windows(tokenizer, [TEXT], max_tokens=10)
    assert read.starts == (0, 6, 8)
    assert read.fresh == (8, 6, 2)
    assert [len(window.ids) for window in read.windows] == [10, 10, 10]
    assert [window.total_tokens for window in read.windows] == [10, 10, 10]
    assert not any(window.truncated for window in read.windows)


def test_every_window_is_a_whole_sequence_of_the_texts_own_tokens(tokenizer):
    [whole] = tokenizer.encode_with_offsets([TEXT], max_tokens=64)
    [read] = encode_windows(tokenizer, [TEXT], max_tokens=10, offsets=True)
    for window, start in zip(read.windows, read.starts, strict=True):
        for name in ("ids", "type_ids", "offsets", "words"):
            part, all_of_it = getattr(window, name), getattr(whole, name)
            assert part.dtype == np.int32
            np.testing.assert_array_equal(part[1:-1], all_of_it[1:-1][start : start + 8])
            np.testing.assert_array_equal(part[[0, -1]], all_of_it[[0, -1]])


def test_special_tokens_after_the_text_alone_end_every_window(wordpiece_tokenizer, vocabulary):
    end = vocabulary["[SEP]"]
    wordpiece_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP] [SEP]", special_tokens=[("[SEP]", end)]
    )
    tokenizer = TextTokenizer(wordpiece_tokenizer)
    assert tokenizer.frame == (0, 2)
    [read] = encode_windows(tokenizer, ["the cat sat on a mat"], max_tokens=6)
    named = [vocabulary[word] for word in ("the", "cat", "sat", "on", "a", "mat")]
    assert [window.ids.tolist() for window in read.windows] == [[*named[:4], end, end], [*named[2:], end, end]]
    assert read.fresh == (4, 2)


def test_as_many_windows_as_allowed_are_made_and_not_one_more(tokenizer):
    limit = most_tokens(4)
    [read] = encode_windows(tokenizer, ["a " * limit], max_tokens=6)
    assert len(read.windows) == MAX_WINDOWS
    with pytest.raises(InputTooLongError, match=r"texts\[1\]") as caught:
        encode_windows(tokenizer, ["a", "a " * (limit + 1)], max_tokens=6)
    assert (caught.value.unit, caught.value.limit, caught.value.actual) == ("tokens", limit + 2, limit + 3)


def test_endless_text_is_refused_by_its_characters(tokenizer):
    with pytest.raises(InputTooLongError) as caught:
        encode_windows(tokenizer, [" " * 1_000_000], max_tokens=6)
    assert caught.value.unit == "characters"


def test_a_limit_without_room_for_text_is_refused(tokenizer):
    with pytest.raises(InvalidInputError, match="2 special tokens"):
        encode_windows(tokenizer, ["the"], max_tokens=2)


def test_a_token_is_taken_from_the_window_where_it_has_most_company():
    values = [np.full((8, 2), window) for window in range(3)]
    merged = merge_windows(values, (0, 6, 12))
    assert merged.shape == (20, 2)
    # tokens 6 and 7 are in windows 0 and 1: 6 is 1 token from the end of one and at the start of the other
    assert merged[:, 0].tolist() == [0] * 7 + [1] * 6 + [2] * 7


def test_of_equal_windows_the_earlier_counts():
    values = [np.full(5, 0), np.full(5, 1)]
    assert merge_windows(values, (0, 2)).tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_the_borders_of_the_text_are_no_borders():
    values = [np.full(4, 0), np.full(4, 1)]
    assert merge_windows(values, (0, 1)).tolist() == [0, 0, 0, 1, 1]


@given(count=st.integers(0, 400), room=st.integers(1, 40))
def test_windows_cover_every_token_and_fresh_tokens_are_all_of_them(count, room):
    starts = window_starts(count, room=room)
    covered = {token for start in starts for token in range(start, min(start + room, count))}
    assert covered == set(range(count))
    fresh = fresh_tokens(starts, count, room=room)
    assert sum(fresh) == count
    assert len(starts) == 1 or all(new > 0 for new in fresh)
    assert len(starts) <= MAX_WINDOWS or count > most_tokens(room)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(["the", "cat", "[SEP]", "xyz", "\n"]), max_size=60), limit=st.integers(3, 20))
def test_what_depends_on_a_token_alone_is_the_same_with_windows_and_without(tokenizer, words, limit):
    text = " ".join(words)
    [whole] = tokenizer.encode_with_offsets([text], max_tokens=256)
    [read] = encode_windows(tokenizer, [text], max_tokens=limit, offsets=True)
    assert all(len(window.ids) <= limit for window in read.windows)
    for name in ("ids", "offsets", "words"):
        merged = merge_windows([getattr(window, name)[1:-1] for window in read.windows], read.starts)
        np.testing.assert_array_equal(merged, getattr(whole, name)[1:-1])
    assert read.total_tokens == whole.total_tokens
