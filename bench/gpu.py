"""The GPU benchmark: the same graph on CUDA and on the CPU, where there is CUDA to run it on.

Elsewhere nothing is loaded, and every number reads ``not run`` with the reason.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .corpus import MODEL
from .exports import Exports
from .machine import Machine, describe_machine, installed_versions, load_average
from .process import WorkerError
from .results import SCHEMA
from .stats import quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from vsr_core.runtime import Runtime

__all__ = ["MODELS", "GpuReport", "GpuRow", "compare", "gpu_table", "measure", "reason_against", "run_gpu"]

PROVIDER = "CUDAExecutionProvider"
LEAST_COSINE = 0.9999
"""Under this, CUDA does not compute the same model, whatever its matrix units round."""

MODELS = {"CUDA": "cuda:minilm", "CPU": "cpu:minilm"}
"""The two models that are compared."""

_SINGLES = 100
_WARM = 10
_BUDGET = 240.0
"""Seconds after which no further call of a single text is made; the export before them takes some 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One number; ``not_run`` says why there is none.

    :param failed: whether it says that CUDA answers wrongly.
    """

    name: str
    value: float | None = None
    unit: str = ""
    not_run: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """All numbers. ``load_average`` is before and after."""

    schema: int
    command: str
    date: str
    machine: Machine
    load_average: tuple[float | None, float | None]
    versions: dict[str, str]
    model: str
    texts: int
    rows: tuple[GpuRow, ...]


def run_gpu(texts: Sequence[str], *, progress: Callable[[str], None]) -> GpuReport:
    """Compare CUDA with the CPU if this host can; it takes under six minutes."""
    before = load_average()
    return GpuReport(
        schema=SCHEMA,
        command="gpu",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        rows=_rows(texts, progress),
        load_average=(before, load_average()),
        versions=installed_versions("vsr-core", "vsr-onnx", "onnxruntime", "onnxruntime-gpu"),
        model=MODEL,
        texts=len(texts),
    )


def reason_against(runtime: Runtime) -> str | None:
    """Why ONNX Runtime cannot compute on CUDA here, by its backend's own probe; None where it can."""
    runtime.matrix(probe=True)
    backend = next((each for each in runtime.status().backends if each.name == "onnx"), None)
    if backend is None:
        return "vsr-onnx is not installed"
    found = backend.runtime
    if found is None or not found.usable:
        return backend.error or (found.reason if found is not None else None) or "the backend onnx was not probed"
    if PROVIDER in found.providers:
        return None
    told = next((note for note in found.notes if PROVIDER in note), None)
    return told or f"this build of ONNX Runtime has no {PROVIDER}"


def compare(
    cuda: npt.NDArray[np.float32], cpu: npt.NDArray[np.float32], alone: npt.NDArray[np.float32]
) -> tuple[GpuRow, ...]:
    """How far CUDA's vectors are from the CPU's, and from its own where each text was asked by itself."""
    import numpy as np

    cosines = (cuda.astype(np.float64) * cpu).sum(axis=1)
    least = float(cosines.min())
    return (
        GpuRow(name=_PARITY[0], value=least, failed=not least >= LEAST_COSINE),
        GpuRow(name=_PARITY[1], value=float(np.abs(cuda - cpu).max())),
        GpuRow(name=_PARITY[2], value=float(np.abs(cuda[: len(alone)] - alone).max())),
    )


def gpu_table(report: GpuReport) -> RenderableType:
    """The run as a table."""
    table = Table(title="CUDA beside the CPU, on ONNX Runtime", title_justify="left", header_style="bold")
    for title in ("number", "measured"):
        table.add_column(title, no_wrap=True)
    for row in report.rows:
        table.add_row(row.name, _shown(row), style="red" if row.failed else "")
    reasons = dict.fromkeys(row.not_run for row in report.rows if row.not_run is not None)
    return Group(
        table,
        *(Text(f"not run: {reason}") for reason in reasons),
        Text(f"{report.texts} texts, {report.model}; vectors of CUDA should have a cosine of at least {LEAST_COSINE}"),
    )


_PARITY = (
    "least cosine, CUDA to CPU",
    "greatest difference, CUDA to CPU",
    "greatest difference, alone to together, CUDA",
)
_TIMES = tuple(
    f"{what}, {where}"
    for what in ("load", "single text, p50", "single text, p99", "all texts together")
    for where in ("CUDA", "CPU")
)


def _rows(texts: Sequence[str], progress: Callable[[str], None]) -> tuple[GpuRow, ...]:
    from vsr_core.errors import VsrError
    from vsr_core.runtime import Runtime

    progress("looking for CUDA")
    with Runtime({}) as runtime:
        reason = reason_against(runtime)
    if reason is None:
        with tempfile.TemporaryDirectory(prefix="vsr-bench-") as folder:
            try:
                model = Exports(Path(folder), progress).find("onnx")
                with Runtime(_configuration(model)) as runtime:
                    return tuple(measure(runtime, texts, progress))
            except (WorkerError, VsrError) as error:
                reason = str(error)
    return tuple(GpuRow(name=name, not_run=reason) for name in (*_PARITY, *_TIMES))


def _configuration(model: Path) -> dict[str, Any]:
    return {
        "catalog": {"minilm": {"source": str(model)}},
        "backends": {
            "cuda": {"adapter": "onnx", "device": "require:cuda"},
            "cpu": {"adapter": "onnx", "device": "require:cpu"},
        },
    }


def measure(runtime: Runtime, texts: Sequence[str], progress: Callable[[str], None]) -> Iterator[GpuRow]:
    """Parity and times of :data:`MODELS`, which the runtime has."""
    import numpy as np

    until = time.perf_counter() + _BUDGET
    loads = {where: _seconds(partial(runtime.load, model)) for where, model in MODELS.items()}
    progress("comparing the vectors")
    cuda, cpu = (runtime.embed(texts, model=model).vectors for model in MODELS.values())
    alone = np.concatenate([runtime.embed([text], model=MODELS["CUDA"]).vectors for text in texts[:_SINGLES]])
    yield from compare(cuda, cpu, alone)
    for where, model in MODELS.items():
        progress(f"timing {where}")
        yield GpuRow(name=f"load, {where}", value=loads[where], unit="s")
        yield from _times(runtime, texts, model, where=where, until=until)


def _times(runtime: Runtime, texts: Sequence[str], model: str, *, where: str, until: float) -> Iterator[GpuRow]:
    singles: list[float] = []
    for number in range(-_WARM, _SINGLES):
        if time.perf_counter() > until and singles:
            break
        text = texts[number % len(texts)]
        start = time.perf_counter()
        runtime.embed([text], model=model)
        if number >= 0:
            singles.append(1000 * (time.perf_counter() - start))
    yield GpuRow(name=f"single text, p50, {where}", value=quantile(singles, 0.5), unit="ms")
    yield GpuRow(name=f"single text, p99, {where}", value=quantile(singles, 0.99), unit="ms")
    start = time.perf_counter()
    runtime.embed(texts, model=model)
    seconds = time.perf_counter() - start
    yield GpuRow(name=f"all texts together, {where}", value=len(texts) / seconds, unit="texts/s")


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _shown(row: GpuRow) -> str:
    if row.value is None:
        return "not run"
    return f"{row.value:.6g} {row.unit}".rstrip()
