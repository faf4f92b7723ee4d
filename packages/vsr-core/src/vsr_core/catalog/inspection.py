"""What the files of a model say about it, before anybody states anything. Nothing is imported, nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..contract import FamilyDescriptor
from ..taxonomy import Artifact, Capability, Modality
from .adapter_settings import adapter_problems
from .adapters import AdapterConfig
from .contents import Contents, read_contents
from .facts import CheckpointFacts
from .families import belongs, recognise
from .geometry import depth_and_width, embedding_width, inner_config, token_limits
from .graphs import exit_graphs, is_graph
from .heads import Head, head_rows, read_head
from .labels import load_labels
from .manifest import MANIFEST, ExportManifest
from .purposes import capability_of_architecture, capability_of_task, servable
from .sentence_transformers import SentenceTransformer, matryoshka_dimensions

__all__ = ["inspect_checkpoint"]

_CLASSIFIERS = frozenset({Capability.SEQUENCE_CLASSIFICATION, Capability.TOKEN_CLASSIFICATION})


def inspect_checkpoint(
    path: Path,
    families: Mapping[str, FamilyDescriptor],
    *,
    family: FamilyDescriptor | None = None,
    artifact: Artifact | None = None,
) -> CheckpointFacts:
    """Read what the files of a model say.

    :param path: the model's folder, or one weight file in it.
    :param families: every installed family by name.
    :param family: the family to read the files as, in place of the one they are recognised as.
    :param artifact: which form of the weights is meant, where the folder holds several.
    :raises CheckpointError: files that are missing, damaged or malformed. What is whole but cannot be served is in
        ``refusals`` instead.
    """
    contents = read_contents(path, artifact)
    refusals = [*contents.refusals, *_code(contents)]
    config = contents.config.values if contents.config is not None else {}
    if family is None:
        family = recognise(config, families)
    elif not belongs(config, family):
        refusals.append(
            f"family: {family.name!r} does not fit, the files have model_type {config.get('model_type')!r} "
            f"and architectures {config.get('architectures')!r}"
        )
    head = _head(contents, family, refusals)
    sentence = contents.sentence or SentenceTransformer()
    refusals.extend(sentence.refusals)
    exported = contents.manifest
    limits = token_limits(contents, family)
    inner = inner_config(contents.config)
    layers, hidden = depth_and_width(inner) if inner is not None else (None, None)
    if exported is not None:
        refusals.extend(_check_sizes(exported, layers, hidden))
        layers, hidden = exported.layers, exported.hidden_size
    return CheckpointFacts(
        model_type=contents.config.text("model_type") if contents.config is not None else None,
        family=family.name if family is not None else None,
        architecture=_architecture(contents),
        artifacts=contents.forms,
        artifact=contents.form,
        modality=_modality(head),
        capabilities=head.capabilities,
        servable=servable(head.capabilities, contents.form) if head.capabilities else None,
        hidden_size=hidden,
        layers=layers,
        exit_layers=_exit_layers(contents, layers, refusals),
        native_dimensions=embedding_width(sentence, hidden, refusals),
        matryoshka=sentence.matryoshka or (matryoshka_dimensions(contents.config) if contents.config else ()),
        max_tokens=min(limits, default=None),
        advertised_max_tokens=max(limits, default=None),
        pooling=sentence.pooling or (exported.pooling if exported is not None else None),
        normalize=sentence.normalize,
        dense=sentence.dense,
        prompts=sentence.prompts,
        default_prompt=sentence.default_prompt,
        similarity=sentence.similarity,
        labels=head.labels or _labels_beside(contents, head, refusals),
        label_count=head.rows,
        activation=head.activation,
        lowercase=sentence.lowercase,
        weights=contents.weights,
        files=contents.files,
        stored_dtype=contents.stored_dtype,
        adapter=_adapter(contents),
        refusals=tuple(refusals),
    )


def _adapter(contents: Contents) -> AdapterConfig | None:
    config = contents.adapter
    return None if config is None or adapter_problems(config) else AdapterConfig.read(config)


def _code(contents: Contents) -> list[str]:
    """Refusals of files that ask for Python code from the model's repository."""
    return [
        f"{document.path.name}: 'auto_map' asks for code from the model's repository, which is never run"
        for document in (contents.config, contents.tokenizer)
        if document is not None and document.values.get("auto_map")
    ]


def _exit_layers(contents: Contents, layers: int | None, refusals: list[str]) -> tuple[int, ...]:
    """The layers the graphs of a model end at, or its manifest names; none for weights that can be left at any."""
    if contents.manifest is not None:
        return contents.manifest.exit_layers
    if layers is None or not any(is_graph(name) for name in contents.weights):
        return ()
    found = tuple(exit_graphs(contents.weights, layers))
    if found[-1] != layers:
        refusals.append(f"no graph is of the native depth, {layers}; there are graphs for {', '.join(map(str, found))}")
    return found


def _check_sizes(manifest: ExportManifest, layers: int | None, hidden: int | None) -> list[str]:
    """Refusals of a manifest that is not of the model in ``config.json``."""
    pairs = (("num_hidden_layers", layers, manifest.layers), ("hidden_size", hidden, manifest.hidden_size))
    return [
        f"{MANIFEST} is of a model with {name} {exported}, config.json says {said}: files of two exports are mixed"
        for name, said, exported in pairs
        if said is not None and said != exported
    ]


def _architecture(contents: Contents) -> str | None:
    named = contents.config.items("architectures") if contents.config is not None else ()
    return named[0] if named and isinstance(named[0], str) else None


def _head(contents: Contents, family: FamilyDescriptor | None, refusals: list[str]) -> Head:
    if contents.sentence is not None and contents.sentence.embeds:
        return Head(capabilities=(Capability.EMBEDDING,))
    capability = _capability(contents, family, refusals)
    rows = head_rows(contents.tensors)
    if contents.manifest is not None and contents.manifest.head is not None:
        rows = contents.manifest.head.labels
    if capability is None:
        return Head(capabilities=(), rows=rows)
    if capability not in _CLASSIFIERS:
        return Head(capabilities=(capability,))
    config = contents.config if contents.adapter is None else None
    head = read_head(config, capability, sentence=contents.sentence, rows=rows)
    refusals.extend(head.refusals)
    return head


def _capability(contents: Contents, family: FamilyDescriptor | None, refusals: list[str]) -> Capability | None:
    if contents.adapter is not None:
        return capability_of_task(contents.adapter.text("task_type"))
    architecture = _architecture(contents)
    if architecture is None or family is None:
        return None
    capability = capability_of_architecture(architecture, family)
    if capability is None:
        refusals.append(f"the architecture {architecture!r} is none that family {family.name!r} lists")
    return capability


def _modality(head: Head) -> Modality | None:
    if Capability.MULTIMODAL_EMBEDDING in head.capabilities:
        return Modality.IMAGE
    return Modality.TEXT if head.capabilities else None


def _labels_beside(contents: Contents, head: Head, refusals: list[str]) -> tuple[str, ...] | None:
    """Labels from the mapping files of the model, for a head whose configuration names none."""
    if _CLASSIFIERS.isdisjoint(head.capabilities):
        return None
    found = {name: load_labels(contents.folder / name).labels for name in contents.label_files}
    if len(set(found.values())) > 1:
        refusals.append(f"{' and '.join(found)} disagree on the labels; remove those that are not this model's")
        return None
    for name, labels in found.items():
        if head.rows not in (None, len(labels)):
            refusals.append(f"{name} has {len(labels)} labels, the head has {head.rows}")
        return labels
    return None
