"""Which device to compute on: what was asked for, and what OpenVINO itself finds on this host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vsr_core.contract import Choice, Preference
from vsr_core.errors import LoadError

__all__ = ["CPU", "candidates", "describe", "executes_on"]

CPU = "CPU"
_GPU = "GPU"


def candidates(preference: Preference, available: Sequence[str], *, backend_id: str) -> tuple[str, ...]:
    """The devices to try, best first, by OpenVINO's names.

    ``gpu`` is the first of several; ``gpu.1`` a particular one. ``auto`` is a GPU where there is one, then the CPU.
    An NPU is taken only where it is asked for, since most take no graphs whose sizes vary.

    :param available: the devices OpenVINO lists, such as ``("CPU", "GPU.0", "GPU.1")``.
    :raises LoadError: a required device is not among them, or there is none at all.
    """
    wanted = _GPU if preference.mode == "auto" else (preference.value or "").upper()
    found = [device for device in available if device == wanted or device.startswith(f"{wanted}.")][:1]
    if preference.mode == "require" and not found:
        raise LoadError(
            f"{backend_id}: device {str(preference)!r} is not to be had: {_absent(wanted, available)};"
            f" 'prefer:{preference.value}' would fall back to the CPU",
            backend_id=backend_id,
        )
    if preference.mode != "require" and CPU in available and CPU not in found:
        found.append(CPU)
    if not found:
        raise LoadError(f"{backend_id}: OpenVINO lists no device to fall back on", backend_id=backend_id)
    return tuple(found)


def describe(preference: Preference, device: str, *, available: Sequence[str], failures: Mapping[str, str]) -> Choice:
    """What was asked for, what it came to, and why.

    :param failures: the devices that were tried before, each with what went wrong.
    """
    wanted = preference.value or ""
    reason = None
    if failures:
        reason = "; ".join(f"{name.lower()} does not take the model: {why}" for name, why in failures.items())
    elif preference.mode == "prefer" and not executes_on(wanted.upper(), (device,)):
        reason = _absent(wanted, available)
    elif preference.mode == "auto" and device != CPU:
        reason = f"OpenVINO lists {_listed(available)}"
    return Choice(requested=str(preference), actual=device.lower(), reason=reason)


def executes_on(device: str, executing: Sequence[str]) -> bool:
    """Whether a compiled model runs on the device it was compiled for, and on no other.

    :param executing: its ``EXECUTION_DEVICES``.
    """
    return bool(executing) and all(name == device or name.startswith(f"{device}.") for name in executing)


def _absent(wanted: str, available: Sequence[str]) -> str:
    return f"OpenVINO lists {_listed(available)} on this host, and no {wanted.lower()!r}"


def _listed(devices: Sequence[str]) -> str:
    return ", ".join(device.lower() for device in devices) or "no device"
