"""Tiny checkpoints exported once for the session, and transformers to hold them against."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (  # here, since the import alone may take as long as a test may
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from transformers.utils import logging
from vsr_core.catalog import CORE_FAMILIES, specify
from vsr_core.contract import CatalogEntry, ExportReport, ExportRequest
from vsr_core.testing import EncoderShape, write_encoder
from vsr_onnx.export import export

CLASSES = {
    "embedding": AutoModel,
    "sequence": AutoModelForSequenceClassification,
    "token": AutoModelForTokenClassification,
}
FAMILIES = {family.name: family for family in CORE_FAMILIES}


@dataclass
class Exported:
    """An export and where it came from."""

    family: str
    head: str
    source: Path
    folder: Path
    report: ExportReport
    steps: list[str]


@pytest.fixture(scope="session", autouse=True)
def quiet():
    """Transformers draws no progress bars into the report."""
    logging.disable_progress_bar()
    logging.set_verbosity_error()


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Writes the encoder of a family with a head; a small one, so that it is traced quickly."""

    def write(family, head="embedding", **options):
        folder = tmp_path_factory.mktemp(family) / "source"
        return write_encoder(folder, family, head=head, shape=EncoderShape(layers=3), **options)

    return write


@pytest.fixture(scope="session")
def order():
    """What a runtime would tell an exporter about a folder."""

    def make(source, out, *, layers=(), **fields):
        head = (source / "config.json").read_text()
        stated = {"pooling": ("mean",)} if '"id2label"' not in head else {}
        entry = CatalogEntry(name="m", source=str(source), layers=layers, **stated)
        spec = specify(entry, source, families=FAMILIES)
        return ExportRequest(
            source="m", path=source, entry=entry, spec=spec, out=out, layers=spec.exit_layers, **fields
        )

    return make


@pytest.fixture(scope="session")
def exported(written, order):
    """Exports the checkpoint of a family with a head, once for the session, with an exit after the first layer."""
    done = {}

    def get(family, head, quantize=None):
        if (family, head, quantize) not in done:
            source, steps = written(family, head), []
            request = order(source, source.with_name("exported"), layers=(1,), quantize=quantize, progress=steps.append)
            report = export(request)
            done[family, head, quantize] = Exported(family, head, source, request.out, report, steps)
        return done[family, head, quantize]

    return get


@pytest.fixture(scope="session")
def reference():
    """Hidden states by layer and logits of one text by transformers, with the last norm at every exit."""
    models = {}

    def states(where, head, ids):
        if where not in models:
            models[where] = CLASSES[head].from_pretrained(where, dtype=torch.float32).eval()
        model = models[where]
        encoder = model if head == "embedding" else model.base_model
        with torch.no_grad():
            output = encoder(torch.from_numpy(ids)[None], output_hidden_states=True)
            found = [state[0] for state in output.hidden_states]
            if (norm := getattr(encoder, "final_norm", None)) is not None:
                found = [norm(state) for state in found[:-1]] + [output.last_hidden_state[0]]
            logits = None if head == "embedding" else model(torch.from_numpy(ids)[None]).logits[0].numpy()
        return {layer: state.numpy() for layer, state in enumerate(found)}, logits

    return states


@pytest.fixture(scope="session")
def sequences():
    """Random token ids of mixed lengths, some beyond any window, one of a single token."""
    source = np.random.default_rng(7)
    return [source.integers(5, 90, size) for size in (3, 61, 1, 12)]
