"""Sizes and limits: widths that fit one another, and the shortest of the lengths the files claim."""

from __future__ import annotations

from ..contract import FamilyDescriptor
from .contents import Contents
from .documents import Document
from .sentence_transformers import SentenceTransformer

__all__ = ["depth_and_width", "embedding_width", "inner_config", "token_limits"]

NO_LIMIT = 10**12
"""Tokenizers write a number beyond this where they know no limit."""


def inner_config(config: Document | None) -> Document | None:
    """The part of ``config.json`` that describes the text encoder; models of several modalities nest it."""
    if config is None or "hidden_size" in config.values:
        return config
    return config.section("text_config") or config


def depth_and_width(inner: Document) -> tuple[int | None, int | None]:
    """Layers of the text encoder and the width of its token vectors; DistilBERT calls them ``n_layers`` and ``dim``."""
    layers, width = inner.size("num_hidden_layers"), inner.size("hidden_size")
    return layers or inner.size("n_layers"), width or inner.size("dim")


def token_limits(contents: Contents, family: FamilyDescriptor | None) -> tuple[int, ...]:
    """Every length the files claim the model takes, special tokens included.

    They are ``max_seq_length`` of sentence-transformers, ``model_max_length`` of the tokenizer, the limit in the
    manifest of an export, and the positions of the encoder. The smallest is the one in force.
    """
    claims = [
        contents.sentence.max_tokens if contents.sentence is not None else None,
        contents.tokenizer.size("model_max_length") if contents.tokenizer is not None else None,
        contents.manifest.max_tokens if contents.manifest is not None else None,
    ]
    inner = inner_config(contents.config)
    positions = inner.size("max_position_embeddings") if inner is not None else None
    if inner is not None and positions is not None:
        claims.append(positions - _unused_positions(inner, family))
    return tuple(claim for claim in claims if claim is not None and 0 < claim < NO_LIMIT)


def embedding_width(sentence: SentenceTransformer, hidden: int | None, refusals: list[str]) -> int | None:
    """Width after pooling and the dense layers; where a stage does not fit the one before it, that is refused."""
    expected = sentence.in_features
    if hidden is not None and expected not in (None, hidden):
        refusals.append(f"the pooling expects {expected} features, the model gives {hidden}")
    width = hidden if hidden is not None else expected
    if width is not None and sentence.pooling is not None:
        width *= len(sentence.pooling.modes)
    for dense in sentence.dense:
        if width not in (None, dense.in_features):
            refusals.append(f"{dense.path} expects {dense.in_features} features and is given {width}")
        width = dense.out_features
    return width


def _unused_positions(config: Document, family: FamilyDescriptor | None) -> int:
    """Learned positions no token uses."""
    if family is None or not family.positions_after_padding:
        return 0
    padding = config.integer("pad_token_id")
    return (1 if padding is None else padding) + 1
