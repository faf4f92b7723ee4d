"""For the tests of backends, policies and applications: tiny checkpoints, and a backend that needs no framework."""

from __future__ import annotations

from .checkpoints import BertShape, write_bert
from .encoders import EncoderFamily, EncoderHead, EncoderShape, write_encoder
from .sentence_transformers import DenseShape, Dialect, write_sentence_transformer
from .tokenizer_files import TokenizerKind, WrittenTokenizer, write_tokenizer
from .toy import ToyBackend, ToyHandle, ToyPlugin

__all__ = [
    "BertShape",
    "DenseShape",
    "Dialect",
    "EncoderFamily",
    "EncoderHead",
    "EncoderShape",
    "TokenizerKind",
    "ToyBackend",
    "ToyHandle",
    "ToyPlugin",
    "WrittenTokenizer",
    "write_bert",
    "write_encoder",
    "write_sentence_transformer",
    "write_tokenizer",
]
