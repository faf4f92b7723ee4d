"""Running a backend's exporter, on the thread that asked, so that an interruption reaches it."""

from __future__ import annotations

import errno

from ..contract import BackendDescriptor, ExportReport, ExportRequest
from ..errors import PluginError, VsrError
from .adapting import referenced
from .isolation import explain

__all__ = ["run_exporter"]


def run_exporter(descriptor: BackendDescriptor, request: ExportRequest) -> ExportReport:
    """Import the exporter a backend names and call it.

    :raises VsrError: what the exporter itself refused.
    :raises OSError: the disk is full.
    :raises PluginError: it cannot be imported, or raised anything else.
    """
    if descriptor.exporter is None:
        raise ValueError(f"{descriptor.name!r} has no exporter")
    try:
        report = referenced(descriptor.exporter)(request)
    except VsrError:
        raise
    except OSError as cause:
        if cause.errno in (errno.ENOSPC, errno.EDQUOT):  # nobody's fault, and told as what it is
            raise
        raise _failure(descriptor, "{}: {}".format(*explain(cause))) from cause
    except (Exception, SystemExit) as cause:
        raise _failure(descriptor, "{}: {}".format(*explain(cause))) from cause
    if not isinstance(report, ExportReport):
        raise _failure(descriptor, f"it gave a {type(report).__name__}, not an ExportReport")
    return report


def _failure(descriptor: BackendDescriptor, reason: str) -> PluginError:
    return PluginError(f"the exporter of {descriptor.name!r} failed: {reason}", plugin=descriptor.name, stage="run")
