"""The OpenVINO distribution is held to the standard that others are held to, on what its own exporter writes."""

import gc

import pytest
import vsr_openvino.plugin
from vsr_core.catalog import CORE_FAMILIES, specify
from vsr_core.contract import CatalogEntry, ExportRequest
from vsr_core.local import GraphEngine
from vsr_core.taxonomy import Artifact
from vsr_core.testing import BackendConformance, EncoderEngineConformance, PluginConformance
from vsr_onnx.export import export as export_onnx
from vsr_openvino.compiling import Compiler
from vsr_openvino.export import export
from vsr_openvino.runner import OpenVinoRunner
from vsr_openvino.sources import read_source
from vsr_openvino.untracked import ov

pytestmark = pytest.mark.parity  # an export takes seconds, and there is one for each head and file

FAMILIES = {family.name: family for family in CORE_FAMILIES}
NOT_WRITTEN = "the exporter writes no graph that answers NaN; test_loading draws one"


@pytest.fixture(scope="module", autouse=True)
def nothing_to_collect():
    """What is there already is no garbage: each model that is closed makes the collector look."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def exported(folder, out, *, write=export):
    """The export of a checkpoint, with every exit in it."""
    headless = '"id2label"' not in (folder / "config.json").read_text()
    entry = CatalogEntry(name="m", source=str(folder), pooling=("mean",) if headless else ())
    spec = specify(entry, folder, families=FAMILIES)
    layers = tuple(range(1, spec.layers + 1))
    write(ExportRequest(source="m", path=folder, entry=entry, spec=spec, out=out, layers=layers))
    return out


class TestOpenVinoPlugin(PluginConformance):
    module = "vsr_openvino.plugin"


class TestOpenVinoEngine(EncoderEngineConformance):
    """The graph engine of the core on OpenVINO; ModernBERT has windows and a norm after its exits."""

    families = ("bert", "modernbert")
    deviations = {"test_broken_weights_are_not_hidden": NOT_WRITTEN}

    def convert(self, folder, out):
        return exported(folder, out)

    def make_engine(self, request):
        source = read_source(request)
        compiler = Compiler(core=ov.Core(), device="CPU", dtype="float32", threads=1, performance="latency")
        runner = OpenVinoRunner(source.graphs, compiler, native=source.native)
        return GraphEngine(runner, source.layout, head=source.head, concurrency=runner.concurrency)


class TestOpenVinoBackend(BackendConformance):
    plugin = vsr_openvino.plugin
    backend = "openvino"
    settings = {"precision": "fp32"}
    frameworks = ("openvino",)
    deviations = {"test_numbers_that_are_none_never_become_an_answer": NOT_WRITTEN}

    def convert(self, folder, out, *, artifact):
        return exported(folder, out, write=export_onnx if artifact is Artifact.ONNX else export)
