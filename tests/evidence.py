"""Which test stands behind what a backend claims."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vsr_core.contract import CapabilitySet
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.testing import BackendConformance
from vsr_core.testing.conformance import Cell
from vsr_core.testing.conformance.offers import claims, feature_claims

from tests.parity import ENGINES, HEADS, Case, product
from tests.test_parity import COVER, EIGHT_BITS, OTHERS

__all__ = ["DERIVED", "Evidence"]

ROOT = Path(__file__).parents[1]
PARITY = "tests/test_parity.py::"
SUITES = {
    "torch": ("packages/vsr-candle-torch/tests/test_conformance.py", "TestTorchBackend"),
    "onnx": ("packages/vsr-onnx/tests/test_conformance.py", "TestOnnxBackend"),
    "openvino": ("packages/vsr-openvino/tests/test_conformance.py", "TestOpenVinoBackend"),
}
"""The conformance suite of each backend: its file and its class."""

DERIVED: Mapping[Capability, str] = {
    Capability.SIMILARITY: (
        "packages/vsr-core/tests/runtime/test_facades.py::test_similarity_is_the_cosine_to_each_candidate"
    ),
    Capability.BIENCODER_RERANKING: (
        "packages/vsr-core/tests/runtime/test_facades.py::test_reranking_is_derived_from_embedding_and_keeps_the_index"
    ),
}
"""What the core computes: the test of each."""

_SEQUENCE_HEADS = (Capability.PAIR_CLASSIFICATION, Capability.RERANKING)
_COMPARED = (Feature.BATCHING, Feature.LAYER_EXIT, Feature.DIMENSIONS)
"""The features that a comparison of engines shows; the others are of the backend, whatever its models are for."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """What one comparison with torch shows."""

    backend: str
    capability: Capability
    artifact: Artifact


class Evidence:
    """The tests behind the claims of one backend.

    :param rules: what it declares.

    ``suite`` is what the ids of its standard tests begin with.
    """

    def __init__(self, backend: str, rules: CapabilitySet) -> None:
        self._backend = backend
        path, name = SUITES[backend]
        self._suite = _suite(ROOT / path, name)
        self.suite = f"{path}::{name}::"
        self._by_family = {rule.selector.feature for rule in rules.rules if rule.selector.family is not None}
        cells = claims(rules, families=self._suite.families, artifacts=self._suite.artifacts)
        self._tried = {cell for cell in (*cells, *feature_claims(rules, cells)) if not self._left_out(cell)}
        self._compared = dict(_comparisons())

    def of(self, cell: Cell) -> str | None:
        """The id of a test that shows a claim to hold; None where none does."""
        return self._conformance(cell) or self._parity(cell) or self._related(cell)

    def _conformance(self, cell: Cell) -> str | None:
        """The standard test of the cell.

        A merged adapter is stored as the whole model is, and a feature that is not of families is shown with one: there
        the test is of the capability, with whichever family and form of weights was tried.
        """
        if cell in self._tried:
            same = [cell]
        elif cell.artifact is Artifact.MERGED_LORA and cell.feature is None:
            same = [each for each in self._tried if replace(each, family=cell.family) == cell]
        elif cell.feature is not None and cell.feature not in self._by_family:
            same = [each for each in self._tried if (each.capability, each.feature) == (cell.capability, cell.feature)]
        elif cell.artifact is Artifact.MERGED_LORA:
            return self._conformance(replace(cell, artifact=Artifact.FULL))
        else:
            return None
        if not same:
            return None
        test = "test_a_claimed_capability_is_answered" if cell.feature is None else "test_a_claimed_feature_works"
        return f"{self.suite}{test}[{min(same, key=str)}]"

    def _parity(self, cell: Cell) -> str | None:
        """A comparison with torch on the same checkpoint."""
        if cell.feature not in (None, *_COMPARED):
            return None
        if cell.artifact is Artifact.QUANTIZED and cell.feature in (None, Feature.LAYER_EXIT, Feature.BATCHING):
            found = cell.feature is None and self._backend == "onnx" and cell.capability in EIGHT_BITS
            return f"{PARITY}test_eight_bits_serve_heads_too[{cell.capability}]" if found else None
        found = self._compared.get(_Compared(self._backend, cell.capability, cell.artifact))
        if found is None:
            return None
        for case, test in found:
            shown = {None: True, Feature.BATCHING: True, Feature.LAYER_EXIT: case.layer is not None}
            if shown.get(cell.feature, case.dimensions is not None):
                return f"{PARITY}{test}[{case}]"
        return None

    def _related(self, cell: Cell) -> str | None:
        """Pairs are judged and documents ranked by heads of sequences, which are loaded and run as those are."""
        if cell.feature is None or cell.capability not in _SEQUENCE_HEADS:
            return None
        return self._conformance(replace(cell, capability=Capability.SEQUENCE_CLASSIFICATION))

    def _left_out(self, cell: Cell) -> bool:
        axes = (cell.family, cell.artifact, cell.capability, cell.feature)
        return bool(self._suite.not_run.keys() & {str(cell), *(str(axis) for axis in axes if axis is not None)})


def _comparisons() -> Iterator[tuple[_Compared, list[tuple[Case, str]]]]:
    """By what they show, the comparisons of every change first, then those of ``hatch run parity``."""
    found: dict[_Compared, list[tuple[Case, str]]] = {}
    every = [(case, "test_engines_agree_in_every_combination") for case in product(layers=3)]
    for case, test in (*((case, "test_engines_agree") for case in (*COVER, *OTHERS)), *every):
        backend, form = ENGINES[case.engine]
        artifact = Artifact.ONNX if form == "onnx" else Artifact.OPENVINO_IR
        found.setdefault(_Compared(backend, _capability(case), artifact), []).append((case, test))
    return iter(found.items())


def _capability(case: Case) -> Capability:
    return {
        "pairs": Capability.PAIR_CLASSIFICATION,
        "sequence": Capability.SEQUENCE_CLASSIFICATION,
        "token": Capability.TOKEN_CLASSIFICATION,
        "reranker": Capability.RERANKING,
        "embedding": Capability.EMBEDDING,
    }[case.head if case.head == "pairs" else HEADS[case.head].checkpoint]


def _suite(path: Path, name: str) -> type[BackendConformance]:
    spec = importlib.util.spec_from_file_location(f"conformance_of_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    suite: type[BackendConformance] = getattr(module, name)
    return suite
