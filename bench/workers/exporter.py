"""Worker: writes the benchmark's checkpoint in the form another engine reads, and ends."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..corpus import MODEL

__all__ = ["main"]


def main() -> int:
    """Export; 1 with the reason as the last line of standard error where that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True, choices=["onnx", "openvino"])
    parser.add_argument("--quantize", choices=["int8"])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    from vsr_core.errors import VsrError
    from vsr_core.runtime import Runtime

    with Runtime({"catalog": {"minilm": {"source": MODEL}}}) as runtime:
        try:
            runtime.export("minilm", to=arguments.to, out=arguments.out, quantize=arguments.quantize)
        except VsrError as error:
            print(" ".join(error.message.split()), file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
