"""Worker: an ONNX graph in a plain loop over a bare session, which is what vsr-onnx is measured against.

Of the session, the number of threads is set, and everything else is left at its default.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..loop import GraphBatch, GraphLoop
from ..machine import installed_versions
from ..protocol import SubjectFacts
from ..serving import serve

if TYPE_CHECKING:
    from ..loop import Store

__all__ = ["OnnxLoop", "main"]


class OnnxLoop(GraphLoop):
    """One batch after the other on all threads."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        onnxruntime: Any = importlib.import_module("onnxruntime")
        self._threads = len(os.sched_getaffinity(0))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        self._session: Any = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def run(self, batches: Sequence[GraphBatch], store: Store) -> None:
        for batch in batches:
            store(batch, self._session.run([self.output], dict(batch.feeds))[0])

    def facts(self) -> SubjectFacts:
        return SubjectFacts(
            dtype="float32",
            threads=self._threads,
            versions=installed_versions("onnxruntime", "onnxruntime-gpu", "tokenizers"),
            details={"batch size": f"{self.batch_tokens} tokens", "streams": "1"},
        )


def main() -> None:
    """Serve the loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER", help="a float32 export")
    serve(partial(OnnxLoop, parser.parse_args().model))


if __name__ == "__main__":
    main()
