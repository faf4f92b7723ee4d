"""Finding out which output of a graph is what: by the manifest of its export, or else by the usual names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..catalog.documents import Document, model_folder, read_document
from ..catalog.manifest import MANIFEST, ExportManifest
from ..contract import ModelSpec
from ..errors import CheckpointError
from ..taxonomy import Artifact, Capability
from .graph import GraphLayout

__all__ = ["read_layout"]

_IDS, _MASK, _TYPES = "input_ids", "attention_mask", "token_type_ids"
_NATIVE = ("last_hidden_state", "token_embeddings", "hidden_states")
"""How exporters call the hidden states at the native depth; the first one there is meant."""

_EXIT = re.compile(r"hidden_(\d+)")
_LOGITS = "logits"
_POOLED = "sentence_embedding"
_PAIRS = frozenset({Capability.PAIR_CLASSIFICATION, Capability.RERANKING})
_HEADED = frozenset({Capability.SEQUENCE_CLASSIFICATION, Capability.TOKEN_CLASSIFICATION, Capability.SPANS, *_PAIRS})


def read_layout(
    graph: Path,
    spec: ModelSpec,
    *,
    manifest: ExportManifest | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> GraphLayout:
    """The layout of a graph with these inputs and outputs.

    Without a manifest an output is known by its name: ``last_hidden_state``, ``token_embeddings`` or
    ``hidden_states`` for the native depth, ``hidden_<k>`` for the layer k, ``logits``, ``sentence_embedding``.

    :param graph: the file, in a model's folder with its ``config.json`` or below one.
    :raises CheckpointError: inputs the pipeline does not feed, outputs that cannot be named, or a graph that does
        not give what the model is for.
    """
    folder = model_folder(graph)
    config = read_document(folder, "config.json")
    layers = manifest.layers if manifest is not None else spec.layers
    hidden_size = manifest.hidden_size if manifest is not None else spec.hidden_size
    if layers is None or hidden_size is None:
        missing = "there is none" if config is None else "it does not have both"
        raise CheckpointError(
            f"{folder / 'config.json'}: a graph needs its 'hidden_size' and 'num_hidden_layers', and {missing}; "
            "put the model's config.json beside the graph"
        )
    _check_inputs(graph, spec, config=config, manifest=manifest, inputs=inputs)
    hidden = _by_manifest(manifest, folder, outputs) if manifest is not None else _by_name(outputs, layers)
    heads = (config.size("num_attention_heads") or config.size("n_heads")) if config is not None else None
    layout = GraphLayout(
        hidden=hidden,
        layers=layers,
        hidden_size=hidden_size,
        types=_TYPES in inputs,
        masked=_MASK in inputs,
        logits=_LOGITS if manifest is None and _LOGITS in outputs else None,
        pooled=_POOLED if manifest is None and _POOLED in outputs and not hidden else None,
        alone=_MASK not in inputs or _quantized(spec, manifest),
        attention_heads=heads or max(1, hidden_size // 32),
        inner_size=config.size("intermediate_size") if config is not None else None,
    )
    _check_outputs(graph, spec, layout, headed=manifest is not None and manifest.head is not None, outputs=outputs)
    return layout


def _quantized(spec: ModelSpec, manifest: ExportManifest | None) -> bool:
    """Dynamic quantisation scales activations by the range of the whole batch, so neighbours change the numbers."""
    return spec.artifact is Artifact.QUANTIZED or (manifest is not None and manifest.quantization is not None)


def _check_inputs(
    graph: Path,
    spec: ModelSpec,
    *,
    config: Document | None,
    manifest: ExportManifest | None,
    inputs: Sequence[str],
) -> None:
    others = [name for name in inputs if name not in (_IDS, _MASK, _TYPES)]
    if others or _IDS not in inputs:
        raise CheckpointError(
            f"{graph}: the graph reads {_listed(inputs)}; only {_IDS!r}, {_MASK!r} and {_TYPES!r} can be fed, "
            f"and the first must be among them: export it with these inputs"
        )
    if manifest is not None and set(inputs) != set(manifest.inputs):
        raise CheckpointError(
            f"{graph}: the graph reads {_listed(inputs)}, and {MANIFEST} says {_listed(manifest.inputs)}: "
            "export the model again into an empty folder"
        )
    types = config.integer("type_vocab_size") if config is not None else None
    if _TYPES not in inputs and (types or 0) > 1 and not _PAIRS.isdisjoint(spec.capabilities):
        raise CheckpointError(
            f"{graph}: the graph does not read {_TYPES!r}, by which the model tells the texts of a pair apart: "
            "export it with this input"
        )


def _by_manifest(manifest: ExportManifest, folder: Path, outputs: Sequence[str]) -> dict[int, str]:
    missing = [one.output for one in manifest.exits if one.output not in outputs]
    if missing:
        raise CheckpointError(
            f"{folder / MANIFEST}: the graph has no output {missing[0]!r}, it has {_listed(outputs)}; "
            "export the model again into an empty folder"
        )
    return {one.layer: one.output for one in manifest.exits}


def _by_name(outputs: Sequence[str], layers: int) -> dict[int, str]:
    found = {int(match[1]): name for name in outputs if (match := _EXIT.fullmatch(name))}
    native = next((name for name in _NATIVE if name in outputs), None)
    if native is not None:
        found[layers] = native
    return dict(sorted(found.items()))


def _check_outputs(graph: Path, spec: ModelSpec, layout: GraphLayout, *, headed: bool, outputs: Sequence[str]) -> None:
    """Refuse a graph that cannot serve what the spec promises."""
    wrong = None
    if not _HEADED.isdisjoint(spec.capabilities):
        offered = (*layout.hidden,) if headed else (layout.layers,)
        if not headed and layout.logits is None:
            wrong = f"the model classifies, which takes the output {_LOGITS!r} or a head in {MANIFEST}"
    else:
        offered = (*layout.hidden,) or (layout.layers,)
        if layout.hidden and layout.layers not in layout.hidden:
            wrong = f"none of them is the native depth, {layout.layers}"
        elif not layout.hidden and layout.pooled is None:
            wrong = f"no output is called {', '.join(map(repr, _NATIVE))} or {_POOLED!r}"
        elif layout.pooled is not None and (spec.dense or (spec.pooling and not spec.pooling.include_prompt)):
            wrong = f"{_POOLED!r} alone does not say which of the model's own stages it has been through"
    if wrong is not None:
        raise CheckpointError(f"{graph}: the graph gives {_listed(outputs)}: {wrong}; export it with hidden states")
    beyond = [layer for layer in spec.exit_layers if layer not in offered]
    if beyond:
        raise CheckpointError(
            f"{graph}: the graph cannot answer from layer {beyond[0]}; it has {', '.join(map(str, sorted(offered)))}"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
