"""Where foreign code runs: on a thread of its own, within a time limit, and whatever it raises becomes an answer."""

from __future__ import annotations

import contextvars
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

__all__ = ["Failed", "IsolatedCall", "Returned", "explain", "isolate", "mask"]

T = TypeVar("T")

_LONGEST_REASON: Final = 500
_MASK: Final = "**********"


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The call came back with a value after so many seconds."""

    value: T
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The call raised, or did not come back in time.

    :param error: the name of the exception's type.
    :param reason: one line.
    :param cause: what was raised, or None for a call that is still running.
    """

    error: str
    reason: str
    cause: BaseException | None = None

    def masked(self, secrets: Sequence[str]) -> Failed:
        """This failure without the secrets; the exception is left out where its traceback would show one."""
        shown = "".join(traceback.format_exception(self.cause)) if self.cause is not None and secrets else ""
        cause = self.cause if mask(shown, secrets) == shown else None
        return Failed(self.error, mask(self.reason, secrets), cause)


class IsolatedCall(Generic[T]):
    """A call running on a daemon thread, which neither its failure nor its hanging can turn against the caller.

    :param name: names the thread, for whoever looks at a hanging process.
    """

    def __init__(self, call: Callable[[], T], name: str) -> None:
        self.name: Final = name
        self._call = call
        self._done = threading.Event()
        self._outcome: Returned[T] | Failed | None = None
        self._late = False
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._run,), name=f"vsr {name}", daemon=True).start()

    def _run(self) -> None:
        started = time.perf_counter()
        try:
            self._outcome = Returned(self._call(), time.perf_counter() - started)
        except BaseException as cause:  # noqa: BLE001 - foreign code: SystemExit at import is an answer as well
            self._outcome = Failed(*explain(cause), cause)
        finally:
            self._done.set()

    def outcome(self) -> Returned[T] | Failed | None:
        """The outcome, or None while the call is running; waits for nothing."""
        return self._outcome

    def wait(self, timeout: float) -> Returned[T] | Failed:
        """The outcome, or a failure saying that it did not come within ``timeout`` seconds.

        Once a wait was in vain the next ones do not wait again; a late outcome is given as soon as it is there.
        """
        if self._done.wait(0 if self._late else timeout) and self._outcome is not None:
            return self._outcome
        self._late = True
        return Failed("TimeoutError", f"it did not finish within {timeout:g} s")


def isolate(call: Callable[[], T], *, timeout: float, name: str) -> Returned[T] | Failed:
    """Run a call in isolation and wait for it; the waiting thread stays interruptible."""
    return IsolatedCall(call, name).wait(timeout)


def explain(cause: BaseException) -> tuple[str, str]:
    """The name of an exception's type, and its message on one line of bounded length."""
    error = type(cause).__name__
    try:
        reason = " ".join(str(cause).split())
    except BaseException:  # noqa: BLE001 - an exception's own __str__ is foreign code too
        reason = "its message cannot be read"
    if isinstance(cause, SystemExit):
        reason = f"it called sys.exit({reason})"
    return error, (reason or "it gave no message")[:_LONGEST_REASON]


def mask(text: str, secrets: Sequence[str]) -> str:
    """A text in which asterisks stand for every secret, also where ``repr`` has escaped it."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _MASK).replace(repr(secret)[1:-1], _MASK)
    return text
