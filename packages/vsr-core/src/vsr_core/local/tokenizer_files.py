"""Reading a checkpoint's tokenizer files into a private ``tokenizers.Tokenizer``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from ..catalog.documents import read_document
from ..errors import CheckpointError

__all__ = ["read_tokenizer"]

_BERT_TOKENS: Mapping[str, str] = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read ``tokenizer.json``, or build a WordPiece tokenizer from ``vocab.txt`` and ``tokenizer_config.json``.

    Truncation and padding that the file may carry are switched off; nothing changes the object afterwards.

    :raises CheckpointError: no usable tokenizer files; the message names the file and the way out.
    """
    file = folder / "tokenizer.json"
    if file.is_file():
        tokenizer = _read_json_form(file)
    elif (folder / "vocab.txt").is_file() and (folder / "tokenizer_config.json").is_file():
        tokenizer = _build_wordpiece(folder)
    else:
        raise CheckpointError(
            f"{str(file)!r} is missing, and there is no 'vocab.txt' with a 'tokenizer_config.json' to build a"
            " tokenizer from: save the model's fast tokenizer into this folder"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read_json_form(file: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:
        raise CheckpointError(
            f"{str(file)!r} is no readable tokenizer: {_one_line(error)}; fetch the file again or save it anew"
        ) from error


def _build_wordpiece(folder: Path) -> Tokenizer:
    vocab_file, config_file = folder / "vocab.txt", folder / "tokenizer_config.json"
    vocab = _read_vocabulary(vocab_file)
    stated = read_document(folder, config_file.name)
    config: Mapping[str, Any] = stated.values if stated is not None else {}
    name = str(config.get("tokenizer_class") or "BertTokenizer")
    if not name.startswith(("Bert", "DistilBert", "Electra", "MPNet")):
        raise CheckpointError(
            f"{str(config_file)!r} names {name!r}, which 'vocab.txt' alone does not describe:"
            " save the model's fast tokenizer as 'tokenizer.json'"
        )
    special = {role: _token_text(config.get(role, default)) for role, default in _BERT_TOKENS.items()}
    for role in ("unk_token", "cls_token", "sep_token"):
        if special[role] not in vocab:
            raise CheckpointError(
                f"{str(vocab_file)!r} lacks the {role} {special[role]!r} that its configuration names"
            )
    lowercase = bool(config.get("do_lower_case", True))
    tokenizer = Tokenizer(WordPiece(vocab=vocab, unk_token=special["unk_token"], max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
        strip_accents=config.get("strip_accents"),
        lowercase=lowercase,
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    first, last = special["cls_token"], special["sep_token"]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0",
        pair=f"{first}:0 $A:0 {last}:0 $B:1 {last}:1",
        special_tokens=[(first, vocab[first]), (last, vocab[last])],
    )
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special.values() if text in vocab])
    return tokenizer


def _read_vocabulary(file: Path) -> dict[str, int]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{str(file)!r} cannot be read: {_one_line(error)}; fetch the file again") from error
    if lines and not lines[-1]:
        lines.pop()
    return {line.rstrip("\r"): index for index, line in enumerate(lines)}


def _token_text(token: Any) -> str:
    return str(token["content"]) if isinstance(token, dict) and "content" in token else str(token)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
