"""A runtime for the length of one command."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DeadlineExceededError
from .activity import Activity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..contract import BackendId, ModelInfo
    from ..runtime import Runtime

__all__ = ["config_file", "info_of", "open_runtime", "opened"]


def config_file(explicit: Path | None) -> Path | None:
    """The configuration this run is about, or None where there is none.

    Most runs have none, and then the room that reads one, with its YAML parser, is not imported to learn that.

    :raises ConfigError: a file that was named does not exist.
    """
    if explicit is None and not os.environ.get("VSR_CONFIG") and not Path("vsr.yaml").exists():
        return None
    from ..config import find_config

    return find_config(explicit, os.environ, Path.cwd())


@contextmanager
def open_runtime(config: Path | None, *, activity: Activity | None = None) -> Iterator[Runtime]:
    """A runtime from the configuration of this run, closed at the end."""
    with opened(config_file(config), activity=activity) as runtime:
        yield runtime


@contextmanager
def opened(source: Path | Mapping[str, Any] | None, *, activity: Activity | None = None) -> Iterator[Runtime]:
    """A runtime from that source, closed at the end.

    Closing waits for a load in progress. Who pressed Ctrl-C, or gave a time that is over, does not want to wait: then
    the end of the process ends the load.
    """
    from ..runtime import Runtime

    with contextlib.redirect_stdout(sys.stderr):  # what a plugin prints while it is imported is no part of the answer
        runtime = Runtime(source, progress=activity)
    try:
        yield runtime
    except (KeyboardInterrupt, DeadlineExceededError):
        raise
    except BaseException:
        runtime.close()
        raise
    runtime.close()


def info_of(runtime: Runtime, backend_id: BackendId) -> ModelInfo:
    """What the runtime knows of a model that has answered; a provider's may be known by its id alone."""
    from ..contract import ModelInfo

    return next((info for info in runtime.models() if info.backend_id == backend_id), ModelInfo(backend_id=backend_id))
