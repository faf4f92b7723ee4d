"""What can be compared: each variant is a worker module, its arguments, and the environment it runs in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["REFERENCE", "VARIANTS", "Environment", "Variant", "choose"]

Environment = Literal["default", "peers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One contestant of the embedding benchmark.

    :param module: run with ``python -m`` in ``environment``, a hatch environment of this repository.
    """

    name: str
    label: str
    module: str
    arguments: tuple[str, ...]
    environment: Environment = "default"


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
    Variant(
        name="vsr-fp32",
        label="vsr Runtime.embed, precision require:fp32",
        module="bench.workers.facade",
        arguments=("--precision", "require:fp32"),
    ),
    Variant(
        name="vsr-auto",
        label="vsr Runtime.embed, precision auto",
        module="bench.workers.facade",
        arguments=("--precision", "auto"),
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
