"""Named backends: the adapters of this process, each made when it is first used and asked once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

from ..contract import (
    BackendAdapter,
    BackendContext,
    BackendDescriptor,
    CapabilitySet,
    InferenceGateway,
    RuntimeInfo,
    check_backend_name,
)
from ..errors import AddressError, ConfigError, ModelNotFoundError, PluginError, VsrError
from .adapting import AdapterBuild, InstanceSettings, ask_capabilities, ask_runtime
from .host import PluginHost
from .intake import failure_error
from .isolation import Failed, IsolatedCall, explain, mask
from .records import Contribution, PluginFailure, Stage

__all__ = ["BackendInstances"]

T = TypeVar("T")


class _Slot:
    """What has been asked of one instance so far; the answers stay with the calls."""

    def __init__(self, contribution: Contribution[BackendDescriptor], build: AdapterBuild) -> None:
        self.contribution = contribution
        self.build = build
        self.lock = threading.Lock()
        self.building: IsolatedCall[BackendAdapter] | None = None
        self.describing: IsolatedCall[CapabilitySet] | None = None
        self.probing: IsolatedCall[RuntimeInfo] | None = None
        self.errors: dict[str, VsrError] = {}


class BackendInstances:
    """One default instance for every backend in use, and those that a configuration names.

    A backend that is ``configured_only`` has no default instance. Safe to use from any thread; foreign code runs in
    isolation, and an answer that was too late for one caller is there for the next.

    :param settings: instance name -> how it is configured.
    :param cache_dir: the folder under which each instance has a folder of its own.
    :param threads: the compute threads of the process.
    :param gateway: given to backends that delegate.
    :raises ConfigError: an instance's name is malformed.
    """

    def __init__(
        self,
        host: PluginHost,
        settings: Mapping[str, InstanceSettings] | None = None,
        *,
        cache_dir: Path | None = None,
        threads: int | None = None,
        gateway: InferenceGateway | None = None,
    ) -> None:
        self.host: Final = host
        self._settings = {check_backend_name(name): each for name, each in (settings or {}).items()}
        self._cache_dir = cache_dir
        self._threads = threads
        self._gateway = gateway
        self._lock = threading.Lock()
        self._slots: dict[str, _Slot] = {}

    def names(self) -> tuple[str, ...]:
        """Every instance, sorted."""
        default = {name for name, each in self.host.backends.items() if not each.descriptor.configured_only}
        return tuple(sorted(default | self._settings.keys()))

    def settings(self, name: str) -> InstanceSettings:
        """How an instance is configured; the defaults for one that nobody configured.

        :raises ModelNotFoundError: there is no such instance.
        :raises PluginError: there would be, if its plugin were usable.
        """
        configured = self._settings.get(name)
        if configured is not None:
            return configured
        try:
            descriptor = self.host.require("backend", name)
        except AddressError as error:
            raise ModelNotFoundError(error.message, name=name) from None
        if descriptor.configured_only:
            raise ModelNotFoundError(
                f"{name!r} is a backend only where the configuration has an instance of it: add it to `backends`",
                name=name,
            )
        return InstanceSettings(name=name, adapter=name)

    def descriptor(self, name: str) -> BackendDescriptor:
        """What the instance is an instance of; raises as :meth:`settings` does."""
        return self.host.require("backend", self.settings(name).adapter)

    def adapter(self, name: str) -> BackendAdapter:
        """The instance's adapter, made by the first call.

        :raises ModelNotFoundError: there is no such instance.
        :raises ConfigError: its options are wrong.
        :raises PluginError: its plugin cannot be used, or failed to make it.
        """
        slot = self._slot(name)
        with slot.lock:
            if slot.building is None:
                slot.building = IsolatedCall(slot.build, f"make {name}")
        return self._answer(name, slot, "describe", slot.building)

    def declared(self, name: str) -> CapabilitySet:
        """What the instance declares it can do; raises as :meth:`adapter` does."""
        adapter, slot = self.adapter(name), self._slot(name)
        with slot.lock:
            if slot.describing is None:
                slot.describing = IsolatedCall(lambda: ask_capabilities(adapter), f"describe {name}")
        return self._answer(name, slot, "describe", slot.describing)

    def probe(self, name: str) -> RuntimeInfo:
        """What the instance finds on this host; a probe that fails is an answer, with the reason.

        :raises ModelNotFoundError: there is no such instance.
        """
        try:
            adapter, slot = self.adapter(name), self._slot(name)
            with slot.lock:
                if slot.probing is None:
                    slot.probing = IsolatedCall(lambda: ask_runtime(adapter), f"probe {name}")
            return self._answer(name, slot, "probe", slot.probing)
        except (PluginError, ConfigError) as error:
            return RuntimeInfo(usable=False, reason=error.message)

    def probed(self, name: str) -> RuntimeInfo | None:
        """What a probe found, where one was made and succeeded; looks at nothing itself."""
        with self._lock:
            slot = self._slots.get(name)
        outcome = slot.probing.outcome() if slot is not None and slot.probing is not None else None
        return None if outcome is None or isinstance(outcome, Failed) else outcome.value

    def context(self, name: str) -> BackendContext:
        """What the instance's factory is given, apart from its options; raises as :meth:`settings` does."""
        settings = self.settings(name)
        descriptor = self.host.require("backend", settings.adapter)
        return BackendContext(
            name=name,
            families=self.host.families,
            cache_dir=self._cache_dir / name if self._cache_dir is not None else None,
            threads=settings.threads if settings.threads is not None else self._threads,
            gateway=self._gateway if descriptor.delegating else None,
        )

    def failures(self) -> Mapping[str, VsrError]:
        """The instances that failed when they were last asked, sorted by name, each with its error."""
        with self._lock:
            slots = sorted(self._slots.items())
        return {name: error for name, slot in slots for error in [*slot.errors.values()][:1]}

    def record_failure(self, name: str, stage: Stage, cause: BaseException) -> None:
        """List what went wrong with an instance elsewhere, such as a load, with its plugin."""
        slot = self._slot(name)
        self._failed(name, slot, stage, Failed(*explain(cause), cause))

    async def close(self) -> None:
        """Close every adapter that was made; one that fails to close is listed and keeps none open."""
        import asyncio  # listing plugins needs no event loop, and asyncio is slow to import

        with self._lock:
            slots, self._slots = self._slots, {}
        for name, slot in sorted(slots.items()):
            outcome = slot.building.outcome() if slot.building is not None else None
            if outcome is None or isinstance(outcome, Failed):
                continue
            try:
                async with asyncio.timeout(self.host.settings.timeout):
                    await outcome.value.close()
            except Exception as cause:  # noqa: BLE001 - foreign code; the other adapters are to be closed as well
                self._failed(name, slot, "run", Failed(*explain(cause), cause))

    def _slot(self, name: str) -> _Slot:
        with self._lock:
            slot = self._slots.get(name)
        if slot is not None:
            return slot
        settings = self.settings(name)
        descriptor = self.host.require("backend", settings.adapter)
        build = AdapterBuild(descriptor, settings, self.context(name))
        fresh = _Slot(self.host.backends[settings.adapter], build)
        with self._lock:
            return self._slots.setdefault(name, fresh)

    def _answer(self, name: str, slot: _Slot, stage: Stage, call: IsolatedCall[T]) -> T:
        outcome = call.wait(self.host.settings.timeout)
        if isinstance(outcome, Failed):
            slot.errors[call.name] = error = self._failed(name, slot, stage, outcome)
            raise error
        slot.errors.pop(call.name, None)
        return outcome.value

    def _failed(self, name: str, slot: _Slot, stage: Stage, failed: Failed) -> VsrError:
        """The error to raise, with secrets masked; a plugin's failure is listed, a wrong configuration is not."""
        secrets = slot.build.secrets
        if isinstance(failed.cause, ConfigError):
            problems = [mask(problem, secrets) for problem in failed.cause.problems]
            return ConfigError(mask(failed.cause.message, secrets), problems=problems)
        failed = failed.masked(secrets)
        failure = PluginFailure(stage=stage, reason=f"backend {name!r}: {failed.reason}", error=failed.error)
        self.host.record_failure(slot.contribution.source, failure)
        return failure_error(slot.contribution.source, failure, cause=failed.cause)
