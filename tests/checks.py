"""Checks of the product's answers against transformers: each raises AssertionError where they differ."""

import numpy as np
import torch
from safetensors.torch import load_file
from vsr_core import Runtime
from vsr_core.testing import DenseShape, EncoderShape, write_encoder, write_sentence_transformer

from tests.oracle import Reference

__all__ = [
    "CHECKS",
    "Workshop",
]

CLOSE = {"atol": 1e-4, "rtol": 0}
LONG = "the red cat and the blue dog in the green tree by the river bank one two three of it is for the answer " * 4
TEXTS = ["the cat is on the river bank", "a red dog", "a blue cat", "x", "", "one two three, naïve 😀 dog", LONG]
PAIRS = [("the red cat", "a dog"), ("a dog", "the red cat"), ("a", "b [SEP] c"), ("a [SEP] b", "c"), (LONG, LONG)]
QUERY = "the bank of the river"
LABELS = ("business", "law", "health", "other")
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
SHORT = EncoderShape(positions=24)


class Workshop:
    """Writes checkpoints once, and keeps what transformers says of them."""

    def __init__(self, root):
        self._root = root
        self._folders = {}
        self._references = {}

    def write(self, name, family, *, sentence=None, **options):
        if name not in self._folders:
            folder = write_encoder(self._root / name, family, **options)
            if sentence is not None:
                write_sentence_transformer(folder, hidden=32, **sentence)
            self._folders[name] = folder
        return self._folders[name]

    def reference(self, folder, head="embedding"):
        if folder not in self._references:
            self._references[folder] = Reference(folder, head)
        return self._references[folder]


def serve(folder, **stated):
    catalog = {"m": {"source": str(folder), **stated}}
    return Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32", "threads": 1}}})


def same(found, expected):
    np.testing.assert_allclose(found, expected, **CLOSE)


def softmax(rows):
    return torch.from_numpy(np.asarray(rows, np.float64)).softmax(-1).numpy()


def distributions(results):
    return [list(result.distribution.values()) for result in results]


def of_ids(reference, ids, types=None):
    """What transformers gives for token ids."""
    inputs = {} if types is None else {"token_type_ids": torch.tensor([types])}
    with torch.inference_mode():
        return reference.model(torch.tensor([ids]), **inputs)[0][0].numpy()


def vectors_of_bert(shop):
    folder = shop.write("bert", "bert")
    states = shop.reference(folder).answers(TEXTS)
    for mode, pooled in (("mean", [rows.mean(0) for rows in states]), ("cls", [rows[0] for rows in states])):
        with serve(folder, pooling=[mode]) as vsr:
            same(vsr.embed(TEXTS).vectors, pooled)


def vectors_of_several_poolings(shop):
    folder = shop.write("bert", "bert")
    states = shop.reference(folder).answers(TEXTS)
    pooled = [np.concatenate((rows.mean(0), rows[0], rows.max(0), rows[-1])) for rows in states]
    with serve(folder, pooling=["mean", "cls", "max", "last"]) as vsr:
        same(vsr.embed(TEXTS).vectors, pooled)


def vectors_of_roberta(shop):
    folder = shop.write("roberta", "roberta")
    with serve(folder, pooling=["mean"]) as vsr:
        same(vsr.embed(TEXTS).vectors, [rows.mean(0) for rows in shop.reference(folder).answers(TEXTS)])


def vectors_of_modernbert(shop):
    folder = shop.write("modernbert", "modernbert")
    with serve(folder, pooling=["mean"]) as vsr:
        same(vsr.embed(TEXTS).vectors, [rows.mean(0) for rows in shop.reference(folder).answers(TEXTS)])


def vectors_of_deberta(shop):
    folder = shop.write("deberta", "deberta")
    with serve(folder, pooling=["mean"]) as vsr:
        same(vsr.embed(TEXTS).vectors, [rows.mean(0) for rows in shop.reference(folder).answers(TEXTS)])


