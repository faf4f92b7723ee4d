"""Reading a checkpoint with transformers, strictly: in float32, every tensor there, no code but transformers' own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from vsr_core.catalog import model_folder
from vsr_core.contract import ExportRequest, ModelSpec
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Artifact, Capability

from .heads import HeadKind, SourceHead, read_head

__all__ = ["SourceModel", "quietly", "read_source"]

_FAMILIES: Final = (
    "albert",
    "bert",
    "camembert",
    "deberta",
    "distilbert",
    "electra",
    "minilm",
    "mmbert",
    "modernbert",
    "mpnet",
    "roberta",
    "xlm_roberta",
)
"""Encoders whose exits and heads are known to mean what they mean on the other engines."""

_SEQUENCE: Final = frozenset({Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION, Capability.RERANKING})
_UNUSED: Final = "pooler."
"""What transformers builds around an encoder and an embedding never asks: it may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceModel:
    """A checkpoint as transformers computes it; what an export is held against.

    :param model: the whole model, :param encoder: the part that gives hidden states.
    :param norm: the last norm, applied at every exit; None where each layer ends in its own.
    :param types: whether it reads ``token_type_ids``.
    """

    model: Any
    encoder: Any
    head: SourceHead | None
    norm: torch.nn.Module | None
    layers: int
    hidden_size: int
    vocabulary: int
    padding: int
    types: bool

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the graph's inputs."""
        return ("input_ids", "attention_mask", *(("token_type_ids",) if self.types else ()))

    def exits(self, layers: Sequence[int], **inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The hidden states ``[batch, sequence, hidden]`` after each of the layers, with the last norm applied."""
        output = self.encoder(**inputs, output_hidden_states=True)
        states = [output.hidden_states[layer] for layer in layers[:-1]]
        if self.norm is not None:
            states = [self.norm(state) for state in states]
        return (*states, output.last_hidden_state)

    def logits(self, **inputs: torch.Tensor) -> torch.Tensor:
        """What the whole model gives, for one with a head."""
        found: torch.Tensor = self.model(**inputs).logits
        return found


def read_source(request: ExportRequest) -> SourceModel:
    """Read the checkpoint of a request.

    Attention is the plain one: it fills masked scores with a large negative number. transformers' fused attention
    would leave rows without any token, as a window over padding has, to each runtime's idea of a softmax over nothing.

    :raises CheckpointError: the family is not exported, or the files are not whole.
    """
    spec = request.spec
    if spec.family not in _FAMILIES:
        raise CheckpointError(
            f"{request.source}: the family {spec.family!r} is not exported, only {', '.join(_FAMILIES)}"
        )
    if spec.artifact not in (Artifact.FULL, Artifact.MERGED_LORA):
        raise CheckpointError(
            f"{request.source}: its weights are in the form {spec.artifact.value!r}; only whole safetensors "
            "checkpoints are exported"
        )
    kind = _head_kind(spec)
    model = _load(request, kind)
    encoder = model if kind is None else model.base_model
    config = model.config
    return SourceModel(
        model=model,
        encoder=encoder,
        head=None if kind is None else read_head(model, kind, spec.family),
        norm=getattr(encoder, "final_norm", None),
        layers=config.num_hidden_layers,
        hidden_size=config.hidden_size,
        vocabulary=encoder.get_input_embeddings().num_embeddings,
        padding=getattr(config, "pad_token_id", None) or 0,
        types=(getattr(config, "type_vocab_size", 0) or 0) > 1,
    )


@contextmanager
def quietly() -> Iterator[None]:
    """Keep transformers and torch from drawing progress bars, and from warning of what is checked here anyway."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(40)  # that of logging.ERROR
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _head_kind(spec: ModelSpec) -> HeadKind | None:
    if Capability.TOKEN_CLASSIFICATION in spec.capabilities:
        return "token"
    return "sequence" if not _SEQUENCE.isdisjoint(spec.capabilities) else None


def _load(request: ExportRequest, kind: HeadKind | None) -> Any:
    import transformers

    classes = {
        None: transformers.AutoModel,
        "sequence": transformers.AutoModelForSequenceClassification,
        "token": transformers.AutoModelForTokenClassification,
    }
    folder = model_folder(request.path) / (request.spec.weights[0].rpartition("/")[0] if request.spec.weights else "")
    try:
        with quietly():
            model, report = classes[kind].from_pretrained(
                str(folder),
                dtype=torch.float32,
                attn_implementation="eager",
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
            )
    except Exception as error:
        raise CheckpointError(f"{folder}: transformers cannot load it: {_one_line(error)}") from error
    _check(str(folder), kind, report)
    return model.eval()


def _check(folder: str, kind: HeadKind | None, report: Mapping[str, Any]) -> None:
    """Refuse what transformers merely logs: tensors that are missing would be random."""
    missing = [name for name in sorted(report["missing_keys"]) if kind is not None or _UNUSED not in f"{name}."]
    problems = [
        ("lack", missing),
        ("hold other shapes for", sorted(str(entry[0]) for entry in report["mismatched_keys"])),
        ("hold tensors nobody uses:", sorted(report["unexpected_keys"]) if kind is not None else []),
    ]
    said = [f"the weights {what} {', '.join(map(repr, names[:3]))}" for what, names in problems if names]
    if said:
        raise CheckpointError(f"{folder}: {'; '.join(said)}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
