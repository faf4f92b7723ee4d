"""The runtime as an application would configure it for the benchmark's checkpoint."""

from __future__ import annotations

from typing import Any

from .corpus import MODEL

__all__ = ["BACKEND_ID", "configuration"]

BACKEND_ID = "torch:minilm"
"""The checkpoint on the torch backend."""


def configuration(precision: str, *, threads: int | None = None) -> dict[str, Any]:
    """A configuration with the checkpoint on the torch backend as the default for embeddings.

    :param precision: a precision policy, such as ``auto`` or ``require:fp32``.
    :param threads: compute threads; None leaves that to the runtime.
    """
    backend, _, model = BACKEND_ID.partition(":")
    settings: dict[str, Any] = {"precision": precision}
    if threads is not None:
        settings["threads"] = threads
    return {
        "catalog": {model: {"source": MODEL}},
        "backends": {backend: settings},
        "roles": {"embedding": {"default": [BACKEND_ID]}},
    }
