"""Writing checkpoints as ONNX graphs, checked against transformers; needs the extra ``vsr-onnx[export]``.

vsr-openvino builds its own form on :func:`export_as`.
"""

from __future__ import annotations

from .build import export, export_as
from .forms import Graph, GraphForm

__all__ = ["Graph", "GraphForm", "export", "export_as"]