def vectors_of_exits(shop):
    for family in ("bert", "modernbert"):
        folder = shop.write(family, family)
        with serve(folder, pooling=["mean"], layers=[2]) as vsr:
            expected = [rows.mean(0) for rows in shop.reference(folder).exit_at(2).answers(TEXTS)]
            same(vsr.embed(TEXTS, layer=2).vectors, expected)


def vectors_without_their_prompt(shop):
    sentence = {"include_prompt": False, "prompts": {"query": "query two: "}, "normalize": False}
    folder = shop.write("prompted", "bert", sentence=sentence)
    states = shop.reference(folder).answers(["query two: " + text for text in TEXTS])
    with serve(folder) as vsr:
        same(vsr.embed(TEXTS, prompt="query").vectors, [rows[4:].mean(0) for rows in states])


def vectors_through_dense_modules(shop):
    folder = shop.write("dense", "bert", sentence={"dense": [DenseShape(out=32)], "normalize": True})
    tensors = load_file(folder / "2_Dense" / "model.safetensors")
    pooled = torch.from_numpy(np.stack([rows.mean(0) for rows in shop.reference(folder).answers(TEXTS)]))
    full = torch.tanh(pooled @ tensors["linear.weight"].T + tensors["linear.bias"]).numpy()
    with serve(folder, dimensions=[8]) as vsr:
        for width in (8, 32):
            expected = full[:, :width] / np.linalg.norm(full[:, :width], axis=1, keepdims=True)
            same(vsr.embed(TEXTS, dimensions=width).vectors, expected)


def vectors_of_cut_texts(shop):
    folder = shop.write("bert", "bert")
    reference = Reference(folder)
    for direction, truncate in (("right", "end"), ("left", "start")):
        reference.tokenizer.enable_truncation(reference.limit, direction=direction)
        with serve(folder, pooling=["mean"]) as vsr:
            same(vsr.embed([LONG + "x y z"], truncate=truncate).vectors, [reference.answer(LONG + "x y z").mean(0)])


def similarities_of_texts(shop):
    folder = shop.write("bert", "bert")
    one, *others = [rows.mean(0) for rows in shop.reference(folder).answers(TEXTS)]
    cosines = [one @ other / np.linalg.norm(one) / np.linalg.norm(other) for other in others]
    with serve(folder, pooling=["mean"]) as vsr:
        same(vsr.similarity(TEXTS[0], TEXTS[1:]).scores, cosines)


def labels_of_texts(shop):
    for family in ("bert", "roberta"):
        folder = shop.write(f"{family}-sequence", family, head="sequence")
        scores = softmax(np.stack(shop.reference(folder, "sequence").answers(TEXTS)) / 2.5)
        threshold = float(np.sort(scores.max(1))[3])
        calibration = {"calibration": {"temperature": 2.5}, "threshold": threshold, "positive_labels": list(LABELS[:3])}
        with serve(folder, **calibration) as vsr:
            results = vsr.classify(TEXTS, truncate="end").results
        same(distributions(results), scores)
        assert [tuple(result.distribution) for result in results] == [LABELS] * len(TEXTS)
        assert [result.label for result in results] == [LABELS[index] for index in scores.argmax(1)]
        for result, row in zip(results, scores, strict=True):
            if abs(row.max() - threshold) > 1e-6:
                assert result.passed == (row.max() > threshold and LABELS[row.argmax()] != "other")


def the_first_of_equal_labels(shop):
    with serve(shop.write("bert-sequence", "bert", head="sequence"), calibration={"temperature": 1e30}) as vsr:
        assert {result.label for result in vsr.classify(TEXTS, truncate="end").results} == {LABELS[0]}


def labels_by_modernbert(shop):
    for pooling in ("mean", "cls"):
        config = {"classifier_pooling": pooling}
        folder = shop.write(f"modernbert-{pooling}", "modernbert", head="sequence", config=config)
        with serve(folder) as vsr:
            results = vsr.classify(TEXTS, truncate="end", logits=True).results
        same([result.logits for result in results], shop.reference(folder, "sequence").answers(TEXTS))


