"""A base as the tasks of one of its adapters see it."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import replace

from ..contract import BackendId, ModelSpec
from .base import EncoderBase
from .lora import AdapterHost, LoraAdapter

__all__ = ["AdaptedBase"]

_DIGITS = 12


class AdaptedBase(EncoderBase):
    """Engine, tokenizer and batcher are those of the base; rows name the adapter, and the spec is the adapter's own.

    The first lease attaches the adapter to the engine and keeps the base; the last one that is released gives both up.

    :param host: the engine of ``base``.
    :param spec: of the adapter; its content hash here is one of base and adapter together.
    """

    def __init__(
        self, base: EncoderBase, host: AdapterHost, adapter: LoraAdapter, *, spec: ModelSpec, backend_id: BackendId
    ) -> None:
        super().__init__(
            base.engine,
            base.tokenizer,
            batcher=base.batcher,
            spec=replace(spec, content_hash=_both(base.spec.content_hash, spec.content_hash)),
            max_tokens=min(base.max_tokens, spec.max_tokens or base.max_tokens),
            identity=replace(
                base.identity,
                backend_id=backend_id,
                memory_bytes=adapter.bytes,
                load_seconds=None,
                loaded_at=time.time(),
            ),
        )
        self.base = base
        self._host = host
        self._lora = adapter
        self._users = 0
        self._gate = threading.Lock()

    @property
    def adapter(self) -> str | None:
        return self._lora.key

    @property
    def adapter_revision(self) -> str | None:
        return self.spec.revision or self._lora.key[:_DIGITS]

    @property
    def revision(self) -> str | None:
        return self.base.spec.revision

    @property
    def shared_layers(self) -> int:
        """How many layers, from the first on, the adapter leaves as they are in the base."""
        return self._lora.first_layer - 1

    @property
    def leases(self) -> int:
        return self._users

    @property
    def closed(self) -> bool:
        return self.base.closed

    def lease(self) -> None:
        """Take a lease.

        :raises NotReadyError: the base has been freed.
        :raises CheckpointError: the engine cannot take the adapter.
        """
        with self._gate:
            if self._users == 0:
                self.base.lease()
                try:
                    self._host.attach(self._lora)
                except BaseException:
                    self.base.release()
                    raise
            self._users += 1

    def release(self) -> None:
        """Give a lease back."""
        with self._gate:
            self._users -= 1
            last = self._users == 0
        if last:
            self._host.detach(self._lora.key)
            self.base.release()


def _both(base: str | None, adapter: str | None) -> str | None:
    """One content hash for two, None where either is unknown."""
    if base is None or adapter is None:
        return None
    return hashlib.sha256(f"{base}:{adapter}".encode()).hexdigest()
