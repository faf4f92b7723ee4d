"""The way of one plugin through import, registration and description, each stage in isolation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..errors import PluginConflictError, PluginError, PluginImportError, PluginIncompatibleError
from .compatibility import incompatibility
from .isolation import Failed, isolate
from .offer import Offer, describe, register
from .records import PluginFailure, PluginSource, Stage, Status

__all__ = ["Plugin", "admit", "failure_error", "import_plugin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin as far as it came.

    :param reason: why it is disabled, broken or incompatible.
    :param failure: what went wrong, ``cause`` the exception, where there was one, and ``kind`` the error to raise.
    """

    source: PluginSource
    status: Status = "active"
    offer: Offer = field(default_factory=Offer)
    import_ms: float | None = None
    reason: str | None = None
    failure: PluginFailure | None = None
    cause: BaseException | None = None
    kind: type[PluginError] = PluginError

    def failed(self, stage: Stage, failed: Failed, *, kind: type[PluginError] = PluginError) -> Plugin:
        """This plugin with a failure that takes it out."""
        return replace(
            self,
            status="incompatible" if kind is PluginIncompatibleError else "broken",
            reason=failed.reason,
            failure=PluginFailure(stage=stage, reason=failed.reason, error=failed.error),
            cause=failed.cause,
            kind=kind,
        )

    def error(self) -> PluginError:
        """The typed error that says why this plugin is not usable."""
        if self.failure is None:
            text = f"plugin {self.source} is {self.status}: {self.reason}"
        elif self.kind is PluginConflictError:
            text = self.failure.reason  # it names this plugin and the other
        elif self.kind is PluginIncompatibleError:
            text = f"plugin {self.source} {self.failure.reason}"
        else:
            return failure_error(self.source, self.failure, cause=self.cause, kind=self.kind)
        stage = self.failure.stage if self.failure else "import"
        return self.kind(text, plugin=self.source.name, distribution=self.source.distribution or None, stage=stage)


def import_plugin(source: PluginSource, load: Callable[[], object], *, timeout: float) -> Plugin:
    """Import a plugin, then admit it.

    :param load: imports what the entry point names.
    :param timeout: seconds for each stage.
    """
    imported = isolate(load, timeout=timeout, name=f"import {source.name}")
    if isinstance(imported, Failed):
        return Plugin(source=source).failed("import", imported, kind=PluginImportError)
    return replace(admit(source, imported.value, timeout=timeout), import_ms=round(imported.seconds * 1000, 3))


def admit(source: PluginSource, plugin: object, *, timeout: float) -> Plugin:
    """Register and describe a plugin that is already imported."""
    fresh = Plugin(source=source)
    registered = isolate(lambda: register(plugin, source.name), timeout=timeout, name=f"register {source.name}")
    if isinstance(registered, Failed):
        return fresh.failed("register", registered)
    described = isolate(lambda: describe(registered.value), timeout=timeout, name=f"describe {source.name}")
    if isinstance(described, Failed):
        return replace(fresh, offer=Offer(hooks=registered.value.hooks)).failed("describe", described)
    fresh = replace(fresh, offer=described.value)
    for needed in described.value.contracts:
        reason = incompatibility(needed, source)
        if reason is not None:
            failed = Failed(PluginIncompatibleError.__name__, reason)
            return fresh.failed("describe", failed, kind=PluginIncompatibleError)
    return fresh


def failure_error(
    source: PluginSource,
    failure: PluginFailure,
    *,
    cause: BaseException | None = None,
    kind: type[PluginError] = PluginError,
) -> PluginError:
    """The typed error for a failure, with the exception behind it as its cause."""
    error = kind(
        f"plugin {source} failed at {failure.stage}: {failure.error}: {failure.reason}",
        plugin=source.name,
        distribution=source.distribution or None,
        stage=failure.stage,
    )
    error.__cause__ = cause
    return error
