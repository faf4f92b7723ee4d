from __future__ import annotations

import string
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from vsr_core.catalog.schemes import read_scheme
from vsr_core.contract import Aggregation
from vsr_core.local import TextTokenizer
from vsr_core.local.spans import find_spans

MODES = get_args(Aggregation)
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SCHEME = read_scheme(LABELS)
CHARACTERS = string.ascii_letters + string.digits + string.punctuation


def framed(tokenizer, before, after):
    tokenizer.add_special_tokens([before, after])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{before} $A {after}",
        pair=f"{before} $A {after} $B:1 {after}:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (before, after)],
    )
    return tokenizer


def wordpiece():
    names = ["[UNK]", "the", "cat", "john", "paris", *CHARACTERS, *(f"##{char}" for char in CHARACTERS)]
    tokenizer = Tokenizer(models.WordPiece({name: index for index, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return framed(tokenizer, "[CLS]", "[SEP]")


def byte_level(*, add_prefix_space):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*alphabet, "Jo", "hn", "John", "\u0120J", "\u0120Jo"]
    merges = [("J", "o"), ("h", "n"), ("Jo", "hn"), ("\u0120", "Jo")]
    tokenizer = Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    return framed(tokenizer, "<s>", "</s>")


def roberta():
    tokenizer = byte_level(add_prefix_space=True)
    special = [(name, tokenizer.token_to_id(name)) for name in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*special, trim_offsets=True, add_prefix_space=True)
    return tokenizer


def unigram(*, normalizer=None):
    pieces = [("<unk>", 0.0), *((piece, -3.0) for piece in ("\u2581", "\u2581the", "\u2581cat", "\u2581John", "Par"))]
    tokenizer = Tokenizer(models.Unigram([*pieces, *((char, -5.0) for char in CHARACTERS)], unk_id=0))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always", split=True)
    return framed(tokenizer, "<s>", "</s>")


def gemma():
    names = [
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "\u2581",
        "\u2581\u2581",
        "\n",
        *CHARACTERS,
        "Jo",
        "\u2581Jo",
    ]
    tokenizer = Tokenizer(
        models.BPE(
            {name: index for index, name in enumerate(names)},
            [("\u2581", "\u2581"), ("J", "o"), ("\u2581", "Jo")],
            byte_fallback=True,
            unk_token="<unk>",
            fuse_unk=True,
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return framed(tokenizer, "<bos>", "<eos>")


def llama():
    """Gemma's kind with a space put before the text by the normaliser."""
    tokenizer = gemma()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    return tokenizer


KINDS = {
    "wordpiece": TextTokenizer(wordpiece()),
    "wordpiece lowercased": TextTokenizer(wordpiece(), lowercase=True),
    "byte-level": TextTokenizer(byte_level(add_prefix_space=False)),
    "byte-level with a space": TextTokenizer(byte_level(add_prefix_space=True)),
    "roberta": TextTokenizer(roberta()),
    "unigram": TextTokenizer(unigram()),
    "unigram nfkc": TextTokenizer(
        unigram(normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]))
    ),
    "unigram nfd": TextTokenizer(unigram(normalizer=normalizers.NFD())),
    "gemma": TextTokenizer(gemma()),
    "llama": TextTokenizer(llama()),
}

kinds = pytest.mark.parametrize("kind", KINDS)


def encode(kind, text):
    """Places and words of the text's own tokens."""
    tokenizer = KINDS[kind]
    [encoded] = tokenizer.encode_with_offsets([text], max_tokens=1000)
    before, after = tokenizer.frame
    own = slice(before, len(encoded.ids) - after)
    return encoded.offsets[own], encoded.words[own]


def marked(places, text, entity):
    """Labels for the tokens of ``entity``, and of the white space before it that they may be written with."""
    start = text.index(entity)
    end = start + len(entity)
    start -= len(text[:start]) - len(text[:start].rstrip())
    inside = [one < end and max(other, one + 1) > start for one, other in places.tolist()]
    first = inside.index(True)
    return [0 if not here else 1 if index == first else 2 for index, here in enumerate(inside)]


def rows(labels, count=5, sure=0.8):
    table = np.full((len(labels), count), (1 - sure) / (count - 1))
    table[np.arange(len(labels)), labels] = sure
    return table


def spans_of(kind, text, labels, aggregation, scheme=SCHEME):
    places, words = encode(kind, text)
    table = rows(labels, len(scheme.labels)) if isinstance(labels, list) else labels
    return find_spans(text, table, offsets=places, words=words, scheme=scheme, aggregation=aggregation)


@kinds
@pytest.mark.parametrize("aggregation", ["simple", "first", "average", "max"])
@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("John met the cat", "John"),
        ("the John", "John"),
        (" the  cat\r\nJohn\t ", "John"),
        ("the cat\r\nJohn", "cat\r\nJohn"),
        ("  John\n", "John"),
        ("see \U0001f469\U0001f3fd\u200d\U0001f4bb now", "\U0001f469\U0001f3fd\u200d\U0001f4bb"),
        ("\U0001f469\U0001f3fd\u200d\U0001f4bb John", "John"),
        ("\u65e5\u672c \U0001f600 John at 0", "John"),
        ("Jose\u0301 met", "Jose\u0301"),
        ("met Jose\u0301", "Jose\u0301"),
        (
            "\u05d0\u05e0\u05d9 \u05d2\u05e8 \u05d1\u05ea\u05dc \u05d0\u05d1\u05d9\u05d1",
            "\u05d1\u05ea\u05dc \u05d0\u05d1\u05d9\u05d1",
        ),
        ("\u0623\u0646\u0627 \u0645\u0631\u062d\u0628\u0627 \u0641\u064a", "\u0645\u0631\u062d\u0628\u0627"),
        ("\u0645\u064f\u0631\u064e cat", "\u0645\u064f\u0631\u064e"),
        ("\ufb01 cat", "\ufb01"),
        ("o\ufb03ce cat", "o\ufb03ce"),
        ("\uff11\uff12 cat", "\uff11\uff12"),
        ("at \uff11\uff12", "\uff11\uff12"),
        ("\u0130 cat", "\u0130"),
        ("x \u0130stanbul cat", "\u0130stanbul"),
        ("a John\x00Smith b", "John\x00Smith"),
        ("Jean-Luc met", "Jean-Luc"),
        ("in (Paris).", "Paris"),
    ],
)
def test_an_entity_is_found_where_it_stands(kind, aggregation, text, entity):
    places, _ = encode(kind, text)
    spans = spans_of(kind, text, marked(places, text, entity), aggregation)
    assert [(span.start, span.text, span.label) for span in spans] == [(text.index(entity), entity, "PER")]
    assert spans[0].score == pytest.approx(0.8) or aggregation == "average"  # of B- and I- tokens


