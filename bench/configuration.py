"""The runtime as an application would configure it for the benchmark's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .corpus import MODEL

__all__ = ["BACKEND_ID", "configuration"]

BACKEND_ID = "torch:minilm"
"""The checkpoint on the torch backend."""


def configuration(
    precision: str,
    *,
    threads: int | None = None,
    backend: str = "torch",
    source: str = MODEL,
    artifact: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A configuration with the checkpoint, or an export of it, on one backend as the default for embeddings.

    :param precision: a precision policy, such as ``auto`` or ``require:fp32``.
    :param threads: compute threads; None leaves that to the runtime.
    :param source: where the model is; ``artifact`` which of its files, where that has to be said.
    :param options: further settings of the backend.
    """
    model = BACKEND_ID.partition(":")[2]
    settings: dict[str, Any] = {"precision": precision, **(options or {})}
    if threads is not None:
        settings["threads"] = threads
    entry = {"source": source} if artifact is None else {"source": source, "artifact": artifact}
    return {
        "catalog": {model: entry},
        "backends": {backend: settings},
        "roles": {"embedding": {"default": [f"{backend}:{model}"]}},
    }
