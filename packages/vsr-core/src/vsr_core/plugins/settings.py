"""Which plugins may be imported, decided by the settings and the environment before any is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from ..errors import ConfigError
from .records import PluginSource

__all__ = ["ALLOW_VARIABLE", "DENY_VARIABLE", "STRICT_VARIABLE", "PluginSettings", "Selection", "same_name"]

ALLOW_VARIABLE: Final = "VSR_PLUGINS"
DENY_VARIABLE: Final = "VSR_DISABLED_PLUGINS"
STRICT_VARIABLE: Final = "VSR_STRICT_PLUGINS"

_TRUTH: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off", ""), False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """How plugins are discovered. Plugins are named by entry point or by distribution.

    :param only: the plugins that may be imported; None means all, an empty tuple none.
    :param disabled: the plugins that may not, ``only`` notwithstanding.
    :param precedence: contested name -> the plugin whose contribution is used; for a contested plugin name, the
        distribution.
    :param strict: whether the first failure is raised instead of listed.
    :param timeout: seconds each stage of each plugin may take.
    """

    only: tuple[str, ...] | None = None
    disabled: tuple[str, ...] = ()
    precedence: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    timeout: float = 10.0

    def under(self, environ: Mapping[str, str]) -> Self:
        """These settings with ``VSR_STRICT_PLUGINS`` of the environment applied.

        :raises ConfigError: the variable is neither true nor false.
        """
        text = environ.get(STRICT_VARIABLE)
        if text is None:
            return self
        strict = _TRUTH.get(text.strip().lower())
        if strict is None:
            raise ConfigError(f"{STRICT_VARIABLE} is {text!r}: use 1 or 0")
        return replace(self, strict=strict)


def same_name(name: str) -> str:
    """A name in the form in which spellings such as ``vsr_onnx`` and ``VSR-ONNX`` are one."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The lists in force: each name with the place that lists it.

    :param allowed: None where everything is allowed; ``allowed_by`` is the place of the list.
    :param preferred: the plugins that the precedence names.
    """

    allowed: Mapping[str, str] | None
    denied: Mapping[str, str]
    preferred: Mapping[str, str]
    allowed_by: str

    @classmethod
    def of(cls, settings: PluginSettings, environ: Mapping[str, str]) -> Selection:
        """Join settings and environment: ``VSR_PLUGINS`` replaces the allow list, the deny lists add up."""
        allowed = None if settings.only is None else _named(settings.only, "plugins.only")
        allowed_by = "plugins.only"
        if ALLOW_VARIABLE in environ:
            allowed, allowed_by = _named(environ[ALLOW_VARIABLE].split(","), ALLOW_VARIABLE), ALLOW_VARIABLE
        denied = _named(environ.get(DENY_VARIABLE, "").split(","), DENY_VARIABLE)
        return cls(
            allowed=allowed,
            denied=_named(settings.disabled, "plugins.disabled") | denied,
            preferred=_named(settings.precedence.values(), "plugins.precedence"),
            allowed_by=allowed_by,
        )

    def denial(self, source: PluginSource) -> str | None:
        """Why a plugin is switched off, or None where it is not."""
        places = [self.denied[name] for name in _names(source) if name in self.denied]
        return f"switched off by {places[0]}" if places else None

    def refusal(self, source: PluginSource) -> str | None:
        """Why a plugin that was found may not be imported, or None where it may."""
        if self.allowed is not None and not any(name in self.allowed for name in _names(source)):
            return self.denial(source) or f"not among the plugins in {self.allowed_by}"
        return self.denial(source)

    def unknown(self, sources: Iterable[PluginSource]) -> tuple[str, ...]:
        """One warning for each listed name that fits no plugin."""
        known = {name for source in sources for name in _names(source)}
        listed = [*(self.allowed or {}).items(), *self.denied.items(), *self.preferred.items()]
        return tuple(
            f"{place} names {name!r}, and no installed plugin or distribution is called that"
            for name, place in sorted(set(listed))
            if name not in known
        )


def _named(names: Iterable[str], place: str) -> dict[str, str]:
    return {same_name(name): place for name in names if name.strip()}


def _names(source: PluginSource) -> tuple[str, ...]:
    return tuple(same_name(name) for name in (source.name, source.distribution) if name)
