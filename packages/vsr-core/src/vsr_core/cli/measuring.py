"""Timing the engines of this machine against each other, on one model that all of them can be given."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import InvalidInputError, VsrError
from .activity import Activity
from .session import opened
from .specimen import WORDS, write_specimen

if TYPE_CHECKING:
    from ..contract import ModelInfo
    from ..runtime import Runtime

__all__ = ["Timing", "measure"]

_MODEL: Final = "doctor"
_LENGTHS: Final = (6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80)
"""Words of the texts: as uneven as those of an application."""
_SECONDS: Final = 0.5
"""How long each engine is timed for, in all its rounds together; one round at least."""
_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one engine came to, or why it was not timed.

    :param texts_per_second: of its best round, which what else the machine does disturbs least.
    :param dtype: what it computed in, and ``reason`` how that was chosen, as far as it says.
    """

    backend: str
    texts_per_second: float | None = None
    device: str | None = None
    dtype: str | None = None
    reason: str | None = None
    failure: str | None = None


def measure(backends: Sequence[str], activity: Activity) -> tuple[Timing, ...]:
    """Time backends on a BERT of the shape of all-MiniLM-L6-v2 with random weights, each with its default settings.

    A backend with an exporter is given the export it makes, which takes it seconds; any other the checkpoint itself.
    """
    with tempfile.TemporaryDirectory(prefix="vsr-doctor-") as temporary:
        folder = Path(temporary)
        activity.step("writing a model of random weights")
        sources: dict[str, Path | str] = dict.fromkeys(backends, write_specimen(folder / "checkpoint"))
        with opened({"catalog": {_MODEL: {"source": str(folder / "checkpoint")}}}) as runtime:
            for backend in backends:
                activity.step(f"exporting it for {backend}")
                sources[backend] = _source(runtime, backend, folder)
        catalog = {
            f"{_MODEL}-{backend}": {"source": str(source), "backends": [backend]}
            for backend, source in sources.items()
            if isinstance(source, Path)
        }
        missing = {backend: source for backend, source in sources.items() if isinstance(source, str)}
        with opened({"catalog": catalog}) as runtime:
            return _time(runtime, backends, missing, activity)


def _source(runtime: Runtime, backend: str, folder: Path) -> Path | str:
    """What a backend is to read, or why there is nothing for it."""
    out = folder / backend
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what exporters print is no part of the answer
            runtime.export(_MODEL, to=backend, out=out)
    except InvalidInputError:  # it has no exporter: checkpoints as they are must be what it reads
        return folder / "checkpoint"
    except VsrError as error:
        return error.message
    return out


def _time(
    runtime: Runtime, backends: Sequence[str], missing: Mapping[str, str], activity: Activity
) -> tuple[Timing, ...]:
    timings = {backend: Timing(backend=backend, failure=missing.get(backend)) for backend in backends}
    calls: dict[str, Callable[[], object]] = {}
    texts = _texts()
    for backend in backends:
        if backend in missing:
            continue
        activity.step(f"loading it on {backend}")
        model = f"{backend}:{_MODEL}-{backend}"
        try:
            info = runtime.load(model)
            runtime.embed(texts, model=model)  # what is done for the first batch alone is no part of the time
        except VsrError as error:
            timings[backend] = replace(timings[backend], failure=error.message)
            continue
        timings[backend] = _loaded(timings[backend], info)
        calls[backend] = lambda model=model: runtime.embed(texts, model=model)  # type: ignore[misc]
    activity.step("timing the engines in turn")
    seconds = _alternate(calls)
    return tuple(
        replace(timing, texts_per_second=len(texts) / seconds[backend]) if backend in seconds else timing
        for backend, timing in timings.items()
    )


def _loaded(timing: Timing, info: ModelInfo) -> Timing:
    return replace(
        timing,
        device=info.device.actual if info.device is not None else None,
        dtype=info.dtype.actual if info.dtype is not None else None,
        reason=info.dtype.reason if info.dtype is not None else None,
    )


def _alternate(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The seconds of each one's fastest call; they take turns, so that what slows the machine slows all of them."""
    best: dict[str, float] = {}
    spent = dict.fromkeys(calls, 0.0)
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            if spent[name] >= _SECONDS:
                continue
            start = time.perf_counter()
            call()
            seconds = time.perf_counter() - start
            spent[name] += seconds
            best[name] = min(seconds, best.get(name, seconds))
    return best


def _texts() -> list[str]:
    lengths = [_LENGTHS[number % len(_LENGTHS)] for number in range(24)]
    return [" ".join(islice(cycle(WORDS), start, start + length)) for start, length in enumerate(lengths)]
