from __future__ import annotations

import pytest
from vsr_core.contract import CapabilityQuery, CapabilitySet, Limits, Refused, Selector, Supported
from vsr_core.plugins import BackendInstances, CapabilityMatrix, InstanceSettings, verdict_on
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.wire import from_json, to_json

ENGINE = """
    class Adapter(BackendAdapter):
        usable = True

        def __init__(self, context):
            self.namespace = context.name

        def capabilities(self):
            embedding, classes = Capability.EMBEDDING, Capability.SEQUENCE_CLASSIFICATION
            gone = Refused("needs_conversion", "convert it first")
            return CapabilitySet.of([
                (Selector(capability=embedding, family="minilm"), Supported(Limits(max_tokens=256))),
                (Selector(capability=embedding, family="bert"), Supported()),
                (Selector(capability=embedding, family="gemma"), Supported()),
                (Selector(capability=embedding, family="gemma", artifact=None, modality=None), gone),
                (Selector(capability=embedding, artifact=Artifact.GGUF), gone),
                (Selector(feature=Feature.BATCHING), Supported()),
                (Selector(capability=embedding, family="minilm", feature=Feature.LAYER_EXIT), Supported()),
                (Selector(feature=Feature.STREAMING), Refused("no_streaming", "an encoder has no stream")),
                (Selector(capability=classes), Refused("no_heads", "it has no heads")),
            ])

        def probe(self):
            return RuntimeInfo(usable=self.usable, reason=None if self.usable else "no AVX here")

        def load(self, request):
            raise LoadError("no", backend_id="echo:x")

    class Unusable(Adapter):
        usable = False

    class Headed(Adapter):
        def capabilities(self):
            return CapabilitySet.of([
                (Selector(capability=Capability.SEQUENCE_CLASSIFICATION), Supported()),
                (Selector(capability=Capability.EMBEDDING), Refused("no_vectors", "it has heads alone")),
            ])

    class Broken(Adapter):
        def capabilities(self):
            raise ValueError("cannot say")
"""

COUNT = len(Capability)


@pytest.fixture
def instances(site, backend_plugin):
    site.module("planted_engine", ENGINE)

    def install(attribute="Adapter", settings=None):
        site.plugin("echo-plugin", backend_plugin(factory=f"planted_engine:{attribute}"))
        return BackendInstances(site.discover(), settings)

    return install


def test_there_is_a_cell_for_every_backend_and_capability_in_code_order(instances):
    settings = {"alpha": InstanceSettings(name="alpha", adapter="echo")}
    matrix = CapabilityMatrix.of(instances(settings=settings), probe=False)
    assert [cell.backend for cell in matrix.cells] == ["alpha"] * COUNT + ["echo"] * COUNT
    assert [cell.capability.code for cell in matrix.cells[:COUNT]] == sorted(member.code for member in Capability)


def test_a_supported_cell_names_limits_and_families(instances):
    cell = CapabilityMatrix.of(instances(), probe=False).cell("echo", Capability.EMBEDDING)
    assert cell.state == "declared"
    assert cell.verdict == Supported(Limits(max_tokens=256))
    assert cell.families == ("bert", "minilm")  # gemma is refused by a later rule


def test_a_supported_cell_says_of_every_feature_whether_and_why_not(instances):
    cell = CapabilityMatrix.of(instances(), probe=False).cell("echo", Capability.EMBEDDING)
    verdicts = {each.feature: each.verdict for each in cell.features}
    assert list(verdicts) == sorted(Feature, key=lambda feature: feature.code)
    assert verdicts[Feature.BATCHING] == verdicts[Feature.LAYER_EXIT] == Supported()
    assert verdicts[Feature.STREAMING] == Refused("no_streaming", "an encoder has no stream")
    assert verdicts[Feature.TOOLS].code == "undeclared"


def test_a_refused_cell_has_the_backends_reason(instances):
    matrix = CapabilityMatrix.of(instances(), probe=False)
    cell = matrix.cell("echo", Capability.SEQUENCE_CLASSIFICATION)
    assert (cell.state, cell.verdict, cell.features) == ("refused", Refused("no_heads", "it has no heads"), ())
    assert matrix.cell("echo", Capability.GENERATION).verdict.code == "undeclared"


