"""Rows with adapters, in any company, answer as the base does with that adapter merged into its weights."""

import json
import shutil
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from vsr_candle_torch.adapted import AdaptableEngine
from vsr_core.contract import PoolingSpec
from vsr_core.errors import CheckpointError
from vsr_core.local import (
    AdapterHost,
    BatchRow,
    LoraAdapter,
    LowRank,
    RaggedBatch,
    WantHidden,
    WantLogits,
    WantPooled,
)

MEAN = WantPooled(PoolingSpec(modes=("mean",)))
LOGITS = WantLogits()
OUTPUTS = ("classifier.bias", "classifier.out_proj.bias")
FAMILIES = ("bert", "roberta", "modernbert")


def batch(sequences, rows):
    ids = np.concatenate(sequences)
    return RaggedBatch(
        ids=ids,
        type_ids=np.zeros_like(ids),
        offsets=np.cumsum([0, *map(len, sequences)], dtype=np.int32),
        prompt_tokens=np.zeros(len(sequences), np.int32),
        rows=tuple(rows),
    )


def adapter(anatomy, key, *, target="sequence", rank=3, first=1, only=None, labels=3):
    """A random adapter of every site from the layer ``first`` on, with a head of its own."""
    source = np.random.default_rng(zlib.crc32(key.encode()))
    draw = lambda *shape: source.normal(size=shape).astype(np.float32)  # noqa: E731
    sites = [site for site in anatomy.sites if site.layer >= first and (only is None or site.name.endswith(only))]
    sites += list(anatomy.head_sites[target]) if only is None and target != "none" else []
    changes = {site.name: LowRank(draw(rank, site.width) * 0.3, draw(site.out, rank) * 0.3) for site in sites}
    head = {
        name: draw(*(labels if size is None else size for size in shape))
        for name, shape in anatomy.head_tensors[target].items()
        if name.startswith("classifier")
    }
    lowest = min((site.layer for site in sites if site.layer is not None), default=anatomy.layers + 1)
    return LoraAdapter(key=key, target=target, changes=changes, head=head, first_layer=lowest)


def merged(folder, out, adapter, prefix):
    """The checkpoint with an adapter merged into its weights, as ``merge_and_unload`` of PEFT would write it."""
    shutil.copytree(folder, out)
    tensors = load_file(out / "model.safetensors")
    for name, low in adapter.changes.items():
        key = next(key for key in (f"{prefix}{name}.weight", f"{name}.weight") if key in tensors)
        tensors[key] = tensors[key] + low.b @ low.a
    tensors.update(adapter.head)
    save_file(tensors, out / "model.safetensors")
    config = json.loads((out / "config.json").read_text())
    labels = next((len(adapter.head[name]) for name in OUTPUTS if name in adapter.head), None)
    if labels is not None:
        config["id2label"] = {str(index): f"L{index}" for index in range(labels)}
        config["label2id"] = {f"L{index}": index for index in range(labels)}
    (out / "config.json").write_text(json.dumps(config))
    return out


@pytest.fixture(params=FAMILIES)
def base(request, written, load):
    folder = written(request.param, "sequence")
    return folder, AdaptableEngine(load(folder), threads=2)


@pytest.fixture
def answers(load, tmp_path, logits):
    """What the merged model answers to each sequence, by transformers' rules for the family."""

    def ask(folder, one, prefix, sequences):
        out = merged(folder, tmp_path / one.key, one, prefix)
        return logits(load(out), sequences)

    return ask


def test_the_engine_says_that_it_takes_adapters(base):
    _, engine = base
    assert isinstance(engine, AdapterHost)
    assert engine.anatomy.layers == max(site.layer for site in engine.anatomy.sites)


def test_any_mix_of_adapters_and_the_bare_base_in_one_batch_is_exact(base, sequences, answers, logits, load):
    folder, engine = base
    anatomy = engine.anatomy
    adapters = [
        adapter(anatomy, "all"),
        adapter(anatomy, "upper", rank=5, first=3, labels=2),
        adapter(anatomy, "some", rank=1, first=2, only=("attention.self.value", "attn.Wqkv"), labels=7),
        adapter(anatomy, "head", only="nothing", labels=4),
    ]
    for one in adapters:
        engine.attach(one)
    source = np.random.default_rng(0)
    keys = [None, *(one.key for one in adapters)]
    rows = [BatchRow(index, LOGITS, adapter=key) for index in range(len(sequences)) for key in keys]
    rows += [BatchRow(2, MEAN), BatchRow(0, WantHidden(), adapter="upper"), BatchRow(4, MEAN, layer=2, adapter="all")]
    order = source.permutation(len(rows))
    found = engine.run(batch(sequences, [rows[place] for place in order])).rows
    by_row = {int(place): answer for place, answer in zip(order, found, strict=True)}
    expected = {None: logits(load(folder), sequences)}
    expected |= {one.key: answers(folder, one, anatomy.prefix, sequences) for one in adapters}
    for place, row in enumerate(rows[: len(sequences) * len(keys)]):
        np.testing.assert_allclose(by_row[place], expected[row.adapter][row.sequence], atol=1e-4)
    assert by_row[len(rows) - 2].shape == (len(sequences[0]), engine.anatomy.hidden_size)


