"""The OpenVINO distribution is held to the standard that others are held to, on what its own exporter writes."""

import gc

import pytest
import vsr_openvino.plugin
from vsr_core.catalog import CORE_FAMILIES, specify
from vsr_core.contract import CatalogEntry, ExportRequest
from vsr_core.taxonomy import Artifact
from vsr_core.testing import BackendConformance, PluginConformance
from vsr_onnx.export import export as export_onnx
from vsr_openvino.export import export

pytestmark = pytest.mark.parity  # an export takes seconds, and there is one for each head and file

FAMILIES = {family.name: family for family in CORE_FAMILIES}


@pytest.fixture(scope="module", autouse=True)
def nothing_to_collect():
    """What is there already is no garbage: each model that is closed makes the collector look."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class TestOpenVinoPlugin(PluginConformance):
    module = "vsr_openvino.plugin"


class TestOpenVinoBackend(BackendConformance):
    plugin = vsr_openvino.plugin
    backend = "openvino"
    settings = {"precision": "fp32"}
    frameworks = ("openvino",)
    not_run = {
        "pair_classification": "a head of sequences, as for sequence_classification, which is tried",
        "reranking": "a head of sequences, as for sequence_classification, which is tried",
        "sequence_classification-bert-onnx": "the graph has no head in it, and is tried without one",
        "token_classification-bert-onnx": "the graph has no head in it, and is tried without one",
    }
    deviations = {
        "test_numbers_that_are_none_never_become_an_answer": "the exporter writes no graph that answers NaN; test_loading"
        " draws one"
    }

    def convert(self, folder, out, *, artifact):
        headless = '"id2label"' not in (folder / "config.json").read_text()
        entry = CatalogEntry(name="m", source=str(folder), pooling=("mean",) if headless else ())
        spec = specify(entry, folder, families=FAMILIES)
        write = export_onnx if artifact is Artifact.ONNX else export
        layers = tuple(range(1, spec.layers + 1))
        write(ExportRequest(source="m", path=folder, entry=entry, spec=spec, out=out, layers=layers))
        return out
