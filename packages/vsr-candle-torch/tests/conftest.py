"""Tiny checkpoints whose attention is peaked, and the transformers reference they are held against."""

import json

import numpy as np
import pytest
import torch
from transformers import (  # here, since the import alone may take as long as a test may
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from transformers.utils import logging
from vsr_candle_torch.families import CONTRIBUTED
from vsr_candle_torch.networks import blueprint
from vsr_candle_torch.packed import Packed
from vsr_core.catalog import CORE_FAMILIES, specify
from vsr_core.contract import BackendId, CatalogEntry, LoadRequest
from vsr_core.local import RaggedBatch
from vsr_core.testing import BertShape, write_bert, write_encoder

FAMILIES = {family.name: family for family in (*CORE_FAMILIES, *CONTRIBUTED)}
CLASSES = {
    "embedding": AutoModel,
    "sequence": AutoModelForSequenceClassification,
    "token": AutoModelForTokenClassification,
}


@pytest.fixture(scope="session", autouse=True)
def quiet():
    """Transformers draws no progress bars into the report."""
    logging.disable_progress_bar()
    logging.set_verbosity_error()


@pytest.fixture(autouse=True)
def threads():
    """An engine that ran on this thread leaves torch's number of threads to the next test as it was."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("bert"), BertShape(layers=3))


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Writes the encoder of a family with a head, once for each set of arguments."""
    folders = {}

    def write(family, head="embedding", **options):
        key = (family, head, repr(sorted(options.items())))
        if key not in folders:
            folders[key] = write_encoder(tmp_path_factory.mktemp(family), family, head=head, **options)
        return folders[key]

    return write


@pytest.fixture(scope="session")
def load_request():
    """What a backend would be told to load a folder."""

    def make(where, **stated):
        entry = CatalogEntry(name="m", source=str(where), **stated)
        spec = specify(entry, where, families=FAMILIES)
        return LoadRequest(backend_id=BackendId("torch", "m"), entry=entry, path=where, spec=spec)

    return make


@pytest.fixture(scope="session")
def load(folder, load_request):
    """Builds the network of a folder in a dtype."""

    def build(where=folder, dtype=torch.float32, **stated):
        config = json.loads((where / "config.json").read_text())
        stated = stated or ({"pooling": ("mean",)} if config["architectures"][0].endswith("Model") else {})
        return blueprint(load_request(where, **stated), config).build(dtype)

    return build


@pytest.fixture(scope="session")
def sequences():
    """Random token ids of mixed lengths, some equal, one of a single token."""
    source = np.random.default_rng(1)
    return [source.integers(5, 90, size).astype(np.int32) for size in (7, 1, 12, 7, 33, 2, 7)]


@pytest.fixture(scope="session")
def pack():
    """Sequences as a forward takes them."""

    def make(sequences, types=None):
        ids = np.concatenate(sequences)
        batch = RaggedBatch(
            ids=ids,
            type_ids=np.zeros_like(ids) if types is None else types,
            offsets=np.cumsum([0, *map(len, sequences)], dtype=np.int32),
            prompt_tokens=np.zeros(len(sequences), np.int32),
            rows=(),
        )
        return Packed.of(batch)

    return make


@pytest.fixture(scope="session")
def hidden(pack):
    """Runs a network for hidden states: layer -> one ``[tokens, hidden]`` per sequence."""

    def run(network, sequences, layers, **options):
        packed = pack(sequences, **options)
        states = network.run(packed, hidden=frozenset(layers), logits=frozenset()).hidden
        return {layer: [part.float().numpy() for part in packed.split(state)] for layer, state in states.items()}

    return run


@pytest.fixture(scope="session")
def logits(pack):
    """Runs a network for the logits after a layer, one array per sequence."""

    def run(network, sequences, layer=None):
        layer = layer or network.layers
        found = network.run(pack(sequences), hidden=frozenset(), logits=frozenset({layer})).logits[layer]
        return [rows.numpy() for rows in found]

    return run


@pytest.fixture(scope="session")
def model():
    """The transformers model of a folder, in float32 with the plainest attention."""
    models = {}

    def load(where, head="embedding"):
        if (where, head) not in models:
            models[where, head] = (
                CLASSES[head].from_pretrained(where, attn_implementation="eager", dtype=torch.float32).eval()
            )
        return models[where, head]

    return load


@pytest.fixture(scope="session")
def reference(model):
    """Hidden states of every layer by transformers, one sequence at a time: layer -> ``[tokens, hidden]``.

    A model that ends in a norm of its own has it at every layer here, as an exit has.
    """

    def states(where, ids):
        encoder = model(where)
        with torch.inference_mode():
            output = encoder(torch.from_numpy(ids.astype(np.int64))[None], output_hidden_states=True)
            found = [state[0] for state in output.hidden_states]
            if (norm := getattr(encoder, "final_norm", None)) is not None:
                found = [norm(state) for state in found[:-1]] + [output.last_hidden_state[0]]
        return {layer: state.numpy() for layer, state in enumerate(found)}

    return states


@pytest.fixture(scope="session")
def reference_logits(model):
    """The logits by transformers, one sequence at a time."""

    def run(where, head, ids):
        with torch.inference_mode():
            return model(where, head)(torch.from_numpy(ids.astype(np.int64))[None]).logits[0].numpy()

    return run