class TestModes:
    """WordPiece over two words, of which the first is several tokens."""

    TEXT = "pax john"  # p ##a ##x john

    def test_none_gives_each_token_under_its_whole_label(self):
        spans = spans_of("wordpiece", self.TEXT, [1, 2, 0, 4], "none")
        assert [(span.text, span.label) for span in spans] == [("p", "B-PER"), ("a", "I-PER"), ("john", "I-LOC")]

    def test_simple_joins_tokens_even_within_a_word(self):
        spans = spans_of("wordpiece", self.TEXT, [1, 2, 4, 4], "simple")
        assert [(span.text, span.label) for span in spans] == [("pa", "PER"), ("x john", "LOC")]

    def test_the_score_is_the_mean_of_what_was_joined(self):
        table = rows([1, 2, 2, 0])
        table[1] = [0.1, 0.1, 0.6, 0.1, 0.1]
        [simple] = spans_of("wordpiece", self.TEXT, table, "simple")
        assert simple.score == pytest.approx((0.8 + 0.6 + 0.8) / 3)

    @pytest.mark.parametrize(
        ("aggregation", "label", "score"), [("first", "PER", 0.5), ("max", "LOC", 0.7), ("average", "LOC", 1.7 / 3)]
    )
    def test_a_word_gets_one_label_by_its_mode(self, aggregation, label, score):
        table = np.array(
            [[0.1, 0.5, 0.0, 0.4, 0.0], [0.1, 0.3, 0.0, 0.6, 0.0], [0.1, 0.2, 0.0, 0.7, 0.0], [1, 0, 0, 0, 0]]
        )
        [span] = spans_of("wordpiece", self.TEXT, table, aggregation)
        assert (span.text, span.label) == ("pax", label)
        assert span.score == pytest.approx(score)

    def test_words_join_by_the_scheme(self):
        for aggregation in ("first", "average", "max"):
            [span] = spans_of("wordpiece", self.TEXT, [1, 2, 2, 2], aggregation)
            assert (span.text, span.label) == ("pax john", "PER")

    def test_of_equal_labels_the_first_counts(self):
        table = np.array([[0.5, 0.5, 0, 0, 0], [0, 0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0, 0], [1, 0, 0, 0, 0]])
        assert spans_of("wordpiece", self.TEXT, table, "max") == ()

    def test_flat_labels_without_an_outside_cover_the_text(self):
        scheme = read_scheme(("yes", "no"))
        spans = spans_of("wordpiece", self.TEXT, [0, 0, 1, 1], "simple", scheme)
        assert [(span.text, span.label) for span in spans] == [("pa", "yes"), ("x john", "no")]

    @pytest.mark.parametrize("aggregation", MODES)
    def test_a_text_without_tokens_has_no_spans(self, aggregation):
        assert spans_of("wordpiece", " ", np.empty((0, len(LABELS))), aggregation) == ()


