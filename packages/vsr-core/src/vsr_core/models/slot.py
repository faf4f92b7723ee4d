"""The place of one backend id in the pool: what is loaded there, what is being loaded, what failed."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from ..contract import BackendId, LoadState
from ..errors import VsrError
from .lease import Loaded

__all__ = ["Slot"]


@dataclass(slots=True, kw_only=True)
class Slot:
    """Guarded by the pool's lock, except that ``current`` may be read without it."""

    backend_id: BackendId
    current: Loaded | None = None
    pending: Future[Loaded] | None = None
    failure: VsrError | None = None
    failed_at: float = 0.0
    draining: list[Loaded] = field(default_factory=list)

    def take_out(self) -> Loaded | None:
        """Put what is loaded among what drains; None where nothing is."""
        loaded, self.current = self.current, None
        if loaded is not None:
            self.draining.append(loaded)
        return loaded

    @property
    def state(self) -> LoadState:
        """The state as listings show it."""
        if self.current is not None:
            return "ready"
        if self.pending is not None:
            return "loading"
        if self.draining:
            return "draining"
        return "failed" if self.failure is not None else "not_loaded"
