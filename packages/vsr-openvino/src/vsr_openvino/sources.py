"""What is loaded: the graphs of a model, what their outputs mean, and the head beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from vsr_core.catalog import check_files, exit_graphs, model_folder, read_manifest
from vsr_core.contract import LoadRequest
from vsr_core.errors import CheckpointError
from vsr_core.local import GraphLayout, NumpyHead, read_layout

from .reading import Graph, read_graph

__all__ = ["GraphSource", "read_source"]

_HIDDEN = ("last_hidden_state", "token_embeddings", "hidden_states")
"""How exporters call the hidden states of a graph that ends at one layer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphSource:
    """The graphs of one model, the deepest first, with the head to put on their hidden states."""

    folder: Path
    graphs: tuple[Graph, ...]
    layout: GraphLayout
    head: NumpyHead | None

    @property
    def vocabulary(self) -> int | None:
        """Rows of the token embedding, where the graph says."""
        return self.graphs[0].vocabulary

    @property
    def bytes(self) -> int:
        """What the constants of the graphs take."""
        return sum(graph.bytes for graph in self.graphs)

    @property
    def native(self) -> str:
        """The output that plain requests are answered from."""
        layout = self.layout
        if self.head is None and layout.logits is not None:
            return layout.logits
        return layout.hidden.get(layout.layers) or layout.pooled or next(iter(self.graphs[0].outputs))


def read_source(request: LoadRequest) -> GraphSource:
    """Read the files a request names, once they are those of one export.

    :raises CheckpointError: a file is missing, damaged or of another export, or the graph cannot serve the model.
    """
    folder, spec = model_folder(request.path), request.spec
    manifest = read_manifest(folder)
    if manifest is not None:
        check_files(folder, manifest)
    files = exit_graphs(spec.weights, spec.layers or 0)
    if not files:
        raise CheckpointError(f"{folder} holds no graph: it takes openvino_model.xml with its .bin, or model.onnx")
    deepest, *others = sorted(files, reverse=True)
    first = read_graph(folder / files[deepest])
    graphs = (first, *(_exit(read_graph(folder / files[layer]), layer, of=first) for layer in others))
    layout = read_layout(
        first.path,
        spec,
        manifest=manifest,
        inputs=first.inputs,
        outputs=[name for graph in graphs for name in graph.outputs],
    )
    head = None
    if manifest is not None and manifest.head is not None:
        head = NumpyHead.read(folder, manifest.head, hidden_size=manifest.hidden_size)
    return GraphSource(folder=folder, graphs=graphs, layout=layout, head=head)


def _exit(graph: Graph, layer: int, *, of: Graph) -> Graph:
    """The graph of an earlier layer, its hidden states called after that layer."""
    name = f"hidden_{layer}"
    index = next((graph.outputs[known] for known in (name, *_HIDDEN) if known in graph.outputs), None)
    if index is None:
        raise CheckpointError(
            f"{graph.path}: gives {', '.join(map(repr, graph.outputs))}, and hidden states are what an exit needs:"
            f" export it with {_HIDDEN[0]!r}"
        )
    if not set(graph.inputs) <= set(of.inputs):
        raise CheckpointError(
            f"{graph.path}: reads {', '.join(graph.inputs)}, and {of.path.name} reads {', '.join(of.inputs)}: they are"
            f" of two exports; export both again"
        )
    return replace(graph, outputs={name: index})
