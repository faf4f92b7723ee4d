"""What can be compared: each variant is a worker module, its arguments, and the environment it runs in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["REFERENCE", "VARIANTS", "Engine", "Environment", "Export", "Variant", "choose"]

Environment = Literal["default", "peers"]
Engine = Literal["torch", "onnx", "openvino"]
Export = Literal["onnx", "onnx-int8", "openvino"]
"""The model as an ONNX graph in float32, as one with weights of 8 bits, as OpenVINO IR in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One contestant of the embedding benchmark.

    :param module: run with ``python -m`` in ``environment``, a hatch environment of this repository.
    :param engine: what computes; a raw loop is the baseline of its own engine.
    :param export: the form of the model that is to be made for it, and given as ``--model``.
    """

    name: str
    label: str
    module: str
    arguments: tuple[str, ...]
    environment: Environment = "default"
    engine: Engine = "torch"
    export: Export | None = None


def _facade(
    name: str, label: str, precision: str, *, engine: Engine = "torch", export: Export | None = None, artifact: str = ""
) -> Variant:
    arguments = ("--backend", engine, "--precision", precision)
    return Variant(
        name=name,
        label=label,
        module="bench.workers.facade",
        arguments=(*arguments, "--artifact", artifact) if artifact else arguments,
        engine=engine,
        export=export,
    )


def _openvino_loop(name: str, label: str, hint: str) -> Variant:
    return Variant(
        name=name,
        label=label,
        module="bench.workers.raw_openvino",
        arguments=("--precision", hint),
        engine="openvino",
        export="openvino",
    )


def _peer(name: str, label: str, dtype: str, batch: str) -> Variant:
    return Variant(
        name=name,
        label=label,
        module="bench.workers.peer",
        arguments=("--dtype", dtype, "--batch", batch),
        environment="peers",
    )


REFERENCE = Variant(
    name="reference",
    label="transformers, fp32, one text at a time",
    module="bench.workers.reference",
    arguments=(),
)
"""What cosines are measured against; it is not timed."""

VARIANTS: tuple[Variant, ...] = (
    _peer("st-fp32", "sentence-transformers, fp32, batches of 32 (its default)", "float32", "32"),
    _peer("st-fp32-best", "sentence-transformers, fp32, best batch size", "float32", "best"),
    _peer("st-bf16", "sentence-transformers, bf16, batches of 32 (its default)", "bfloat16", "32"),
    _peer("st-bf16-best", "sentence-transformers, bf16, best batch size", "bfloat16", "best"),
    Variant(
        name="raw-fp32",
        label="raw loop over the engine, fp32",
        module="bench.workers.raw",
        arguments=("--dtype", "float32"),
    ),
    Variant(
        name="raw-bf16",
        label="raw loop over the engine, bf16",
        module="bench.workers.raw",
        arguments=("--dtype", "bfloat16"),
    ),
    _facade("vsr-fp32", "vsr Runtime.embed on torch, precision require:fp32", "require:fp32"),
    _facade("vsr-auto", "vsr Runtime.embed on torch, precision auto", "auto"),
    Variant(
        name="raw-onnx",
        label="raw loop over a session of ONNX Runtime, fp32",
        module="bench.workers.raw_onnx",
        arguments=(),
        engine="onnx",
        export="onnx",
    ),
    _facade("vsr-onnx", "vsr Runtime.embed on ONNX Runtime, fp32", "require:fp32", engine="onnx", export="onnx"),
    _facade(
        "vsr-onnx-int8",
        "vsr Runtime.embed on ONNX Runtime, 8 bits, one text at a time",
        "auto",
        engine="onnx",
        export="onnx-int8",
        artifact="quantized",
    ),
    _openvino_loop("raw-openvino", "raw loop over a model compiled by OpenVINO, f32", "f32"),
    _facade("vsr-openvino", "vsr Runtime.embed on OpenVINO, f32", "require:fp32", engine="openvino", export="openvino"),
    _openvino_loop("raw-openvino-bf16", "raw loop over a model compiled by OpenVINO, bf16", "bf16"),
    _facade(
        "vsr-openvino-bf16", "vsr Runtime.embed on OpenVINO, bf16", "require:bf16", engine="openvino", export="openvino"
    ),
)
"""In the order they are reported."""


def choose(names: Sequence[str]) -> tuple[Variant, ...]:
    """The variants of these names, in the order they are reported; no names are all of them.

    :raises ValueError: a name that no variant has.
    """
    known = {variant.name for variant in VARIANTS}
    for name in names:
        if name not in known:
            raise ValueError(f"no variant is called {name!r}; there are {', '.join(v.name for v in VARIANTS)}")
    return tuple(variant for variant in VARIANTS if not names or variant.name in names)
