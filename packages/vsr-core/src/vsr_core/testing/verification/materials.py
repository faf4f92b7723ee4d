"""Tiny seeded checkpoints of what a backend reads, written and exported by the first who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...contract import Quantization
from ...errors import ModelNotFoundError, PluginError, VsrError
from ...plugins import PluginHost
from ...runtime import Runtime
from ...taxonomy import Artifact, Capability
from ..conformance.folders import HEADS, write_tiny
from ..conformance.offers import Cell
from ..encoders import EncoderHead
from .trials import NotRunError

__all__ = ["FAMILIES", "Material", "Materials"]

FAMILIES: Final[Mapping[Capability, str]] = {
    Capability.EMBEDDING: "modernbert",
    Capability.SEQUENCE_CLASSIFICATION: "bert",
    Capability.PAIR_CLASSIFICATION: "bert",
    Capability.TOKEN_CLASSIFICATION: "roberta",
    Capability.RERANKING: "xlm_roberta",
}
"""What stands for every family where a backend tells none apart, as those that read graphs."""

_EXPORTS: Final[Mapping[Artifact, tuple[str, Quantization | None]]] = {
    Artifact.ONNX: ("onnx", None),
    Artifact.QUANTIZED: ("onnx", "int8"),
    Artifact.OPENVINO_IR: ("openvino", None),
}
_LAYER: Final = 1
_DIMENSIONS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A model's catalog entry, and its name in the receipt."""

    name: str
    folder: Path
    entry: Mapping[str, Any]


class Materials:
    """Models by family, head and form of weights.

    :param root: the folder to write to; :param host: where the exporters come from.
    """

    def __init__(self, root: Path, host: PluginHost) -> None:
        self._root = root
        self._host = host
        self._known: dict[str, Path | Exception] = {}

    def get(self, cell: Cell) -> Material:
        """The model of a cell.

        :raises NotRunError: there can be none on this host.
        :raises VsrError: what the exporter raised.
        """
        if cell.capability not in HEADS:
            raise NotRunError(f"there is no tiny checkpoint for {cell.capability}")
        head: EncoderHead = HEADS[cell.capability]
        entry: dict[str, Any] = {"artifact": cell.artifact.value, "layers": [_LAYER]}
        if cell.capability is Capability.EMBEDDING:
            entry |= {"pooling": ["mean"], "dimensions": [_DIMENSIONS]}
        if cell.artifact in _EXPORTS and cell.capability is Capability.PAIR_CLASSIFICATION:
            head, entry["capability"] = "sequence", cell.capability.value  # one export less
        stored = Artifact.FULL if cell.artifact is Artifact.MERGED_LORA else cell.artifact
        name = f"{cell.family}-{head}-{stored}"
        folder = self._once(name, lambda: self._make(name, cell.family, head, stored))
        return Material(name=name, folder=folder, entry=entry | {"source": str(folder)})

    def _once(self, name: str, make: Callable[[], Path]) -> Path:
        if name not in self._known:
            try:
                self._known[name] = make()
            except (NotRunError, VsrError) as error:
                self._known[name] = error
        known = self._known[name]
        if isinstance(known, Exception):
            raise known
        return known

    def _make(self, name: str, family: str, head: EncoderHead, artifact: Artifact) -> Path:
        if artifact is Artifact.FULL:
            try:
                return write_tiny(self._root / name, family, head=head)
            except NotImplementedError:
                raise NotRunError(f"there is no tiny checkpoint of the family {family!r}") from None
        if artifact not in _EXPORTS:
            raise NotRunError(f"there is no tiny model in the form {artifact.value!r}")
        plain = f"{family}-{head}-{Artifact.FULL}"
        source = self._once(plain, lambda: self._make(plain, family, head, Artifact.FULL))
        return self._export(source, self._root / name, head, *_EXPORTS[artifact])

    def _export(self, source: Path, out: Path, head: EncoderHead, to: str, quantize: Quantization | None) -> Path:
        entry: dict[str, Any] = {"source": str(source)}
        if head == "embedding":
            entry["pooling"] = ["mean"]
        with Runtime({"catalog": {"m": entry}}, host=self._host) as runtime:
            try:
                return runtime.export("m", to=to, out=out, layers=[_LAYER], quantize=quantize).folder
            except ModelNotFoundError as error:
                raise NotRunError(f"exporting needs the backend {to!r}: {error.message}") from error
            except PluginError as error:
                if isinstance(error.__cause__, ImportError | OSError):
                    raise NotRunError(error.message) from error
                raise
