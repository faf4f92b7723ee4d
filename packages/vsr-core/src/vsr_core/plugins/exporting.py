"""Running a backend's exporter or merger, on the thread that asked, so that an interruption reaches it."""

from __future__ import annotations

import errno
from typing import Literal

from ..contract import BackendDescriptor, ExportReport, ExportRequest
from ..errors import PluginError, VsrError
from .adapting import referenced
from .isolation import explain

__all__ = ["Writer", "run_writer"]

Writer = Literal["exporter", "merger"]


def run_writer(descriptor: BackendDescriptor, writer: Writer, request: ExportRequest) -> ExportReport:
    """Import the exporter or the merger a backend names and call it.

    :raises VsrError: what it itself refused.
    :raises OSError: the disk is full.
    :raises PluginError: it cannot be imported, or raised anything else.
    """
    named = descriptor.exporter if writer == "exporter" else descriptor.merger
    if named is None:
        raise ValueError(f"{descriptor.name!r} has no {writer}")
    try:
        report = referenced(named)(request)
    except VsrError:
        raise
    except OSError as cause:
        if cause.errno in (errno.ENOSPC, errno.EDQUOT):  # nobody's fault, and told as what it is
            raise
        raise _failure(descriptor, writer, "{}: {}".format(*explain(cause))) from cause
    except (Exception, SystemExit) as cause:
        raise _failure(descriptor, writer, "{}: {}".format(*explain(cause))) from cause
    if not isinstance(report, ExportReport):
        raise _failure(descriptor, writer, f"it gave a {type(report).__name__}, not an ExportReport")
    return report


def _failure(descriptor: BackendDescriptor, writer: Writer, reason: str) -> PluginError:
    return PluginError(f"the {writer} of {descriptor.name!r} failed: {reason}", plugin=descriptor.name, stage="run")
