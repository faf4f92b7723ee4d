"""A graph with several outputs cut into stages, so that a shallower layer costs no more than its own part.

ONNX Runtime computes a whole graph whichever output is asked for (``only_execute_path_to_fetches`` changes nothing in
builds without training). As stages, each in a session of its own, no weights are held twice, and a deeper layer goes on
from where the shallower one ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .graph import Graph, Node
from .proto import encode_bytes, encode_int

__all__ = ["Stage", "ValueType", "assemble", "cut"]


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value between two stages: the code of its element type, and its sizes, named or numbered."""

    element_type: int
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a graph.

    :param feeds: the graph's own inputs it reads; ``takes`` are values it has from earlier stages.
    :param gives: the graph's outputs it ends in; ``passes`` are the values that later stages take from it.
    """

    nodes: tuple[Node, ...]
    feeds: tuple[str, ...]
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    passes: tuple[str, ...]


def cut(graph: Graph, outputs: Sequence[str]) -> tuple[Stage, ...]:
    """The stages that lead to the outputs, shallowest first; what leads to none of them is left out."""
    producers = {name: node for node in graph.nodes for name in node.gives if name}
    needs = {name: _closure(name, producers) for name in outputs}
    done: set[int] = set()
    drafts: list[tuple[list[Node], list[str]]] = []
    for name in sorted(outputs, key=lambda name: len(needs[name])):
        fresh = [node for node in graph.nodes if id(node) in needs[name] - done and not _is_constant(node)]
        if fresh or not drafts:
            drafts.append((fresh, [name]))
        else:
            _owner(drafts, name)[1].append(name)
        done |= needs[name]
    return tuple(_finish(graph, drafts))


def assemble(graph: Graph, stage: Stage, types: Mapping[str, ValueType]) -> bytes:
    """The stage as an ONNX file of its own.

    :param types: the types of the values it takes from earlier stages.
    """
    read = {name for node in stage.nodes for name in node.reads}
    ports = {port.name: port for port in graph.inputs}
    known = {port.name: port for port in graph.outputs}
    body: list[bytes | memoryview] = [node.raw for node in stage.nodes]
    body += [weight.raw for weight in graph.weights if weight.name in read]
    body += graph.extras
    body += [ports[name].raw for name in stage.feeds]
    body += [encode_bytes(11, _typed_port(name, types[name])) for name in stage.takes]
    body += [known[name].raw if name in known else encode_bytes(12, encode_bytes(1, name)) for name in _ends(stage)]
    return b"".join((*graph.frame, encode_bytes(7, b"".join(body))))


def _ends(stage: Stage) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*stage.gives, *stage.passes)))


def _finish(graph: Graph, drafts: Sequence[tuple[Sequence[Node], Sequence[str]]]) -> Iterable[Stage]:
    owner = {name: number for number, (nodes, _) in enumerate(drafts) for node in nodes for name in node.gives}
    taken = [
        {name for node in nodes for name in node.reads if name in owner and owner[name] != number}
        for number, (nodes, _) in enumerate(drafts)
    ]
    inputs = [port.name for port in graph.inputs]
    for number, (nodes, names) in enumerate(drafts):
        read = {name for node in nodes for name in node.reads}
        constants = [node for node in graph.nodes if _is_constant(node) and read.intersection(node.gives)]
        passes = {name for later in taken for name in later if owner[name] == number}
        yield Stage(
            nodes=(*constants, *nodes),
            feeds=tuple(name for name in inputs if name in read),
            takes=tuple(sorted(taken[number])),
            gives=tuple(names),
            passes=tuple(sorted(passes)),
        )


def _owner(drafts: Sequence[tuple[list[Node], list[str]]], name: str) -> tuple[list[Node], list[str]]:
    """The stage that computes a value already."""
    return next((draft for draft in drafts if any(name in node.gives for node in draft[0])), drafts[-1])


def _closure(name: str, producers: Mapping[str, Node]) -> set[int]:
    """The nodes that a value depends on, by identity."""
    found: set[int] = set()
    pending = [name]
    while pending:
        node = producers.get(pending.pop())
        if node is not None and id(node) not in found:
            found.add(id(node))
            pending.extend(node.reads)
    return found


def _is_constant(node: Node) -> bool:
    """Whether a node is a mere constant, which each stage that reads it has for itself."""
    return node.op == "Constant" and not node.reads


def _typed_port(name: str, kind: ValueType) -> bytes:
    dims = b"".join(encode_bytes(1, _dim(size)) for size in kind.shape)
    tensor = encode_int(1, kind.element_type) + encode_bytes(2, dims)
    return encode_bytes(1, name) + encode_bytes(2, encode_bytes(1, tensor))


def _dim(size: int | str | None) -> bytes:
    if size is None:
        return b""
    return encode_bytes(2, size) if isinstance(size, str) else encode_int(1, size)
