"""The benchmark's checkpoint in the forms that other engines read, each made once a run, in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from .environments import ROOT, worker_environ
from .process import WorkerError, run_bounded
from .variants import Export

__all__ = ["Exports"]

_ARGUMENTS: dict[Export, tuple[str, ...]] = {
    "onnx": ("--to", "onnx"),
    "onnx-int8": ("--to", "onnx", "--quantize", "int8"),
    "openvino": ("--to", "openvino"),
}
_SECONDS = 300.0


class Exports:
    """Finds an export; what nobody asks for is not made.

    :param folder: an existing folder for them.
    :param progress: told what takes its time.
    """

    def __init__(self, folder: Path, progress: Callable[[str], None]) -> None:
        self._folder = folder
        self._progress = progress
        self._found: dict[Export, Path | str] = {}

    def find(self, export: Export) -> Path:
        """The folder of an export.

        :raises WorkerError: it cannot be made; asked again, the same answer.
        """
        if export not in self._found:
            self._progress(f"exporting the model as {export}")
            self._found[export] = self._make(export)
        found = self._found[export]
        if isinstance(found, str):
            raise WorkerError(found)
        return found

    def _make(self, export: Export) -> Path | str:
        """The folder, or why there is none."""
        out = self._folder / f"export-{export}"
        command = [sys.executable, "-m", "bench.workers.exporter", *_ARGUMENTS[export], "--out", str(out)]
        try:
            done = run_bounded(command, cwd=ROOT, environ=worker_environ(), timeout=_SECONDS)
        except WorkerError as error:
            return f"no export as {export}: {error}"
        if done.status != 0:
            return f"no export as {export}: {(done.stderr.strip() or 'it said nothing').splitlines()[-1]}"
        return out
