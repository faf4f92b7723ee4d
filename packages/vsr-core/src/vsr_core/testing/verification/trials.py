"""A trial of one cell, and how it ends: verified, failed or not run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ...contract import ModelInfo
from ...errors import VsrError
from ...plugins import ReceiptCell

__all__ = ["Findings", "NotRunError", "Outcomes", "Progress", "Trial", "run_trials"]

Progress = Callable[[str, int, int], None]
"""Told what is tried next, how many trials are over and how many there are."""

_LONGEST_REASON: Final = 500


class NotRunError(Exception):
    """A cell cannot be tried on this host; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a trial that went well has to tell.

    :param info: the model that was loaded, if one was; :param checkpoint: its name in the receipt.
    """

    checks: tuple[str, ...]
    info: ModelInfo | None = None
    measured: float | None = None
    allowed: float | None = None
    reason: str | None = None
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The cells as they are now, and the content hashes of the models that were loaded for them, by name."""

    cells: tuple[ReceiptCell, ...]
    checkpoints: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A cell and how it is tried.

    :param cell: the cell as it is where nothing ran; :param name: of it, for people.
    """

    name: str
    cell: ReceiptCell
    run: Callable[[], Findings]


def run_trials(trials: Iterable[Trial], *, progress: Progress) -> Outcomes:
    """Run each; whatever goes wrong in one is its result."""
    listed, cells, checkpoints = [*trials], [], {}
    for number, trial in enumerate(listed):
        progress(trial.name, number, len(listed))
        started = time.perf_counter()
        cell, info = _outcome(trial)
        cells.append(replace(cell, seconds=round(time.perf_counter() - started, 3)))
        if cell.checkpoint is not None and info is not None and info.content_hash is not None:
            checkpoints[cell.checkpoint] = info.content_hash
    return Outcomes(cells=tuple(cells), checkpoints=checkpoints)


def _outcome(trial: Trial) -> tuple[ReceiptCell, ModelInfo | None]:
    try:
        found = trial.run()
    except NotRunError as error:
        return replace(trial.cell, state="not_run", reason=_reason(str(error))), None
    except VsrError as error:
        return replace(trial.cell, state="failed", reason=_reason(error.message)), None
    except AssertionError as error:
        return replace(trial.cell, state="failed", reason=_reason(str(error))), None
    except Exception as error:  # noqa: BLE001 - foreign code: that it raises is the finding
        return replace(trial.cell, state="failed", reason=_reason(f"{type(error).__name__}: {error}")), None
    info = found.info
    cell = replace(
        trial.cell,
        state="verified",
        checks=found.checks,
        measured=found.measured,
        allowed=found.allowed,
        reason=found.reason,
        checkpoint=found.checkpoint,
        device=info.device if info is not None else None,
        provider=info.provider if info is not None else None,
        dtype=info.dtype if info is not None else None,
    )
    return cell, info


def _reason(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 3]}..."
