"""From a model of transformers to an ONNX graph with an output for every exit."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from vsr_core.errors import PluginError

from .reading import SourceModel, quietly

__all__ = ["output_name", "write_graph"]

_LOGGERS: Final = ("torch.onnx", "torch.export", "onnxscript")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def output_name(layer: int) -> str:
    """How the hidden states after a layer are called, in the graph and in the manifest."""
    return f"hidden_{layer}"


def write_graph(source: SourceModel, layers: Sequence[int], file: Path) -> None:
    """Write the graph, its weights beside it in ``<file>.data``.

    Inputs are int64 ``[batch, sequence]``, outputs float32 ``[batch, sequence, hidden]``, with dimensions of these
    names, so that a runtime refuses inputs that do not fit one another.

    :param layers: rising, the native depth last.
    :raises PluginError: torch cannot trace the model.
    """
    with quietly(), _silent():
        program = _trace(source, layers)
        _strip(program.model)
        program.save(str(file), external_data=True)


def _trace(source: SourceModel, layers: Sequence[int]) -> torch.onnx.ONNXProgram:
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence")
    try:
        program = torch.onnx.export(
            _Exits(source, layers).eval(),
            _example(source),
            dynamo=True,
            input_names=list(source.inputs),
            output_names=[output_name(layer) for layer in layers],
            dynamic_shapes=({0: batch, 1: sequence},) * len(source.inputs),
            verbose=False,
        )
    except Exception as error:
        reason = " ".join(_COLOURS.sub("", str(error)).split())[:300]
        raise PluginError(f"torch cannot trace the model: {reason}", plugin="onnx", stage="run") from error
    if program is None:
        raise PluginError("torch cannot trace the model: it gave no graph", plugin="onnx", stage="run")
    return program


class _Exits(torch.nn.Module):
    """The encoder with its exits as a tuple; only what is among the modules becomes weights of the graph."""

    def __init__(self, source: SourceModel, layers: Sequence[int]) -> None:
        super().__init__()
        self.encoder = source.encoder
        self._source = source
        self._layers = tuple(layers)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """The hidden states after each layer."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        return self._source.exits(self._layers, **inputs)


def _example(source: SourceModel) -> tuple[Tensor, ...]:
    """Two rows, one of them padded: sizes of 1 would become constants, and so would a mask of ones."""
    ids = torch.full((2, 8), min(5, source.vocabulary - 1))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return (ids, mask, *((torch.zeros_like(ids),) if source.types else ()))


def _strip(model: Any) -> None:
    """Take out what torch notes of its tracing: where on this machine which line of code was."""
    model.doc_string = None
    model.metadata_props.clear()
    graphs = [model.graph, *model.functions.values()]
    for graph in graphs:
        graph.metadata_props.clear()
        for node in graph:
            node.doc_string = None
            node.metadata_props.clear()
            for value in node.outputs:
                value.metadata_props.clear()


@contextmanager
def _silent() -> Iterator[None]:
    """Keep torch from logging how the tracing goes; what goes wrong is raised."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
