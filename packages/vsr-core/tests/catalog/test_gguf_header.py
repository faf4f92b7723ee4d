from __future__ import annotations

import struct

import pytest
from vsr_core.catalog.gguf_header import gguf_config, gguf_dtype, read_gguf_header
from vsr_core.errors import CheckpointError


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(*, version: int = 3, architecture: str = "llama") -> bytes:
    """A header as converters write it: scalars, and a vocabulary that has to be skipped."""
    entries = [
        text("general.architecture") + struct.pack("<I", 8) + text(architecture),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("<s>") + text("ab"),
        text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, 2) + struct.pack("<ff", 0.0, 1.0),
        text("general.file_type") + struct.pack("<II", 4, 3),
        text(f"{architecture}.context_length") + struct.pack("<II", 4, 2048),
        text(f"{architecture}.embedding_length") + struct.pack("<II", 4, 576),
        text(f"{architecture}.block_count") + struct.pack("<II", 4, 30),
    ]
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries)


def test_the_header_says_which_model_it_is(write):
    header = read_gguf_header(write({"m.gguf": gguf()}) / "m.gguf")

    assert gguf_config(header) == {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 576,
        "num_hidden_layers": 30,
        "max_position_embeddings": 2048,
    }
    assert gguf_dtype(header) == "q4_1"


def test_a_gguf_model_is_inspected_by_its_header(write, families):
    from vsr_core.catalog import inspect_checkpoint

    facts = inspect_checkpoint(write({"smol.Q4_1.gguf": gguf()}), families)

    assert (facts.family, facts.artifact, facts.stored_dtype) == ("llama", "gguf", "q4_1")
    assert (facts.capabilities, facts.max_tokens, facts.layers) == (("generation",), 2048, 30)
    assert facts.refusals == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"GGML" + bytes(40), "no GGUF file"),
        (gguf(version=1), "version 1 is not supported"),
        (gguf()[:60], "truncated within the GGUF header"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("key") + struct.pack("<I", 77), "unknown value type 77"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 10**9), "claims 1000000000 entries"),
    ],
)
def test_a_damaged_header_is_refused(content, reason, write):
    with pytest.raises(CheckpointError, match=reason):
        read_gguf_header(write({"m.gguf": content}) / "m.gguf")
