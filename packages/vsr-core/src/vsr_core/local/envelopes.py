"""The envelope of an answer: who gave it, on what, and what became of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract import BackendId, CallContext, Envelope, InputReport, Usage
from .base import EncoderBase

__all__ = ["build_envelope"]


def build_envelope(
    base: EncoderBase,
    call: CallContext,
    *,
    backend_id: BackendId,
    inputs: Sequence[InputReport],
    layer: int | None,
    requested_layer: int | None = None,
    dimensions: int | None = None,
    requested_dimensions: int | None = None,
) -> Envelope:
    """Build the envelope of one answer; ``usage`` is what was read of its inputs.

    :param layer: the depth in effect; ``dimensions`` the width, for vectors.
    """
    identity = base.identity
    return Envelope(
        backend_id=backend_id,
        request_id=call.request_id,
        revision=base.revision,
        adapter_revision=base.adapter_revision,
        device=identity.device.actual,
        provider=identity.provider.actual if identity.provider else None,
        dtype=identity.dtype.actual,
        requested_dimensions=requested_dimensions,
        dimensions=dimensions,
        requested_layer=requested_layer,
        layer=layer,
        inputs=tuple(inputs),
        usage=Usage(input_tokens=sum([report.tokens or 0 for report in inputs])),
    )
