"""What must be equal for models to stand in for one another: the embedding space, or the label set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from ..contract import ModelSpec

__all__ = ["compatibility_key", "label_key", "space_of"]

_DIGITS = 24


def compatibility_key(spec: ModelSpec, *, dtype: str | None) -> str | None:
    """The key two models must share to stand in for one another, or None where the checkpoint has no content hash.

    The first 24 hex digits of a SHA-256 over the checkpoint's content hash, pooling (modes in order, prompt included
    or not), normalisation and compute dtype. The backend is no part of it, since backends agree within a stated
    tolerance; neither is the prompt, since queries and documents are embedded into one space.
    """
    if spec.content_hash is None or dtype is None:
        return None
    pooling = None if spec.pooling is None else [list(spec.pooling.modes), spec.pooling.include_prompt]
    facts = json.dumps([spec.content_hash, pooling, bool(spec.normalize), dtype], separators=(",", ":"))
    return f"emb-{_digest(facts)}"


def label_key(labels: Sequence[str] | None) -> str | None:
    """The key of a labelled model, from its label set in whatever order; None where the labels have no names."""
    return f"lab-{_digest(json.dumps(sorted(labels), separators=(',', ':')))}" if labels else None


def space_of(key: str | None, spec: ModelSpec, *, dimensions: int, layer: int | None) -> str | None:
    """The space of actual vectors: the key itself for native vectors; a shallower exit or fewer dimensions are named."""
    if key is None:
        return None
    exit_layer = "" if layer in (None, spec.layers) else f"-l{layer}"
    width = "" if dimensions == spec.native_dimensions else f"-d{dimensions}"
    return f"{key}{exit_layer}{width}"


def _digest(facts: str) -> str:
    return hashlib.sha256(facts.encode()).hexdigest()[:_DIGITS]
