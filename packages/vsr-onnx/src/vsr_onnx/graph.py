"""An ONNX file as its bytes describe it, read without ONNX Runtime: ports, nodes, weights and where those lie.

Field numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from vsr_core.errors import CheckpointError

from .proto import Field, read_fields

__all__ = ["ELEMENT_TYPES", "Graph", "Node", "Port", "Weight", "read_graph"]

ELEMENT_TYPES: Mapping[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    21: "uint4",
    22: "int4",
}
"""Names of ``TensorProto.DataType``."""

_LOW = frozenset({"int8", "uint8", "int4", "uint4"})
_QUANTIZED_OPS = frozenset(
    {
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "DynamicQuantizeMatMul",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "MatMulNBits",
        "QAttention",
        "QEmbedLayerNormalization",
        "QGemm",
        "QLinearMatMul",
        "QuantizeLinear",
    }
)
_UNPACKING = frozenset({"Cast", "DequantizeLinear", "Mul", "Sub"})


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a graph: its name, and the name of its element type where it has one."""

    name: str
    element_type: str | None
    raw: memoryview


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant tensor; :param location: the file that holds it, relative to the graph's folder, or None."""

    name: str
    shape: tuple[int, ...]
    element_type: str
    location: str | None
    end: int
    raw: memoryview


@dataclass(frozen=True, slots=True)
class Node:
    """One operation; ``reads`` are the values it takes, those that its inner graphs take among them."""

    op: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    raw: memoryview


@dataclass(frozen=True, eq=False)
class Graph:
    """An ONNX file.

    :param opsets: the version of each operator set by its domain; the standard's is ``""``.
    :param frame: the fields of the file beside its graph, and ``extras`` those of the graph beside the ones named here.
    """

    path: Path
    opsets: Mapping[str, int]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[Node, ...]
    weights: tuple[Weight, ...]
    frame: tuple[memoryview, ...]
    extras: tuple[memoryview, ...]

    @cached_property
    def weights_by_name(self) -> Mapping[str, Weight]:
        """The weights by name."""
        return {weight.name: weight for weight in self.weights}

    @property
    def quantized(self) -> bool:
        """Whether any of its weights are held in 8 bits or less, or any operation computes in them."""
        return any(node.op in _QUANTIZED_OPS for node in self.nodes) or any(
            weight.element_type in _LOW and len(weight.shape) > 1 for weight in self.weights
        )

    @property
    def dtype(self) -> str:
        """What most of its weights are held in, such as ``float32``."""
        sizes: dict[str, int] = {}
        for weight in self.weights:
            sizes[weight.element_type] = sizes.get(weight.element_type, 0) + _count(weight.shape)
        return max(sizes, key=lambda name: sizes[name], default="float32")

    @property
    def vocabulary(self) -> int | None:
        """Rows of the table that ``input_ids`` are looked up in, where that is a plain look-up."""
        names = {"input_ids"}
        for node in self.nodes:
            if node.op == "Cast" and node.reads[0] in names:
                names.update(node.gives)
            elif node.op == "Gather" and node.reads[1] in names:
                return self._rows(node.reads[0])
        return None

    def _rows(self, table: str) -> int | None:
        """Rows of a table, which may be computed from weights in fewer bits."""
        producers = {name: node for node in self.nodes for name in node.gives}
        while (weight := self.weights_by_name.get(table)) is None:
            node = producers.get(table)
            if node is None or node.op not in _UNPACKING:
                return None
            table = node.reads[0]
        return weight.shape[0] if len(weight.shape) == 2 else None

    @property
    def data_files(self) -> tuple[str, ...]:
        """The files beside it that hold weights, sorted, relative to its folder."""
        return tuple(sorted({weight.location for weight in self.weights if weight.location is not None}))


