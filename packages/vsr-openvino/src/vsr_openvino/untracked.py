"""OpenVINO, imported without its usage statistics; every module here takes it from this one.

``import openvino`` reports the import to an analytics service over the network, from a forked process, wherever the
package ``openvino_telemetry`` is installed, which OpenVINO's wheel brings along. Without it OpenVINO uses a stand-in of
its own that reports nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

__all__ = ["ov"]

_TELEMETRY = "openvino_telemetry"


@contextmanager
def _absent(module: str) -> Iterator[None]:
    """Let a module that nobody has imported yet seem not to be installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = cast("Any", None)  # makes the import statement raise
    try:
        yield
    finally:
        sys.modules.pop(module, None)


with _absent(_TELEMETRY):
    import openvino as ov
