"""For the tests of backends, policies and applications: a conformance kit, tiny checkpoints, a backend to play with."""

from __future__ import annotations

from .checkpoints import BertShape, write_bert
from .conformance import BackendConformance, EncoderEngineConformance, PluginConformance
from .encoders import EncoderFamily, EncoderHead, EncoderShape, write_encoder
from .fixtures import plugin_host, tiny_checkpoint
from .sentence_transformers import DenseShape, Dialect, write_sentence_transformer
from .tokenizer_files import TokenizerKind, WrittenTokenizer, write_tokenizer
from .toy import ToyBackend, ToyHandle, ToyPlugin

__all__ = [
    "BackendConformance",
    "BertShape",
    "DenseShape",
    "Dialect",
    "EncoderEngineConformance",
    "EncoderFamily",
    "EncoderHead",
    "EncoderShape",
    "PluginConformance",
    "TokenizerKind",
    "ToyBackend",
    "ToyHandle",
    "ToyPlugin",
    "WrittenTokenizer",
    "plugin_host",
    "tiny_checkpoint",
    "write_bert",
    "write_encoder",
    "write_sentence_transformer",
    "write_tokenizer",
]
