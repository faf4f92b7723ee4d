"""What both facades answer at once, without a request to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..config import CheckReport
from ..contract import ExportProgress, ExportReport, ModelInfo, Quantization
from ..plugins import CapabilityMatrix, PluginReport, run_writer
from .core import RuntimeCore
from .exporting import export_order, merge_order
from .status import RuntimeStatus

__all__ = ["PlainFacade"]


class PlainFacade:
    """The calls that are plain functions on either facade."""

    def __init__(self, core: RuntimeCore) -> None:
        self._core = core

    def models(self) -> tuple[ModelInfo, ...]:
        """Every model that can be asked for, loaded or not, sorted by id."""
        return self._core.models()

    def matrix(self, *, probe: bool = False) -> CapabilityMatrix:
        """Backend by capability; ``probe`` looks at this host first, which imports the frameworks."""
        return self._core.matrix(probe=probe)

    def plugins(self) -> PluginReport:
        """Every plugin found, with what it contributes or why it does not."""
        return self._core.plugins()

    def status(self) -> RuntimeStatus:
        """The state of the whole runtime."""
        return self._core.status()

    def check(self) -> CheckReport:
        """Every impossible combination in the configuration; loads nothing."""
        return self._core.check()

    def export(
        self,
        model: str,
        *,
        to: str,
        out: Path | str,
        layers: Sequence[int] = (),
        quantize: Quantization | None = None,
        progress: ExportProgress | None = None,
    ) -> ExportReport:
        """Write a model in the form a backend reads, and check it against its source; blocks for seconds to minutes.

        Nothing is left in ``out`` where it fails or is interrupted.

        :param model: a model of the catalog, or ``<backend>:<model>``.
        :param to: the backend that is to read the result.
        :param out: the folder to make; it must not exist, or be empty.
        :param layers: further layers the result can be asked to leave at, beside those of the catalog entry.
        :raises InvalidInputError: a wrong argument.
        :raises ModelNotFoundError: there is no such model or backend.
        :raises CheckpointError: the model's files are damaged, or nothing that is exported.
        :raises PluginError: the backend cannot export here, or what it wrote is not what its source computes.
        """
        self._core.guard()
        descriptor, request = export_order(
            self._core, model, to=to, out=Path(out), layers=layers, quantize=quantize, progress=progress
        )
        return run_writer(descriptor, "exporter", request)

    def merge(self, model: str, *, out: Path | str, progress: ExportProgress | None = None) -> ExportReport:
        """Write a LoRA adapter and its base as one checkpoint, merged in float32, and check it against the adapter.

        Nothing is left in ``out`` where it fails or is interrupted.

        :param model: an adapter of the catalog, or ``<backend>:<adapter>``.
        :param out: the folder to make; it must not exist, or be empty.
        :raises InvalidInputError: a wrong argument, or a model that is no adapter.
        :raises ModelNotFoundError: there is no such model.
        :raises CheckpointError: the files of the adapter or of its base are damaged, or do not fit each other.
        :raises PluginError: no installed backend merges, or what it wrote is not what the adapter computes.
        """
        self._core.guard()
        descriptor, request = merge_order(self._core, model, out=Path(out), progress=progress)
        return run_writer(descriptor, "merger", request)
