"""vsr: a backend-neutral model runtime and router.

Importing this package imports nothing heavy: the facades arrive when they are first used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import VsrError
    from .runtime import AsyncRuntime, Runtime

__all__ = ["AsyncRuntime", "Runtime", "VsrError", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("AsyncRuntime", "Runtime"):
        from . import runtime

        return getattr(runtime, name)
    if name == "VsrError":
        from .errors import VsrError

        return VsrError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
