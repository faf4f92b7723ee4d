"""From a catalog entry and the files it names to one specification, or to everything that stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..contract import Activation, CatalogEntry, FamilyDescriptor, ModelSpec, PoolingSpec
from ..errors import CheckpointError
from ..taxonomy import Artifact, Capability, Modality
from .adapters import base_problem
from .contents import ADAPTER_LABELS
from .documents import model_folder
from .facts import CheckpointFacts
from .inspection import inspect_checkpoint
from .labels import stated_labels
from .scores import score_problems
from .sources import Source
from .tokenizer import token_problems
from .weights import FORMS

__all__ = ["specify"]

T = TypeVar("T")

_EMBEDDINGS = frozenset({Capability.EMBEDDING, Capability.MULTIMODAL_EMBEDDING})
_GENERATORS = frozenset({Capability.GENERATION, Capability.GENERATIVE_CLASSIFICATION, Capability.GUARD})
_LABELLED = frozenset(
    {
        Capability.SEQUENCE_CLASSIFICATION,
        Capability.PAIR_CLASSIFICATION,
        Capability.TOKEN_CLASSIFICATION,
        Capability.SPANS,
        Capability.RERANKING,
        Capability.GUARD,
    }
)

_NAMED = _LABELLED - {Capability.RERANKING, Capability.GUARD}

_ALSO_CALLED: Mapping[Artifact, frozenset[Artifact]] = {
    Artifact.FULL: frozenset({Artifact.MERGED_LORA}),
    Artifact.MERGED_LORA: frozenset({Artifact.FULL}),
    Artifact.ONNX: frozenset({Artifact.QUANTIZED}),
    Artifact.OPENVINO_IR: frozenset({Artifact.QUANTIZED}),
    Artifact.GGUF: frozenset({Artifact.QUANTIZED}),
}
"""What an entry may call a form of weights whose files do not tell these apart."""


def specify(
    entry: CatalogEntry,
    path: Path,
    *,
    families: Mapping[str, FamilyDescriptor],
    revision: str | None = None,
    base: ModelSpec | None = None,
    base_source: Source | None = None,
    under_adapters: bool = False,
    relative_to: Path | None = None,
) -> ModelSpec:
    """Describe a model by its files, and by what its entry states where they are silent.

    ``content_hash`` is left None, since hashing reads all the weights; :func:`hash_files` gives it.

    :param path: the model's folder, or one weight file in it; for an adapter, the adapter's.
    :param families: every installed family by name.
    :param revision: what the source resolved to.
    :param base: for an adapter, the specification of its base, which has the family, the sizes and, for vectors, what
        comes after the encoder.
    :param base_source: for an adapter, where its base is from, which is held against what it was trained on.
    :param under_adapters: whether adapters sit on the model: then it need not say how to pool, and without that it gives
        no vectors of its own.
    :param relative_to: the folder against which a label file that the entry names is looked up first; the model's own
        folder is second.
    :raises CheckpointError: damaged files, a model that cannot be served, or statements that contradict the files;
        ``problems`` has them all.
    """
    stated = families.get(entry.family) if entry.family is not None else None
    form = Artifact.FULL if entry.artifact is Artifact.MERGED_LORA else entry.artifact
    if entry.adapter is not None and form is None:
        form = Artifact.LORA_ADAPTER
    facts = inspect_checkpoint(path, families, family=stated, artifact=form if form in FORMS else None)
    merge = _Merge(entry, facts, path, base=base, relative_to=relative_to)
    merge.under_adapters = under_adapters
    if facts.adapter is not None and base_source is not None:
        misplaced = base_problem(facts.adapter, base_source, revision=base.revision if base is not None else None)
        merge.problems += [misplaced] if misplaced is not None else []
    if entry.family is not None and stated is None:
        merge.problems.append(f"family: {entry.family!r} is no installed family; install the plugin that brings it")
    spec = merge.spec(stated or families.get(facts.family or ""), base=base, revision=revision)
    if merge.problems:
        listed = "\n".join(f"  {problem}" for problem in merge.problems)
        raise CheckpointError(f"{entry.name!r} ({path}) cannot be served:\n{listed}", problems=merge.problems)
    return spec


class _Merge:
    """One entry against the facts of its files; every step adds to ``problems`` and goes on."""

    def __init__(
        self,
        entry: CatalogEntry,
        facts: CheckpointFacts,
        path: Path,
        *,
        base: ModelSpec | None,
        relative_to: Path | None,
    ) -> None:
        self.entry = entry
        self.facts = facts if base is None else _completed(facts, base)
        self.path = path
        self.relative_to = relative_to
        self.under_adapters = False
        self.problems = list(facts.refusals)

    def spec(self, family: FamilyDescriptor | None, *, base: ModelSpec | None, revision: str | None) -> ModelSpec:
        facts = self.facts
        capabilities = self._capabilities()
        if self.under_adapters and not self._pools(family) and not self.entry.capabilities:
            capabilities = tuple(capability for capability in capabilities if capability not in _EMBEDDINGS)
        embeds = not _EMBEDDINGS.isdisjoint(capabilities)
        labelled = not _LABELLED.isdisjoint(capabilities)
        max_tokens = self._max_tokens(base)
        depth = facts.layers if facts.layers is not None or base is None else base.layers
        native, dimensions = self._dimensions(base) if embeds else (None, self._no_dimensions())
        prompts = self._prompts()
        labels = self._labels() if labelled or self.entry.labels is not None else None
        activation = self._activation(labels) if labelled else None
        self.problems += score_problems(
            self.entry, capabilities=capabilities, labels=labels, count=self.facts.label_count, activation=activation
        )
        self.problems += token_problems(
            model_folder(self.path), self.facts.artifact, capabilities=capabilities, max_tokens=max_tokens
        )
        return ModelSpec(
            capabilities=capabilities,
            family=self._family(family, base),
            artifact=self._artifact(),
            modality=self._agree("modality", self.entry.modality, facts.modality) or Modality.TEXT,
            architecture=facts.architecture,
            hidden_size=facts.hidden_size if facts.hidden_size is not None or base is None else base.hidden_size,
            layers=depth,
            native_dimensions=native,
            dimensions=dimensions,
            exit_layers=self._exit_layers(depth, capabilities),
            max_tokens=max_tokens,
            advertised_max_tokens=facts.advertised_max_tokens or (base.advertised_max_tokens if base else None),
            pooling=self._pooling(family, capabilities),
            normalize=self._agree("normalize", self.entry.normalize, facts.normalize) if embeds else None,
            dense=facts.dense,
            prompts=prompts,
            default_prompt=self._default_prompt(prompts),
            similarity=facts.similarity or "cosine",
            labels=labels,
            activation=activation,
            lowercase=facts.lowercase,
            weights=facts.weights,
            files=facts.files,
            revision=revision,
            stored_dtype=facts.stored_dtype,
        )

    def _agree(
        self, name: str, stated: T | None, found: T | None, show: Callable[[T], object] = lambda value: value
    ) -> T | None:
        if stated is None:
            return found
        if found is not None and stated != found:
            self.problems.append(
                f"{name}: the entry states {_shown(show(stated))}, the files say {_shown(show(found))}"
            )
        return stated

    def _family(self, family: FamilyDescriptor | None, base: ModelSpec | None) -> str:
        if family is not None:
            return family.name
        if base is not None:
            return base.family
        if self.entry.family is None:
            found = self.facts.model_type
            self.problems.append(
                f"family: no installed family recognises model_type {found!r}; state 'family' or install its plugin"
                if found is not None
                else "family: the files do not name one; state 'family'"
            )
        return self.entry.family or ""

    def _artifact(self) -> Artifact:
        stated, found = self.entry.artifact, self.facts.artifact
        if stated is not None and found is not None and stated in _ALSO_CALLED.get(found, ()):
            return stated
        if self.entry.adapter is not None and found is not None and found is not Artifact.LORA_ADAPTER:
            self.problems.append(
                "adapter: the files are no LoRA adapter (adapter_config.json, adapter_model.safetensors)"
            )
        return self._agree("artifact", stated, found) or Artifact.FULL

    def _capabilities(self) -> tuple[Capability, ...]:
        stated, servable = self.entry.capabilities, self.facts.servable
        if stated and servable is not None:
            beyond = [str(capability) for capability in stated if capability not in servable]
            if beyond:
                made_for = ", ".join(map(str, self.facts.capabilities))
                self.problems.append(f"capabilities: the files are made for {made_for}, not for {', '.join(beyond)}")
        found = stated or self.facts.capabilities
        if not found and not self.facts.refusals:
            self.problems.append("capabilities: the files do not say what the model is for; state 'capabilities'")
        return found

    def _dimensions(self, base: ModelSpec | None) -> tuple[int | None, tuple[int, ...]]:
        native = self.facts.native_dimensions
        if native is not None and self.facts.pooling is None and not self.facts.dense:
            native *= max(1, len(self.entry.pooling))  # the files do not pool, so they state the width of a token
        native = native or (base.native_dimensions if base is not None else None)
        widths = self.entry.dimensions or self.facts.matryoshka
        if native is None:
            native = max(widths, default=None)
        wrong = [width for width in widths if width < 1 or (native is not None and width > native)]
        if wrong:
            self.problems.append(f"dimensions: {_listed(wrong)} are outside 1 to {native}, the model's own width")
        return native, tuple(sorted({*widths, *((native,) if native is not None else ())}))

    def _no_dimensions(self) -> tuple[int, ...]:
        if self.entry.dimensions:
            self.problems.append("dimensions: only an embedding model has them")
        return ()

    def _exit_layers(self, depth: int | None, capabilities: tuple[Capability, ...]) -> tuple[int, ...]:
        stated = self.entry.layers
        if capabilities and _GENERATORS.issuperset(capabilities):
            if stated:
                self.problems.append("layers: a generative model cannot answer from an earlier layer")
            return ()
        offered = self.facts.exit_layers
        if offered:
            missing = [layer for layer in stated if layer not in offered]
            if missing:
                self.problems.append(
                    f"layers: the graph has no output for {_listed(missing)}, it has them for {_listed(offered)}; "
                    "export the model again with these layers"
                )
            return tuple(sorted({*stated, offered[-1]})) if stated else offered
        wrong = [layer for layer in stated if layer < 1 or (depth is not None and layer > depth)]
        if wrong:
            self.problems.append(f"layers: {_listed(wrong)} are outside 1 to {depth}, the model's own depth")
        return tuple(sorted({*stated, *((depth,) if depth is not None else ())}))

    def _max_tokens(self, base: ModelSpec | None) -> int | None:
        stated, found = self.entry.max_tokens, self.facts.max_tokens
        if base is not None and base.max_tokens is not None:
            found = base.max_tokens if found is None else min(found, base.max_tokens)
        if stated is None:
            return found
        if stated < 1 or (found is not None and stated > found):
            self.problems.append(f"max_tokens: {stated} is outside 1 to {found}; the limit may be lowered, not raised")
        return stated

    def _pools(self, family: FamilyDescriptor | None) -> bool:
        """Whether anybody says how token vectors become one."""
        known = self.entry.pooling or self.facts.pooling or (family is not None and family.pooling)
        return bool(known)

    def _pooling(self, family: FamilyDescriptor | None, capabilities: tuple[Capability, ...]) -> PoolingSpec | None:
        if Capability.EMBEDDING not in capabilities:
            if self.entry.pooling and capabilities:
                self.problems.append("pooling: only an embedding model has it")
            return None
        found = self.facts.pooling
        stated = PoolingSpec(modes=self.entry.pooling) if self.entry.pooling else None
        if stated is not None and found is not None and stated.modes == found.modes:
            return found
        pooling = self._agree("pooling", stated, found, lambda spec: "+".join(spec.modes))
        if pooling is None and family is not None and family.pooling is not None:
            return PoolingSpec(modes=(family.pooling,))
        if pooling is None:
            self.problems.append("pooling: neither the files nor the family say how to pool; state 'pooling'")
        return pooling

    def _prompts(self) -> Mapping[str, str] | None:
        stated, found = self.entry.prompts or {}, self.facts.prompts or {}
        for name in sorted(set(stated) & set(found)):
            self._agree(f"prompts.{name}", stated[name], found[name])
        return {**found, **stated} or None

    def _default_prompt(self, prompts: Mapping[str, str] | None) -> str | None:
        name = self._agree("default_prompt", self.entry.default_prompt, self.facts.default_prompt)
        if name is not None and name not in (prompts or {}):
            self.problems.append(f"default_prompt: {name!r} is none of the prompts ({_listed(sorted(prompts or {}))})")
        return name

    def _labels(self) -> tuple[str, ...] | None:
        found, rows = self.facts.labels, self.facts.label_count
        try:
            stated = stated_labels(self.entry, self.path, self.relative_to)
        except CheckpointError as error:
            self.problems.append(f"labels: {error.message}")
            return None
        if stated is not None and found is None and rows not in (None, len(stated)):
            whose = f"{self.entry.labels!r}" if isinstance(self.entry.labels, str) else "the entry"
            self.problems.append(f"labels: {whose} names {len(stated)}, the model has {rows}")
        if stated is None and found is None and self._needs_names():
            self.problems.append(
                f"labels: a LoRA adapter does not name its labels; state 'labels', or put {ADAPTER_LABELS} beside it"
            )
        return self._agree("labels", stated, found, _listed)

    def _needs_names(self) -> bool:
        """Whether nothing else could name the labels: the configuration of the base has those of the base."""
        capabilities = self.entry.capabilities or self.facts.capabilities
        return self.facts.artifact is Artifact.LORA_ADAPTER and not _NAMED.isdisjoint(capabilities)

    def _activation(self, labels: tuple[str, ...] | None) -> Activation | None:
        """As transformers chooses it where no ``problem_type`` is named; a generative model has none."""
        if self.facts.activation is not None or not _GENERATORS.isdisjoint(self.facts.capabilities):
            return self.facts.activation
        count = self.facts.label_count if self.facts.label_count is not None else len(labels or ())
        return "sigmoid" if count == 1 else "softmax"


def _completed(facts: CheckpointFacts, base: ModelSpec) -> CheckpointFacts:
    """The facts of an adapter with what it has from its base: how its vectors are pooled and what follows."""
    if facts.adapter is None:
        return facts
    return replace(
        facts,
        native_dimensions=base.native_dimensions,
        matryoshka=base.dimensions,
        pooling=base.pooling,
        normalize=base.normalize,
        dense=base.dense,
        prompts=base.prompts,
        default_prompt=base.default_prompt,
        similarity=base.similarity,
        lowercase=base.lowercase,
    )


def _listed(values: object) -> str:
    items = list(values) if isinstance(values, list | tuple) else [values]
    shown = ", ".join(str(item) for item in items[:6])
    return f"{shown}, ... {len(items)} in all" if len(items) > 6 else shown


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
