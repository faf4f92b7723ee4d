"""What is known of every plugin, in the form in which ``vsr plugins`` shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

__all__ = [
    "REPORT_SCHEMA",
    "Contribution",
    "PluginFailure",
    "PluginRecord",
    "PluginReport",
    "PluginSource",
    "Stage",
    "Status",
]

D = TypeVar("D")

Stage = Literal["import", "register", "describe", "probe", "load", "run"]
"""Where a plugin failed; ``run`` is what comes after loading: observing attempts, closing."""

Status = Literal["active", "disabled", "broken", "incompatible"]

REPORT_SCHEMA: Final = 1
"""Version of the report's JSON form."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PluginSource:
    """Who a plugin is and where it came from; ``str()`` names it in messages.

    :param entry_point: what the entry point names; empty, as is the distribution, for a plugin that an application
        registered itself.
    """

    name: str
    distribution: str = ""
    version: str = ""
    entry_point: str = ""

    def __str__(self) -> str:
        return f"{self.name!r} ({self.origin})"

    @property
    def origin(self) -> str:
        """The distribution with its version, or that the application brought the plugin."""
        return f"{self.distribution} {self.version}".strip() or "registered by the application"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution(Generic[D]):
    """A descriptor with the plugin it came from."""

    descriptor: D
    source: PluginSource

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        return self.source.name


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFailure:
    """One thing that went wrong: the stage, one line saying what, and the type of the exception."""

    stage: Stage
    reason: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRecord:
    """A plugin as it is listed.

    :param stage: where it failed, for a plugin that is broken or incompatible.
    :param reason: why the status is what it is; None for an active plugin.
    :param import_ms: how long importing it took; None where it was not imported.
    :param hooks: the hooks it implements; ``backends``, ``policies``, ``routers``, ``families`` and ``catalog`` are
        the names it offers, whether or not they are used.
    :param conflicts: the names it offers that are not used, one line each with the reason.
    :param failures: everything that went wrong, in order, later stages included.
    """

    name: str
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None
    status: Status = "active"
    stage: Stage | None = None
    reason: str | None = None
    import_ms: float | None = None
    hooks: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    routers: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    catalog: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    failures: tuple[PluginFailure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginReport:
    """Every plugin that was found, sorted by name, then distribution.

    :param contract: the contract version of this vsr-core.
    :param warnings: what is odd about the installation or the settings, one line each.
    """

    schema: int = REPORT_SCHEMA
    contract: str
    plugins: tuple[PluginRecord, ...] = ()
    warnings: tuple[str, ...] = ()