def test_derived_cells_are_as_possible_as_what_they_are_derived_from(instances):
    matrix = CapabilityMatrix.of(instances(), probe=False)
    for capability in (Capability.SIMILARITY, Capability.BIENCODER_RERANKING):
        cell = matrix.cell("echo", capability)
        assert (cell.state, cell.derived_from, cell.families) == ("declared", Capability.EMBEDDING, ("bert", "minilm"))


def test_a_derived_cell_is_refused_with_the_reason_of_what_it_is_derived_from(instances):
    matrix = CapabilityMatrix.of(instances("Headed"), probe=False)
    cell = matrix.cell("echo", Capability.SIMILARITY)
    assert cell.derived_from is Capability.EMBEDDING
    assert cell.verdict == Refused("no_vectors", "it is computed from embedding: it has heads alone")


def test_what_no_call_asks_for_is_refused_whatever_it_would_be_derived_from(instances):
    matrix = CapabilityMatrix.of(instances("Headed"), probe=False)
    assert matrix.cell("echo", Capability.SEQUENCE_CLASSIFICATION).state == "declared"
    cell = matrix.cell("echo", Capability.MODALITY_ROUTING)
    assert (cell.state, cell.derived_from) == ("refused", Capability.SEQUENCE_CLASSIFICATION)
    assert cell.verdict.code == "not_implemented"
    assert "no call of this version asks for it" in cell.verdict.reason


def test_probing_makes_what_is_declared_probed(instances):
    matrix = CapabilityMatrix.of(instances(), probe=True)
    assert {cell.state for cell in matrix.cells} == {"probed", "refused"}
    assert matrix.cell("echo", Capability.EMBEDDING).state == "probed"


def test_a_backend_that_is_unusable_here_has_every_cell_refused_with_that_reason(instances):
    found = instances("Unusable")
    cells = CapabilityMatrix.of(found, probe=True).cells
    assert {cell.verdict for cell in cells} == {Refused("unusable", "no AVX here")}
    assert CapabilityMatrix.of(found, probe=False).cell("echo", Capability.EMBEDDING).state == "declared"


def test_a_backend_that_cannot_describe_itself_has_every_cell_refused_with_that_reason(instances):
    cells = CapabilityMatrix.of(instances("Broken"), probe=False).cells
    assert len(cells) == COUNT
    assert {cell.verdict.code for cell in cells} == {"plugin_failed"}
    assert all("cannot say" in cell.verdict.reason for cell in cells)


def test_an_instance_that_is_configured_wrongly_has_every_cell_refused(instances):
    settings = {"work": InstanceSettings(name="work", adapter="echo", options={"x": 1})}
    cell = CapabilityMatrix.of(instances(settings=settings), probe=True).cell("work", Capability.EMBEDDING)
    assert cell.verdict == Refused("config_invalid", "backends.work: 'echo' takes no option 'x'")


def test_the_matrix_survives_json(instances):
    matrix = CapabilityMatrix.of(instances(), probe=True)
    assert from_json(CapabilityMatrix, to_json(matrix)) == matrix


def test_there_is_no_cell_of_a_backend_that_is_not_there(instances):
    assert CapabilityMatrix.of(instances(), probe=False).cell("nobody", Capability.EMBEDDING) is None


def test_a_query_for_a_derived_capability_is_decided_by_its_source():
    declared = CapabilitySet.of(
        [(Selector(capability=Capability.EMBEDDING, artifact=Artifact.ONNX), Supported(Limits(max_tokens=9)))]
    )
    query = CapabilityQuery(capability=Capability.SIMILARITY, artifact=Artifact.ONNX)
    assert verdict_on(declared, query) == Supported(Limits(max_tokens=9))
    refused = verdict_on(declared, CapabilityQuery(capability=Capability.SIMILARITY, artifact=Artifact.FULL))
    assert refused.reason.startswith("it is computed from embedding: ")
