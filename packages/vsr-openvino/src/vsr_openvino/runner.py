"""Running compiled graphs from several threads: a pool of infer requests for each part of a model that is in use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from vsr_core.contract import FloatArray

from .compiling import Compiler
from .reading import Graph
from .untracked import ov

__all__ = ["OpenVinoRunner"]


class OpenVinoRunner:
    """Runs the graphs of one model, which may be several files with an exit in each.

    A graph is compiled for the outputs it is asked for, when they are asked for first, so that an early exit costs no
    more than the layers before it. What is asked for together is answered from one run.

    :param graphs: the deepest first; no two have an output of the same name.
    :param native: the output that is compiled at once.
    :raises RuntimeError: the device does not take the graph.
    """

    def __init__(self, graphs: Sequence[Graph], compiler: Compiler, *, native: str) -> None:
        parts = [(graph, _Parts(graph, compiler)) for graph in graphs]
        self._owners = {name: owner for graph, owner in parts for name in graph.outputs}
        self._inputs = graphs[0].inputs
        self._vocabulary = graphs[0].vocabulary
        self._native = self._owners[native].part([native])

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what it reads."""
        return self._inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what it gives."""
        return tuple(self._owners)

    @property
    def compiled(self) -> Any:
        """The compiled graph of the native output."""
        return self._native.compiled

    @property
    def fuses_attention(self) -> bool:
        """Whether nothing of the compiled graph writes attention scores out: no softmax is left by itself in it."""
        kinds = (_layer_type(node) for node in self._native.compiled.get_runtime_model().get_ops())
        return "Softmax" not in kinds

    @property
    def concurrency(self) -> int:
        """How many runs go on side by side; further ones wait."""
        return self._native.size

    def run(self, feeds: Mapping[str, npt.NDArray[np.int64]], outputs: Sequence[str]) -> list[FloatArray]:
        """Run once, waiting for a free infer request.

        :raises ValueError: ids beyond the table they are looked up in, which OpenVINO would take for zero vectors.
        """
        highest = int(feeds["input_ids"].max())
        if self._vocabulary is not None and highest >= self._vocabulary:
            raise ValueError(f"token id {highest} is outside the model's vocabulary of {self._vocabulary}")
        found: dict[str, FloatArray] = {}
        for owner in dict.fromkeys(self._owners[name] for name in outputs):
            names = [name for name in outputs if self._owners[name] is owner]
            found.update(zip(names, owner.part(names).run(feeds, names), strict=True))
        return [found[name] for name in outputs]

    def close(self) -> None:
        """Drop the graphs, compiled and not."""
        self._owners.clear()
        del self._native


def _layer_type(node: Any) -> str:
    """What a node of a compiled graph became, which OpenVINO notes beside it."""
    noted = node.get_rt_info()
    return str(noted["layerType"].astype(str)) if "layerType" in noted else str(node.get_type_name())


class _Parts:
    """One graph, and what of it has been compiled."""

    def __init__(self, graph: Graph, compiler: Compiler) -> None:
        self._inputs, self._outputs = graph.inputs, graph.outputs
        self._compiler = compiler
        self._compiling = threading.Lock()
        self._compiled: dict[tuple[int, ...], _Part] = {}
        self._model: Any = graph.model

    def part(self, names: Sequence[str]) -> _Part:
        """What answers for these outputs, compiled now if it is not yet.

        One output has a part to itself; for several it is everything up to the last of them, so that there are no more
        than two parts for each exit, whatever is asked for together.
        """
        asked = sorted({self._outputs[name] for name in names})
        indices = tuple(asked) if len(asked) == 1 else tuple(range(asked[-1] + 1))
        if (part := self._compiled.get(indices)) is not None:
            return part
        with self._compiling:
            if indices not in self._compiled:
                self._compiled[indices] = self._compile(indices)
            return self._compiled[indices]

    def _compile(self, indices: tuple[int, ...]) -> _Part:
        results = [self._model.outputs[index].get_node() for index in indices]
        compiled = self._compiler.compile(ov.Model(results, self._model.get_parameters(), "part"))
        if len(self._model.outputs) == 1:
            self._model = None  # nothing else of it can be asked for, and its weights need not be kept twice
        places = {name: indices.index(index) for name, index in self._outputs.items() if index in indices}
        return _Part(compiled, inputs=self._inputs, places=places)


class _Part:
    """A compiled part of a graph, and its infer requests, each of which serves one run at a time.

    :param places: the name of an output -> its place among those of the part.
    """

    def __init__(self, compiled: Any, *, inputs: Sequence[str], places: Mapping[str, int]) -> None:
        self.compiled = compiled
        self.size = max(1, int(compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")))
        self._inputs, self._places = inputs, places
        self._free: queue.LifoQueue[Any] = queue.LifoQueue()  # the last one used has its buffers in the caches
        for _ in range(self.size):
            self._free.put(compiled.create_infer_request())

    def run(self, feeds: Mapping[str, npt.NDArray[np.int64]], names: Sequence[str]) -> list[FloatArray]:
        request = self._free.get()
        try:
            given = {name: feeds[name] for name in self._inputs}  # OpenVINO makes up what is missing
            request.infer(given, share_inputs=True, share_outputs=True)
            return [np.array(request.get_output_tensor(self._places[name]).data, np.float32) for name in names]
        except BaseException:
            request = self.compiled.create_infer_request()
            raise
        finally:
            self._free.put(request)
