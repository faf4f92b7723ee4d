"""What every backend must do, gated by what it declares."""

from __future__ import annotations

from .behaving import Behaving
from .claiming import Claiming
from .declaring import Declaring
from .failing import Failing

__all__ = ["BackendConformance"]


class BackendConformance(Declaring, Claiming, Behaving, Failing):
    """Subclass it and name ``plugin`` and ``backend``; what the backend declares is then put to the test.

    See :class:`~vsr_core.testing.conformance.subject.BackendSubject` for all that can be told, and
    ``docs/conformance.md`` for an example.
    """
