"""Loading an encoder: its files, the session, the engine, the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vsr_core.catalog import ExportManifest, check_files, exit_graphs, model_folder, read_manifest
from vsr_core.contract import Choice, FeatureState, LoadRequest, ModelHandle, ModelSpec
from vsr_core.errors import CheckpointError, LoadError
from vsr_core.local import (
    ComputeThreads,
    GraphEngine,
    GraphLayout,
    NumpyHead,
    WorkingMemory,
    build_encoder,
    read_layout,
)
from vsr_core.taxonomy import Artifact, Capability, Feature

from .graph import Graph, read_graph
from .options import OnnxOptions
from .providers import place
from .proving import prove
from .runner import OnnxRunner, open_exits, open_graph
from .session import Provider, SessionFactory

__all__ = ["load_encoder"]

_RUN_TOKENS = 128
"""Padded tokens of one run for each compute thread: ONNX Runtime gets most through with what stays in the caches, and one
run on all threads beats two that share them."""

_DTYPES: Mapping[str, str] = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
}
"""Short names of a precision policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """What was read of a model before anything runs.

    :param graphs: the graph for each layer, rising; one alone may have further layers in it.
    """

    folder: Path
    manifest: ExportManifest | None
    graphs: Mapping[int, Graph]

    @property
    def deepest(self) -> Graph:
        """The graph of the native depth."""
        return self.graphs[max(self.graphs)]

    @property
    def bytes(self) -> int:
        """What the weights take on disk."""
        paths = {graph.path for graph in self.graphs.values()}
        paths |= {graph.path.parent / name for graph in self.graphs.values() for name in graph.data_files}
        return sum(path.stat().st_size for path in paths)


def load_encoder(request: LoadRequest, *, options: OnnxOptions, threads: ComputeThreads) -> ModelHandle:
    """Load an encoder with its head.

    :raises CheckpointError: the files are damaged, incomplete, of two exports, or not those of such an encoder.
    :raises LoadError: a provider or precision that was required is not to be had.
    :raises NonFiniteOutputError: the model answers NaN or infinity.
    """
    files = _read_files(request)
    dtype = _dtype(request, files)
    layout, create = _prepare(request, files, options=options, threads=request.threads or threads.total)
    head = None
    if files.manifest is not None and files.manifest.head is not None:
        head = NumpyHead.read(files.folder, files.manifest.head, hidden_size=layout.hidden_size)
    placed = place(request.device, create, backend_id=str(request.backend_id))
    engine = GraphEngine(placed.session, layout, head=head, run_tokens=_run_tokens(request, placed.device, threads))
    try:
        prove(request, engine, layout, vocabulary=files.deepest.vocabulary)
    except BaseException:
        engine.close()
        raise
    return build_encoder(
        request,
        engine,
        device=placed.device,
        dtype=dtype,
        provider=placed.provider,
        vocab_size=files.deepest.vocabulary,
        memory_bytes=files.bytes,
        memory=WorkingMemory(),
        threads=threads,
        features=_features(layout),
    )


def _run_tokens(request: LoadRequest, device: Choice, threads: ComputeThreads) -> int | None:
    """On a GPU a batch is run whole: there it is the larger the better."""
    return _RUN_TOKENS * (request.threads or threads.total) if device.actual == "cpu" else None


def _read_files(request: LoadRequest) -> _Files:
    """Everything that can be wrong with the files, found before a session is created."""
    folder, spec = model_folder(request.path), request.spec
    manifest = read_manifest(folder)
    if manifest is not None:
        check_files(folder, manifest)
    names = exit_graphs(spec.weights, spec.layers or 0)
    names = {layer: name for layer, name in names.items() if layer in spec.exit_layers or layer == max(names)}
    if not names:
        raise CheckpointError(f"{folder}: has no ONNX graph among its weights: export it with 'vsr export'")
    graphs = {layer: read_graph(folder / name) for layer, name in names.items()}
    for graph in graphs.values():
        if graph.quantized and spec.artifact is not Artifact.QUANTIZED:
            raise CheckpointError(
                f"{graph.path}: holds weights of 8 bits or less, whose answers differ from the model's own: ask for it"
                " with 'artifact: quantized'"
            )
        if not graph.quantized and spec.artifact is Artifact.QUANTIZED:
            raise CheckpointError(f"{graph.path}: is not quantized: leave 'artifact' out, or state 'onnx'")
    return _Files(folder=folder, manifest=manifest, graphs=graphs)


