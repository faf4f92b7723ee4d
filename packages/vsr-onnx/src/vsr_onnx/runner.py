"""One or several sessions that answer as one graph."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from vsr_core.contract import FloatArray
from vsr_core.errors import CheckpointError, InferenceError

from .graph import Graph
from .session import Provider, SessionFactory
from .stages import ValueType, assemble, cut

__all__ = ["OnnxRunner", "open_exits", "open_graph"]

_ELEMENT_CODES: Mapping[str, int] = {
    "tensor(float)": 1,
    "tensor(uint8)": 2,
    "tensor(int8)": 3,
    "tensor(int32)": 6,
    "tensor(int64)": 7,
    "tensor(bool)": 9,
    "tensor(float16)": 10,
    "tensor(double)": 11,
}


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A session and what goes in and out of it, each value by the name it has among all parts.

    :param reads: name of an input in the session -> name of the value; ``gives`` likewise for its outputs.
    """

    file: str
    session: Any
    reads: Mapping[str, str]
    gives: Mapping[str, str]


class OnnxRunner:
    """A graph runner on ONNX Runtime; runs side by side from any number of threads.

    :param parts: in the order in which values go from one to another.
    :param outputs: the values a caller may ask for.
    """

    def __init__(
        self, parts: Sequence[_Part], *, inputs: tuple[str, ...], outputs: tuple[str, ...], backend_id: str
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self._parts = tuple(parts)
        self._backend_id = backend_id
        self._paths = {name: _path(parts, name) for name in outputs}

    @property
    def provider(self) -> str:
        """The provider that every part has first; that of the first part which differs, where one does."""
        firsts = [str(part.session.get_providers()[0]) for part in self._parts]
        return next((name for name in firsts if name != firsts[0]), firsts[0])

    def run(self, feeds: Mapping[str, npt.NDArray[np.int64]], outputs: Sequence[str]) -> list[FloatArray]:
        """Run the parts that lead to the outputs, each once.

        :raises InferenceError: ONNX Runtime refused the values, such as token ids beyond the vocabulary.
        """
        needed = set[int]().union(*(self._paths[name] for name in outputs))
        if len(needed) == 1:
            return self._run_one(self._parts[needed.pop()], feeds, outputs)
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
        for number in sorted(needed):
            part = self._parts[number]
            given = {own: values[name] for own, name in part.reads.items()}
            found = self._ask(part, part.session.run_with_ort_values, list(part.gives), given)
            values.update(zip(part.gives.values(), found, strict=True))
        return [_wide(values[name].numpy()) for name in outputs]

    def close(self) -> None:
        """Free the sessions, and give their memory back to the system."""
        self._parts = ()
        _trim()

    def _run_one(
        self, part: _Part, feeds: Mapping[str, npt.NDArray[np.int64]], outputs: Sequence[str]
    ) -> list[FloatArray]:
        own = {name: mine for mine, name in part.gives.items()}
        given = {mine: feeds[name] for mine, name in part.reads.items()}
        return [_wide(array) for array in self._ask(part, part.session.run, [own[name] for name in outputs], given)]

    def _ask(self, part: _Part, run: Callable[..., Any], outputs: Sequence[str], given: Mapping[str, Any]) -> Any:
        try:
            return run(outputs, given)
        except Exception as error:  # each of ONNX Runtime's errors is an Exception of its own
            raise InferenceError(f"{part.file}: {_explained(error)}", backend_id=self._backend_id) from error


def open_graph(
    graph: Graph, outputs: Sequence[str], providers: Sequence[Provider], *, factory: SessionFactory
) -> OnnxRunner:
    """A runner on one file, in stages where several outputs are of use.

    :param outputs: the outputs that will be asked for.
    :raises CheckpointError: ONNX Runtime cannot load the graph.
    :raises LoadError: a provider failed.
    """
    inputs = tuple(port.name for port in graph.inputs)
    if len(outputs) == 1:
        session = factory.create(graph.path, providers)
        parts = [_part(graph, session, inputs, outputs)]
    else:
        parts = list(_open_stages(graph, outputs, providers, factory=factory))
    return OnnxRunner(parts, inputs=inputs, outputs=tuple(outputs), backend_id=factory.backend_id)


def open_exits(
    graphs: Mapping[str, tuple[Graph, str]], providers: Sequence[Provider], *, factory: SessionFactory
) -> OnnxRunner:
    """A runner on several files, one for each output.

    :param graphs: name of an output -> the graph that has it, and what it is called there.
    :raises CheckpointError: ONNX Runtime cannot load a graph.
    :raises LoadError: a provider failed.
    """
    parts = []
    for name, (graph, own) in graphs.items():
        reads = {port.name: port.name for port in graph.inputs}
        parts.append(_Part(str(graph.path), factory.create(graph.path, providers), reads, {own: name}))
    inputs = tuple(dict.fromkeys(name for part in parts for name in part.reads))
    return OnnxRunner(parts, inputs=inputs, outputs=tuple(graphs), backend_id=factory.backend_id)


def _open_stages(
    graph: Graph, outputs: Sequence[str], providers: Sequence[Provider], *, factory: SessionFactory
) -> Iterable[_Part]:
    types: dict[str, ValueType] = {}
    for stage in cut(graph, outputs):
        session = factory.create(graph.path, providers, content=assemble(graph, stage, types))
        for output in session.get_outputs():
            if output.type not in _ELEMENT_CODES:
                raise CheckpointError(
                    f"{graph.path}: {output.name!r} is of the type {output.type}, which cannot be handed from layer to"
                    " layer: export each exit layer as a file of its own"
                )
            types[output.name] = ValueType(_ELEMENT_CODES[output.type], tuple(output.shape))
        yield _part(graph, session, (*stage.feeds, *stage.takes), (*stage.gives, *stage.passes))


def _part(graph: Graph, session: Any, reads: Iterable[str], gives: Iterable[str]) -> _Part:
    return _Part(str(graph.path), session, {name: name for name in reads}, {name: name for name in gives})


def _path(parts: Sequence[_Part], output: str) -> frozenset[int]:
    """The parts that lead to an output."""
    owner = {name: number for number, part in enumerate(parts) for name in part.gives.values()}
    found: set[int] = set()
    pending = [output]
    while pending:
        number = owner.get(pending.pop())
        if number is not None and number not in found:
            found.add(number)
            pending.extend(parts[number].reads.values())
    return frozenset(found)


def _trim() -> None:
    """Have glibc return what was freed, which it would keep for the process; other C libraries do so by themselves."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _wide(array: npt.NDArray[np.floating[Any]]) -> FloatArray:
    return np.asarray(array, np.float32)


def _explained(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "out of data bounds" in text:
        return f"a token id is beyond the graph's vocabulary: give the graph its own tokenizer ({text[-120:]})"
    return f"ONNX Runtime failed: {text[:300]}"
