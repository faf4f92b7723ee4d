from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, processors
from vsr_core.errors import InputTooLongError, InvalidInputError
from vsr_core.local import PairNames, TextTokenizer, encode_pair_windows, encode_pairs
from vsr_core.local.windows import MAX_WINDOWS

FAST_HYPOTHESIS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = st.lists(
    st.sampled_from(["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "[SEP]", "[CLS]", "x"]), max_size=14
).map(" ".join)


@pytest.fixture
def tokenizer(wordpiece_tokenizer):
    return TextTokenizer(wordpiece_tokenizer)


@pytest.fixture
def frames(wordpiece_tokenizer, vocabulary):
    """One tokenizer for each way in which checkpoints frame a pair."""
    cls, sep = ("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])
    forms = {
        "bert": processors.BertProcessing(sep, cls),
        "roberta": processors.RobertaProcessing(sep, cls),
        "end alone": processors.TemplateProcessing(single="$A [SEP]", pair="$A $B [SEP]", special_tokens=[sep]),
        "second before first": processors.TemplateProcessing(
            single="$A [SEP]", pair="[CLS] $B:1 [SEP] $A", special_tokens=[cls, sep]
        ),
    }
    made = {"template": clone(wordpiece_tokenizer)}
    for name, form in forms.items():
        made[name] = clone(wordpiece_tokenizer)
        made[name].post_processor = form
    return made


def clone(tokenizer):
    return Tokenizer.from_str(tokenizer.to_str())


def words(encoded, vocabulary):
    names = {index: word for word, index in vocabulary.items()}
    return " ".join(names[index] for index in encoded.ids.tolist())


def one(tokenizer, first, second, **options):
    [encoded] = encode_pairs(tokenizer, [(first, second)], **{"max_tokens": 16, "truncate": "end", **options})
    return encoded


class TestWholePairs:
    def test_a_pair_has_the_tokenizers_own_frame_and_type_ids(self, tokenizer, vocabulary):
        encoded = one(tokenizer, "the cat", "sat")
        assert words(encoded, vocabulary) == "[CLS] the cat [SEP] sat [SEP]"
        assert encoded.type_ids.tolist() == [0, 0, 0, 0, 1, 1]
        assert encoded.ids.dtype == encoded.type_ids.dtype == np.int32
        assert (encoded.total_tokens, encoded.truncated, encoded.cut) == (6, False, ())

    @pytest.mark.parametrize("pair", [("", ""), ("", "cat"), ("cat", ""), (" ", "\n")])
    def test_empty_texts_are_legal(self, tokenizer, pair):
        assert one(tokenizer, *pair).total_tokens == 3 + sum(bool(text.strip()) for text in pair)

    def test_without_a_post_processor_the_second_text_still_has_its_type_id(self, wordpiece_tokenizer):
        wordpiece_tokenizer.post_processor = None
        assert one(TextTokenizer(wordpiece_tokenizer), "the cat", "sat").type_ids.tolist() == [0, 0, 1]

    def test_many_pairs_come_back_in_order(self, tokenizer):
        pairs = [("cat " * (index % 5), "dog " * (index % 3)) for index in range(700)]
        encoded = encode_pairs(tokenizer, pairs, max_tokens=16, truncate="error")
        assert [len(each.ids) for each in encoded] == [3 + index % 5 + index % 3 for index in range(700)]

    def test_lowercase_is_applied_to_both_texts(self, wordpiece_tokenizer, vocabulary):
        wordpiece_tokenizer.normalizer = None
        encoded = one(TextTokenizer(wordpiece_tokenizer, lowercase=True), "CAT", "DOG")
        assert words(encoded, vocabulary) == "[CLS] cat [SEP] dog [SEP]"

    def test_a_pair_without_any_token_is_refused(self, wordpiece_tokenizer):
        wordpiece_tokenizer.post_processor = None
        with pytest.raises(InvalidInputError, match=r"pairs\[1\] gives no token") as caught:
            encode_pairs(TextTokenizer(wordpiece_tokenizer), [("a", ""), ("", "")], max_tokens=8, truncate="end")
        assert caught.value.param == "pairs[1]"

    def test_an_added_token_beyond_the_embedding_is_refused_with_its_pair(self, wordpiece_tokenizer):
        wordpiece_tokenizer.add_special_tokens([AddedToken("<image>", special=True)])
        tokenizer = TextTokenizer(wordpiece_tokenizer, vocab_size=20)
        with pytest.raises(InvalidInputError, match=r"pairs\[1\] holds a special token") as caught:
            encode_pairs(tokenizer, [("a", "a"), ("a", "<image>")], max_tokens=8, truncate="end")
        assert caught.value.param == "pairs[1]"


class TestCuts:
    def test_the_longer_text_alone_is_cut_where_the_shorter_fits_into_half(self, tokenizer, vocabulary):
        encoded = one(tokenizer, "the", "cat dog sat ran on", max_tokens=7)
        assert words(encoded, vocabulary) == "[CLS] the [SEP] cat dog sat [SEP]"
        assert (encoded.total_tokens, encoded.truncated, encoded.cut) == (9, True, ("second",))

    def test_both_are_cut_to_half_where_neither_fits(self, tokenizer, vocabulary):
        encoded = one(tokenizer, "the a cat dog", "sat ran on mat", max_tokens=7)
        assert words(encoded, vocabulary) == "[CLS] the a [SEP] sat ran [SEP]"
        assert encoded.cut == ("first", "second")

    @pytest.mark.parametrize(
        ("first", "second", "kept"),
        [
            ("the a cat", "sat ran on", "[CLS] the [SEP] sat ran [SEP]"),
            ("the a cat dog", "sat ran on", "[CLS] the a [SEP] sat [SEP]"),
            ("the a cat", "sat ran on mat", "[CLS] the [SEP] sat ran [SEP]"),
        ],
    )
    def test_an_odd_token_goes_to_the_longer_text_and_among_equals_to_the_second(
        self, tokenizer, vocabulary, first, second, kept
    ):
        assert words(one(tokenizer, first, second, max_tokens=6), vocabulary) == kept

    def test_start_cuts_the_start_of_each_text(self, tokenizer, vocabulary):
        encoded = one(tokenizer, "the a cat dog", "sat ran on mat", max_tokens=7, truncate="start")
        assert words(encoded, vocabulary) == "[CLS] cat dog [SEP] on mat [SEP]"

    def test_special_tokens_written_in_a_text_are_cut_like_its_other_tokens(self, tokenizer, vocabulary):
        encoded = one(tokenizer, "[SEP] [SEP] [SEP] [SEP]", "a", max_tokens=6)
        assert words(encoded, vocabulary) == "[CLS] [SEP] [SEP] [SEP] a [SEP]"

    @FAST_HYPOTHESIS
    @given(
        first=WORDS,
        second=WORDS,
        limit=st.integers(5, 20),
        truncate=st.sampled_from(["end", "start"]),
        frame=st.sampled_from(["template", "bert", "roberta", "end alone"]),
    )
    def test_cuts_are_those_of_the_tokenizers_library(self, frames, first, second, limit, truncate, frame):
        reference = clone(frames[frame])
        whole = reference.encode(first, second)
        reference.enable_truncation(limit, strategy="longest_first", direction="right" if truncate == "end" else "left")
        expected = reference.encode(first, second)
        encoded = one(TextTokenizer(clone(frames[frame])), first, second, max_tokens=limit, truncate=truncate)
        assert encoded.ids.tolist() == expected.ids
        assert encoded.type_ids.tolist() == expected.type_ids
        assert encoded.total_tokens == len(whole.ids)
        lost = [whole.sequence_ids.count(side) > expected.sequence_ids.count(side) for side in (0, 1)]
        assert encoded.cut == tuple(name for name, gone in zip(("first", "second"), lost, strict=True) if gone)
        assert encoded.truncated == any(lost)

    def test_a_frame_with_the_second_text_first_is_cut_alike(self, frames, vocabulary):
        encoded = one(TextTokenizer(frames["second before first"]), "the a cat", "sat ran on", max_tokens=5)
        assert words(encoded, vocabulary) == "[CLS] sat ran [SEP] the"


class TestRefusals:
    def test_error_refuses_a_pair_over_the_limit_and_names_it(self, tokenizer):
        with pytest.raises(
            InputTooLongError, match=r"pairs\[1\] has 8 tokens, the limit is 7: shorten it, or .*'window'"
        ) as caught:
            encode_pairs(tokenizer, [("a", "a"), ("the a cat", "sat ran")], max_tokens=7, truncate="error")
        assert (caught.value.param, caught.value.limit, caught.value.actual) == ("pairs[1]", 7, 8)

    def test_a_pair_that_just_fits_is_whole(self, tokenizer):
        assert not one(tokenizer, "the a", "sat ran", max_tokens=7, truncate="error").truncated

    def test_window_is_refused_because_it_gives_several_sequences(self, tokenizer):
        with pytest.raises(InvalidInputError, match="window") as caught:
            one(tokenizer, "a", "a", truncate="window")
        assert caught.value.param == "truncate"

    @pytest.mark.parametrize("encode", [encode_pair_windows, lambda *a, **k: encode_pairs(*a, truncate="end", **k)])
    def test_a_limit_without_room_beside_the_frame_is_refused(self, tokenizer, encode):
        with pytest.raises(InvalidInputError, match="3 special tokens"):
            encode(tokenizer, [("a", "a")], max_tokens=3)

    @pytest.mark.parametrize("side", [0, 1])
    def test_endless_text_is_refused_by_its_characters(self, tokenizer, side):
        pair = ("x" * 100_000, "a") if side == 0 else ("a", "x" * 100_000)
        with pytest.raises(InputTooLongError) as caught:
            one(tokenizer, *pair, truncate="error")
        assert (caught.value.unit, caught.value.limit, caught.value.actual) == ("characters", 4096, 100_000)
        assert caught.value.param == f"pairs[0][{side}]"

    def test_names_are_those_of_the_request(self, tokenizer):
        names = PairNames(pair="documents[{}]", first="query", second="documents[{}]")
        with pytest.raises(InputTooLongError) as caught:
            one(tokenizer, "a " * 9, "a " * 9, truncate="error", names=names)
        assert caught.value.param == "documents[0]"
        with pytest.raises(InputTooLongError) as caught:
            encode_pair_windows(tokenizer, [("a " * 20, "a")], max_tokens=16, names=names)
        assert caught.value.param == "query"


class TestCharacterCaps:
    @pytest.mark.parametrize(("truncate", "kept"), [("end", "the the"), ("start", "the mat")])
    def test_each_text_is_cut_by_itself_and_the_token_count_is_unknown(self, tokenizer, vocabulary, truncate, kept):
        encoded = one(tokenizer, "cat", "the " * 5000 + "mat", max_tokens=6, truncate=truncate)
        assert words(encoded, vocabulary) == f"[CLS] cat [SEP] {kept} [SEP]"
        assert (encoded.total_tokens, encoded.truncated, encoded.cut) == (None, True, ("second",))

    def test_a_text_that_fits_after_its_blanks_were_cut_off_counts_as_cut(self, tokenizer, vocabulary):
        encoded = one(tokenizer, "cat" + " " * 5000, "dog")
        assert words(encoded, vocabulary) == "[CLS] cat [SEP] dog [SEP]"
        assert (encoded.total_tokens, encoded.truncated, encoded.cut) == (None, True, ("first",))


class TestWindows:
    def test_a_pair_that_fits_is_one_window_like_any_other_pair(self, tokenizer):
        [windowed] = encode_pair_windows(tokenizer, [("the cat", "sat")], max_tokens=16)
        plain = one(tokenizer, "the cat", "sat")
        assert [window.ids.tolist() for window in windowed.windows] == [plain.ids.tolist()]
        assert (windowed.starts, windowed.fresh, windowed.total_tokens) == ((0,), (1,), 6)

    def test_the_first_text_is_whole_in_every_window_and_the_second_is_strided(self, tokenizer, vocabulary):
        [windowed] = encode_pair_windows(tokenizer, [("query", "the a cat dog sat ran on mat fast")], max_tokens=8)
        assert [words(window, vocabulary) for window in windowed.windows] == [
            "[CLS] query [SEP] the a cat dog [SEP]",
            "[CLS] query [SEP] dog sat ran on [SEP]",
            "[CLS] query [SEP] ran on mat fast [SEP]",
        ]
        assert {tuple(window.type_ids.tolist()) for window in windowed.windows} == {(0, 0, 0, 1, 1, 1, 1, 1)}
        assert (windowed.starts, windowed.fresh, windowed.total_tokens) == ((0, 3, 5), (4, 3, 2), 13)

    @FAST_HYPOTHESIS
    @given(
        first=st.integers(0, 5),
        second=st.integers(0, 60),
        limit=st.integers(10, 16),
        frame=st.sampled_from(["template", "bert", "roberta", "end alone", "second before first"]),
    )
    def test_the_windows_hold_the_whole_first_text_and_cover_the_second(self, frames, first, second, limit, frame):
        pair = "cat " * first, " ".join(f"{['the', 'a', 'dog', 'sat', 'ran'][number % 5]}" for number in range(second))
        whole = frames[frame].encode(*pair)
        [windowed] = encode_pair_windows(TextTokenizer(frames[frame]), [pair], max_tokens=limit)
        begin = whole.sequence_ids.index(1) if second else 0
        room = limit - (len(whole.ids) - second)
        covered: set[int] = set()
        for window, start, fresh in zip(windowed.windows, windowed.starts, windowed.fresh, strict=True):
            kept = {*range(start, min(start + room, second))}
            left_out = {begin + place for place in range(second) if place not in kept}
            assert window.ids.tolist() == [each for place, each in enumerate(whole.ids) if place not in left_out]
            assert len(kept - covered) == fresh
            covered |= kept
        assert covered == {*range(second)}

    def test_a_first_text_that_leaves_no_room_is_refused_by_name(self, tokenizer):
        with pytest.raises(InputTooLongError, match=r"pairs\[1\]\[0\] has 13 tokens, the limit is 12") as caught:
            encode_pair_windows(tokenizer, [("a", "a"), ("the " * 13, "cat")], max_tokens=16)
        assert (caught.value.param, caught.value.limit, caught.value.actual) == ("pairs[1][0]", 12, 13)

    def test_a_first_text_may_take_all_the_room_where_the_second_is_empty(self, tokenizer):
        [windowed] = encode_pair_windows(tokenizer, [("the " * 13, "")], max_tokens=16)
        assert (len(windowed.windows), windowed.fresh, windowed.total_tokens) == (1, (0,), 16)
        with pytest.raises(InputTooLongError) as caught:
            encode_pair_windows(tokenizer, [("the " * 14, "")], max_tokens=16)
        assert (caught.value.param, caught.value.limit) == ("pairs[0][0]", 13)

    def test_more_windows_than_there_may_be_are_refused_by_name(self, tokenizer):
        first = "the " * 12  # leaves one token of room
        [most] = encode_pair_windows(tokenizer, [(first, "a " * MAX_WINDOWS)], max_tokens=16)
        assert len(most.windows) == MAX_WINDOWS
        with pytest.raises(InputTooLongError, match=r"pairs\[0\]\[1\] has 257 tokens") as caught:
            encode_pair_windows(tokenizer, [(first, "a " * (MAX_WINDOWS + 1))], max_tokens=16)
        assert (caught.value.param, caught.value.limit, caught.value.actual) == ("pairs[0][1]", MAX_WINDOWS, 257)

    def test_endless_text_is_refused_by_its_characters(self, tokenizer):
        for pair, place in [(("x" * 2_000_000, "a"), 0), (("a", "x" * 2_000_000), 1)]:
            with pytest.raises(InputTooLongError, match="characters") as caught:
                encode_pair_windows(tokenizer, [pair], max_tokens=16)
            assert caught.value.param == f"pairs[0][{place}]"
