"""The handle of an in-process encoder: one path for blocking and asynchronous callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar, cast

from ..contract import BlockingModelHandle, CallContext, InferenceRequest, ModelInfo, Response
from ..errors import CapabilityError, DeadlineExceededError, InferenceError, NotReadyError, VsrError
from ..taxonomy import Capability
from .base import EncoderBase
from .tickets import ItemResult, Ticket, WorkItem, describe

__all__ = ["INLINE_CHARACTERS", "EncoderHandle", "EncoderTask", "PreparedRequest"]

R = TypeVar("R", bound=Response)

INLINE_CHARACTERS = 2000
"""Requests of more characters are prepared and finished off the event loop."""


class PreparedRequest(Protocol):
    """A request ready for the batcher."""

    @property
    def items(self) -> Sequence[WorkItem]:
        """What to run."""
        ...


class EncoderTask(Protocol):
    """How one capability is answered on a base; plain code that blocks for computing alone."""

    capability: ClassVar[Capability]

    def size(self, request: Any) -> int:
        """Characters of a request."""
        ...

    def prepare(self, request: Any) -> Any:
        """Check and tokenise a request, giving a :class:`PreparedRequest`."""
        ...

    def finish(self, prepared: Any, results: Sequence[ItemResult], call: CallContext) -> Response:
        """Make the response of what the engine gave."""
        ...


class EncoderHandle(BlockingModelHandle):
    """Answers requests for one backend id on a base, which it leases until it is closed.

    :param tasks: what it can do; a request for anything else is refused with the reason.
    :param info: what the model is, in state ``ready``.
    """

    def __init__(self, base: EncoderBase, tasks: Sequence[EncoderTask], *, info: ModelInfo) -> None:
        base.lease()
        self._base = base
        self._tasks = {task.capability: task for task in tasks}
        self._info = info
        self._lock = threading.Lock()
        self._closed = False

    @property
    def base(self) -> EncoderBase:
        """The base this handle leases."""
        return self._base

    @property
    def info(self) -> ModelInfo:
        return replace(self._info, state="not_loaded", state_reason="closed") if self._closed else self._info

    async def infer(self, request: InferenceRequest[R], call: CallContext) -> R:
        task = self._task(request, call)
        short = task.size(request) <= INLINE_CHARACTERS
        prepared = self._prepare(task, request) if short else await asyncio.to_thread(self._prepare, task, request)
        ticket = self._base.batcher.submit(prepared.items, deadline=call.deadline)
        results = await _outcome(ticket, call)
        if short:
            return cast("R", self._finish(task, prepared, results, call))
        return cast("R", await asyncio.to_thread(self._finish, task, prepared, results, call))

    def infer_blocking(self, request: InferenceRequest[R], call: CallContext) -> R:
        task = self._task(request, call)
        prepared = self._prepare(task, request)
        ticket = self._base.batcher.submit(prepared.items, deadline=call.deadline)
        return cast("R", self._finish(task, prepared, _blocking_outcome(ticket, call), call))

    async def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        await asyncio.to_thread(self._base.release)

    def _task(self, request: InferenceRequest[Any], call: CallContext) -> EncoderTask:
        call.check()
        name = str(self._info.backend_id)
        if self._closed:
            raise NotReadyError(f"{name} is closed: load it again", backend_id=name)
        task = self._tasks.get(request.capability)
        if task is None:
            served = ", ".join(self._tasks)
            reason = f"it is loaded for {served}"
            raise CapabilityError(
                f"{name} does not answer {request.capability} requests: {reason}", backend_id=name, reason=reason
            )
        return task

    def _prepare(self, task: EncoderTask, request: InferenceRequest[Any]) -> PreparedRequest:
        try:
            return cast("PreparedRequest", task.prepare(request))
        except VsrError:
            raise
        except Exception as error:
            raise self._failure("preparing a request", error) from error

    def _finish(
        self, task: EncoderTask, prepared: PreparedRequest, results: Sequence[ItemResult], call: CallContext
    ) -> Response:
        try:
            return task.finish(prepared, results, call)
        except VsrError:
            raise
        except Exception as error:
            raise self._failure("finishing a response", error) from error

    def _failure(self, doing: str, error: Exception) -> InferenceError:
        name = str(self._info.backend_id)
        return InferenceError(f"{name} failed while {doing}: {describe(error)}", backend_id=name)


def _late(call: CallContext) -> DeadlineExceededError:
    given = f"the deadline of {call.timeout:g} s passed" if call.timeout else "the deadline passed"
    return DeadlineExceededError(given, timeout=call.timeout)


def _blocking_outcome(ticket: Ticket, call: CallContext) -> list[ItemResult]:
    try:
        return ticket.result(call.remaining())
    except (TimeoutError, DeadlineExceededError):
        raise _late(call) from None
    finally:
        ticket.cancel()  # whatever ends the wait early gives the work up; a finished ticket does not mind


async def _outcome(ticket: Ticket, call: CallContext) -> list[ItemResult]:
    try:
        async with asyncio.timeout(call.remaining()):
            return await asyncio.wrap_future(ticket)
    except (TimeoutError, DeadlineExceededError):
        raise _late(call) from None
    finally:
        ticket.cancel()
