"""Compiling graphs for a device: every setting that decides on numbers or threads is given, none left to a default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .device import CPU
from .options import Performance

__all__ = ["DTYPES", "Compiler", "dtype_of"]

DTYPES = {"FP32": "float32", "FP16": "float16", "BF16": "bfloat16", "INT8": "int8", "INT4": "int4"}
"""The names OpenVINO has among a device's optimisation capabilities for what are dtypes."""

_HINTS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """Compiles for one device in one dtype.

    :param core: the ``openvino.Core`` to compile with; :param device: by OpenVINO's name.
    :param dtype: ``float32``, ``float16`` or ``bfloat16``.
    :param threads: compute threads of each compiled graph on the CPU.
    :param cache_dir: where OpenVINO keeps what it compiled; None keeps nothing.
    """

    core: Any
    device: str
    dtype: str
    threads: int
    performance: Performance
    cache_dir: Path | None = None

    def compile(self, model: Any) -> Any:
        """The compiled graph.

        :raises RuntimeError: the device does not take it.
        """
        return self.core.compile_model(model, self.device, self.properties())

    def properties(self) -> dict[str, Any]:
        """What the graph is compiled with, as far as the device knows of it."""
        full = self.dtype == "float32"
        settings: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": _HINTS[self.dtype],  # a CPU with bf16 would otherwise quietly compute in it
            "EXECUTION_MODE_HINT": "ACCURACY" if full else "PERFORMANCE",
            "PERFORMANCE_HINT": self.performance.upper(),
        }
        optional: dict[str, Any] = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}  # no activations in int8 behind our back
        if self.device == CPU:
            optional["INFERENCE_NUM_THREADS"] = self.threads
            optional["ENABLE_CPU_PINNING"] = False  # every model would have its threads pinned to the same cores
        if self.cache_dir is not None:
            settings["CACHE_DIR"] = str(self.cache_dir)
        known = self.core.get_property(self.device, "SUPPORTED_PROPERTIES")
        return settings | {name: value for name, value in optional.items() if name in known}


def dtype_of(compiled: Any) -> str | None:
    """What a compiled graph says it computes in, in numpy's names; None for what has none."""
    name = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    return next((dtype for dtype, hint in _HINTS.items() if hint == name), None)
