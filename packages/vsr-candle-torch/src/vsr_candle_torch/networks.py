"""From the files of a checkpoint to a network, by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from vsr_core.catalog import model_folder
from vsr_core.contract import LoadRequest, ModelSpec
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Capability, Family

from .anatomies import HeadParts, anatomy_of, bert_parts, head_reader, modernbert_parts, roberta_parts
from .bert import BERT_PROBE, BertConfig, BertEncoder
from .borrowed import BorrowedNetwork, borrowed_config
from .families import BORROWED, OWN, ROBERTAS
from .fields import ConfigFields
from .heads import HeadKind, HeadReader, bert_head, modernbert_head, roberta_head
from .modernbert import MODERNBERT_PROBE, ModernBertConfig, ModernBertEncoder
from .network import HeadedEncoder, Network
from .packed import Encoder
from .weights import StrictTensors, check_values, read_tensors

__all__ = ["Blueprint", "blueprint"]

_SEQUENCE = frozenset({Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION, Capability.RERANKING})

_IGNORED = ("pooler.", "cls.", "lm_head.", "head.", "decoder.", "classifier.", "embeddings.position_ids", "score.")
"""What checkpoints hold beside the encoder and the head in use: the heads they were trained with."""


class Blueprint(Protocol):
    """A checkpoint that has been read and can be built in any dtype."""

    @property
    def vocabulary(self) -> int:
        """Rows of the token embedding."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """The longest sequence the model has positions for, None where it does not say."""
        ...

    def build(self, dtype: torch.dtype) -> Network:
        """The network in a dtype."""
        ...


def blueprint(request: LoadRequest, config: Mapping[str, Any]) -> Blueprint:
    """Read a checkpoint.

    :raises CheckpointError: its configuration or weights are not those of its family.
    """
    head, family = _head_kind(request.spec), request.spec.family
    if family in BORROWED:
        return _Borrowed(request, head, config)
    if family not in OWN:
        raise CheckpointError(f"{request.backend_id}: there is no forward for the family {family!r} here")
    return _Own(request, config, head)


def _head_kind(spec: ModelSpec) -> HeadKind | None:
    if Capability.TOKEN_CLASSIFICATION in spec.capabilities:
        return "token"
    return "sequence" if not _SEQUENCE.isdisjoint(spec.capabilities) else None


class _Shape(Protocol):
    @property
    def vocabulary(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Family:
    """How a family is read: its shape, its encoder, its head, and the prefix its tensors may have."""

    probe: str
    prefix: str
    shape: _Shape
    encoder: Callable[[StrictTensors, torch.dtype], Encoder]
    head: HeadReader
    parts: HeadParts


def _family(name: str, config: Mapping[str, Any], where: str) -> _Family:
    if name in (Family.MODERNBERT, Family.MMBERT):
        modern = ModernBertConfig.read(config, where)
        return _Family(
            MODERNBERT_PROBE,
            "model.",
            modern,
            lambda tensors, dtype: ModernBertEncoder(modern, tensors, dtype=dtype),
            partial(modernbert_head, config=config),
            modernbert_parts(modern.hidden_size, config),
        )
    roberta = name in ROBERTAS
    shape = BertConfig.read(config, where, roberta=roberta)
    return _Family(
        BERT_PROBE,
        "roberta." if roberta else "bert.",
        shape,
        lambda tensors, dtype: BertEncoder(shape, tensors, dtype=dtype),
        roberta_head if roberta else bert_head,
        (roberta_parts if roberta else bert_parts)(shape.hidden_size),
    )


class _Own:
    def __init__(self, request: LoadRequest, config: Mapping[str, Any], head: HeadKind | None) -> None:
        folder = model_folder(request.path)
        self._where = str(folder)
        self._kind = head
        self._family = _family(request.spec.family, config, str(folder / "config.json"))
        self._tensors: Mapping[str, Tensor] = read_tensors(folder, request.spec.weights)
        self.vocabulary = self._family.shape.vocabulary
        self.max_tokens: int | None = self._family.shape.max_tokens

    def build(self, dtype: torch.dtype) -> Network:
        family = self._family
        tensors = StrictTensors(self._tensors, where=self._where, prefixes=(family.prefix,), probe=family.probe)
        encoder = family.encoder(tensors, dtype)
        head = None
        if self._kind is not None:
            head = family.head(tensors, kind=self._kind, hidden=encoder.hidden_size)
        tensors.refuse_others(allowed=_IGNORED)
        hidden, kept = encoder.hidden_size, self._kept(tensors)
        return HeadedEncoder(
            encoder,
            head,
            anatomy=anatomy_of(encoder, family.parts, prefix=family.prefix, kept=kept),
            read_head=head_reader(family.head, family.parts, hidden=hidden, kept=kept),
        )

    def _kept(self, tensors: StrictTensors) -> dict[str, Tensor]:
        """The tensors of heads that the checkpoint has, whatever it was loaded for: adapters may need them."""
        names = {name for wanted, _ in self._family.parts.values() for name in wanted}
        found = {name: tensors.find(name) for name in sorted(names)}
        return {name: tensor for name, tensor in found.items() if tensor is not None}


class _Borrowed:
    def __init__(self, request: LoadRequest, head: HeadKind | None, config: Mapping[str, Any]) -> None:
        folder = model_folder(request.path)
        fields = ConfigFields(config, str(folder / "config.json"))
        self._kind = head
        self._tensors = read_tensors(folder, request.spec.weights)
        check_values(self._tensors, where=str(folder))
        fields.epsilon("layer_norm_eps", 1e-12)
        self._model = borrowed_config(folder, self._tensors)
        self.vocabulary = fields.count("vocab_size")
        self.max_tokens: int | None = None

    def build(self, dtype: torch.dtype) -> Network:
        return BorrowedNetwork(self._model, self._tensors, head=self._kind, dtype=dtype)