def test_the_answer_of_a_row_does_not_depend_on_the_others(base, sequences):
    _, engine = base
    keys = ["a", "b", "c", "d"]
    for number, key in enumerate(keys):
        engine.attach(adapter(engine.anatomy, key, first=1 + number % 3))
    rows = [BatchRow(index, LOGITS, adapter=key) for index in range(len(sequences)) for key in keys]
    together = engine.run(batch(sequences, rows)).rows
    for row, answer in zip(rows, together, strict=True):
        (alone,) = engine.run(batch([sequences[row.sequence]], [BatchRow(0, LOGITS, adapter=row.adapter)])).rows
        np.testing.assert_allclose(alone, answer, atol=1e-4)


def test_token_heads_and_vectors_mix_with_sequence_heads(written, load, sequences):
    engine = AdaptableEngine(load(written("bert", "sequence")), threads=1)
    engine.attach(adapter(engine.anatomy, "tokens", target="token", labels=5))
    engine.attach(adapter(engine.anatomy, "vectors", target="none"))
    engine.attach(adapter(engine.anatomy, "texts"))
    rows = [
        BatchRow(4, LOGITS, adapter="tokens"),
        BatchRow(4, MEAN, adapter="vectors"),
        BatchRow(4, LOGITS, adapter="texts"),
    ]
    tokens, vector, labels = engine.run(batch(sequences, rows)).rows
    assert (tokens.shape, vector.shape, labels.shape) == ((len(sequences[4]), 5), (32,), (3,))
    with pytest.raises(ValueError, match="no classification head"):
        engine.run(batch(sequences, [BatchRow(0, LOGITS, adapter="vectors")]))


def test_layers_below_the_first_changed_one_run_once(written, load, sequences, monkeypatch):
    network = load(written("bert", "sequence"))
    engine = AdaptableEngine(network, threads=1)
    for key in "abcdef":
        engine.attach(adapter(engine.anatomy, key, first=3))
    seen = []
    steps = network.encoder.steps

    def counted(packed):
        step = steps(packed)

        def one(index, x, changes):
            seen.append((index + 1, packed.tokens))
            return step(index, x, changes)

        return one

    monkeypatch.setattr(network.encoder, "steps", counted)
    engine.run(batch(sequences[:1], [BatchRow(0, LOGITS, adapter=key) for key in "abcdef"]))
    assert seen == [(1, 7), (2, 7), (3, 42), (4, 42)]


def test_an_adapter_that_is_not_there_is_never_answered_by_the_base(base, sequences):
    _, engine = base
    one = adapter(engine.anatomy, "gone")
    engine.attach(one)
    engine.attach(one)
    engine.detach("gone")
    rows = [BatchRow(0, LOGITS, adapter="gone")]
    engine.run(batch(sequences, rows))
    engine.detach("gone")
    with pytest.raises(ValueError, match="not attached"):
        engine.run(batch(sequences, rows))


def test_two_threads_and_two_adapters_swapped_in_between_never_mix(written, load, sequences):
    engine = AdaptableEngine(load(written("modernbert", "sequence")), threads=1)
    adapters = {key: adapter(engine.anatomy, key, first=2) for key in ("one", "two")}
    expected = {}
    for key, one in adapters.items():
        engine.attach(one)
        expected[key] = [engine.run(batch([ids], [BatchRow(0, LOGITS, adapter=key)])).rows[0] for ids in sequences]
    stop = threading.Event()

    def swap():
        number = 0
        while not stop.is_set():
            other = adapter(engine.anatomy, f"other {number % 3}", first=1)
            engine.attach(other)
            engine.detach(other.key)
            number += 1

    def ask(number):
        key, index = ("one", "two")[number % 2], number % len(sequences)
        mixed = batch(sequences, [BatchRow(index, LOGITS, adapter=key), BatchRow(0, LOGITS, adapter="one")])
        return np.abs(engine.run(mixed).rows[0] - expected[key][index]).max()

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        with ThreadPoolExecutor(2) as threads:
            assert max(threads.map(ask, range(300))) < 1e-4
    finally:
        stop.set()
        swapper.join()


def test_a_head_that_neither_the_adapter_nor_the_base_has_is_refused(written, load):
    network = load(written("modernbert"))
    one = adapter(network.anatomy, "no head")
    with pytest.raises(CheckpointError, match="head"):
        AdaptableEngine(network, threads=1).attach(one)


def test_bfloat16_stays_close_to_float32(written, load, sequences):
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        engine = AdaptableEngine(load(written("modernbert", "sequence"), dtype=dtype), threads=1)
        engine.attach(adapter(engine.anatomy, "x"))
        found[dtype] = engine.run(batch(sequences, [BatchRow(4, MEAN, adapter="x")])).rows[0]
    one, other = found.values()
    assert one @ other / np.linalg.norm(one) / np.linalg.norm(other) > 0.98


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_one_batched_product_gives_what_one_for_each_adapter_gives(written, load, sequences, monkeypatch, family):
    engine = AdaptableEngine(load(written(family, "sequence")), threads=1)
    only = ("attention.output.dense", "attn.Wo", "mlp.Wi")
    for one in (adapter(engine.anatomy, "a", rank=2), adapter(engine.anatomy, "b", rank=5, only=only)):
        engine.attach(one)
    rows = [BatchRow(index, LOGITS, adapter=key) for index in (0, 3) for key in "ab"]
    found = []
    for few in (0, 1000):
        monkeypatch.setattr("vsr_candle_torch.adapted._FEW_ROWS", {torch.float32: few})
        found.append(engine.run(batch(sequences, rows)).rows)
    for apart, together in zip(*found, strict=True):
        np.testing.assert_allclose(apart, together, atol=1e-5)
