"""Worker: ``Runtime.embed``, as an application calls it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..configuration import configuration
from ..corpus import MODEL
from ..machine import installed_versions
from ..protocol import SubjectFacts
from ..serving import Subject, serve

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Facade", "main"]

_PACKAGES = {
    "torch": ("vsr-candle-torch", "torch"),
    "onnx": ("vsr-onnx", "onnxruntime", "onnxruntime-gpu"),
    "openvino": ("vsr-openvino", "openvino"),
}


class Facade(Subject):
    """One call of ``Runtime.embed`` with all the texts it is given.

    :param backend: which engine; everything but the precision is left at its default.
    :param source: the checkpoint, or an export of it; ``artifact`` which of its files, where that has to be said.
    """

    def __init__(self, precision: str, *, backend: str, source: str, artifact: str | None) -> None:
        from vsr_core.runtime import Runtime

        self._backend = backend
        self._runtime = Runtime.from_config(configuration(precision, backend=backend, source=source, artifact=artifact))
        self._info = self._runtime.load("default")

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return self._runtime.embed(texts).vectors

    def count_tokens(self, texts: Sequence[str]) -> int:
        return self._runtime.embed(texts).envelope.usage.input_tokens or 0

    def facts(self) -> SubjectFacts:
        choice = self._info.dtype
        return SubjectFacts(
            dtype=(choice.actual if choice is not None else None) or "unknown",
            threads=self._runtime.status().threads,
            versions=installed_versions("vsr-core", "tokenizers", *_PACKAGES[self._backend]),
            details={"precision": choice.reason} if choice is not None and choice.reason else {},
        )

    def close(self) -> None:
        self._runtime.close()


def main() -> None:
    """Serve the runtime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", required=True, help="a precision policy: auto, require:fp32, ...")
    parser.add_argument("--backend", choices=sorted(_PACKAGES), default="torch")
    parser.add_argument("--model", default=MODEL, metavar="FOLDER", help="an export, for the engines that need one")
    parser.add_argument("--artifact", help="which of the model's files")
    arguments = parser.parse_args()
    serve(
        partial(
            Facade,
            arguments.precision,
            backend=arguments.backend,
            source=arguments.model,
            artifact=arguments.artifact,
        )
    )


if __name__ == "__main__":
    main()
