"""The run: each way of serving six tasks in a process of its own, round by round in turn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ..contestant import Progress, Workplace, rotated
from ..encoders.shapes import ModernBertShape
from ..environments import ROOT, Interpreters, worker_environ
from ..machine import describe_machine, load_average
from ..process import Worker, WorkerError
from ..protocol import Ask, Done, ForwardTimes, Loaded, Prepared, RunTime, SingleTimes
from ..results import SCHEMA
from ..stats import paired_ratios, spread
from ..variants import Variant
from .materials import Materials, read_materials, write_materials
from .results import AdaptersReport, Gate, ServingResult

__all__ = ["KINDS", "MERGED", "AdapterSettings", "gates_of", "run_adapters"]

MERGED = "vsr-merged"
KINDS: Mapping[str, tuple[str, str]] = {
    "transformers": ("transformers", "six merged models in transformers, one after the other"),
    MERGED: ("merged", "six merged models in vsr"),
    "peft": ("peft", "one base in PEFT, set_adapter for each task"),
    "peft-mixed": ("peft-mixed", "one base in PEFT, a mixed batch of all tasks"),
    "vsr-adapters": ("all", "one base in vsr, adapters on every layer"),
    "vsr-upper": ("upper", "one base in vsr, adapters on the upper half"),
    "vsr-top": ("top", "one base in vsr, adapters on the last layer: nearly one backbone with many heads"),
}
"""The name of each contestant: what its worker is told, and what it is."""

ONES, ALLS = 12, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings:
    """What to run.

    :param precision: ``fp32`` or ``bf16``.
    :param timeout: seconds any single step of a worker may take.
    """

    shape: ModernBertShape
    precision: str
    contestants: tuple[str, ...]
    rounds: int = 3
    timeout: float = 1800.0


def run_adapters(settings: AdapterSettings, *, progress: Progress) -> AdaptersReport:
    """Run the benchmark; a contestant that fails is reported with its reason, and the others go on."""
    before = load_average()
    with tempfile.TemporaryDirectory(prefix="vsr-bench-") as temporary, ExitStack() as stack:
        where = Workplace(Path(temporary), settings.timeout, Interpreters(progress), progress)
        file = write_materials(where.folder, settings.shape, progress=progress)
        empty = _empty_bytes()
        runners = [_Runner(name, settings, where, file, stack) for name in settings.contestants]
        for runner in runners:
            runner.start()
        for number in range(settings.rounds):
            progress(f"round {number + 1} of {settings.rounds}")
            for runner in rotated(runners, number):
                runner.measure()
        for runner in runners:
            runner.save()
        results = tuple(runner.result(where.folder / f"{MERGED}.npz", empty) for runner in runners)
    return AdaptersReport(
        schema=SCHEMA,
        command="adapters",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=describe_machine(),
        load_average=(before, load_average()),
        shape=settings.shape.name,
        precision=settings.precision,
        empty_bytes=empty,
        results=results,
        gates=gates_of(results, settings.precision),
    )


class _Runner:
    """One contestant with its worker and what it has measured."""

    def __init__(
        self, name: str, settings: AdapterSettings, where: Workplace, materials: Path, stack: ExitStack
    ) -> None:
        kind, label = KINDS[name]
        self._where, self._file, self._stack = where, materials, stack
        arguments = ("--kind", kind, "--precision", settings.precision)
        self._variant = Variant(name=name, label=label, module="bench.workers.adapting", arguments=arguments)
        self._result = ServingResult(name=name, label=label, bytes=_bytes_of(kind, read_materials(materials)))
        self._worker: Worker | None = None

    def start(self) -> None:
        """Start the process, load, answer, and warm up."""
        try:
            began = time.perf_counter()
            self._worker = self._stack.enter_context(self._where.start(self._variant))
            loaded = self._worker.ask(Ask(command="load", path=str(self._file)), Loaded, timeout=self._where.timeout)
            seconds = time.perf_counter() - began
            ready = self._worker.ask(Ask(command="prepare"), Prepared, timeout=self._where.timeout)
        except WorkerError as error:
            self._fail(error)
            return
        self._result = replace(
            self._result,
            facts=ready.facts,
            start_seconds=seconds,
            warm_seconds=ready.seconds,
            resident_bytes=loaded.resident_bytes,
        )
        self._where.progress(f"  {self._variant.name}: first answers after {seconds:.1f} s")

    def measure(self) -> None:
        """One round: one task, all tasks, a crowd."""
        if self._worker is None or self._result.failure is not None:
            return
        timeout, result = self._where.timeout, self._result
        try:
            one = self._worker.ask(Ask(command="single", count=ONES), SingleTimes, timeout=timeout)
            each = self._worker.ask(Ask(command="forward", count=ALLS), ForwardTimes, timeout=timeout)
            crowd = self._worker.ask(Ask(command="run"), RunTime, timeout=timeout)
        except WorkerError as error:
            self._fail(error)
            return
        self._result = replace(
            result,
            ones=(*result.ones, one.seconds),
            alls=(*result.alls, each.seconds),
            crowds=(*result.crowds, crowd),
        )
        self._where.progress(f"  {self._variant.name}: all six in {spread(each.seconds).median * 1000:.0f} ms")

    def save(self) -> None:
        """Have the logits written, and end the worker."""
        if self._worker is not None and self._result.failure is None:
            try:
                path = self._where.folder / f"{self._variant.name}.npz"
                self._worker.ask(Ask(command="save", path=str(path)), Done, timeout=self._where.timeout)
            except WorkerError as error:
                self._fail(error)
        if self._worker is not None:
            self._worker.close()

    def result(self, reference: Path, empty: int | None) -> ServingResult:
        """What was measured; the resident memory without that of an empty process."""
        mine, result = self._where.folder / f"{self._variant.name}.npz", self._result
        resident = result.resident_bytes
        if resident is not None and empty is not None:
            result = replace(result, resident_bytes=resident - empty)
        same = self._variant.name in ("transformers", "peft", "peft-mixed", "vsr-adapters")
        if not (same and mine.is_file() and reference.is_file()):
            return result
        ours, theirs = np.load(mine), np.load(reference)
        return replace(result, difference=max(float(np.abs(ours[name] - theirs[name]).max()) for name in theirs.files))

    def _fail(self, error: WorkerError) -> None:
        self._result = replace(self._result, failure=str(error))
        self._where.progress(f"  {self._variant.name}: failed: {error}")
        if self._worker is not None:
            self._worker.close()


def gates_of(results: Sequence[ServingResult], precision: str) -> tuple[Gate, ...]:
    """The bounds on adapters against the merged models in the same engine, from the rounds' own ratios."""
    found = {result.name: result for result in results if result.failure is None}
    merged, full, upper = (found.get(name) for name in (MERGED, "vsr-adapters", "vsr-upper"))

    def latency(of: ServingResult | None) -> float | None:
        if of is None or merged is None or not of.alls or not merged.alls:
            return None
        mine, theirs = ([spread(each).median for each in one.alls] for one in (of, merged))
        return spread(paired_ratios(mine, theirs)).median

    def throughput(of: ServingResult | None) -> float | None:
        if of is None or merged is None or not of.crowds or not merged.crowds:
            return None
        mine, theirs = ([1 / each.seconds for each in one.crowds] for one in (of, merged))
        return spread(paired_ratios(mine, theirs)).median

    def share(name: str) -> float | None:
        if full is None or merged is None:
            return None
        mine, theirs = getattr(full, name), getattr(merged, name)
        return mine / theirs if mine and theirs else None

    gates = [
        Gate(name="all six, time over merged", value=latency(full), bound=1.05),
        Gate(name="throughput over merged", value=throughput(full), bound=0.95, at_most=False),
        Gate(name="files over merged", value=share("bytes"), bound=0.20),
        Gate(name="upper half: all six, time over merged", value=latency(upper), bound=0.50),
        Gate(name="upper half: throughput over merged", value=throughput(upper), bound=1.5, at_most=False),
    ]
    if precision == "bf16":
        gates.insert(2, Gate(name="memory over merged", value=share("resident_bytes"), bound=0.27))
    else:
        gates.append(Gate(name="difference of a logit", value=full.difference if full else None, bound=1e-4))
    return tuple(gates)


def _bytes_of(kind: str, materials: Materials) -> int:
    """The files a way of serving reads."""
    if kind in ("transformers", "merged"):
        folders = list(materials.merged.values())
    else:
        chosen = kind if kind in materials.adapters else "all"
        folders = [materials.base, *materials.adapters[chosen].values()]
    return sum(path.stat().st_size for folder in folders for path in Path(folder).rglob("*") if path.is_file())


def _empty_bytes() -> int | None:
    """Resident memory of a process with the libraries and without a model."""
    code = (
        "import torch, transformers, vsr_candle_torch.loading, vsr_core;"
        "from bench.gauges import resident_bytes; print(resident_bytes())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=dict(worker_environ()), capture_output=True, text=True, check=False
    )
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdigit() else None
