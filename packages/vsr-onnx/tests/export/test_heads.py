"""Heads of every class transformers has for the families that are exported, against the class itself."""

import numpy as np
import pytest
import torch
import transformers
from vsr_core.errors import CheckpointError
from vsr_core.local import NumpyHead
from vsr_onnx.export.heads import read_head

pytestmark = pytest.mark.timeout(60)

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "num_labels": 3,
}
CONFIGS = {
    "albert": transformers.AlbertConfig(**SIZES, embedding_size=8),
    "bert": transformers.BertConfig(**SIZES),
    "camembert": transformers.CamembertConfig(**SIZES, pad_token_id=1),
    "deberta": transformers.DebertaV2Config(**SIZES, pooler_hidden_size=16),
    "distilbert": transformers.DistilBertConfig(
        vocab_size=40, dim=16, hidden_dim=24, n_layers=1, n_heads=2, max_position_embeddings=20, num_labels=3
    ),
    "electra": transformers.ElectraConfig(**SIZES, embedding_size=8),
    "modernbert": transformers.ModernBertConfig(**SIZES, classifier_pooling="mean", pad_token_id=0),
    "mpnet": transformers.MPNetConfig(**SIZES),
    "xlm_roberta": transformers.XLMRobertaConfig(**SIZES),
}
CLASSES = {
    "sequence": transformers.AutoModelForSequenceClassification,
    "token": transformers.AutoModelForTokenClassification,
}


def model_of(family, kind, **changes):
    torch.manual_seed(1)
    config = CONFIGS[family]
    if changes:
        config = type(config).from_dict(config.to_dict() | changes)
    model = CLASSES[kind].from_config(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("family", CONFIGS)
def test_the_head_over_hidden_states_gives_the_logits_of_the_class(family, kind, tmp_path):
    model = model_of(family, kind)
    head = read_head(model, kind, family)
    head.save(tmp_path)
    ids = torch.arange(3, 12)[None]
    with torch.inference_mode():
        states = model.base_model(ids).last_hidden_state[0].numpy()
        expected = model(ids).logits[0].numpy()
    found = NumpyHead.read(tmp_path, head.layout, hidden_size=16).logits(states)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert head.layout.labels == 3


def test_an_activation_nobody_computes_is_refused():
    with pytest.raises(CheckpointError, match="classifier_activation 'mish' is not exported"):
        read_head(model_of("modernbert", "sequence", classifier_activation="mish"), "sequence", "modernbert")


def test_a_dense_layer_that_changes_the_width_is_refused():
    with pytest.raises(CheckpointError, match="from 16 to 8 features"):
        read_head(_narrow(model_of("bert", "sequence")), "sequence", "bert")


def _narrow(model):
    model.bert.pooler.dense = torch.nn.Linear(16, 8)
    return model
