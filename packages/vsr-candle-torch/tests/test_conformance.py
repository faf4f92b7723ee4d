"""The torch distribution is held to the standard that others are held to."""

import gc
import json

import pytest
import torch
import transformers
import vsr_candle_torch.plugin
from vsr_candle_torch.engine import TorchEngine
from vsr_candle_torch.families import CONTRIBUTED
from vsr_candle_torch.networks import blueprint
from vsr_core.taxonomy import Capability
from vsr_core.testing import BackendConformance, EncoderEngineConformance, PluginConformance, write_tokenizer

pytestmark = pytest.mark.parity  # every claim for every family takes most of a minute

SIZES = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = {"intermediate_size": 48, "max_position_embeddings": 80, "initializer_range": 0.4}
CONFIGS = {
    "albert": lambda **head: transformers.AlbertConfig(**SIZES, **WIDE, embedding_size=16, **head),
    "camembert": lambda **head: transformers.CamembertConfig(**SIZES, **WIDE, type_vocab_size=1, **head),
    "distilbert": lambda **head: transformers.DistilBertConfig(
        vocab_size=120,
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=48,
        max_position_embeddings=80,
        initializer_range=0.4,
        **head,
    ),
    "electra": lambda **head: transformers.ElectraConfig(**SIZES, **WIDE, embedding_size=16, **head),
    "mpnet": lambda **head: transformers.MPNetConfig(**SIZES, **WIDE, **head),
}
SEQUENCES = transformers.AutoModelForSequenceClassification
HEADS = {
    Capability.EMBEDDING: (transformers.AutoModel, None),
    Capability.SEQUENCE_CLASSIFICATION: (SEQUENCES, ("business", "law", "health")),
    Capability.PAIR_CLASSIFICATION: (SEQUENCES, ("entailment", "neutral", "contradiction")),
    Capability.TOKEN_CLASSIFICATION: (transformers.AutoModelForTokenClassification, ("O", "B-PER", "I-PER")),
    Capability.RERANKING: (SEQUENCES, ("LABEL_0",)),
}


@pytest.fixture(scope="module", autouse=True)
def nothing_to_collect():
    """What is there already is no garbage: each model that is closed makes the collector look."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def threads_as_they_were():
    """An engine that runs on this very thread leaves it the number of threads it was told."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class TestTorchPlugin(PluginConformance):
    module = "vsr_candle_torch.plugin"


class TestTorchEngine(EncoderEngineConformance):
    families = ("bert", "modernbert")

    def make_engine(self, request):
        config = json.loads((request.path / "config.json").read_text())
        return TorchEngine(blueprint(request, config).build(torch.float32), threads=1)


class TestBorrowedEngine(EncoderEngineConformance):
    """Transformers' own code, which runs to its full depth alone."""

    families = ("deberta",)
    layers = ()
    make_engine = TestTorchEngine.make_engine


class TestTorchBackend(BackendConformance):
    plugin = vsr_candle_torch.plugin
    backend = "torch"
    settings = {"precision": "fp32"}
    threads = 1
    frameworks = ("torch",)

    def write_checkpoint(self, folder, *, family, capability, seed):
        if family not in {each.name for each in CONTRIBUTED}:
            return super().write_checkpoint(folder, family=family, capability=capability, seed=seed)
        kind, labels = HEADS[capability]
        head = {} if labels is None else {"id2label": dict(enumerate(labels))}
        if capability is Capability.RERANKING:
            head["sentence_transformers"] = {"activation_fn": "torch.nn.modules.activation.Sigmoid"}
        torch.manual_seed(seed)
        kind.from_config(CONFIGS[family](**head)).save_pretrained(folder)
        write_tokenizer(folder, "bert", max_tokens=64)
        return folder
