"""The schema of a configuration: every key there is, with its type, bounds and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from ..contract import BatchingHints, CatalogEntry, PoolingMode, Preference
from ..plugins import InstanceSettings, PluginSettings
from ..taxonomy import Artifact, Capability, Kind, Modality
from .fields import (
    BackendIdText,
    BackendName,
    Count,
    EntryName,
    Number,
    OneOrMany,
    PreferenceText,
    RoleName,
    SealedOptions,
    Strict,
    Text,
)
from .settings import (
    LedgerSettings,
    PluginSection,
    Policies,
    PriceSettings,
    RoutingSettings,
    ServerSettings,
    SignalSettings,
    TenantSettings,
)

__all__ = [
    "BackendSettings",
    "BatchingSettings",
    "CalibrationSettings",
    "CatalogSettings",
    "ConfigDocument",
    "RoleSettings",
]


class CalibrationSettings(Strict):
    """How scores are calibrated."""

    temperature: Number = Field(default=1.0, gt=0, description="Divides logits before the activation.")


def _labels_form(value: Any) -> str | None:
    return "path" if isinstance(value, str) else "names" if isinstance(value, list | tuple) else None


_Labels = Annotated[
    Annotated[Text, Tag("path")] | Annotated[tuple[Text, ...], Tag("names")],
    Discriminator(
        _labels_form,
        custom_error_type="value",
        custom_error_message="expected a list of label names, or the path of a label file",
    ),
]


class CatalogSettings(Strict):
    """A model: where its weights are, and what its files do not say."""

    source: Text | None = Field(
        default=None, description="Where the weights are: a path, 'hf://org/name@revision', 'pkg://package/path'."
    )
    base: EntryName | None = Field(
        default=None, description="For a LoRA adapter: the name of the catalog entry it sits on."
    )
    adapter: Text | None = Field(default=None, description="For a LoRA adapter: where its weights are.")
    backends: Annotated[tuple[BackendName, ...], OneOrMany()] = Field(
        default=(), description="Which backends may serve it, in order; every one that can where this is left out."
    )
    capability: Annotated[tuple[Capability, ...], OneOrMany()] = Field(
        default=(), description="What the model is for, one or several; read from its files where this is left out."
    )
    family: Text | None = Field(default=None, description="The architecture family, such as 'bert' or 'modernbert'.")
    artifact: Artifact | None = Field(default=None, description="The form of the weights.")
    modality: Modality | None = Field(default=None, description="What goes in.")
    dimensions: Annotated[tuple[Count, ...], OneOrMany()] = Field(
        default=(), description="Widths an embedding request may ask for."
    )
    layers: Annotated[tuple[Count, ...], OneOrMany()] = Field(default=(), description="Layers a request may exit at.")
    max_tokens: Count | None = Field(
        default=None, description="Limit on the tokens of one input, special tokens included."
    )
    pooling: Annotated[tuple[PoolingMode, ...], OneOrMany()] = Field(
        default=(), description="How token vectors become one vector; several modes are concatenated."
    )
    normalize: bool | None = Field(default=None, description="Whether vectors are scaled to unit length.")
    prompts: Mapping[str, str] | None = Field(
        default=None, description="Texts put before an input, by the name a request gives."
    )
    default_prompt: str | None = Field(default=None, description="The prompt of a request that names none.")
    labels: _Labels | None = Field(default=None, description="Label names in index order, or the path of a label file.")
    threshold: Number | None = Field(
        default=None, description="The score from which a result has passed; a probability, or any raw score."
    )
    calibration: CalibrationSettings = Field(
        default_factory=CalibrationSettings, description="How scores are calibrated."
    )
    positive_labels: Annotated[tuple[Text, ...], OneOrMany()] = Field(
        default=(), description="The labels with which a result may pass; all where this is left out."
    )
    metadata: Mapping[str, str] | None = Field(
        default=None, description="Anything worth showing with the model, as text."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.base is None) != (self.adapter is None):
            raise _contradiction("'base' and 'adapter' go together: a LoRA adapter and the entry it sits on")
        if self.source is not None and self.adapter is not None:
            raise _contradiction("give either 'source', or 'base' and 'adapter', not both")
        if self.source is None and self.adapter is None and self.artifact is not Artifact.REMOTE:
            raise _contradiction("where are the weights? give 'source', or 'base' and 'adapter' for a LoRA adapter")
        return self

    @model_validator(mode="after")
    def _consistent_names(self) -> Self:
        names = self.labels if isinstance(self.labels, tuple) else ()
        if len(set(names)) != len(names):
            raise _contradiction("'labels' names a label twice")
        known = {*names, *(name[2:] for name in names if name[1:2] == "-")}  # B-PER is also known as PER
        unknown = [label for label in self.positive_labels if names and label not in known]
        if unknown:
            raise _contradiction(f"'positive_labels' has {unknown[0]!r}, which 'labels' has not")
        return self

    def to_entry(self, name: str) -> CatalogEntry:
        """The entry as the contract states it."""
        return CatalogEntry(
            name=name,
            source=self.source,
            base=self.base,
            adapter=self.adapter,
            backends=tuple(dict.fromkeys(self.backends)),
            capabilities=tuple(dict.fromkeys(self.capability)),
            family=self.family,
            artifact=self.artifact,
            modality=self.modality,
            dimensions=self.dimensions,
            layers=self.layers,
            max_tokens=self.max_tokens,
            pooling=self.pooling,
            normalize=self.normalize,
            prompts=self.prompts,
            default_prompt=self.default_prompt,
            labels=self.labels,
            threshold=self.threshold,
            temperature=self.calibration.temperature,
            positive_labels=self.positive_labels,
            metadata=self.metadata,
        )


def _contradiction(message: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{reason}", {"reason": message})


class BatchingSettings(Strict):
    """How much may share one batch and wait in one queue."""

    max_batch_tokens: Count = Field(
        default=BatchingHints().max_batch_tokens, description="Tokens of one batch, padding included."
    )
    max_queue_tokens: Count = Field(
        default=BatchingHints().max_queue_tokens, description="Tokens that may wait; beyond them a request is refused."
    )
    max_queue_items: Count = Field(
        default=BatchingHints().max_queue_items, description="Texts that may wait; beyond them a request is refused."
    )

    def to_hints(self) -> BatchingHints:
        """The hints as the contract states them."""
        return BatchingHints(**self.model_dump())


class BackendSettings(Strict):
    """A backend instance; every key not listed here is an option of its adapter."""

    model_config = ConfigDict(extra="allow")

    adapter: BackendName | None = Field(
        default=None, description="The installed backend this is an instance of; the instance's own name by default."
    )
    device: PreferenceText = Field(
        default=Preference(), description="Device: 'auto', 'prefer:<device>' or 'require:<device>'."
    )
    precision: PreferenceText = Field(
        default=Preference(), description="Precision: 'auto', 'prefer:<dtype>' or 'require:<dtype>'."
    )
    threads: Annotated[Count, Field(le=1024)] | None = Field(
        default=None, description="Compute threads, at most 1024; the runtime's share by default."
    )
    batching: BatchingSettings = Field(
        default_factory=BatchingSettings, description="How much may share one batch and wait in one queue."
    )
    max_adapters: Count = Field(
        default=64, description="LoRA adapters loaded on one base; beyond them the least recently used one goes."
    )

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """The keys listed here alone: options may hold secrets."""
        return [(name, getattr(self, name)) for name in type(self).model_fields]

    def to_instance(self, name: str) -> InstanceSettings:
        """The settings of the instance of this name."""
        return InstanceSettings(
            name=name,
            adapter=self.adapter or name,
            device=self.device,
            precision=self.precision,
            threads=self.threads,
            batching=self.batching.to_hints(),
            max_adapters=self.max_adapters,
            options=SealedOptions(self.model_extra or {}),
        )


class RoleSettings(Strict):
    """An ordered group of models under one name."""

    model: Annotated[tuple[Text, ...], OneOrMany()] = Field(
        description="Backend ids, catalog names or roles of the same kind, in the order they are tried."
    )
    fallback: Annotated[tuple[Text, ...], OneOrMany()] = Field(
        default=(), description="More of the same, tried after 'model'."
    )
    policies: Policies = Field(default=(), description="Routing policies for this role, as in 'routing'.")


def _role(value: Any) -> Any:
    if isinstance(value, str | list | tuple):
        return {"model": value}
    if not isinstance(value, Mapping):
        raise PydanticCustomError("value", "expected a backend id, a list of them, or a mapping with 'model'")
    return value


_Role = Annotated[RoleSettings, BeforeValidator(_role, json_schema_input_type=str | list[str] | RoleSettings)]


class ConfigDocument(Strict):
    """A configuration of vsr, as it is written."""

    catalog: Mapping[EntryName, CatalogSettings] = Field(default_factory=dict, description="Models by name.")
    backends: Mapping[BackendName, BackendSettings] = Field(
        default_factory=dict, description="Backend instances by name; what is installed needs no entry here."
    )
    roles: Mapping[Kind, Mapping[RoleName, _Role]] = Field(
        default_factory=dict, description="By kind, names for ordered groups of models."
    )
    routing: RoutingSettings = Field(default_factory=RoutingSettings, description="How a candidate is chosen.")
    signals: Mapping[Text, SignalSettings] = Field(
        default_factory=dict, description="Values that models compute about a request before candidates are chosen."
    )
    prices: Mapping[BackendIdText, PriceSettings] = Field(
        default_factory=dict, description="What models cost, by backend id."
    )
    tenants: Mapping[Text, TenantSettings] = Field(default_factory=dict, description="What each tenant may use.")
    ledger: LedgerSettings = Field(default_factory=LedgerSettings, description="Where attempt records are kept.")
    server: ServerSettings = Field(default_factory=ServerSettings, description="How 'vsr serve' listens.")
    plugins: PluginSection = Field(
        default_factory=PluginSection, description="Which plugins may be imported, and who wins a contested name."
    )

    def plugin_settings(self) -> PluginSettings:
        """The settings of plugin discovery."""
        section = self.plugins
        return PluginSettings(
            only=section.only,
            disabled=section.disabled,
            precedence=dict(section.precedence),
            strict=section.strict,
            timeout=section.timeout,
        )
