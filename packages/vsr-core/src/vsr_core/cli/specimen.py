"""A model to time engines with: a BERT in the shape of all-MiniLM-L6-v2, its weights random, its vocabulary small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["WORDS", "write_specimen"]

WORDS: Final = ("a", "cat", "sat", "on", "the", "mat", "long", "trains", "were", "late", "again", "two", "more")
"""Everything it knows to read."""

_SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_HIDDEN: Final = 384
_INNER: Final = 1536
_LAYERS: Final = 6
_POSITIONS: Final = 512
_VOCABULARY: Final = len(_SPECIAL) + len(WORDS)
_TRANSFORMER: Final = "sentence_transformers.models.Transformer"
_POOLING: Final = "sentence_transformers.models.Pooling"


def write_specimen(folder: Path) -> Path:
    """Write it as a folder of sentence-transformers with mean pooling, 43 MB; returns the folder."""
    import numpy as np
    from safetensors.numpy import save_file

    folder.mkdir()
    source = np.random.default_rng(0)
    tensors = {name: np.full(shape, float(name.endswith("Norm.weight")), np.float32) for name, shape in _shapes()}
    for name, values in tensors.items():
        if values.ndim == 2:  # deviations that keep what goes through a layer of about the same size
            tensors[name] = source.standard_normal(values.shape, np.float32) / np.float32(values.shape[1] ** 0.5)
    save_file(tensors, str(folder / "model.safetensors"))
    for name, content in _documents().items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def _shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors of ``BertModel`` without its pooler, as transformers names them."""
    for table, rows in (("word", _VOCABULARY), ("position", _POSITIONS), ("token_type", 2)):
        yield f"embeddings.{table}_embeddings.weight", (rows, _HIDDEN)
    yield from _norm("embeddings.LayerNorm")
    for index in range(_LAYERS):
        layer = f"encoder.layer.{index}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            yield from _linear(f"{layer}{name}", _HIDDEN, _HIDDEN)
        yield from _linear(f"{layer}intermediate.dense", _INNER, _HIDDEN)
        yield from _linear(f"{layer}output.dense", _HIDDEN, _INNER)
        yield from _norm(f"{layer}attention.output.LayerNorm")
        yield from _norm(f"{layer}output.LayerNorm")


def _linear(name: str, out: int, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (out, width)
    yield f"{name}.bias", (out,)


def _norm(name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (_HIDDEN,)
    yield f"{name}.bias", (_HIDDEN,)


def _documents() -> dict[str, Any]:
    """The JSON files, by name."""
    return {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": _VOCABULARY,
            "hidden_size": _HIDDEN,
            "num_hidden_layers": _LAYERS,
            "num_attention_heads": 12,
            "intermediate_size": _INNER,
            "max_position_embeddings": _POSITIONS,
            "type_vocab_size": 2,
            "layer_norm_eps": 1e-12,
            "hidden_act": "gelu",
            "pad_token_id": 0,
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": _TRANSFORMER},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": _POOLING},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": _HIDDEN, "pooling_mode_mean_tokens": True},
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", "model_max_length": _POSITIONS},
        "tokenizer.json": _tokenizer(),
    }


def _tokenizer() -> dict[str, Any]:
    """Whole words between ``[CLS]`` and ``[SEP]``."""
    ids = {token: number for number, token in enumerate((*_SPECIAL, *WORDS))}
    first, second = ({"Sequence": {"id": name, "type_id": place}} for place, name in enumerate("AB"))
    begin, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **flags} for token in _SPECIAL],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, first, end],
            "pair": [begin, first, end, second, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": "[UNK]"},
    }
