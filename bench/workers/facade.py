"""Worker: ``Runtime.embed``, as an application calls it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..configuration import configuration
from ..machine import installed_versions
from ..protocol import SubjectFacts
from ..serving import Subject, serve

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Facade", "main"]


class Facade(Subject):
    """One call of ``Runtime.embed`` with all the texts it is given."""

    def __init__(self, precision: str) -> None:
        from vsr_core.runtime import Runtime

        self._runtime = Runtime.from_config(configuration(precision))
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
            versions=installed_versions("vsr-core", "vsr-candle-torch", "tokenizers", "torch"),
            details={"precision": choice.reason} if choice is not None and choice.reason else {},
        )

    def close(self) -> None:
        self._runtime.close()


def main() -> None:
    """Serve the runtime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", required=True, help="a precision policy: auto, require:fp32, ...")
    serve(partial(Facade, parser.parse_args().precision))


if __name__ == "__main__":
    main()
