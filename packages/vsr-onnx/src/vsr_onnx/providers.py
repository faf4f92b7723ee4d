"""The policy on execution providers: what was asked for, held against what the created session really has."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import onnxruntime
from vsr_core.contract import Choice, Preference
from vsr_core.errors import LoadError

from .options import OnnxOptions
from .proto import encode_bytes, encode_int
from .session import Provider, SessionFactory

__all__ = ["CPU", "PROVIDERS", "Placed", "place", "starts"]

CPU = "CPUExecutionProvider"

PROVIDERS: Mapping[str, tuple[str, str]] = {
    "cpu": (CPU, "cpu"),
    "cuda": ("CUDAExecutionProvider", "cuda"),
    "tensorrt": ("TensorrtExecutionProvider", "cuda"),
    "rocm": ("ROCMExecutionProvider", "rocm"),
    "migraphx": ("MIGraphXExecutionProvider", "rocm"),
    "openvino": ("OpenVINOExecutionProvider", "cpu"),
}
"""What a device policy may name: ONNX Runtime's name for it, and the device it computes on."""

_AUTOMATIC = ("cuda", "rocm", "migraphx")
"""What ``auto`` tries, best first. TensorRT compiles for minutes, and OpenVINO has a backend of its own."""

_EXACT: Mapping[str, Mapping[str, str]] = {"CUDAExecutionProvider": {"use_tf32": "0"}}
"""What keeps a provider from computing a float32 graph in fewer bits: CUDA would take 10 of a product's 23."""

_NUMBERED = frozenset({"cuda", "tensorrt", "rocm", "migraphx"})


class _Session(Protocol):
    @property
    def provider(self) -> str:
        """The first provider of what was created."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


S = TypeVar("S", bound=_Session)


@dataclass(frozen=True, slots=True)
class Placed(Generic[S]):
    """What was created, and where it computes."""

    session: S
    device: Choice
    provider: Choice


def place(wanted: Preference, create: Callable[[Sequence[Provider]], S], *, backend_id: str) -> Placed[S]:
    """Create something on the provider that a policy asks for.

    :param create: makes it with a list of providers, best first; may raise ``LoadError`` for what the first one does.
    :raises LoadError: the policy names no provider, or requires one that is not the first of the created session.
    """
    names = _AUTOMATIC if wanted.value is None else (wanted.value,)
    misses = []
    for name in names:
        provider, device, number = _named(name, wanted, backend_id)
        if provider == CPU:
            break
        session, miss = _attempt(create, provider, number)
        if session is not None:
            return _placed(session, wanted, f"{device}:{number}" if number else device)
        misses.append(miss)
    if misses and wanted.mode == "require":
        raise LoadError(
            f"{backend_id}: device {str(wanted)!r} is not to be had: {misses[0]}; 'prefer:{wanted.value}' would fall"
            " back to the CPU",
            backend_id=backend_id,
        )
    reason = misses[0] if misses and wanted.mode == "prefer" else None
    return _placed(create([(CPU, {})]), wanted, "cpu", reason=reason)


@functools.cache
def starts(provider: str) -> bool:
    """Whether a provider that is built in also starts here: its libraries load and it finds a device."""
    if provider == CPU:
        return True
    if importlib.util.find_spec("nvidia") is not None:
        onnxruntime.preload_dlls()  # the CUDA libraries that pip installed
    try:
        session = SessionFactory(options=OnnxOptions(), threads=1, backend_id="probe").create_from(
            _smallest_graph(), [(provider, {}), (CPU, {})]
        )
    except LoadError:
        return False
    return bool(session.get_providers()[0] == provider)


def _named(name: str, wanted: Preference, backend_id: str) -> tuple[str, str, str]:
    """Provider, device and number of the device that a policy's value names."""
    kind, _, number = name.partition(":")
    known = PROVIDERS.get(kind)
    if known is None or (number and (kind not in _NUMBERED or not number.isdecimal())):
        raise LoadError(
            f"{backend_id}: device {str(wanted)!r} names no provider of ONNX Runtime: use one of"
            f" {', '.join(PROVIDERS)}, or a number after those of a GPU, such as 'cuda:1'",
            backend_id=backend_id,
        )
    return *known, number


def _attempt(create: Callable[[Sequence[Provider]], S], provider: str, number: str) -> tuple[S | None, str]:
    """What was created, if the provider is its first; otherwise why not."""
    if provider not in onnxruntime.get_available_providers():
        return None, f"this build of ONNX Runtime has no {provider}"
    if not starts(provider):
        return None, f"{provider} is built in and does not start here, for want of its libraries or of a device"
    settings = {**_EXACT.get(provider, {}), **({"device_id": number} if number else {})}
    chain: list[Provider] = [(provider, settings)]
    if provider == PROVIDERS["tensorrt"][0]:
        chain.append((PROVIDERS["cuda"][0], {**_EXACT["CUDAExecutionProvider"], **settings}))
    try:
        session = create([*chain, (CPU, {})])
    except LoadError as error:
        return None, error.message
    if session.provider != provider:
        session.close()
        return None, f"the session was created on {session.provider} instead of {provider}"
    return session, ""


def _placed(session: S, wanted: Preference, device: str, *, reason: str | None = None) -> Placed[S]:
    return Placed(
        session,
        device=Choice(requested=str(wanted), actual=device, reason=reason),
        provider=Choice(requested=str(wanted), actual=session.provider, reason=reason),
    )


def _smallest_graph() -> bytes:
    """A graph that hands its one float through."""
    floats = encode_bytes(2, encode_bytes(1, encode_int(1, 1) + encode_bytes(2, encode_bytes(1, encode_int(1, 1)))))
    node = encode_bytes(1, "x") + encode_bytes(2, "y") + encode_bytes(4, "Neg")
    ports = [encode_bytes(tag, encode_bytes(1, name) + floats) for tag, name in ((11, "x"), (12, "y"))]
    body = encode_bytes(1, node) + encode_bytes(2, "probe") + b"".join(ports)
    return encode_int(1, 8) + encode_bytes(7, body) + encode_bytes(8, encode_int(2, 13))