def test_white_space_in_one_word_of_the_tokenizer_parts_words():
    """Gemma's kind makes one word of a text."""
    text = "Jo ran"
    _, words = encode("gemma", text)
    assert set(words.tolist()) == {0}
    spans = spans_of("gemma", text, [1, 0, 0, 0, 0], "first")
    assert [span.text for span in spans] == ["Jo"]


def test_punctuation_at_the_end_of_a_word_has_a_label_of_its_own_and_within_it_has_not():
    text = "(a-b),"  # tokens: a space put before the text, ( a - b ) ,
    first = spans_of("unigram", text, [0, 0, 1, 0, 0, 0, 0], "first")
    assert [(span.start, span.text) for span in first] == [(1, "a-b")]
    whole = spans_of("unigram", text, [0, 1, 2, 0, 0, 2, 2], "first")
    assert [span.text for span in whole] == [text]


def test_a_word_of_punctuation_alone_stays_whole():
    spans = spans_of("byte-level", "...", [1, 1, 0], "first")
    assert [span.text for span in spans] == ["..."]


def test_the_space_before_a_word_has_no_say_in_its_label():
    text = "the Smith"  # the, the space, S m i t h
    for aggregation in ("first", "average", "max"):
        [span] = spans_of("unigram", text, [0, 0, 3, 4, 4, 4, 4], aggregation)
        assert (span.text, span.label) == ("Smith", "LOC")
        assert spans_of("unigram", text, [0, 1, 0, 0, 0, 0, 0], aggregation) == ()


@pytest.mark.parametrize("kind", ["unigram", "byte-level with a space", "roberta", "llama"])
def test_a_space_put_before_the_text_is_no_part_of_it(kind):
    places, _ = encode(kind, "xy")
    assert places.tolist() == [[0, 0], [0, 1], [1, 2]]
    assert spans_of(kind, "xy", [1, 0, 0], "simple") == ()


def test_white_space_alone_is_never_a_span():
    for aggregation in MODES:
        assert spans_of("gemma", "a \n b", [0, 1, 2, 2, 0], aggregation) == ()


def test_white_space_that_is_outside_parts_tokens_and_not_words():
    text = "Jo  x"  # Jo, the first space, the second, x
    assert [span.text for span in spans_of("byte-level", text, [2, 0, 2, 2], "simple")] == ["Jo", "x"]
    assert [span.text for span in spans_of("byte-level", text, [2, 0, 2, 2], "first")] == ["Jo  x"]


def test_tokens_that_share_a_character_are_one_word():
    text = "\u2026\u00bd"  # NFKC makes ... and 1, a fraction slash and 2 of them
    places, _ = encode("unigram nfkc", text)
    spans = spans_of("unigram nfkc", text, [1] * len(places), "first")
    assert [(span.start, span.end) for span in spans] == [(0, 1), (1, 2)]


NASTY = st.text(
    st.sampled_from(
        "aJoe -.,'(\u00bd\u2026\u00a8\t\r\n\x00\x1c\u00a0\u200b\u3000\u0301\u0323\u00e9\u0130\u00df\ufb01\uff11\u1e9b"
        "\u05e9\u05dc\u0645\u064f\uac00\u1100\u1161\u65e5\u2581\u0120\u0149\ufdfa\U0001f469\U0001f3fd\u200d\ufe0f"
    )
    | st.characters(exclude_categories=["Cs"]),
    max_size=24,
)


@settings(max_examples=200, deadline=None)
@given(text=NASTY, kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 2**32 - 1))
def test_whatever_the_text_and_the_labels_spans_are_slices_of_it_in_order(text, kind, seed):
    places, words = encode(kind, text)
    table = np.random.default_rng(seed).dirichlet(np.ones(len(LABELS)), size=len(places))
    for aggregation in MODES:
        spans = find_spans(text, table, offsets=places, words=words, scheme=SCHEME, aggregation=aggregation)
        for span in spans:
            assert 0 <= span.start < span.end <= len(text)
            assert text[span.start : span.end] == span.text == span.text.strip()
            assert 0 < span.score <= 1
        assert [span.start for span in spans] == sorted(span.start for span in spans)
        if aggregation not in ("none", "simple"):
            assert all(one.end <= other.start for one, other in pairwise(spans))