def labels_at_exits(shop):
    folder = shop.write("modernbert-mean", "modernbert", head="sequence", config={"classifier_pooling": "mean"})
    with serve(folder, layers=[2]) as vsr:
        results = vsr.classify(TEXTS, truncate="end", logits=True, layer=2).results
    same([each.logits for each in results], shop.reference(folder, "sequence").exit_at(2).answers(TEXTS))


def several_labels_of_texts(shop):
    folder = shop.write("bert-multi", "bert", head="sequence", problem_type="multi_label_classification")
    logits = torch.from_numpy(np.stack(shop.reference(folder, "sequence").answers(TEXTS)))
    with serve(folder) as vsr:
        same(distributions(vsr.classify(TEXTS, truncate="end").results), logits.sigmoid().numpy())


def labels_of_pairs(shop):
    for family in ("bert", "deberta"):
        folder = shop.write(f"{family}-nli", family, head="nli")
        expected = softmax(np.stack(shop.reference(folder, "sequence").answers(PAIRS)))
        with serve(folder) as vsr:
            same(distributions(vsr.nli(PAIRS, truncate="end").results), expected)
            same([distributions(vsr.nli([pair], truncate="end").results)[0] for pair in PAIRS], expected)


def order_of_documents(shop):
    folder = shop.write("reranker", "bert", head="reranker")
    documents = [*TEXTS, *TEXTS[:3]]
    logits = np.concatenate(shop.reference(folder, "sequence").answers([(QUERY, text) for text in documents]))
    scores = torch.from_numpy(logits).sigmoid().numpy()
    with serve(folder) as vsr:
        results = vsr.rerank(QUERY, documents).results
        assert vsr.rerank(QUERY, documents, top_n=2).results == results[:2]
    same([result.score for result in results], sorted(scores, reverse=True))
    assert [result.index for result in results] == sorted(range(len(scores)), key=lambda index: (-scores[index], index))


