"""What both facades answer at once, without a request to run."""

from __future__ import annotations

from ..config import CheckReport
from ..contract import ModelInfo
from ..plugins import CapabilityMatrix, PluginReport
from .core import RuntimeCore
from .status import RuntimeStatus

__all__ = ["PlainFacade"]


class PlainFacade:
    """The calls that are plain functions on either facade."""

    def __init__(self, core: RuntimeCore) -> None:
        self._core = core

    def models(self) -> tuple[ModelInfo, ...]:
        """Every model that can be asked for, loaded or not, sorted by id."""
        return self._core.models()

    def matrix(self, *, probe: bool = False) -> CapabilityMatrix:
        """Backend by capability; ``probe`` looks at this host first, which imports the frameworks."""
        return self._core.matrix(probe=probe)

    def plugins(self) -> PluginReport:
        """Every plugin found, with what it contributes or why it does not."""
        return self._core.plugins()

    def status(self) -> RuntimeStatus:
        """The state of the whole runtime."""
        return self._core.status()

    def check(self) -> CheckReport:
        """Every impossible combination in the configuration; loads nothing."""
        return self._core.check()
