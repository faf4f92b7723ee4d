"""Which backend instances a configuration can count on, and why not on the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..contract import CapabilitySet
from ..errors import AddressError, ConfigError, VsrError
from ..plugins import BackendInstances, PluginHost
from .configuration import Configuration
from .explain import closest
from .origin import KeyPath
from .report import Findings

__all__ = ["Availability"]

_EXTRAS: Final[Mapping[str, str]] = {
    "torch": "torch",
    "onnx": "onnx",
    "openvino": "openvino",
    **dict.fromkeys(("openai", "ollama"), "remote"),
}
"""The backends of this project's own distributions, and the extra that installs each."""


class Availability:
    """Answers for backend instances, and reports each that cannot be used where it is named."""

    def __init__(
        self, config: Configuration, host: PluginHost, instances: BackendInstances, *, findings: Findings
    ) -> None:
        self._config = config
        self._host = host
        self._instances = instances
        self._findings = findings
        self._declared: dict[str, CapabilitySet | VsrError] = {}

    def names(self) -> tuple[str, ...]:
        """The instances that can be used, sorted."""
        return tuple(name for name in self._instances.names() if isinstance(self._ask(name), CapabilitySet))

    def declared(self, name: str, path: KeyPath) -> CapabilitySet | None:
        """What an instance declares it can do; None, reported at ``path``, where it cannot be used.

        An instance that the configuration names itself is reported there, and not again by everyone who uses it.
        """
        answer = self._ask(name)
        if isinstance(answer, CapabilitySet):
            return answer
        if name not in self._config.instances:
            self._report(name, path, answer)
        return None

    def is_open(self, name: str) -> bool:
        """Whether a usable instance serves models that no catalog names."""
        return self._instances.descriptor(name).open_namespace

    def check_configured(self) -> None:
        """Report every instance of the configuration that cannot be made."""
        for name in self._config.instances:
            answer = self._ask(name)
            if isinstance(answer, VsrError):
                self._report(name, ("backends", name), answer)

    def _ask(self, name: str) -> CapabilitySet | VsrError:
        if name not in self._declared:
            try:
                self._host.require("backend", self._adapter(name))
                self._declared[name] = self._instances.declared(name)
            except VsrError as error:
                self._declared[name] = error
        return self._declared[name]

    def _adapter(self, name: str) -> str:
        configured = self._config.instances.get(name)
        return configured.adapter if configured is not None else name

    def _report(self, name: str, path: KeyPath, error: VsrError) -> None:
        if isinstance(error, ConfigError) and error.problems:
            for text in error.problems:
                self._report_option(name, path, text)
        elif isinstance(error, AddressError) and self._adapter(name) not in self._host.backends:
            self._report_missing(self._adapter(name), path)
        else:
            self._findings.problem(path, error.message, code=error.code)

    def _report_option(self, name: str, path: KeyPath, text: str) -> None:
        """A wrong option, at its own key where the text says which."""
        where, _, message = text.partition(": ")
        own = f"backends.{name}"
        if where != own and not where.startswith(f"{own}."):
            self._findings.problem(path, text, code="option")
            return
        steps = [int(step) if step.isdigit() else step for step in where.removeprefix(own).split(".") if step]
        named = [key for key in self._config.instances[name].options if not steps and repr(key) in message]
        self._findings.problem((*path, *(steps or named[:1])), message, code="option")

    def _report_missing(self, adapter: str, path: KeyPath) -> None:
        extra = _EXTRAS.get(adapter)
        hint = (
            f": pip install 'vsr-core[{extra}]'" if extra is not None else closest(adapter, tuple(self._host.backends))
        )
        self._findings.problem(
            path, f"no installed plugin brings a backend called {adapter!r}", hint=hint, code="not_installed"
        )
