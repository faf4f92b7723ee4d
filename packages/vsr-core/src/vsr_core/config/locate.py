"""Which configuration file is meant when none, or only a variable, says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..errors import ConfigError

__all__ = ["CONFIG_VARIABLE", "DEFAULT_NAME", "find_config"]

CONFIG_VARIABLE: Final = "VSR_CONFIG"
DEFAULT_NAME: Final = "vsr.yaml"


def find_config(explicit: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The file to load: the one named explicitly, else the one ``VSR_CONFIG`` names, else ``vsr.yaml`` if it is there.

    :raises ConfigError: a file that was named does not exist.
    """
    if explicit is not None:
        return _existing(cwd / explicit, str(explicit), "")
    named = environ.get(CONFIG_VARIABLE)
    if named:
        return _existing(cwd / named, named, f", which {CONFIG_VARIABLE} names,")
    default = cwd / DEFAULT_NAME
    return default if default.is_file() else None


def _existing(path: Path, name: str, who: str) -> Path:
    if not path.exists():
        raise ConfigError(f"the configuration file {name!r}{who} does not exist")
    return path
