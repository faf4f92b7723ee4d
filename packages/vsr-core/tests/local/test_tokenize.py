from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
from vsr_core.errors import CheckpointError, InputTooLongError, InvalidInputError
from vsr_core.local import TextTokenizer, character_cap

EOS = 256


@pytest.fixture
def tokenizer(wordpiece_tokenizer):
    return TextTokenizer(wordpiece_tokenizer)


@pytest.fixture
def byte_level():
    """A byte-level BPE without merges, whose post-processor appends an end-of-text token alone."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {char: index for index, char in enumerate(alphabet)} | {"<eos>": EOS}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<eos>"])
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="$A <eos>", pair="$A $B <eos>", special_tokens=[("<eos>", EOS)]),
        ]
    )
    return TextTokenizer(tokenizer)


def words(encoded, vocabulary):
    names = {index: word for word, index in vocabulary.items()}
    return [names[index] for index in encoded.ids.tolist()]


def test_a_text_becomes_int32_ids_with_its_special_tokens(tokenizer, vocabulary):
    [encoded] = tokenizer.encode(["The cat sat"], max_tokens=16)
    assert words(encoded, vocabulary) == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert encoded.ids.dtype == encoded.type_ids.dtype == np.int32
    assert encoded.type_ids.tolist() == [0] * 5
    assert (encoded.total_tokens, encoded.truncated, encoded.prompt_tokens) == (5, False, 0)


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u200b"])
def test_empty_and_blank_texts_give_the_special_tokens_alone(tokenizer, vocabulary, text):
    [encoded] = tokenizer.encode([text], max_tokens=16)
    assert words(encoded, vocabulary) == ["[CLS]", "[SEP]"]


def test_end_cuts_the_end_and_keeps_the_special_tokens(tokenizer, vocabulary):
    [encoded] = tokenizer.encode(["the cat sat on the mat"], max_tokens=5, truncate="end")
    assert words(encoded, vocabulary) == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert (encoded.total_tokens, encoded.truncated) == (8, True)


def test_start_cuts_the_start_and_keeps_the_special_tokens(tokenizer, vocabulary):
    [encoded] = tokenizer.encode(["the cat sat on the mat"], max_tokens=5, truncate="start")
    assert words(encoded, vocabulary) == ["[CLS]", "on", "the", "mat", "[SEP]"]


def test_start_cuts_the_text_and_never_the_prompt(tokenizer, vocabulary):
    [encoded] = tokenizer.encode(["the cat sat on the mat"], max_tokens=6, prompt="query: ", truncate="start")
    assert words(encoded, vocabulary) == ["[CLS]", "query", ":", "the", "mat", "[SEP]"]


def test_error_refuses_a_text_over_the_limit_and_names_it(tokenizer):
    with pytest.raises(InputTooLongError, match=r"texts\[1\] has 8 tokens, the limit is 5") as caught:
        tokenizer.encode(["the cat", "the cat sat on the mat"], max_tokens=5, truncate="error")
    assert (caught.value.limit, caught.value.actual, caught.value.unit) == (5, 8, "tokens")
    assert caught.value.param == "texts[1]"


def test_a_text_that_just_fits_is_not_truncated(tokenizer):
    [encoded] = tokenizer.encode(["the cat sat"], max_tokens=5, truncate="error")
    assert not encoded.truncated


def test_window_is_refused_because_it_gives_several_sequences(tokenizer):
    with pytest.raises(InvalidInputError, match="window") as caught:
        tokenizer.encode(["the"], max_tokens=5, truncate="window")
    assert caught.value.param == "truncate"


def test_a_limit_without_room_for_text_is_refused(tokenizer):
    with pytest.raises(InvalidInputError, match="2 special tokens"):
        tokenizer.encode(["the"], max_tokens=2)


@pytest.mark.parametrize("truncate", ["end", "start"])
def test_an_end_of_text_token_of_the_post_processor_survives_truncation(byte_level, truncate):
    [encoded] = byte_level.encode(["abcdefghij"], max_tokens=4, truncate=truncate)
    assert encoded.ids[-1] == EOS
    assert len(encoded.ids) == 4
    assert encoded.total_tokens == 11


def test_a_multibyte_text_is_counted_in_tokens_not_characters(byte_level):
    [encoded] = byte_level.encode(["日本 😀"], max_tokens=64)
    assert encoded.total_tokens == 6 + 1 + 4 + 1


def test_prompt_tokens_count_leading_special_tokens_and_the_prompt(tokenizer):
    [encoded] = tokenizer.encode(["the cat"], max_tokens=16, prompt="query: ")
    assert encoded.prompt_tokens == 3  # [CLS] query :


def test_a_prompt_longer_than_the_limit_leaves_only_itself(tokenizer, vocabulary):
    [encoded] = tokenizer.encode(["the cat"], max_tokens=4, prompt="query query query ", truncate="start")
    assert words(encoded, vocabulary) == ["[CLS]", "query", "query", "[SEP]"]
    assert encoded.prompt_tokens <= len(encoded.ids)


def test_the_character_cap_has_a_floor_and_grows_with_the_limit():
    assert character_cap(4) == 4096
    assert character_cap(512) == 128_000


@pytest.mark.parametrize("text", ["x" * 1_000_000, "😀" * 300_000, " " * 1_000_000, "\x00" * 1_000_000])
def test_endless_text_is_refused_by_its_characters_before_it_is_tokenised(tokenizer, text):
    with pytest.raises(InputTooLongError) as caught:
        tokenizer.encode([text], max_tokens=16, truncate="error")
    assert (caught.value.unit, caught.value.limit, caught.value.actual) == ("characters", 4096, len(text))


def test_text_cut_by_the_character_cap_has_an_unknown_token_count(tokenizer, vocabulary):
    text = "the " * 5000 + "mat"
    [end] = tokenizer.encode([text], max_tokens=5, truncate="end")
    [start] = tokenizer.encode([text], max_tokens=5, truncate="start")
    assert words(end, vocabulary) == ["[CLS]", "the", "the", "the", "[SEP]"]
    assert words(start, vocabulary) == ["[CLS]", "the", "the", "mat", "[SEP]"]
    assert (end.truncated, end.total_tokens, start.truncated, start.total_tokens) == (True, None, True, None)


def test_the_character_cap_spares_the_prompt_when_the_start_is_cut(tokenizer, vocabulary):
    [encoded] = tokenizer.encode(["the " * 5000 + "mat"], max_tokens=6, prompt="query: ", truncate="start")
    assert words(encoded, vocabulary) == ["[CLS]", "query", ":", "the", "mat", "[SEP]"]


def test_many_texts_come_back_in_order(tokenizer):
    texts = ["cat " * (1 + index % 7) for index in range(1000)]
    encoded = tokenizer.encode(texts, max_tokens=16)
    assert [len(text.ids) for text in encoded] == [3 + index % 7 for index in range(1000)]


def test_a_text_is_encoded_alike_alone_and_among_others(tokenizer):
    texts = ["the cat", "", "dog ran fast fast", "query: mat"]
    together = tokenizer.encode(texts, max_tokens=5)
    alone = [tokenizer.encode([text], max_tokens=5)[0] for text in texts]
    assert [e.ids.tolist() for e in together] == [e.ids.tolist() for e in alone]


def test_lowercase_is_applied_to_prompt_and_text():
    cased = Tokenizer(models.WordLevel({"[UNK]": 0, "query": 1, "cat": 2}, unk_token="[UNK]"))
    cased.pre_tokenizer = pre_tokenizers.Whitespace()
    [plain] = TextTokenizer(cased).encode(["CAT"], max_tokens=4, prompt="QUERY ")
    [lowered] = TextTokenizer(cased, lowercase=True).encode(["CAT"], max_tokens=4, prompt="QUERY ")
    assert (plain.ids.tolist(), lowered.ids.tolist()) == ([0, 0], [1, 2])


def test_a_tokenizer_without_special_tokens_cannot_encode_nothing():
    bare = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(InvalidInputError, match=r"texts\[1\] gives no token"):
        TextTokenizer(bare).encode(["a", ""], max_tokens=4)


def test_type_ids_other_than_zero_are_kept_and_cut_with_the_ids(wordpiece_tokenizer, vocabulary):
    wordpiece_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:2 $A:0 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    [encoded] = TextTokenizer(wordpiece_tokenizer).encode(["the cat sat on"], max_tokens=4)
    assert encoded.type_ids.tolist() == [2, 0, 0, 1]


def test_truncation_and_padding_settings_of_the_file_are_ignored(wordpiece_tokenizer):
    wordpiece_tokenizer.enable_truncation(3)
    wordpiece_tokenizer.enable_padding(length=40)
    encoded = TextTokenizer(wordpiece_tokenizer).encode(["the cat sat", "a"], max_tokens=16)
    assert [len(text.ids) for text in encoded] == [5, 3]


def test_threads_with_different_limits_do_not_disturb_each_other(tokenizer):
    def lengths(limit):
        return {len(tokenizer.encode(["the cat sat on the mat"], max_tokens=limit)[0].ids) for _ in range(200)}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lengths, [4, 5, 6, 7] * 2))
    assert found == [{4}, {5}, {6}, {7}] * 2


def test_offsets_count_code_points_of_the_original_text(tokenizer):
    text = "İ😀 Cat SAT"
    [encoded] = tokenizer.encode_with_offsets([text], max_tokens=16)
    found = [text[start:end] for start, end in encoded.offsets.tolist()]
    assert found[-3:] == ["Cat", "SAT", ""]
    assert encoded.words.tolist()[0] == encoded.words.tolist()[-1] == -1


def test_offsets_hold_where_lowercasing_lengthens_the_text():
    cased = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 1}, unk_token="[UNK]"))
    cased.pre_tokenizer = pre_tokenizers.Whitespace()
    text = "İİ CAT İx"
    [encoded] = TextTokenizer(cased, lowercase=True).encode_with_offsets([text], max_tokens=16)
    found = [text[start:end] for start, end in encoded.offsets.tolist()]
    assert "CAT" in found
    assert found[-1] == "x" or found[-1].endswith("İx")


def test_offsets_hold_where_the_start_was_cut(tokenizer):
    text = "the " * 3000 + "cat sat"
    [encoded] = tokenizer.encode_with_offsets([text], max_tokens=4, truncate="start")
    assert [text[start:end] for start, end in encoded.offsets.tolist()] == ["", "cat", "sat", ""]
    assert encoded.ids.shape == encoded.words.shape


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.sampled_from("a theca\u00e9\u0130 \U0001f600[SEP]\x00"), max_size=60),
    limit=st.integers(3, 12),
    truncate=st.sampled_from(["end", "start"]),
)
def test_whatever_the_text_the_limit_and_the_frame_hold(tokenizer, vocabulary, text, limit, truncate):
    [encoded] = tokenizer.encode([text], max_tokens=limit, truncate=truncate)
    assert len(encoded.ids) == min(limit, encoded.total_tokens)
    assert encoded.ids[0] == vocabulary["[CLS]"]
    assert encoded.ids[-1] == vocabulary["[SEP]"]
    assert encoded.truncated == (encoded.total_tokens > limit)
    [with_places] = tokenizer.encode_with_offsets([text], max_tokens=limit, truncate=truncate)
    assert with_places.ids.tolist() == encoded.ids.tolist()
    assert with_places.offsets.shape == (len(encoded.ids), 2)
    assert with_places.offsets.max(initial=0) <= len(text)


class TestFit:
    def test_a_vocabulary_beyond_the_embedding_is_refused(self, wordpiece_tokenizer):
        with pytest.raises(CheckpointError, match="up to 19, the model has embeddings for 19"):
            TextTokenizer(wordpiece_tokenizer, vocab_size=19)

    def test_a_larger_embedding_is_fine(self, wordpiece_tokenizer):
        assert TextTokenizer(wordpiece_tokenizer, vocab_size=64).encode(["cat"], max_tokens=4)

    def test_an_added_token_beyond_the_embedding_is_refused_with_the_text_that_holds_it(self, wordpiece_tokenizer):
        wordpiece_tokenizer.add_special_tokens([AddedToken("<image>", special=True)])
        tokenizer = TextTokenizer(wordpiece_tokenizer, vocab_size=20)
        assert tokenizer.encode(["the cat"], max_tokens=8)
        with pytest.raises(InvalidInputError, match=r"texts\[1\] holds a special token"):
            tokenizer.encode(["the", "the <image> cat"], max_tokens=8)

    def test_a_tokenizer_that_gives_nothing_is_refused(self):
        with pytest.raises(CheckpointError, match="no token for plain text"):
            TextTokenizer(Tokenizer(models.BPE()))

    def test_a_tokenizer_that_fails_is_refused(self):
        broken = Tokenizer(models.WordPiece(vocab={"q": 0}, unk_token="[UNK]"))
        with pytest.raises(CheckpointError, match="damaged or incomplete"):
            TextTokenizer(broken)


def test_the_packaged_minilm_tokenises_as_its_files_say(minilm_folder):
    tokenizer = TextTokenizer.from_folder(minilm_folder, vocab_size=30522)
    [short, long] = tokenizer.encode(["Hello, World!", "hello " * 400], max_tokens=256)
    assert short.ids.tolist() == [101, 7592, 1010, 2088, 999, 102]
    assert (len(long.ids), long.total_tokens, long.ids[-1], long.truncated) == (256, 402, 102, True)


def test_minilm_reads_alike_from_its_vocabulary_alone(minilm_folder, tmp_path):
    for name in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((minilm_folder / name).read_bytes())
    texts = [
        "Héllo, Wörld! naïve café",
        "日本 😀 [SEP] [MASK] unbelievably",
        "",
        "x" * 200,
        "\x00\ufffd tab\tnewline\n",
    ]
    built = TextTokenizer.from_folder(tmp_path).encode(texts, max_tokens=64)
    read = TextTokenizer.from_folder(minilm_folder).encode(texts, max_tokens=64)
    assert [text.ids.tolist() for text in built] == [text.ids.tolist() for text in read]


def test_tokenising_lets_other_threads_run(minilm_folder):
    tokenizer = TextTokenizer.from_folder(minilm_folder)
    texts = ["unbelievably incomprehensible circumstances " * 500] * 20
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(tokenizer.encode, texts, max_tokens=512)
        turns = 0
        while not running.done():
            turns += 1
            time.sleep(0)
    assert turns > 1
    assert {len(text.ids) for text in running.result()} == {512}
