"""Every error vsr raises on purpose.

    VsrError
    ├── ConfigError                     a configuration, or a catalog entry, is wrong
    │   └── CheckpointError             files of a model contradict themselves or their entry
    ├── PluginError                     a plugin failed: distribution, stage, reason
    │   ├── PluginImportError
    │   ├── PluginIncompatibleError
    │   └── PluginConflictError
    ├── RequestError                    what the caller sent cannot be served as sent
    │   ├── InvalidInputError
    │   └── InputTooLongError
    ├── AddressError                    a name that leads nowhere
    │   ├── ModelNotFoundError
    │   └── RoleNotFoundError
    ├── CapabilityError                 the model is known and cannot do this
    │   └── CapabilityUnmetError        names the first requirement that is not met
    ├── NoCandidatesError               routing left nobody to ask
    ├── BackendError                    a backend tried and failed
    │   ├── LoadError
    │   ├── NotReadyError
    │   ├── OverloadedError
    │   ├── InferenceError
    │   ├── NonFiniteOutputError
    │   ├── ProviderError
    │   └── StreamTruncatedError
    ├── DeadlineExceededError
    ├── PolicyError                     a routing policy said no
    │   ├── BudgetExceededError
    │   └── NotPermittedError
    └── RuntimeClosedError              the runtime was closed, or crossed a fork or an event loop

Each class has a stable ``code`` for machines, an HTTP status, and says whether the same call may succeed
later. ``to_dict()`` is what crosses a process border; it never carries a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from .taxonomy import ErrorClass

__all__ = [
    "AddressError",
    "BackendError",
    "BudgetExceededError",
    "CapabilityError",
    "CapabilityUnmetError",
    "CheckpointError",
    "ConfigError",
    "DeadlineExceededError",
    "InferenceError",
    "InputTooLongError",
    "InvalidInputError",
    "LoadError",
    "ModelNotFoundError",
    "NoCandidatesError",
    "NonFiniteOutputError",
    "NotPermittedError",
    "NotReadyError",
    "OverloadedError",
    "PluginConflictError",
    "PluginError",
    "PluginImportError",
    "PluginIncompatibleError",
    "PolicyError",
    "ProviderError",
    "RequestError",
    "RoleNotFoundError",
    "RuntimeClosedError",
    "StreamTruncatedError",
    "VsrError",
    "error_codes",
]


class VsrError(Exception):
    """Base of every error raised on purpose by vsr and its plugins.

    :param message: one sentence a user can act on.
    """

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500
    retryable: bool = False

    #: One record per candidate tried, filled by the attempt loop on the error it raises.
    attempts: Sequence[object] = ()
    #: Seconds after which the same call may succeed, where somebody said so.
    retry_after: float | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, dict(self.__dict__))

    def details(self) -> dict[str, Any]:
        """The JSON-ready facts of this error beyond its message."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The error as one JSON-ready object with ``code``, ``message``, ``retryable`` and details."""
        body: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        body.update(self.details())
        return body


def _rebuild(error: type[VsrError], message: str, state: dict[str, Any]) -> VsrError:
    """Restore a pickled error without asking its constructor for keyword arguments."""
    restored = error.__new__(error, message)
    restored.__dict__.update(state)
    return restored


