"""The pipeline every in-process backend shares: tokenise, batch, run, decode. For adapter distributions only."""

from __future__ import annotations

from .base import BaseIdentity, EncoderBase
from .batching import Batcher
from .build import build_encoder
from .dense import DenseModule, apply_dense, load_dense
from .embedding import EmbeddingTask, PreparedEmbedding
from .engine import (
    BatchRow,
    BatchShape,
    EncoderEngine,
    EngineOutput,
    IntArray,
    RaggedBatch,
    Reduction,
    Want,
    WantHidden,
    WantLogits,
    WantPooled,
)
from .handle import EncoderHandle, EncoderTask, PreparedRequest
from .pooling import l2_normalize, non_finite_rows, pool, pooled_width, truncate_dimensions
from .selection import choose
from .space import compatibility_key, space_of
from .threads import ComputeThreads
from .throughput import BatcherStats
from .tickets import ItemResult, RowWant, Ticket, WorkItem
from .tokenize import EncodedText, TextTokenizer, character_cap

__all__ = [
    "BaseIdentity",
    "BatchRow",
    "BatchShape",
    "Batcher",
    "BatcherStats",
    "ComputeThreads",
    "DenseModule",
    "EmbeddingTask",
    "EncodedText",
    "EncoderBase",
    "EncoderEngine",
    "EncoderHandle",
    "EncoderTask",
    "EngineOutput",
    "IntArray",
    "ItemResult",
    "PreparedEmbedding",
    "PreparedRequest",
    "RaggedBatch",
    "Reduction",
    "RowWant",
    "TextTokenizer",
    "Ticket",
    "Want",
    "WantHidden",
    "WantLogits",
    "WantPooled",
    "WorkItem",
    "apply_dense",
    "build_encoder",
    "character_cap",
    "choose",
    "compatibility_key",
    "l2_normalize",
    "load_dense",
    "non_finite_rows",
    "pool",
    "pooled_width",
    "space_of",
    "truncate_dimensions",
]
