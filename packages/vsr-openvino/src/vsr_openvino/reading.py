"""Reading a graph from an IR or an ONNX file, and refusing what OpenVINO would take without a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsr_core.errors import CheckpointError

from .opset import check_opset
from .untracked import ov

__all__ = ["Graph", "explain", "read_graph"]

_IDS = "input_ids"
_EXTERNAL = re.compile(r"externally stored data in file \((.+?), offset")
_STORED = {"f16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """A graph that is yet to be compiled.

    :param model: the ``openvino.Model``; :param outputs: name -> index of the output; one may have several names.
    :param vocabulary: rows of the table that ``input_ids`` are looked up in, None where that is no plain look-up.
    :param stored_dtype: what narrower dtype weights are held in, None where they are in float32.
    :param bytes: what its constants take.
    """

    path: Path
    model: Any
    inputs: tuple[str, ...]
    outputs: dict[str, int]
    vocabulary: int | None
    stored_dtype: str | None
    bytes: int


def read_graph(path: Path) -> Graph:
    """Read ``.xml`` with its ``.bin``, or ``.onnx`` with its external data. The weights are copied into memory.

    :raises CheckpointError: a file is missing, damaged, newer than OpenVINO, or its inputs are of fixed sizes.
    """
    model = _read(path)
    inputs = tuple(_name(port, (_IDS, "attention_mask", "token_type_ids")) for port in model.inputs)
    fixed = [name for name, port in zip(inputs, model.inputs, strict=True) if not _varies(port)]
    if fixed:
        raise CheckpointError(
            f"{path}: the input {fixed[0]!r} is not of the shape [batch, sequence] with both of them free: export it"
            f" with named dimensions"
        )
    constants = [node for node in model.get_ops() if node.get_type_name() == "Constant"]
    widths = {node.get_element_type().get_type_name() for node in constants if len(node.shape) > 1}
    return Graph(
        path=path,
        model=model,
        inputs=inputs,
        outputs={name: index for index, port in enumerate(model.outputs) for name in sorted(port.get_names())},
        vocabulary=_vocabulary(path, model),
        stored_dtype=next((name for short, name in _STORED.items() if short in widths), None),
        bytes=sum(node.get_byte_size() for node in constants),
    )


def explain(error: Exception) -> str:
    """What OpenVINO says went wrong, without the places in its sources it says it from."""
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip(" -")]
    return lines[-1].rstrip(".!") if lines else type(error).__name__


def _read(path: Path) -> Any:
    form = "ir" if path.suffix == ".xml" else "onnx"
    if form == "ir" and not path.with_suffix(".bin").is_file():
        raise CheckpointError(
            f"{path.with_suffix('.bin')} is missing: it holds the weights of {path.name}; copy it beside that"
        )
    if form == "onnx":
        check_opset(path)
    try:  # named, since OpenVINO would otherwise try every format it knows
        frontend = ov.frontend.FrontEndManager().load_by_framework(form)
        return frontend.convert(frontend.load(str(path), enable_mmap=False))  # a mapped file must never be replaced
    except Exception as error:
        raise CheckpointError(f"{path} cannot be read: {_reason(path, explain(error))}") from error


def _reason(path: Path, said: str) -> str:
    """What OpenVINO said, with the way out."""
    if "unsupported opset" in said:
        return (
            f"{said}: it is of a newer OpenVINO than {ov.get_version().partition('-')[0]}; upgrade that, or export anew"
        )
    data = _EXTERNAL.search(said)
    if data is not None and not (path.parent / data[1]).is_file():
        return f"{data[1]} is missing, and it has its weights there; copy that beside it"
    return f"{said}; copy it again with the files beside it, or export it anew"


def _name(port: Any, usual: Sequence[str]) -> str:
    names = port.get_names()
    return next((name for name in usual if name in names), None) or min(names, default=port.get_node().friendly_name)


def _varies(port: Any) -> bool:
    shape = port.get_partial_shape()
    return shape.rank.is_static and len(shape) == 2 and all(size.is_dynamic for size in shape)


def _vocabulary(path: Path, model: Any) -> int | None:
    """Rows of the token embedding.

    :raises CheckpointError: nothing reads the ids, so that every text would get the same answer.
    """
    reading = [port for port in model.inputs if _IDS in port.get_names()]
    values = [port.get_node().output(0) for port in reading]
    if reading and not values[0].get_target_inputs():
        raise CheckpointError(f"{path}: nothing in the graph reads its input {_IDS!r}: export it anew")
    while values:
        for target in values.pop().get_target_inputs():
            node = target.get_node()
            if node.get_type_name() == "Convert":
                values.append(node.output(0))
            elif node.get_type_name() == "Gather" and target.get_index() == 1:
                rows = node.input(0).get_partial_shape()[0]
                return int(rows.get_length()) if rows.is_static else None
    return None
