"""Which test stands behind what a backend claims."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vsr_core.contract import CapabilitySet
from vsr_core.taxonomy import Artifact, Capability
from vsr_core.testing import BackendConformance
from vsr_core.testing.conformance import Cell
from vsr_core.testing.conformance.offers import claims, feature_claims

__all__ = ["ADAPTABLE", "DERIVED", "SUITES", "Evidence"]

ROOT = Path(__file__).parents[1]
SUITES = {
    "torch": ("packages/vsr-candle-torch/tests/test_conformance.py", "TestTorchBackend"),
    "onnx": ("packages/vsr-onnx/tests/test_conformance.py", "TestOnnxBackend"),
    "openvino": ("packages/vsr-openvino/tests/test_conformance.py", "TestOpenVinoBackend"),
}
"""The conformance suite of each backend: its file and its class."""

ADAPTABLE = ("bert", "minilm", "roberta", "xlm_roberta", "camembert", "modernbert", "mmbert")
"""The families of whose bases adapters are tried."""

_ADAPTED = "tests/test_adapters.py::test_an_adapter_serves_a_capability_on_a_family"

DERIVED: Mapping[Capability, str] = {
    Capability.SIMILARITY: (
        "packages/vsr-core/tests/runtime/test_facades.py::test_similarity_is_the_cosine_to_each_candidate"
    ),
    Capability.BIENCODER_RERANKING: (
        "packages/vsr-core/tests/runtime/test_facades.py::test_reranking_is_derived_from_embedding_and_keeps_the_index"
    ),
}
"""What the core computes: the test of each."""


class Evidence:
    """The tests behind the claims of one backend.

    :param rules: what it declares.

    ``suite`` is what the ids of its standard tests begin with.
    """

    def __init__(self, backend: str, rules: CapabilitySet) -> None:
        path, name = SUITES[backend]
        self._suite = _suite(ROOT / path, name)
        self.suite = f"{path}::{name}::"
        self._by_family = {rule.selector.feature for rule in rules.rules if rule.selector.family is not None}
        cells = claims(rules, families=self._suite.families, artifacts=self._suite.artifacts)
        self._tried = {cell for cell in (*cells, *feature_claims(rules, cells)) if not self._left_out(cell)}

    def of(self, cell: Cell) -> str | None:
        """The id of the test that shows a claim to hold; None where none does.

        An adapter is tried on a base, which the standard tests do not have. A merged adapter is stored as the whole model is, and a feature that is not of families is shown with one: there
        the test is of the capability, with whichever family and form of weights was tried.
        """
        if cell.artifact is Artifact.LORA_ADAPTER and cell.feature is None:
            return f"{_ADAPTED}[{cell}]" if cell.family in ADAPTABLE else None
        if cell in self._tried:
            same = [cell]
        elif cell.artifact is Artifact.MERGED_LORA and cell.feature is None:
            same = [each for each in self._tried if replace(each, family=cell.family) == cell]
        elif cell.feature is not None and cell.feature not in self._by_family:
            same = [each for each in self._tried if (each.capability, each.feature) == (cell.capability, cell.feature)]
        elif cell.artifact in (Artifact.MERGED_LORA, Artifact.LORA_ADAPTER):
            return self.of(replace(cell, artifact=Artifact.FULL))
        else:
            return None
        if not same:
            return None
        test = "test_a_claimed_capability_is_answered" if cell.feature is None else "test_a_claimed_feature_works"
        return f"{self.suite}{test}[{min(same, key=str)}]"

    def _left_out(self, cell: Cell) -> bool:
        axes = (cell.family, cell.artifact, cell.capability, cell.feature)
        return bool(self._suite.not_run.keys() & {str(cell), *(str(axis) for axis in axes if axis is not None)})


def _suite(path: Path, name: str) -> type[BackendConformance]:
    spec = importlib.util.spec_from_file_location(f"conformance_of_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    suite: type[BackendConformance] = getattr(module, name)
    return suite