def pieces(count, room):
    """Where windows begin that overlap by a quarter of their room, the last moved back to be full."""
    starts = [0]
    while starts[-1] + room < count:
        starts.append(min(starts[-1] + room - room // 4, count - room))
    return starts


def labels_of_long_texts(shop):
    folder = shop.write("short-sequence", "bert", head="sequence", shape=SHORT)
    reference = shop.reference(folder, "sequence")
    reference.tokenizer.no_truncation()
    first, *own, last = reference.tokenizer.encode(LONG).ids
    read, total = 0, np.zeros(len(LABELS))
    for start in pieces(len(own), 22):
        logits = of_ids(reference, [first, *own[start : start + 22], last])
        total += logits * (start + 22 - read) / len(own)
        read = start + 22
    with serve(folder) as vsr:
        same(vsr.classify([LONG], truncate="window", logits=True).results[0].logits, total)


def scores_of_long_documents(shop):
    folder = shop.write("short-reranker", "bert", head="reranker", shape=SHORT)
    reference = shop.reference(folder, "sequence")
    reference.tokenizer.no_truncation()
    query, own = (reference.tokenizer.encode(text).ids for text in (QUERY, LONG))
    room, last = 24 - len(query) - 1, own[-1:]
    rows = [[*query, *own[1:-1][start : start + room], *last] for start in pieces(len(own) - 2, room)]
    logits = max(of_ids(reference, ids, [0] * len(query) + [1] * (len(ids) - len(query))).item() for ids in rows)
    with serve(folder) as vsr:
        [result] = vsr.rerank(QUERY, [LONG], truncate="window").results
    same(result.score, 1 / (1 + np.exp(-logits)))


def token_scores(reference, text):
    """The places and the probabilities of the tokens of a text, read in windows where it is long.

    A token that is a space put before a word stands for no character.
    """
    encoding, room = reference.tokenizer.encode(text), reference.limit - 2
    first, *own, last = encoding.ids
    starts, count = pieces(len(own), room), len(own)
    rows = [of_ids(reference, [first, *own[start : start + room], last])[1:-1] for start in starts]
    chosen = []
    for token in range(count):
        distances = []
        for start, read in zip(starts, rows, strict=True):
            before = token - start if start else count
            after = start + len(read) - 1 - token if start + len(read) < count else count
            inside = start <= token < start + len(read)
            distances.append(min(before, after) if inside else -1)
        best = distances.index(max(distances))
        chosen.append(rows[best][token - starts[best]])
    written = zip(encoding.tokens[1:-1], encoding.offsets[1:-1], strict=True)
    places = [(start, start if token == "▁" else end) for token, (start, end) in written]
    return places, softmax(np.stack(chosen)) if chosen else np.empty((0, len(TAGS)))


def assert_spans(found, expected):
    assert [(span.start, span.end, span.label) for span in found] == [span[:3] for span in expected]
    same([span.score for span in found], [span[3] for span in expected])


def tags_of_tokens(shop):
    for family, shape in (("bert", None), ("bert", SHORT), ("xlm_roberta", None)):
        folder = shop.write(f"{family}-token-{shape is None}", family, head="token", shape=shape)
        reference = shop.reference(folder, "token")
        reference.tokenizer.no_truncation()
        texts = ["the cat, naïve 😀 dog 日本 x", "", LONG if shape else "one two three"]
        with serve(folder) as vsr:
            results = vsr.tag(texts, aggregation="none", truncate="window").results
        for text, result in zip(texts, results, strict=True):
            expected = [
                (start, end, TAGS[row.argmax()], row.max())
                for (start, end), row in zip(*token_scores(reference, text), strict=True)
                if row.argmax() and text[start:end].strip()
            ]
            assert_spans(result.spans, expected)


def tags_of_words(shop):
    """Words without punctuation, each with one label; neighbours join where the second is inside the first's entity."""
    folder = shop.write("bert-token-True", "bert", head="token")
    reference = shop.reference(folder, "token")
    reference.tokenizer.no_truncation()
    texts = ["running rivers sleeping dogs", "the catalogue of treeless riverbanks answered queries redder"]
    for mode in ("first", "average", "max"):
        with serve(folder) as vsr:
            results = vsr.tag(texts, aggregation=mode).results
        for text, result in zip(texts, results, strict=True):
            assert_spans(result.spans, joined(text, *token_scores(reference, text), mode=mode))


def joined(text, places, rows, *, mode):
    words, spans = [], []
    for (start, end), row in zip(places, rows, strict=True):
        if words and text[start - 1] != " ":
            words[-1][1], words[-1][2] = end, [*words[-1][2], row]
        else:
            words.append([start, end, [row]])
    before = "O"
    for start, end, scores in words:
        row = {"first": scores[0], "average": np.mean(scores, 0), "max": max(scores, key=np.max)}[mode]
        label = TAGS[row.argmax()]
        if label[0] == "I" and before[2:] == label[2:]:
            spans[-1][1], spans[-1][3] = end, [*spans[-1][3], row.max()]
        elif label != "O":
            spans.append([start, end, label[2:], [row.max()]])
        before = label
    return [(start, end, label, np.mean(scores)) for start, end, label, scores in spans]


CHECKS = (
    vectors_of_bert,
    vectors_of_several_poolings,
    vectors_of_roberta,
    vectors_of_modernbert,
    vectors_of_deberta,
    vectors_of_exits,
    vectors_without_their_prompt,
    vectors_through_dense_modules,
    vectors_of_cut_texts,
    similarities_of_texts,
    labels_of_texts,
    the_first_of_equal_labels,
    labels_by_modernbert,
    labels_at_exits,
    several_labels_of_texts,
    labels_of_pairs,
    order_of_documents,
    labels_of_long_texts,
    scores_of_long_documents,
    tags_of_tokens,
    tags_of_words,
)
"""Every check."""
