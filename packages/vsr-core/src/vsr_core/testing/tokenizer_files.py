"""Tiny tokenizers built as those of real encoders are: model, normaliser, pre-tokeniser and special tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["WORDS", "TokenizerKind", "WrittenTokenizer", "write_tokenizer"]

TokenizerKind = Literal["bert", "roberta", "xlm_roberta", "modernbert", "deberta", "gemma"]
"""Whose tokenizer: WordPiece, byte-level BPE (RoBERTa, ModernBERT), unigrams (XLM-R, DeBERTa v3), BPE over bytes."""

WORDS = (
    *("the", "a", "of", "and", "to", "in", "is", "it", "on", "for", "red", "green", "blue", "one", "two", "three"),
    *("cat", "dog", "tree", "river", "bank", "query", "answer"),
)
"""The words every vocabulary knows whole; all else is spelt with letters, bytes, or the unknown token."""

_ENDINGS = ("ing", "er", "es")
_ASCII = tuple(chr(code) for code in range(33, 127))
_BYTE_FALLBACK = tuple(f"<0x{code:02X}>" for code in range(256))
_SPACE = "▁"
_BYTE_SPACE = "Ġ"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTokenizer:
    """What ``config.json`` has to know: how many tokens there are, and the ids of the special ones."""

    vocabulary: int
    pad: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Special:
    """The special tokens of a kind, and the class transformers reads them with."""

    pad: str
    unknown: str
    begin: str
    end: str
    mask: str
    class_name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.pad, self.unknown, self.begin, self.end, self.mask)


_BERT = _Special(
    pad="[PAD]", unknown="[UNK]", begin="[CLS]", end="[SEP]", mask="[MASK]", class_name="PreTrainedTokenizerFast"
)
_SENTENCE_PIECE = _Special(
    pad="<pad>", unknown="<unk>", begin="<s>", end="</s>", mask="<mask>", class_name="PreTrainedTokenizerFast"
)
_SPECIAL: Mapping[TokenizerKind, _Special] = {
    "bert": _Special(
        pad="[PAD]", unknown="[UNK]", begin="[CLS]", end="[SEP]", mask="[MASK]", class_name="BertTokenizer"
    ),
    "roberta": _Special(
        pad="<pad>", unknown="<unk>", begin="<s>", end="</s>", mask="<mask>", class_name="RobertaTokenizer"
    ),
    "xlm_roberta": _SENTENCE_PIECE,
    "modernbert": _BERT,
    "deberta": _BERT,
    "gemma": _Special(
        pad="<pad>", unknown="<unk>", begin="<bos>", end="<eos>", mask="<mask>", class_name="PreTrainedTokenizerFast"
    ),
}


def write_tokenizer(folder: Path, kind: TokenizerKind, *, max_tokens: int) -> WrittenTokenizer:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``.

    :param max_tokens: ``model_max_length``.
    """
    special = _SPECIAL[kind]
    tokenizer = _BUILDERS[kind](special)
    _mark_special(tokenizer, special)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": special.class_name,
        "model_max_length": max_tokens,
        "pad_token": special.pad,
        "unk_token": special.unknown,
        "cls_token": special.begin,
        "sep_token": special.end,
        "mask_token": special.mask,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    ids = tokenizer.get_vocab(with_added_tokens=True)
    return WrittenTokenizer(vocabulary=len(ids), pad=ids[special.pad], begin=ids[special.begin], end=ids[special.end])


def _mark_special(tokenizer: Tokenizer, special: _Special) -> None:
    from tokenizers import AddedToken

    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, lstrip=name == special.mask) for name in special.names]
    )


def _word_piece(special: _Special) -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789.,!?'-")
    ids = _numbered(*special.names, *WORDS, *letters, *(f"##{letter}" for letter in letters))
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=special.unknown, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    _put_around(tokenizer, special, ids, pair="{begin} $A {end} $B:1 {end}:1")
    return tokenizer


