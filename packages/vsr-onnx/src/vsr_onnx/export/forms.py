"""The forms an export may have: the ONNX graph as it is, or what another library makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

import numpy as np
import numpy.typing as npt
from vsr_core.contract import FloatArray

__all__ = ["Graph", "GraphForm", "IdArray", "OnnxForm", "open_onnx"]

IdArray = npt.NDArray[np.int64]


class Graph(Protocol):
    """A graph that can be run."""

    def __call__(self, feeds: Mapping[str, IdArray], outputs: Sequence[str]) -> list[FloatArray]:
        """Run it once, for the outputs of these names."""
        ...


class GraphForm(Protocol):
    """What becomes of the ONNX graph of an export."""

    @property
    def plugin(self) -> str:
        """The backend that exports."""
        ...

    @property
    def extra(self) -> str:
        """The requirement that brings what an export needs, such as ``vsr-onnx[export]``."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions whose versions decide what is written, beside those of the trace."""
        ...

    def write(self, graph: Path, folder: Path) -> Path:
        """Put the graph into the folder in this form; returns the file to open. ``graph`` may be moved."""
        ...

    def open(self, graph: Path) -> Graph:
        """Open what :meth:`write` wrote, computing in float32."""
        ...


class OnnxForm:
    """The ONNX graph as it is, its weights beside it."""

    plugin: Final = "onnx"
    extra: Final = "vsr-onnx[export]"
    packages: Final = ("onnxruntime", "onnxruntime-gpu")

    def write(self, graph: Path, folder: Path) -> Path:
        target = folder / graph.name
        for file in sorted(graph.parent.glob(f"{graph.name}*")):
            file.rename(folder / file.name)
        return target

    def open(self, graph: Path) -> Graph:
        return open_onnx(graph)


def open_onnx(graph: Path) -> Graph:
    """An ONNX graph on the CPU, with 8-bit products computed exactly on every processor."""
    import onnxruntime

    from ..saturation import saturates

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.add_session_config_entry("session.x64quantprecision", "1" if saturates() else "0")
    session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])

    def run(feeds: Mapping[str, IdArray], outputs: Sequence[str]) -> list[FloatArray]:
        return cast("list[Any]", session.run(list(outputs), dict(feeds)))

    return run
