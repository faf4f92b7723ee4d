"""Which dtype to compute in: what was asked for, what the device does natively, and what the model's numbers say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from ..contract import Choice, Preference
from ..errors import LoadError
from .comparing import Comparison

__all__ = ["choose_precision"]

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "fp32": "float32",
        "float32": "float32",
        "f32": "float32",
        "bf16": "bfloat16",
        "bfloat16": "bfloat16",
        "fp16": "float16",
        "float16": "float16",
        "f16": "float16",
    }
)


def choose_precision(
    preference: Preference,
    *,
    native: Collection[str],
    place: str,
    backend_id: str,
    compare: Callable[[], Comparison],
) -> Choice:
    """Decide on a dtype, by numpy's names: float32 unless another was asked for, or ``auto`` finds that bf16 will do.

    :param native: the dtypes beside float32 that the place computes in; :param place: how messages call it.
    :param compare: how far bf16 is from float32 on :data:`PROBE_TEXTS`; called only where the decision needs it.
    :raises LoadError: a required precision that is not to be had.
    """
    asked = str(preference)
    if preference.mode == "auto":
        return _auto(asked, native, place, compare)
    dtype = _NAMES.get((preference.value or "").lower())
    if dtype == "float32" or dtype in native:
        return Choice(requested=asked, actual=dtype)
    if dtype is None:
        reason = f"{preference.value!r} is no precision; known are {', '.join(sorted(_NAMES))}"
    else:
        reason = f"{place} does not compute in {dtype} natively"
    if preference.mode == "require":
        raise LoadError(f"{backend_id}: precision {asked!r} is not to be had: {reason}", backend_id=backend_id)
    return Choice(requested=asked, actual="float32", reason=reason)


def _auto(asked: str, native: Collection[str], place: str, compare: Callable[[], Comparison]) -> Choice:
    if "bfloat16" not in native:
        reason = f"{place} does not compute in bfloat16 natively"
        return Choice(requested=asked, actual="float32", reason=reason)
    found = compare()
    if found.good:
        return Choice(requested=asked, actual="bfloat16", reason=f"native bf16, and {found.said}")
    reason = f"in bf16 {found.said}, and the bound is {found.bound}"
    return Choice(requested=asked, actual="float32", reason=reason)