def _prepare(
    request: LoadRequest, files: _Files, *, options: OnnxOptions, threads: int
) -> tuple[GraphLayout, Callable[[Sequence[Provider]], OnnxRunner]]:
    """What the graph gives, and how to create its sessions on a provider."""
    factory = SessionFactory(options=options, threads=threads, backend_id=str(request.backend_id))
    deepest = files.deepest
    if len(files.graphs) > 1:
        exits = _exits(request, files)
        layout = _layout(request.spec, files, deepest, tuple(exits))
        return layout, lambda providers: open_exits(exits, providers, factory=factory)
    layout = _layout(request.spec, files, deepest, [port.name for port in deepest.outputs])
    outputs = [*layout.hidden.values(), *(name for name in (layout.logits, layout.pooled) if name is not None)]
    return layout, lambda providers: open_graph(deepest, outputs, providers, factory=factory)


def _layout(spec: ModelSpec, files: _Files, graph: Graph, outputs: Sequence[str]) -> GraphLayout:
    """What the graph gives that is of use; the rest need not be computed."""
    inputs = [port.name for port in graph.inputs]
    layout = read_layout(graph.path, spec, manifest=files.manifest, inputs=inputs, outputs=outputs)
    embeds = Capability.EMBEDDING in spec.capabilities
    if layout.logits is not None and not embeds:
        return replace(layout, hidden={})
    served = {*spec.exit_layers, layout.layers}
    hidden = {layer: name for layer, name in layout.hidden.items() if layer in served}
    return replace(layout, hidden=hidden, logits=None if embeds else layout.logits)


def _exits(request: LoadRequest, files: _Files) -> dict[str, tuple[Graph, str]]:
    """The outputs of several files, each called after its layer."""
    found = {}
    for layer, graph in files.graphs.items():
        spec = replace(request.spec, layers=layer, exit_layers=())
        own = _layout(spec, replace(files, manifest=None), graph, [port.name for port in graph.outputs])
        name = own.hidden.get(layer)
        if name is None:
            raise CheckpointError(f"{graph.path}: gives no hidden states of layer {layer}: export it with them")
        found[f"hidden_{layer}"] = (graph, name)
    return found


def _dtype(request: LoadRequest, files: _Files) -> Choice:
    """What the graph computes in, held against what was asked for: a graph has the dtype it was exported in."""
    asked, graph = request.precision, files.deepest
    actual = "int8" if graph.quantized else graph.dtype
    reason = _accuracy(files.manifest) if graph.quantized else None
    if asked.value is not None and _DTYPES.get(asked.value, asked.value) != actual:
        reason = f"{graph.path.name} was exported in {actual}, and a graph computes in no other dtype"
        if asked.mode == "require":
            raise LoadError(
                f"{request.backend_id}: precision {str(asked)!r} is not to be had: {reason}",
                backend_id=str(request.backend_id),
            )
    return Choice(requested=str(asked), actual=actual, reason=reason)


def _accuracy(manifest: ExportManifest | None) -> str:
    """How far a quantised graph is from its source, as far as anybody said."""
    if manifest is None or manifest.tolerance is None:
        return "the files are quantized, and state no tolerance: compare the answers with those of the whole model"
    tolerance = manifest.tolerance
    alike = "" if tolerance.cosine is None else f", its vectors with a mean cosine of {tolerance.cosine:.4f} to them"
    return f"quantized; within {tolerance.max_abs:g} of its source on {tolerance.texts} texts{alike}, when exported"


def _features(layout: GraphLayout) -> tuple[FeatureState, ...]:
    states = [FeatureState(feature=Feature.PROVIDER_SELECTION, supported=True)]
    if layout.alone:
        reason = "each text is run by itself, since what shares a batch would change its numbers"
        states.append(FeatureState(feature=Feature.BATCHING, supported=False, reason=reason))
    return tuple(states)