def read_graph(path: Path) -> Graph:
    """Read an ONNX file and see that everything it refers to is there.

    :raises CheckpointError: it cannot be read, is damaged, or its weights are not beside it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        graph = _read_model(path, memoryview(content))
    except (ValueError, IndexError):
        raise CheckpointError(f"{path}: is damaged or cut short: export or fetch it again") from None
    if not graph.outputs or not graph.nodes:
        raise CheckpointError(f"{path}: holds no graph: export or fetch it again")
    _check_data(graph)
    return graph


def _read_model(path: Path, content: memoryview) -> Graph:
    body: memoryview | None = None
    opsets: dict[str, int] = {}
    frame = []
    for field in read_fields(content):
        if field.tag == 7:
            body = field.payload
            continue
        if field.tag == 8:
            version = _opset(field.payload)
            opsets[version[0]] = version[1]
        frame.append(field.raw)
    parts: dict[int, list[Field]] = {tag: [] for tag in (1, 5, 11, 12)}
    extras = []
    for field in read_fields(body if body is not None else content[:0]):
        if field.tag in parts:
            parts[field.tag].append(field)
        else:
            extras.append(field.raw)
    weights = tuple(_weight(field) for field in parts[5])
    named = {weight.name for weight in weights}
    return Graph(
        path=path,
        opsets=opsets,
        inputs=tuple(port for port in map(_port, parts[11]) if port.name not in named),  # old files list weights too
        outputs=tuple(map(_port, parts[12])),
        nodes=tuple(_node(field) for field in parts[1]),
        weights=weights,
        frame=tuple(frame),
        extras=tuple(extras),
    )


def _opset(message: memoryview) -> tuple[str, int]:
    domain, version = "", 0
    for field in read_fields(message):
        if field.tag == 1:
            domain = field.text
        elif field.tag == 2:
            version = field.number
    return ("" if domain == "ai.onnx" else domain), version


def _port(port: Field) -> Port:
    name, element_type = "", None
    for field in read_fields(port.payload):
        if field.tag == 1:
            name = field.text
        elif field.tag == 2:
            tensor = next((inner.payload for inner in read_fields(field.payload) if inner.tag == 1), None)
            code = next((inner.number for inner in read_fields(tensor or field.payload[:0]) if inner.tag == 1), 0)
            element_type = ELEMENT_TYPES.get(code)
    return Port(name, element_type, port.raw)


def _weight(tensor: Field) -> Weight:
    name, code, shape = "", 0, list[int]()
    stored: dict[str, str] = {}
    for field in read_fields(tensor.payload):
        if field.tag == 1:
            shape.extend(_sizes(field))
        elif field.tag == 2:
            code = field.number
        elif field.tag == 8:
            name = field.text
        elif field.tag == 13:
            key, value = (inner.text for inner in read_fields(field.payload))
            stored[key] = value
    location = stored.get("location")
    end = int(stored.get("offset", 0)) + int(stored.get("length", 0))
    return Weight(name, tuple(shape), ELEMENT_TYPES.get(code, str(code)), location, end, tensor.raw)


def _sizes(field: Field) -> Iterator[int]:
    """A repeated number, which stands alone or packed with others."""
    if not field.payload:
        yield field.number
        return
    packed = bytes(field.payload)
    value, shift = 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value, shift = 0, 0


def _node(node: Field) -> Node:
    op, reads, gives = "", list[str](), list[str]()
    for field in read_fields(node.payload):
        if field.tag == 1:
            reads.append(field.text)
        elif field.tag == 2:
            gives.append(field.text)
        elif field.tag == 4:
            op = field.text
        elif field.tag == 5:
            reads.extend(_inner_reads(field.payload))
    return Node(op, tuple(reads), tuple(gives), node.raw)


def _inner_reads(attribute: memoryview) -> Iterator[str]:
    """Every value that the graphs of an attribute take; values of their own among them, which does no harm."""
    for field in read_fields(attribute):
        if field.tag in (6, 11):
            for inner in read_fields(field.payload):
                if inner.tag == 1:
                    yield from _node(inner).reads
                elif inner.tag == 12:
                    yield _port(inner).name


def _check_data(graph: Graph) -> None:
    folder = graph.path.parent
    ends: dict[str, int] = {}
    for weight in graph.weights:
        if weight.location is not None:
            ends[weight.location] = max(ends.get(weight.location, 0), weight.end)
    for location, end in sorted(ends.items()):
        if PurePosixPath(location).is_absolute() or ".." in PurePosixPath(location).parts:
            raise CheckpointError(f"{graph.path}: its weights are to be in {location!r}, which is not beside it")
        data = folder / location
        if not data.is_file():
            raise CheckpointError(
                f"{data}: is missing, and {graph.path.name} has its weights there: copy it beside the graph"
            )
        if (size := data.stat().st_size) < end:
            raise CheckpointError(
                f"{data}: has {size} bytes, and {graph.path.name} needs {end} of it: copy both from one export"
            )


def _count(shape: Iterable[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
