"""The interpreters workers run on: this one, and that of the hatch environment with the peers."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from .process import WorkerError, run_bounded
from .variants import Environment

__all__ = ["ROOT", "Interpreters", "worker_environ"]

ROOT = Path(__file__).resolve().parent.parent

_PEERS: Environment = "peers"
_CREATE_SECONDS = 1800.0
# What `hatch run` sets for its own environment, which would change how another one is installed.
_OF_THIS_ENVIRONMENT = (
    "HATCH_ENV_ACTIVE",
    "VIRTUAL_ENV",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_OVERRIDE",
    "UV_CONSTRAINT",
    "PIP_CONSTRAINT",
)


def worker_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment variables of a worker: those of this process, free of its hatch environment and offline."""
    environ = os.environ if environ is None else environ
    kept = {name: value for name, value in environ.items() if name not in _OF_THIS_ENVIRONMENT}
    return kept | {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "PYTHONUNBUFFERED": "1"}


class Interpreters:
    """Finds the interpreter of an environment; hatch creates the environment where it does not exist yet.

    :param progress: told what takes its time.
    """

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._peers: Path | None = None
        self._failure: str | None = None

    def find(self, environment: Environment) -> Path:
        """The interpreter of an environment.

        :raises WorkerError: hatch is missing, or could not provide it; asked again, the same answer.
        """
        if environment == "default":
            return Path(sys.executable)
        if self._failure is not None:
            raise WorkerError(self._failure)
        if self._peers is None:
            try:
                self._peers = self._provide()
            except WorkerError as error:
                self._failure = str(error)
                raise
        return self._peers

    def _provide(self) -> Path:
        hatch = shutil.which("hatch")
        if hatch is None:
            raise WorkerError("hatch is not on PATH, so the environment 'peers' cannot be found")
        self._progress("environment 'peers': checking it; the first time, it is created and takes minutes")
        environ = {name: value for name, value in os.environ.items() if name not in _OF_THIS_ENVIRONMENT}
        ask = [hatch, "-e", _PEERS, "run", "python", "-c", "import sys; print(sys.executable)"]
        done = run_bounded(ask, cwd=ROOT, environ=environ, timeout=_CREATE_SECONDS)
        lines = done.stdout.strip().splitlines()
        if done.status != 0 or not lines or not Path(lines[-1]).is_file():
            told = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
            raise WorkerError(f"hatch could not provide the environment 'peers': {told}")
        return Path(lines[-1])
