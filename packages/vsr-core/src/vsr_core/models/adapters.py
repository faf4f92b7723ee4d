"""Which adapters sit on a base, and which of them has to go where there are too many."""

from __future__ import annotations

from collections.abc import Iterable

from .lease import Loaded
from .slot import Slot

__all__ = ["adapters_on", "least_used", "names_of"]


def adapters_on(base: Loaded, slots: Iterable[Slot]) -> list[Slot]:
    """The slots whose current generation is an adapter on this generation of a base."""
    return [
        slot for slot in slots if (one := slot.current) is not None and one.base is not None and one.base.is_on(base)
    ]


def names_of(slots: Iterable[Slot]) -> tuple[str, ...]:
    """The names of models, sorted."""
    return tuple(sorted(slot.backend_id.model for slot in slots))


def least_used(slot: Slot, slots: Iterable[Slot], *, base: str, limit: int) -> list[Slot]:
    """The least recently used of the adapters on the base of ``slot``, as many as are beyond the limit; never itself.

    :param base: the catalog entry of the base; generations of it count together.
    :param limit: how many adapters may be loaded on it, by one backend.
    """
    others = [
        (one.last_used, other.backend_id, other)
        for other in slots
        if (one := other.current) is not None
        and one.base is not None
        and other is not slot
        and (other.backend_id.backend, one.base.info.backend_id.model) == (slot.backend_id.backend, base)
    ]
    return [other for *_, other in sorted(others)[: max(0, len(others) + 1 - limit)]]
