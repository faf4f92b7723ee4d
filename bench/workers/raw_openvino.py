"""Worker: OpenVINO IR in a plain loop over a pool of infer requests, which is what vsr-openvino is measured against.

Of the compiled model, precision, threads and the throughput hint are set, and everything else is left at its default.
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

__all__ = ["OpenVinoLoop", "main"]

_DTYPES = {"f32": "float32", "bf16": "bfloat16"}


class OpenVinoLoop(GraphLoop):
    """As many batches side by side as OpenVINO finds best for throughput.

    :param hint: OpenVINO's name of the precision to compute in.
    """

    def __init__(self, folder: Path, hint: str) -> None:
        super().__init__(folder)
        openvino: Any = importlib.import_module("openvino")
        self._threads = len(os.sched_getaffinity(0))
        settings = {
            "PERFORMANCE_HINT": "THROUGHPUT",
            "INFERENCE_PRECISION_HINT": hint,
            "INFERENCE_NUM_THREADS": self._threads,
        }
        self._compiled: Any = openvino.Core().compile_model(str(folder / "openvino_model.xml"), "CPU", settings)
        self._queue: Any = openvino.AsyncInferQueue(self._compiled)
        self._place = next(
            place for place, port in enumerate(self._compiled.outputs) if self.output in port.get_names()
        )

    def run(self, batches: Sequence[GraphBatch], store: Store) -> None:
        def finished(request: Any, batch: GraphBatch) -> None:
            store(batch, request.get_output_tensor(self._place).data)

        self._queue.set_callback(finished)
        for batch in batches:
            self._queue.start_async(dict(batch.feeds), batch, share_inputs=True)
        self._queue.wait_all()

    def facts(self) -> SubjectFacts:
        hint = self._compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        return SubjectFacts(
            dtype=_DTYPES.get(hint, hint),
            threads=self._threads,
            versions=installed_versions("openvino", "tokenizers"),
            details={"batch size": f"{self.batch_tokens} tokens", "streams": str(len(self._queue))},
        )


def main() -> None:
    """Serve the loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER", help="an export")
    parser.add_argument("--precision", choices=sorted(_DTYPES), required=True)
    arguments = parser.parse_args()
    serve(partial(OpenVinoLoop, arguments.model, arguments.precision))


if __name__ == "__main__":
    main()
