"""The ONNX distribution is held to the standard that others are held to, on what its own exporter writes."""

import gc

import pytest
import vsr_onnx.plugin
from vsr_core.catalog import CORE_FAMILIES, specify
from vsr_core.contract import CatalogEntry, ExportRequest
from vsr_core.taxonomy import Artifact
from vsr_core.testing import BackendConformance, PluginConformance
from vsr_onnx.export import export

pytestmark = pytest.mark.parity  # an export takes seconds, and there is one for each head and file

FAMILIES = {family.name: family for family in CORE_FAMILIES}


@pytest.fixture(scope="module", autouse=True)
def nothing_to_collect():
    """What is there already is no garbage: each model that is closed makes the collector look."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class TestOnnxPlugin(PluginConformance):
    module = "vsr_onnx.plugin"


class TestOnnxBackend(BackendConformance):
    plugin = vsr_onnx.plugin
    backend = "onnx"
    frameworks = ("onnxruntime",)
    not_run = {
        "pair_classification": "a head of sequences, as for sequence_classification, which is tried",
        "reranking": "a head of sequences, as for sequence_classification, which is tried",
        "sequence_classification-bert-quantized": "the graph that is quantized has no head in it",
        "token_classification-bert-quantized": "the graph that is quantized has no head in it",
    }
    deviations = {
        "test_numbers_that_are_none_never_become_an_answer": "the exporter writes no graph that answers NaN; test_loading"
        " draws one"
    }

    def convert(self, folder, out, *, artifact):
        headless = '"id2label"' not in (folder / "config.json").read_text()
        entry = CatalogEntry(name="m", source=str(folder), pooling=("mean",) if headless else ())
        spec = specify(entry, folder, families=FAMILIES)
        export(
            ExportRequest(
                source="m",
                path=folder,
                entry=entry,
                spec=spec,
                out=out,
                layers=tuple(range(1, spec.layers + 1)),
                quantize="int8" if artifact is Artifact.QUANTIZED else None,
            )
        )
        return out
