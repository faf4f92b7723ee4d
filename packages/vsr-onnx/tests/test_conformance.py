"""The ONNX distribution is held to the standard that others are held to, on what its own exporter writes."""

import gc

import pytest
import vsr_onnx.plugin
from vsr_core.catalog import CORE_FAMILIES, read_manifest, specify
from vsr_core.contract import CatalogEntry, ExportRequest
from vsr_core.local import GraphEngine, NumpyHead, read_layout
from vsr_core.taxonomy import Artifact
from vsr_core.testing import BackendConformance, EncoderEngineConformance, PluginConformance
from vsr_onnx.export import export
from vsr_onnx.graph import read_graph
from vsr_onnx.options import OnnxOptions
from vsr_onnx.runner import open_graph
from vsr_onnx.session import SessionFactory

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


def exported(folder, out, *, quantize=None):
    """The export of a checkpoint, with every exit in it."""
    headless = '"id2label"' not in (folder / "config.json").read_text()
    entry = CatalogEntry(name="m", source=str(folder), pooling=("mean",) if headless else ())
    spec = specify(entry, folder, families=FAMILIES)
    layers = tuple(range(1, spec.layers + 1))
    export(ExportRequest(source="m", path=folder, entry=entry, spec=spec, out=out, layers=layers, quantize=quantize))
    return out


class TestOnnxPlugin(PluginConformance):
    module = "vsr_onnx.plugin"


class TestOnnxEngine(EncoderEngineConformance):
    """The graph engine of the core on sessions of ONNX Runtime; ModernBERT has windows and a norm after its exits."""

    families = ("bert", "modernbert")
    deviations = {"test_broken_weights_are_not_hidden": NOT_WRITTEN}

    def convert(self, folder, out):
        return exported(folder, out)

    def make_engine(self, request):
        graph, manifest = read_graph(request.path / "model.onnx"), read_manifest(request.path)
        inputs, outputs = ([port.name for port in ports] for ports in (graph.inputs, graph.outputs))
        layout = read_layout(graph.path, request.spec, manifest=manifest, inputs=inputs, outputs=outputs)
        factory = SessionFactory(options=OnnxOptions(), threads=1, backend_id=str(request.backend_id))
        runner = open_graph(graph, outputs, [("CPUExecutionProvider", {})], factory=factory)
        head = manifest.head and NumpyHead.read(request.path, manifest.head, hidden_size=manifest.hidden_size)
        return GraphEngine(runner, layout, head=head, concurrency=2)


class TestOnnxBackend(BackendConformance):
    plugin = vsr_onnx.plugin
    backend = "onnx"
    frameworks = ("onnxruntime",)
    deviations = {"test_numbers_that_are_none_never_become_an_answer": NOT_WRITTEN}

    def convert(self, folder, out, *, artifact):
        return exported(folder, out, quantize="int8" if artifact is Artifact.QUANTIZED else None)
