"""Tiny checkpoints whose attention is peaked, and the transformers reference they are held against."""

import json

import numpy as np
import pytest
import torch
from transformers import BertModel  # here, since the import alone may take as long as a test may
from vsr_candle_torch.bert import BertConfig, BertEncoder
from vsr_candle_torch.weights import read_tensors
from vsr_core.testing import BertShape, write_bert

TEXTS = ["a cat", "the river bank is on the tree", "", "red red red red red green", "query and answer in two", "x"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("bert"), BertShape(layers=3))


@pytest.fixture(scope="session")
def load(folder):
    """Builds the encoder of a folder in a dtype."""

    def build(where=folder, dtype=torch.float32):
        config = BertConfig.read(json.loads((where / "config.json").read_text()), "config.json")
        return BertEncoder(config, read_tensors(where, ["model.safetensors"]), dtype=dtype, where=str(where))

    return build


@pytest.fixture(scope="session")
def sequences():
    """Random token ids of mixed lengths, some equal, one of a single token."""
    source = np.random.default_rng(1)
    return [source.integers(5, 90, size).astype(np.int32) for size in (7, 1, 12, 7, 33, 2, 7)]


@pytest.fixture(scope="session")
def reference():
    """Hidden states of every layer by transformers, one sequence at a time: layer -> ``[tokens, hidden]``."""

    def states(where, ids):
        model = BertModel.from_pretrained(where, attn_implementation="eager", dtype=torch.float32).eval()
        with torch.inference_mode():
            found = model(torch.from_numpy(ids.astype(np.int64))[None], output_hidden_states=True).hidden_states
        return {layer: state[0].numpy() for layer, state in enumerate(found)}

    return states
