"""What a backend is told when it is to load a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from ..errors import ConfigError
from .address import BackendId
from .model import CatalogEntry, ModelSpec

if TYPE_CHECKING:
    from .backend import ModelHandle

__all__ = ["BatchingHints", "LoadRequest", "Preference"]


@dataclass(frozen=True, slots=True)
class Preference:
    """A device or precision policy: ``auto``, ``prefer:<x>`` (fall back, and say so) or ``require:<x>`` (or fail)."""

    mode: Literal["auto", "prefer", "require"] = "auto"
    value: str | None = None

    def __str__(self) -> str:
        return self.mode if self.value is None else f"{self.mode}:{self.value}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a policy; a bare value such as ``cpu`` means ``require:cpu``.

        :raises ConfigError: an empty or malformed policy.
        """
        mode, colon, value = text.strip().partition(":")
        if mode == "auto" and not colon:
            return cls()
        if not colon and mode:
            return cls("require", mode)
        if mode in ("prefer", "require") and value:
            return cls("prefer" if mode == "prefer" else "require", value)
        raise ConfigError(f"{text!r} is no policy: use 'auto', 'prefer:<value>' or 'require:<value>'")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchingHints:
    """How much may share one batch and wait in one queue.

    :param max_batch_tokens: padded tokens of one batch.
    :param max_queue_tokens: tokens waiting, beyond which a request is refused as overloaded.
    :param max_queue_items: texts waiting, likewise.
    """

    max_batch_tokens: int = 1024
    max_queue_tokens: int = 1_000_000
    max_queue_items: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Everything a backend needs to load one model; it looks nothing up itself.

    :param path: the resolved folder or file of the weights.
    :param device: device policy; :param precision: dtype policy.
    :param dimensions: Matryoshka width to serve by default; :param layer: depth to serve by default.
    :param labels: label names in index order, resolved.
    :param base: for an adapter, the leased handle of its base.
    :param cache_dir: where the backend may keep what it compiles; it survives the process.
    :param threads: how many compute threads the model may use.
    """

    backend_id: BackendId
    entry: CatalogEntry
    path: Path
    spec: ModelSpec
    device: Preference = Preference()
    precision: Preference = Preference()
    batching: BatchingHints = BatchingHints()
    dimensions: int | None = None
    layer: int | None = None
    labels: tuple[str, ...] | None = None
    base: ModelHandle | None = None
    cache_dir: Path | None = None
    threads: int | None = None
