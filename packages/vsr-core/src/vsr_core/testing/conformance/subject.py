"""What an author tells the kit of a backend, and the fixtures that the tests of backends share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ...contract import BackendDescriptor, CapabilitySet, ModelHandle
from ...plugins import PluginHost
from ...taxonomy import Artifact, Capability
from .folders import HEADS, Folders, session_folders, write_tiny
from .offers import Cell, claims, feature_claims, feature_refusals, first_claims, refusals, told_apart
from .standard import Conformance
from .workbench import Entry, Workbench

__all__ = ["FOREIGN", "BackendSubject", "Model"]

FOREIGN = (Artifact.ONNX, Artifact.OPENVINO_IR, Artifact.QUANTIZED, Artifact.GGUF)
"""Forms of weights the kit cannot write itself."""

_WIDTH = 4
_Cells = Callable[[CapabilitySet, Sequence[Cell]], Sequence[Cell]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model of a cell: its catalog entry, on a bench where it can be loaded."""

    cell: Cell
    entry: Entry
    bench: Workbench

    def load(self, *, name: str = "m", layer: int | None = None) -> ModelHandle:
        """A fresh handle, closed in the end of the test."""
        return self.bench.load(self.entry, name=name, layer=layer)


class BackendSubject(Conformance):
    """Names a backend, and makes checkpoints it can read.

    :cvar plugin: the plugin module, or an object with its hooks; ``backend`` is the name of the backend in it.
    :cvar settings: what a configuration would say under ``backends.<name>``.
    :cvar families: the families to test a backend with whose capabilities name none.
    :cvar artifacts: the forms of weights, for a backend whose capabilities name none.
    :cvar tolerance: how far two answers to the same question may be apart.
    :cvar threads: the compute threads of the process, as the backend is told.
    :cvar frameworks: the modules without which the backend cannot be used.
    :cvar light: packages it may import to declare, beside its own and what the core itself imports.
    :cvar not_run: for claims that cannot be tried here, the cell's family, form of weights, feature or whole name, and
        why; they are skipped with that reason.
    """

    plugin: ClassVar[object]
    backend: ClassVar[str]
    settings: ClassVar[Mapping[str, Any]] = {}
    families: ClassVar[Sequence[str]] = ("bert",)
    artifacts: ClassVar[Sequence[Artifact]] = (Artifact.FULL,)
    tolerance: ClassVar[float] = 1e-5
    threads: ClassVar[int] = 2
    frameworks: ClassVar[Sequence[str]] = ()
    light: ClassVar[Sequence[str]] = ()
    not_run: ClassVar[Mapping[str, str]] = {}

    def write_checkpoint(self, folder: Path, *, family: str, capability: Capability, seed: int) -> Path:
        """Write a tiny checkpoint as HF transformers saves it; override it for families the kit does not know."""
        if capability not in HEADS:
            raise NotImplementedError(f"the kit has no checkpoint for {capability}: write one in write_checkpoint")
        return write_tiny(folder, family, head=HEADS[capability], seed=seed)

    def convert(self, folder: Path, out: Path, *, artifact: Artifact) -> Path:
        """Turn a checkpoint into a form of weights; returns where that is. Override it for what is not safetensors."""
        if artifact in FOREIGN:
            raise NotImplementedError(f"the kit writes no {artifact} files: make them from the checkpoint in convert")
        del out
        return folder

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test per cell, by what the backend declares."""
        lists: dict[str, _Cells] = {
            "claimed": lambda _, cells: cells,
            "claimed_feature": feature_claims,
            "refused": lambda rules, _: refusals(rules, families=self.families),
            "refused_feature": feature_refusals,
            "first": lambda _, cells: first_claims(cells),
            "only": lambda _, cells: cells[:1],
            "told_apart": told_apart,
        }
        for name in lists.keys() & set(metafunc.fixturenames):
            found: Sequence[Cell | Exception]
            try:
                found = self._cells(lists[name])
            except Exception as error:  # noqa: BLE001 - foreign code: the test fails, not the collection of all
                found = [error]
            metafunc.parametrize(name, found, ids=[_name_of(item) for item in found])

    @pytest.fixture
    def folders(self, request: pytest.FixtureRequest) -> Folders:
        """The checkpoints of the session."""
        return session_folders(request)

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Iterator[Workbench]:
        """The backend in a plugin host of its own."""
        with self._bench(tmp_path / "cache").open() as bench:
            yield bench

    @pytest.fixture
    def usable(self, bench: Workbench) -> Workbench:
        """The same, on a host where the backend can be used; elsewhere the test is skipped with the reason."""
        found = bench.probe()
        if not found.usable:
            pytest.skip(f"not run: {found.reason}")
        return bench

    @pytest.fixture
    def make_model(self, usable: Workbench, folders: Folders) -> Callable[[Cell | Exception], Model]:
        """The model of a cell; a cell that is listed as not run skips the test."""

        def make(cell: Cell | Exception) -> Model:
            cell = self._runnable(cell)
            return Model(cell=cell, entry=self.entry(cell, folders), bench=usable)

        return make

    def entry(
        self, cell: Cell, folders: Folders, *, seed: int = 0, spoil: Callable[[Path], Path] | None = None
    ) -> dict[str, Any]:
        """The catalog entry of a cell's model, whose files are written by the first who asks.

        :param spoil: done to the checkpoint before it is converted.
        """

        def write(folder: Path) -> Path:
            source = folder / "source"
            source = self.write_checkpoint(source, family=cell.family, capability=cell.capability, seed=seed)
            return self.convert(spoil(source) if spoil else source, folder / "converted", artifact=cell.artifact)

        key = (self._writer(), cell.family, HEADS.get(cell.capability), _stored(cell.artifact), seed, spoil)
        folder = folders.get(key, write)
        entry: dict[str, Any] = {"source": str(folder), "artifact": cell.artifact.value}
        if cell.capability is Capability.EMBEDDING:
            entry |= {"pooling": ["mean"], "dimensions": [_WIDTH]}
        return entry | {"layers": [1]}

    def descriptor(self, host: PluginHost) -> BackendDescriptor:
        """The backend as the plugin describes it."""
        return host.require("backend", self.backend)

    def _writer(self) -> type:
        """Who writes the checkpoints; those the kit writes by itself are the same for all."""
        own = type(self)
        ours = own.write_checkpoint is BackendSubject.write_checkpoint and own.convert is BackendSubject.convert
        return BackendSubject if ours else own

    def _bench(self, cache: Path) -> Workbench:
        return Workbench(self.plugin, self.backend, settings=self.settings, cache=cache, threads=self.threads)

    def _cells(self, choose: _Cells) -> Sequence[Cell]:
        with self._bench(Path("unused-cache")).open() as bench:
            rules = bench.declared()
        return choose(rules, claims(rules, families=self.families, artifacts=self.artifacts))

    def _runnable(self, cell: Cell | Exception) -> Cell:
        if isinstance(cell, Exception):
            raise cell
        axes = (cell.family, cell.artifact, cell.capability, cell.feature)
        names = [str(cell), *(str(axis) for axis in axes if axis is not None)]
        reason = next((self.not_run[name] for name in names if name in self.not_run), None)
        if reason is not None:
            pytest.skip(f"not run: {reason}")
        return cell


def _stored(artifact: Artifact) -> Artifact:
    """What is on disk: a merged adapter is stored as the whole model is."""
    return Artifact.FULL if artifact is Artifact.MERGED_LORA else artifact


def _name_of(item: Cell | Exception) -> str:
    return str(item) if isinstance(item, Cell) else "undeclared"
