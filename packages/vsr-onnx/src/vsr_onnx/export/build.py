"""One export from beginning to end: read, trace, check, quantise, describe, put in place."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vsr_core.catalog import (
    MANIFEST,
    ExitLayer,
    ExportManifest,
    ExportSource,
    ExportTolerance,
    write_manifest,
)
from vsr_core.contract import ExportReport, ExportRequest
from vsr_core.local import copy_documents, listed, new_folder

from .forms import GraphForm, OnnxForm, open_onnx
from .requirements import require

if TYPE_CHECKING:
    from .reading import SourceModel

__all__ = ["export", "export_as"]

_MODULES: Final = ("torch", "transformers", "onnx", "onnxscript", "onnxruntime")
_PACKAGES: Final = ("vsr-onnx", "torch", "transformers", "onnx", "onnxscript")
_SCRATCH: Final = ".scratch"


def export(request: ExportRequest) -> ExportReport:
    """Write a checkpoint as an ONNX graph.

    :raises PluginError: a package is missing, or the graph is not what its source computes.
    :raises CheckpointError: the checkpoint is damaged, of a family that is not exported, or does not bear quantising.
    :raises InvalidInputError: the folder cannot be made.
    """
    return export_as(request, OnnxForm())


def export_as(request: ExportRequest, form: GraphForm) -> ExportReport:
    """Write a checkpoint in a form that is made of its ONNX graph; raises as :func:`export` does."""
    require(_MODULES, form)
    from .reading import read_source

    started = time.perf_counter()
    with new_folder(request.out) as folder:
        _say(request, f"reading {request.source} with transformers")
        source = read_source(request)
        copy_documents(request.path, request.spec, folder)
        if source.head is not None:
            source.head.save(folder)
        scratch = folder / _SCRATCH
        scratch.mkdir()
        tolerance = _write_graph(request, source, form, folder=folder, scratch=scratch)
        shutil.rmtree(scratch)
        _say(request, "writing the manifest")
        _describe(request, source, form, folder=folder, tolerance=tolerance)
        files = listed(folder)
    return ExportReport(
        folder=request.out,
        manifest=request.out / MANIFEST,
        files=files,
        layers=request.layers,
        max_abs=tolerance.max_abs,
        texts=tolerance.texts,
        seconds=time.perf_counter() - started,
        cosine=tolerance.cosine,
    )


def _write_graph(
    request: ExportRequest, source: SourceModel, form: GraphForm, *, folder: Path, scratch: Path
) -> ExportTolerance:
    """Trace the model and put its graph into the folder, checked."""
    from .checking import measure
    from .graph import write_graph
    from .quantizing import compare, quantize

    graph = scratch / "model.onnx"
    _say(request, "tracing the graph")
    write_graph(source, request.layers, graph)
    opened = open_onnx(graph) if request.quantize is not None else form.open(form.write(graph, folder))
    _say(request, "comparing the graph with transformers")
    tolerance = measure(opened, source, request, folder=folder, plugin=form.plugin)
    if request.quantize is None:
        return tolerance
    _say(request, "quantising to 8 bits")
    smaller = scratch / "model_int8.onnx"
    quantize(graph, smaller)
    _say(request, "comparing the quantised graph with the original")
    return compare(request, source, opened, form.open(form.write(smaller, folder)))


def _describe(
    request: ExportRequest,
    source: SourceModel,
    form: GraphForm,
    *,
    folder: Path,
    tolerance: ExportTolerance,
) -> None:
    from .graph import output_name

    spec = request.spec
    exits = tuple(
        ExitLayer(layer=layer, output=output_name(layer), final_norm=source.norm is not None)
        for layer in request.layers
    )
    write_manifest(
        folder,
        ExportManifest(
            family=spec.family,
            architecture=spec.architecture,
            capabilities=spec.capabilities,
            hidden_size=source.hidden_size,
            layers=source.layers,
            exits=exits,
            max_tokens=spec.max_tokens,
            inputs=source.inputs,
            files=_hashes(folder),
            pooling=spec.pooling,
            head=source.head.layout if source.head is not None else None,
            quantization=None if request.quantize is None else "int8-dynamic",
            tolerance=tolerance,
            source=ExportSource(content_hash=spec.content_hash, revision=spec.revision),
            versions=_versions((*_PACKAGES, *form.packages)),
        ),
    )


def _hashes(folder: Path) -> Mapping[str, str]:
    """SHA-256 of each file, hex."""
    found = {}
    for name in listed(folder):
        with (folder / name).open("rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _versions(packages: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # one of two flavours, or installed by other means than a wheel
            continue
    return found


def _say(request: ExportRequest, what: str) -> None:
    if request.progress is not None:
        request.progress(what)
