"""The pipeline every in-process backend shares: tokenise, batch, run, decode. For adapter distributions only."""

from __future__ import annotations

from ..catalog.schemes import read_scheme
from .adapted import AdaptedBase
from .adapters import read_adapter, target_of
from .base import BaseIdentity, EncoderBase
from .batching import Batcher
from .build import build_adapter, build_encoder
from .classification import PairClassificationTask, PreparedClassification, SequenceClassificationTask
from .comparing import MAX_SHIFT, MIN_COSINE, PROBE_TEXTS, Comparison, largest_shift, least_cosine
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
from .envelopes import build_envelope
from .finite import check_finite, withheld
from .folders import copy_documents, listed, new_folder
from .graph import GraphEngine, GraphLayout, GraphRunner, plan_fused, plan_graph
from .graph_layout import read_layout
from .handle import EncoderHandle, EncoderTask, PreparedRequest
from .heads import NumpyHead
from .layers import default_layer, effective_layer, engine_layer
from .lora import AdapterHost, AdapterTarget, Anatomy, LinearSite, LoraAdapter, LowRank
from .memory import WorkingMemory
from .pairs import EncodedPair, PairNames, WindowedPair, encode_pair_windows, encode_pairs
from .pooling import l2_normalize, non_finite_rows, pool, pooled_width, truncate_dimensions
from .precision import choose_precision
from .probing import compare, probe_ids, prove, prove_adapter
from .reranking import PreparedReranking, RerankingTask
from .scoring import Scorer, activate, check_calibration
from .selection import choose
from .space import compatibility_key, label_key, space_of
from .spans import find_spans
from .tagging import PreparedTagging, TokenClassificationTask
from .threads import ComputeThreads
from .throughput import BatcherStats
from .tickets import ItemResult, RowWant, Ticket, WorkItem
from .tokenize import EncodedText, TextTokenizer, character_cap
from .windows import WindowedText, encode_windows

__all__ = [
    "MAX_SHIFT",
    "MIN_COSINE",
    "PROBE_TEXTS",
    "AdaptedBase",
    "AdapterHost",
    "AdapterTarget",
    "Anatomy",
    "BaseIdentity",
    "BatchRow",
    "BatchShape",
    "Batcher",
    "BatcherStats",
    "Comparison",
    "ComputeThreads",
    "DenseModule",
    "EmbeddingTask",
    "EncodedPair",
    "EncodedText",
    "EncoderBase",
    "EncoderEngine",
    "EncoderHandle",
    "EncoderTask",
    "EngineOutput",
    "GraphEngine",
    "GraphLayout",
    "GraphRunner",
    "IntArray",
    "ItemResult",
    "LinearSite",
    "LoraAdapter",
    "LowRank",
    "NumpyHead",
    "PairClassificationTask",
    "PairNames",
    "PreparedClassification",
    "PreparedEmbedding",
    "PreparedRequest",
    "PreparedReranking",
    "PreparedTagging",
    "RaggedBatch",
    "Reduction",
    "RerankingTask",
    "RowWant",
    "Scorer",
    "SequenceClassificationTask",
    "TextTokenizer",
    "Ticket",
    "TokenClassificationTask",
    "Want",
    "WantHidden",
    "WantLogits",
    "WantPooled",
    "WindowedPair",
    "WindowedText",
    "WorkItem",
    "WorkingMemory",
    "activate",
    "apply_dense",
    "build_adapter",
    "build_encoder",
    "build_envelope",
    "character_cap",
    "check_calibration",
    "check_finite",
    "choose",
    "choose_precision",
    "compare",
    "compatibility_key",
    "copy_documents",
    "default_layer",
    "effective_layer",
    "encode_pair_windows",
    "encode_pairs",
    "encode_windows",
    "engine_layer",
    "find_spans",
    "l2_normalize",
    "label_key",
    "largest_shift",
    "least_cosine",
    "listed",
    "load_dense",
    "new_folder",
    "non_finite_rows",
    "plan_fused",
    "plan_graph",
    "pool",
    "pooled_width",
    "probe_ids",
    "prove",
    "prove_adapter",
    "read_adapter",
    "read_layout",
    "read_scheme",
    "space_of",
    "target_of",
    "truncate_dimensions",
    "withheld",
]
