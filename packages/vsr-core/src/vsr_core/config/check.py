"""Is the configuration possible with what is installed? Answered without loading a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..errors import AddressError, PluginError
from ..plugins import BackendInstances, PluginHost
from .availability import Availability
from .configuration import Configuration
from .explain import closest
from .models import ModelCheck
from .origin import KeyPath
from .report import CheckReport, Findings
from .settings import PolicySettings

__all__ = ["check"]

BUILT_IN_ROUTER = "default"
"""The router that is always there: the order that the policies gave."""


def check(config: Configuration, host: PluginHost, instances: BackendInstances) -> CheckReport:
    """Find every combination in a configuration that cannot work here, with the reason the matrix shows.

    Files are inspected where they are on this machine; nothing is loaded and nothing is downloaded.

    :param host: the plugins as discovered with this configuration's settings.
    :param instances: the backend instances of this configuration.
    """
    findings = Findings(config.origin)
    availability = Availability(config, host, instances, findings=findings)
    models = ModelCheck(config, host, availability=availability, findings=findings)
    availability.check_configured()
    for entry in config.catalog.values():
        models.check_entry(entry)
    for target in config.role_targets:
        models.check_target(target)
    _check_routing(config, host, findings)
    _check_signals(config, findings)
    _check_prices(config, instances, findings)
    _check_plugins(config, host, findings)
    return findings.report()


def _check_routing(config: Configuration, host: PluginHost, findings: Findings) -> None:
    _check_policies(config.routing.policies, ("routing", "policies"), host, findings)
    for (kind, role), policies in config.role_policies.items():
        _check_policies(policies, ("roles", kind.value, role, "policies"), host, findings)
    if config.routing.router != BUILT_IN_ROUTER:
        _check_contribution("router", config.routing.router, ("routing", "router"), host, findings)


def _check_policies(policies: Sequence[PolicySettings], path: KeyPath, host: PluginHost, findings: Findings) -> None:
    for index, policy in enumerate(policies):
        _check_contribution("policy", policy.name, (*path, index), host, findings)


def _check_contribution(
    what: Literal["policy", "router"], name: str, path: KeyPath, host: PluginHost, findings: Findings
) -> None:
    try:
        if what == "policy":
            host.require("policy", name)
        else:
            host.require("router", name)
    except AddressError:
        known = tuple(host.policies if what == "policy" else host.routers)
        meant = closest(name, known) or "; this project's own come with pip install 'vsr-core[policies]'"
        findings.problem(
            path, f"no installed plugin brings a {what} called {name!r}", hint=meant, code=f"{what}_unknown"
        )
    except PluginError as error:
        findings.problem(path, error.message, code=error.code)


def _check_signals(config: Configuration, findings: Findings) -> None:
    for name, signal in config.signals.items():
        if not config.roles.has(signal.kind, signal.role):
            known = tuple(role for kind, role, _ in config.roles.items() if kind is signal.kind)
            findings.problem(
                ("signals", name, "role"),
                f"no {signal.kind} role is called {signal.role!r}{closest(signal.role, known)}",
                code="role_not_found",
            )


def _check_prices(config: Configuration, instances: BackendInstances, findings: Findings) -> None:
    for backend_id in config.prices:
        if backend_id.backend not in instances.names():
            findings.problem(
                ("prices", str(backend_id)),
                f"no backend is called {backend_id.backend!r}{closest(backend_id.backend, instances.names())}",
                code="backend_unknown",
            )


def _check_plugins(config: Configuration, host: PluginHost, findings: Findings) -> None:
    report = host.report()
    names = {name for plugin in report.plugins for name in (plugin.name, plugin.distribution) if name is not None}
    for contested, winner in config.plugins.precedence.items():
        if _spelled(winner) not in map(_spelled, names):
            findings.problem(
                ("plugins", "precedence", contested),
                f"no installed plugin or distribution is called {winner!r}{closest(winner, sorted(names))}",
                code="plugin_unknown",
            )
    for warning in report.warnings:
        findings.note(("plugins",), warning)
    for plugin in report.plugins:
        if plugin.status in ("broken", "incompatible"):
            findings.note(("plugins",), f"plugin {plugin.name!r} is {plugin.status}: {plugin.reason}")


def _spelled(name: str) -> str:
    """One form for the spellings that name the same distribution."""
    return name.lower().replace("_", "-").replace(".", "-")
