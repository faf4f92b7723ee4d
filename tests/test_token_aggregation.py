"""Spans of tokens beside those of the transformers token classification pipeline, on WordPiece, where it knows words."""

from __future__ import annotations

import string
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast, TokenClassificationPipeline
from transformers.pipelines.token_classification import AggregationStrategy
from vsr_core.catalog.schemes import read_scheme
from vsr_core.contract import Aggregation
from vsr_core.local import TextTokenizer
from vsr_core.local.scoring import activate
from vsr_core.local.spans import find_spans

LABELS = {
    "BIO": ("O", "B-PER", "I-PER", "B-LOC", "I-LOC"),
    "IOB1": ("I-PER", "I-LOC", "O", "B-PER"),
    "flat": ("PER", "O", "LOC"),
    "flat without an outside": ("supported", "hallucinated"),
}


def wordpiece() -> Tokenizer:
    characters = string.ascii_lowercase + string.digits + string.punctuation
    names = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "the",
        "cat",
        "##er",
        *characters,
        *(f"##{char}" for char in characters),
    ]
    tokenizer = Tokenizer(models.WordPiece({name: index for index, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


@pytest.fixture(scope="module", params=LABELS)
def pipeline(request):
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=wordpiece(), unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]"
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        id2label=dict(enumerate(LABELS[request.param])),
    )
    return TokenClassificationPipeline(model=BertForTokenClassification(config), tokenizer=tokenizer, device="cpu")


def theirs(pipeline, text, logits, aggregation):
    encoded = pipeline.tokenizer(
        text, return_tensors="pt", return_offsets_mapping=True, return_special_tokens_mask=True
    )
    outputs = {
        "logits": torch.from_numpy(logits)[None],
        "sentence": text,
        **{name: encoded[name] for name in ("input_ids", "offset_mapping", "special_tokens_mask")},
    }
    found = pipeline.postprocess([outputs], aggregation_strategy=AggregationStrategy(aggregation))
    return [
        (each["start"], each["end"], each.get("entity_group", each.get("entity")), float(each["score"]))
        for each in found
    ]


def ours(text, encoded, logits, labels, aggregation):
    spans = find_spans(
        text,
        activate(logits[1:-1], "softmax"),
        offsets=encoded.offsets[1:-1],
        words=encoded.words[1:-1],
        scheme=read_scheme(labels),
        aggregation=aggregation,
    )
    return [(span.start, span.end, span.label, span.score) for span in spans]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.sampled_from("the cat THER o2 .,-()'\u00e9\u4e2d\n\t"), max_size=40),
    aggregation=st.sampled_from(get_args(Aggregation)),
    seed=st.integers(0, 2**32 - 1),
)
def test_spans_are_those_of_transformers(pipeline, text, aggregation, seed):
    labels = tuple(pipeline.model.config.id2label.values())
    [encoded] = TextTokenizer(wordpiece()).encode_with_offsets([text], max_tokens=128)
    shape = (len(encoded.ids), len(labels))
    logits = np.random.default_rng(seed).normal(scale=2, size=shape).astype(np.float32)
    expected = theirs(pipeline, text, logits, aggregation)
    found = ours(text, encoded, logits, labels, aggregation)
    assert [span[:3] for span in found] == [span[:3] for span in expected]
    np.testing.assert_allclose([span[3] for span in found], [span[3] for span in expected], rtol=1e-5)
