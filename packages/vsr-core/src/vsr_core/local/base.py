"""A loaded base: engine, tokenizer and batcher, leased by one or more handles."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from ..contract import BackendId, Choice, FeatureState, ModelSpec
from ..errors import NotReadyError
from .batching import Batcher
from .engine import EncoderEngine
from .memory import return_memory
from .tokenize import TextTokenizer

__all__ = ["BaseIdentity", "EncoderBase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseIdentity:
    """What is known of a base beyond its spec.

    :param dtype: what is computed in; ``actual`` uses numpy's names, such as ``float32`` and ``bfloat16``, so that
        one name means the same on every backend.
    :param provider: the execution provider, for runtimes that have them.
    :param memory_bytes: what the weights take.
    :param load_seconds: wall time of the load; ``loaded_at`` is Unix time.
    :param features: what the engine says of features, beside what the pipeline itself provides.
    :param folder: the folder of its files, which the dense modules after it are read from.
    """

    backend_id: BackendId
    device: Choice
    dtype: Choice
    provider: Choice | None = None
    memory_bytes: int | None = None
    load_seconds: float | None = None
    loaded_at: float | None = None
    features: tuple[FeatureState, ...] = ()
    folder: Path | None = None


class EncoderBase:
    """The weights and everything around them; freed when the last lease is released.

    It starts without a lease: each handle takes one and releases it once.
    """

    def __init__(
        self,
        engine: EncoderEngine,
        tokenizer: TextTokenizer,
        *,
        batcher: Batcher,
        spec: ModelSpec,
        max_tokens: int,
        identity: BaseIdentity,
    ) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.batcher = batcher
        self.spec = spec
        self.max_tokens = max_tokens
        self.identity = identity
        self._lock = threading.Lock()
        self._leases = 0
        self._closed = False

    @property
    def adapter(self) -> str | None:
        """The key of the adapter that its rows name; None is the bare base."""
        return None

    @property
    def adapter_revision(self) -> str | None:
        """Which version of an adapter answers, where one does."""
        return None

    @property
    def revision(self) -> str | None:
        """Which version of the base answers."""
        return self.spec.revision

    @property
    def leases(self) -> int:
        """How many handles use the base."""
        return self._leases

    @property
    def closed(self) -> bool:
        """Whether the weights have been freed."""
        return self._closed

    def lease(self) -> None:
        """Take a lease.

        :raises NotReadyError: the base has been freed.
        """
        with self._lock:
            if self._closed:
                backend_id = str(self.identity.backend_id)
                raise NotReadyError(f"the base of {backend_id} is closed: load it again", backend_id=backend_id)
            self._leases += 1

    def release(self) -> None:
        """Give a lease back; the last one closes the batcher and the engine, waiting for what runs."""
        with self._lock:
            self._leases -= 1
            if self._leases > 0 or self._closed:
                return
            self._closed = True
        self.batcher.close()
        self.engine.close()
        return_memory()
