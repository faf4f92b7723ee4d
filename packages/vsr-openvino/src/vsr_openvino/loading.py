"""Loading an encoder: graphs, device, dtype, engine, pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vsr_core.contract import Choice, LoadRequest, ModelHandle
from vsr_core.errors import LoadError
from vsr_core.local import (
    GraphEngine,
    IntArray,
    WorkingMemory,
    build_encoder,
    choose_precision,
    compare,
    plan_fused,
    plan_graph,
    probe_ids,
    prove,
)

from .compiling import DTYPES, Compiler, dtype_of
from .device import candidates, describe, executes_on
from .options import OpenVinoOptions
from .reading import explain
from .runner import OpenVinoRunner
from .sources import GraphSource, read_source
from .untracked import ov

__all__ = ["load_encoder"]


def load_encoder(request: LoadRequest, options: OpenVinoOptions, *, threads: int) -> ModelHandle:
    """Load an encoder with its head.

    :param threads: the compute threads the model may use.
    :raises CheckpointError: the files are not those of such an encoder.
    :raises LoadError: a device or precision that was required is not to be had, or no device takes the model.
    :raises NonFiniteOutputError: the model answers NaN or infinity to a plain text.
    """
    name = str(request.backend_id)
    core = ov.Core()
    available = tuple(core.available_devices)
    devices = candidates(request.device, available, backend_id=name)
    source = read_source(request)
    ids = probe_ids(request, vocabulary=source.vocabulary)
    failures: dict[str, str] = {}
    for device in devices:
        compiler = Compiler(
            core=core,
            device=device,
            dtype="float32",
            threads=threads,
            performance=options.performance,
            cache_dir=_cache(request),
        )
        try:
            candidate = _settle(request, source, compiler, ids)
        except RuntimeError as error:  # what OpenVINO raises
            failures[device] = explain(error)
            continue
        chosen = describe(request.device, device, available=available, failures=failures)
        return _finish(request, source, candidate, chosen)
    raise LoadError(f"{name} cannot be loaded: {_refusals(failures)}", backend_id=name)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A runner that answers as it should, with the dtype it computes in."""

    runner: OpenVinoRunner
    dtype: Choice


def _settle(request: LoadRequest, source: GraphSource, compiler: Compiler, ids: list[IntArray]) -> _Candidate:
    """Settle the dtype on a device, and see that the model answers there.

    :raises RuntimeError: the device does not take the model.
    """
    runners: dict[str, OpenVinoRunner] = {}

    def engine(dtype: str) -> GraphEngine:
        if dtype not in runners:
            runners[dtype] = _compile(source, replace(compiler, dtype=dtype))
        return _engine(source, runners[dtype])

    native = compiler.core.get_property(compiler.device, "OPTIMIZATION_CAPABILITIES")
    precision = choose_precision(
        request.precision,
        place=compiler.device.lower(),
        native={dtype for name, dtype in DTYPES.items() if name in native},
        backend_id=str(request.backend_id),
        compare=lambda: compare(request, engine("float32"), engine("bfloat16"), ids=ids),
    )
    dtype = precision.actual or "float32"
    prove(request, engine(dtype), ids=ids)
    runner = runners[dtype]
    return _Candidate(runner, _checked(request, source, runner, precision))


def _cache(request: LoadRequest) -> Path | None:
    """A folder of this model's own; none where its content is not known, or nothing can be written there."""
    if request.cache_dir is None or request.spec.content_hash is None:
        return None
    folder = request.cache_dir / request.spec.content_hash[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _compile(source: GraphSource, compiler: Compiler) -> OpenVinoRunner:
    runner = OpenVinoRunner(source.graphs, compiler, native=source.native)
    executing = runner.compiled.get_property("EXECUTION_DEVICES")
    if not executes_on(compiler.device, executing):
        raise RuntimeError(f"it would run on {', '.join(executing).lower()} instead")
    return runner


def _engine(source: GraphSource, runner: OpenVinoRunner) -> GraphEngine:
    plan = partial(plan_fused if runner.fuses_attention else plan_graph, source.layout)
    return GraphEngine(runner, source.layout, head=source.head, concurrency=runner.concurrency, plan=plan)


def _checked(request: LoadRequest, source: GraphSource, runner: OpenVinoRunner, choice: Choice) -> Choice:
    """The dtype by what the compiled graph says of itself.

    :raises LoadError: a required one was not kept to.
    """
    actual = dtype_of(runner.compiled)
    reasons = [choice.reason] if choice.reason else []
    if actual != choice.actual:
        reasons.append(f"told to compute in {choice.actual}, OpenVINO computes in {actual or 'what it does not say'}")
        if request.precision.mode == "require":
            raise LoadError(
                f"{request.backend_id}: precision {str(request.precision)!r} is not to be had: {reasons[-1]}",
                backend_id=str(request.backend_id),
            )
    if (stored := source.graphs[0].stored_dtype) is not None:
        reasons.append(f"the file holds the weights in {stored}")
    return replace(choice, actual=actual, reason="; ".join(reasons) or None)


def _finish(request: LoadRequest, source: GraphSource, candidate: _Candidate, device: Choice) -> ModelHandle:
    return build_encoder(
        request,
        _engine(source, candidate.runner),
        device=device,
        dtype=candidate.dtype,
        vocab_size=source.vocabulary,
        memory_bytes=source.bytes,
        memory=WorkingMemory(),
    )


def _refusals(failures: Mapping[str, str]) -> str:
    return "; ".join(f"{device.lower()} does not take the model: {why}" for device, why in failures.items())
