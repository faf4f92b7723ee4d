"""Which depth a request is answered at: one rule for every task."""

from __future__ import annotations

from ..contract import BackendId, ModelSpec
from ..errors import CheckpointError, InvalidInputError

__all__ = ["default_layer", "effective_layer", "engine_layer"]


def effective_layer(spec: ModelSpec, asked: int | None, *, default: int | None) -> int | None:
    """The depth a request gets: what it asks for, or else the default.

    :raises InvalidInputError: a depth the model does not offer; the message lists what it does.
    """
    if asked is None:
        return default
    native = () if spec.layers is None else (spec.layers,)
    offered = spec.exit_layers or native
    if asked not in offered:
        listed = ", ".join(map(str, offered)) or "the full depth alone"
        raise InvalidInputError(f"layer={asked} is not offered; there are: {listed}", param="layer")
    return asked


def default_layer(spec: ModelSpec, asked: int | None, *, backend_id: BackendId) -> int | None:
    """The depth served unasked; None asks for the native one.

    :raises CheckpointError: the model does not offer it.
    """
    try:
        return effective_layer(spec, asked, default=spec.layers)
    except InvalidInputError as error:
        raise CheckpointError(f"{backend_id}: the default does not hold: {error.message}") from None


def engine_layer(spec: ModelSpec, layer: int | None) -> int | None:
    """A depth as engines are told it: None is all of them."""
    return None if layer == spec.layers else layer