def _roberta(special: _Special) -> Tokenizer:
    from tokenizers import processors

    first = (special.begin, special.pad, special.end, special.unknown)
    ids = _numbered(*first, *_byte_alphabet(), *_pieces(_BYTE_SPACE), special.mask)
    tokenizer = _byte_level(ids)
    tokenizer.post_processor = processors.RobertaProcessing(
        (special.end, ids[special.end]), (special.begin, ids[special.begin]), trim_offsets=True, add_prefix_space=False
    )
    return tokenizer


def _modernbert(special: _Special) -> Tokenizer:
    from tokenizers import normalizers

    last = (special.unknown, special.begin, special.end, special.pad, special.mask)
    ids = _numbered(*_byte_alphabet(), *_pieces(_BYTE_SPACE), *last)
    tokenizer = _byte_level(ids)
    tokenizer.normalizer = normalizers.NFC()
    _put_around(tokenizer, special, ids, pair="{begin} $A {end} $B:1 {end}:1")
    return tokenizer


def _xlm_roberta(special: _Special) -> Tokenizer:
    from tokenizers import Regex, normalizers, pre_tokenizers

    first = (special.begin, special.pad, special.end, special.unknown)
    tokenizer, ids = _unigrams(first, special)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")]
    )
    _put_around(tokenizer, special, ids, pair="{begin} $A {end} {end} $B {end}")
    return tokenizer


def _deberta(special: _Special) -> Tokenizer:
    from tokenizers import Regex, normalizers, pre_tokenizers

    first = (special.pad, special.begin, special.end, special.unknown)
    tokenizer, ids = _unigrams(first, special)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "),
            normalizers.NFC(),
            normalizers.Strip(left=False, right=True),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")
    _put_around(tokenizer, special, ids, pair="{begin} $A {end} $B:1 {end}:1")
    return tokenizer


def _gemma(special: _Special) -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    first = (special.pad, special.end, special.begin, special.unknown, special.mask)
    ids = _numbered(*first, *_BYTE_FALLBACK, "\n", "\t", _SPACE, *_ASCII, *_pieces(_SPACE))
    tokenizer = Tokenizer(
        models.BPE(ids, _merges(_SPACE), unk_token=special.unknown, fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", _SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    _put_around(tokenizer, special, ids, pair="{begin} $A {end} $B:1 {end}:1")
    return tokenizer


_BUILDERS: Mapping[TokenizerKind, Callable[[_Special], Tokenizer]] = {
    "bert": _word_piece,
    "roberta": _roberta,
    "xlm_roberta": _xlm_roberta,
    "modernbert": _modernbert,
    "deberta": _deberta,
    "gemma": _gemma,
}


def _byte_level(ids: dict[str, int]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(ids, _merges(_BYTE_SPACE)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _unigrams(first: tuple[str, ...], special: _Special) -> tuple[Tokenizer, dict[str, int]]:
    """Unigrams whose scores prefer words to endings to letters; the unknown token is the fourth, as in both models."""
    from tokenizers import Tokenizer, models

    scored = [(name, 0.0) for name in first]
    scored += [(_SPACE + word, -4.0) for word in WORDS] + [(ending, -6.0) for ending in _ENDINGS]
    scored += [(letter, -8.0) for letter in (_SPACE, *_ASCII)]
    scored.append((special.mask, 0.0))
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=first.index(special.unknown), byte_fallback=False))
    return tokenizer, {token: index for index, (token, _) in enumerate(scored)}


def _put_around(tokenizer: Tokenizer, special: _Special, ids: Mapping[str, int], *, pair: str) -> None:
    from tokenizers import processors

    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{special.begin} $A {special.end}",
        pair=pair.format(begin=special.begin, end=special.end),
        special_tokens=[(name, ids[name]) for name in (special.begin, special.end)],
    )


def _byte_alphabet() -> list[str]:
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _merges(space: str) -> list[tuple[str, str]]:
    """Merges that build each word with a space before it, letter by letter, and then the endings."""
    chains = (space + word for word in WORDS)
    steps = [(chain[:cut], chain[cut]) for chain in (*chains, *_ENDINGS) for cut in range(1, len(chain))]
    return list(dict.fromkeys(steps))


def _pieces(space: str) -> list[str]:
    return [left + right for left, right in _merges(space)]


def _numbered(*tokens: str) -> dict[str, int]:
    return {token: index for index, token in enumerate(dict.fromkeys(tokens))}
