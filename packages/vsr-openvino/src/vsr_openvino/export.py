"""Writing checkpoints as OpenVINO IR; needs the extra ``vsr-openvino[export]``.

The ONNX graph that vsr-onnx traces is converted, rather than the PyTorch model: OpenVINO reads it exactly, while its
own tracing of ModernBERT has given NaN wherever a window held nothing but padding (openvinotoolkit/openvino#35959).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vsr_core.contract import ExportReport, ExportRequest, FloatArray
from vsr_core.errors import InvalidInputError, PluginError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from vsr_onnx.export import Graph

__all__ = ["export"]

_EXTRA: Final = "vsr-openvino[export]"
_GRAPH: Final = "openvino_model.xml"


def export(request: ExportRequest) -> ExportReport:
    """Write a checkpoint as OpenVINO IR, its weights in float32.

    :raises PluginError: a package is missing, or the graph is not what its source computes.
    :raises CheckpointError: the checkpoint is damaged, or of a family that is not exported.
    :raises InvalidInputError: quantised weights are asked for, or the folder cannot be made.
    """
    if request.quantize is not None:
        raise InvalidInputError(
            f"quantize={request.quantize!r} is for ONNX graphs: export to 'onnx', which OpenVINO reads too",
            param="quantize",
        )
    try:
        from vsr_onnx.export import export_as
    except ImportError as error:
        raise PluginError(
            f'exporting needs vsr-onnx, which cannot be imported ({error}): pip install "{_EXTRA}"',
            plugin="openvino",
            distribution="vsr-openvino",
            stage="run",
        ) from error
    return export_as(request, _OpenVinoForm())


class _OpenVinoForm:
    """The graph as OpenVINO IR: an ``.xml`` and a ``.bin``."""

    plugin: Final = "openvino"
    extra: Final = _EXTRA
    packages: Final = ("vsr-openvino", "openvino")

    def write(self, graph: Path, folder: Path) -> Path:
        import openvino

        target = folder / _GRAPH
        openvino.save_model(openvino.convert_model(str(graph)), str(target), compress_to_fp16=False)
        return target

    def open(self, graph: Path) -> Graph:
        import openvino

        compiled = openvino.Core().compile_model(str(graph), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

        def run(feeds: Mapping[str, npt.NDArray[np.int64]], outputs: Sequence[str]) -> list[FloatArray]:
            found: Any = compiled(dict(feeds))
            return [found[name] for name in outputs]

        return run
