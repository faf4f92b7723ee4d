"""The adapter of a provider: it refuses every request for want of a dialect to speak."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from vsr_core.contract import (
    BackendAdapter,
    BackendContext,
    CapabilitySet,
    LoadRequest,
    ModelHandle,
    Refused,
    RuntimeInfo,
    Selector,
)
from vsr_core.errors import LoadError
from vsr_core.taxonomy import Feature

__all__ = ["RemoteAdapter"]

_REASON: Final = "this version of vsr-remote speaks no provider's dialect yet"


class RemoteAdapter(BackendAdapter):
    """A provider; every capability is refused until its dialect is there."""

    def __init__(self, context: BackendContext) -> None:
        self.namespace = context.name

    def capabilities(self) -> CapabilitySet:
        return CapabilitySet.of(
            (Selector(feature=feature), Refused("not_implemented", _REASON)) for feature in (None, *Feature)
        )

    def probe(self) -> RuntimeInfo:
        return RuntimeInfo(usable=False, reason=_REASON, versions={"httpx": version("httpx")})

    def load(self, request: LoadRequest) -> ModelHandle:
        raise LoadError(f"{request.backend_id}: {_REASON}", backend_id=str(request.backend_id))
