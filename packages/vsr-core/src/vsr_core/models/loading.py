"""One load: from the catalog entry to a handle of the backend."""

from __future__ import annotations

from ..contract import BackendId, CapabilityQuery, LoadRequest, ModelHandle, ModelSpec, Refused
from ..errors import CapabilityUnmetError, LoadError
from ..plugins import BackendInstances
from .sources import ModelSources

__all__ = ["load_model"]


def load_model(
    backend_id: BackendId, instances: BackendInstances, sources: ModelSources, *, base: ModelHandle | None = None
) -> ModelHandle:
    """Fetch, inspect and load a model. Runs on the load thread.

    :raises CheckpointError: the files are missing, damaged or contradict the entry.
    :raises CapabilityUnmetError: the backend refuses this kind of model.
    :raises LoadError: the backend failed.
    """
    adapter = instances.adapter(backend_id.backend)
    settings, context = instances.settings(backend_id.backend), instances.context(backend_id.backend)
    located = sources.locate(backend_id)
    _admit(backend_id, located.spec, instances)
    handle = adapter.load(
        LoadRequest(
            backend_id=backend_id,
            entry=located.entry,
            path=located.path,
            spec=located.spec,
            device=settings.device,
            precision=settings.precision,
            batching=settings.batching,
            labels=located.spec.labels,
            base=base,
            cache_dir=context.cache_dir,
            threads=context.threads,
        )
    )
    if not isinstance(handle, ModelHandle):
        raise LoadError(
            f"{backend_id}: the backend gave a {type(handle).__name__} instead of a ModelHandle",
            backend_id=str(backend_id),
        )
    return handle


def _admit(backend_id: BackendId, spec: ModelSpec, instances: BackendInstances) -> None:
    """Refuse before loading what the backend refuses for every capability of the model."""
    rules = instances.declared(backend_id.backend)
    refusal: Refused | None = None
    for capability in spec.capabilities:
        verdict = rules.decide(
            CapabilityQuery(capability=capability, family=spec.family, artifact=spec.artifact, modality=spec.modality)
        )
        if not isinstance(verdict, Refused):
            return
        refusal = refusal or verdict
    if refusal is not None:
        raise CapabilityUnmetError(
            f"{backend_id} cannot be loaded: {refusal.reason}",
            unmet=spec.capabilities[0].value,
            backend_id=str(backend_id),
            reason=refusal.reason,
        )
