"""The packages an export needs beyond those that inference needs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from vsr_core.errors import PluginError

from .forms import GraphForm

__all__ = ["require"]


def require(modules: Sequence[str], form: GraphForm) -> None:
    """Import modules, or say how to install what brings them.

    :raises PluginError: one of them cannot be imported.
    """
    for name in modules:
        try:
            import_module(name)
        except (ImportError, OSError) as error:  # a library of the system may be what is missing
            raise PluginError(
                f'exporting needs {name}, which cannot be imported ({error}): pip install "{form.extra}"',
                plugin=form.plugin,
                distribution=form.extra.partition("[")[0],
                stage="run",
            ) from error