class ConfigError(VsrError):
    """A configuration is wrong; every problem found is in ``problems``, one line each."""

    code = "config_invalid"
    http_status = 400

    def __init__(self, message: str, *, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def details(self) -> dict[str, Any]:
        return {"problems": list(self.problems)} if self.problems else {}


class CheckpointError(ConfigError):
    """Files of a model are missing, damaged, refused, or contradict the catalog entry."""

    code = "checkpoint_invalid"


class PluginError(VsrError):
    """A plugin failed in one of the stages import, register, describe, probe, load or run."""

    code = "plugin_failed"

    def __init__(self, message: str, *, plugin: str, distribution: str | None = None, stage: str) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.distribution = distribution
        self.stage = stage

    def details(self) -> dict[str, Any]:
        return {"plugin": self.plugin, "distribution": self.distribution, "stage": self.stage}


class PluginImportError(PluginError):
    """The module an entry point names could not be imported."""

    code = "plugin_import_failed"


class PluginIncompatibleError(PluginError):
    """The plugin was written for another version of the contract."""

    code = "plugin_incompatible"


class PluginConflictError(PluginError):
    """Two plugins claim one name; the message names both."""

    code = "plugin_conflict"


class RequestError(VsrError):
    """The request cannot be served as sent; sending it again will not help."""

    code = "request_invalid"
    http_status = 422

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param

    def details(self) -> dict[str, Any]:
        return {"param": self.param} if self.param is not None else {}


class InvalidInputError(RequestError):
    """An argument has the wrong type, shape or value; ``param`` names it."""

    code = "input_invalid"


class InputTooLongError(RequestError):
    """The input exceeds a limit; ``limit`` and ``actual`` are in ``unit``."""

    code = "input_too_long"
    http_status = 413

    def __init__(
        self, message: str, *, limit: int, actual: int, unit: str = "tokens", param: str | None = None
    ) -> None:
        super().__init__(message, param=param)
        self.limit = limit
        self.actual = actual
        self.unit = unit

    def details(self) -> dict[str, Any]:
        return super().details() | {"limit": self.limit, "actual": self.actual, "unit": self.unit}


class AddressError(VsrError):
    """A model, role or backend name that leads nowhere."""

    code = "address_invalid"
    http_status = 404

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name

    def details(self) -> dict[str, Any]:
        return {"name": self.name}


class ModelNotFoundError(AddressError):
    """No catalog entry, backend or role answers to this name."""

    code = "model_not_found"


class RoleNotFoundError(AddressError):
    """No role of this kind has this name."""

    code = "role_not_found"


class CapabilityError(VsrError):
    """The model is known, and what was asked is not among what it can do."""

    code = "capability_unsupported"
    http_status = 422

    def __init__(self, message: str, *, backend_id: str | None = None, reason: str | None = None) -> None:
        super().__init__(message)
        self.backend_id = backend_id
        self.reason = reason

    def details(self) -> dict[str, Any]:
        return {"backend_id": self.backend_id, "reason": self.reason}


class CapabilityUnmetError(CapabilityError):
    """The first requirement a candidate does not meet is in ``unmet``."""

    code = "capability_unmet"

    def __init__(self, message: str, *, unmet: str, backend_id: str | None = None, reason: str | None = None) -> None:
        super().__init__(message, backend_id=backend_id, reason=reason)
        self.unmet = unmet

    def details(self) -> dict[str, Any]:
        return super().details() | {"unmet": self.unmet}


class NoCandidatesError(VsrError):
    """Routing dropped every candidate of a group; ``drops`` says why, one line each."""

    code = "no_candidates"
    http_status = 503

    def __init__(self, message: str, *, drops: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.drops = tuple(drops)

    def details(self) -> dict[str, Any]:
        return {"drops": list(self.drops)}


class BackendError(VsrError):
    """A backend tried and failed.

    :param backend_id: who failed.
    :param error_class: decides what the attempt loop does next.
    :param retryable: whether the same call may succeed later; the error class's own answer by default.
    :param retry_after: seconds, where the backend said so.
    """

    code = "backend_failed"
    http_status = 502
    default_class: ClassVar[ErrorClass] = ErrorClass.INTERNAL

    def __init__(
        self,
        message: str,
        *,
        backend_id: str,
        error_class: ErrorClass | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.backend_id = backend_id
        self.error_class = error_class or self.default_class
        self.retryable = self.error_class.retryable if retryable is None else retryable
        self.retry_after = retry_after

    def details(self) -> dict[str, Any]:
        return {"backend_id": self.backend_id, "error_class": self.error_class.value}


class LoadError(BackendError):
    """A model could not be loaded."""

    code = "load_failed"
    http_status = 503


class NotReadyError(BackendError):
    """The model is known but not loaded, still loading, or draining."""

    code = "not_ready"
    http_status = 503
    default_class = ErrorClass.OVERLOADED


class OverloadedError(BackendError):
    """Admission refused more work; ``retry_after`` estimates when there will be room."""

    code = "overloaded"
    http_status = 429
    default_class = ErrorClass.SATURATED


class InferenceError(BackendError):
    """The engine failed while running a batch."""

    code = "inference_failed"
    http_status = 500


class NonFiniteOutputError(BackendError):
    """The model answered NaN or infinity; the values are withheld."""

    code = "non_finite_output"
    http_status = 500
    default_class = ErrorClass.MALFORMED_RESPONSE


class ProviderError(BackendError):
    """A remote provider refused or failed; ``status`` is its HTTP status."""

    code = "provider_failed"
    default_class = ErrorClass.SERVER_ERROR

    def __init__(self, message: str, *, backend_id: str, status: int | None = None, **rest: Any) -> None:
        super().__init__(message, backend_id=backend_id, **rest)
        self.status = status

    def details(self) -> dict[str, Any]:
        return super().details() | {"status": self.status}


class StreamTruncatedError(BackendError):
    """A stream ended without its protocol's end marker; ``partial_text`` is what had arrived."""

    code = "stream_truncated"
    default_class = ErrorClass.MALFORMED_RESPONSE

    def __init__(self, message: str, *, backend_id: str, partial_text: str = "", **rest: Any) -> None:
        super().__init__(message, backend_id=backend_id, **rest)
        self.partial_text = partial_text


class DeadlineExceededError(VsrError):
    """The caller's time ran out; ``timeout`` is what had been given, in seconds."""

    code = "deadline_exceeded"
    http_status = 504
    retryable = True

    def __init__(self, message: str, *, timeout: float | None = None) -> None:
        super().__init__(message)
        self.timeout = timeout

    def details(self) -> dict[str, Any]:
        return {"timeout": self.timeout}


class PolicyError(VsrError):
    """A routing policy refused the request; ``policy`` names it."""

    code = "policy_refused"
    http_status = 403

    def __init__(self, message: str, *, policy: str) -> None:
        super().__init__(message)
        self.policy = policy

    def details(self) -> dict[str, Any]:
        return {"policy": self.policy}


class BudgetExceededError(PolicyError):
    """A budget does not cover the request."""

    code = "budget_exceeded"
    http_status = 402


class NotPermittedError(PolicyError):
    """The caller may not use this model."""

    code = "not_permitted"


class RuntimeClosedError(VsrError):
    """The runtime was closed, forked, or used from another event loop than its own."""

    code = "runtime_closed"
    http_status = 503


def error_codes() -> Mapping[str, type[VsrError]]:
    """Every stable code with its class, sorted by code."""
    found: dict[str, type[VsrError]] = {}
    pending: list[type[VsrError]] = [VsrError]
    while pending:
        error = pending.pop()
        found[error.code] = error
        pending.extend(error.__subclasses__())
    return dict(sorted(found.items()))
