"""The handle of an in-process encoder: one path for blocking and asynchronous callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, cast

from ..contract import CallContext, InferenceRequest, JointCall, JointModelHandle, ModelInfo, Response
from ..errors import CapabilityError, DeadlineExceededError, InferenceError, NotReadyError, VsrError
from ..taxonomy import Capability
from .base import EncoderBase
from .reading import TextReader
from .tickets import ItemResult, Ticket, WorkItem, describe

__all__ = ["INLINE_CHARACTERS", "EncoderHandle", "EncoderTask", "PreparedRequest"]

R = TypeVar("R", bound=Response)

INLINE_CHARACTERS = 2000
"""Requests of more characters are prepared and finished off the event loop."""

_READING = frozenset({Capability.SEQUENCE_CLASSIFICATION, Capability.TOKEN_CLASSIFICATION})
"""What is answered from texts that other tasks may have read already."""


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

    @property
    def prepare(self) -> Callable[..., Any]:
        """Check and tokenise a request, giving a :class:`PreparedRequest`; tasks on texts take a reader of them, too."""
        ...

    def finish(self, prepared: Any, results: Sequence[ItemResult], call: CallContext) -> Response:
        """Make the response of what the engine gave."""
        ...


class EncoderHandle(JointModelHandle):
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
        task = self.task(request, call)
        short = task.size(request) <= INLINE_CHARACTERS
        prepared = self.prepare(task, request) if short else await asyncio.to_thread(self.prepare, task, request)
        ticket = self._base.batcher.submit(prepared.items, deadline=call.deadline)
        results = await _outcome(ticket, call)
        if short:
            return cast("R", self.finish(task, prepared, results, call))
        return cast("R", await asyncio.to_thread(self.finish, task, prepared, results, call))

    def infer_blocking(self, request: InferenceRequest[R], call: CallContext) -> R:
        task = self.task(request, call)
        prepared = self.prepare(task, request)
        ticket = self._base.batcher.submit(prepared.items, deadline=call.deadline)
        return cast("R", self.finish(task, prepared, _blocking_outcome(ticket, call), call))

    @property
    def joint_key(self) -> Hashable:
        return self._base.batcher

    def infer_together_blocking(self, calls: Sequence[JointCall]) -> list[Response | VsrError]:
        waiting = self._submit_together(_prepare_together(calls))
        try:
            return [one if isinstance(one, VsrError) else one.answer_blocking() for one in waiting]
        finally:
            _withdraw(waiting)

    async def infer_together(self, calls: Sequence[JointCall]) -> list[Response | VsrError]:
        short = _characters(calls) <= INLINE_CHARACTERS
        prepared = _prepare_together(calls) if short else await asyncio.to_thread(_prepare_together, calls)
        waiting = self._submit_together(prepared)
        try:
            return [one if isinstance(one, VsrError) else await one.answer(short=short) for one in waiting]
        finally:
            _withdraw(waiting)

    def _submit_together(self, members: Sequence[_Member | VsrError]) -> list[_Member | VsrError]:
        """Queue all at once; where all of them cannot be, one by one, so that those fail alone that have to."""
        ready = [one for one in members if not isinstance(one, VsrError)]
        if not ready:
            return list(members)
        try:
            tickets = self._base.batcher.submit_all([one.items for one in ready], deadline=ready[0].call.deadline)
        except VsrError:
            return [one if isinstance(one, VsrError) else _submit_alone(self._base, one) for one in members]
        for one, ticket in zip(ready, tickets, strict=True):
            one.ticket = ticket
        return list(members)

    async def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        await asyncio.to_thread(self._base.release)

    def task(self, request: InferenceRequest[Any], call: CallContext) -> EncoderTask:
        """What answers a request.

        :raises NotReadyError: the handle is closed. :raises CapabilityError: nothing here does.
        """
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

    def prepare(
        self, task: EncoderTask, request: InferenceRequest[Any], reader: TextReader | None = None
    ) -> PreparedRequest:
        """What the task makes of a request; whatever goes wrong is an error of this handle.

        :param reader: what reads the texts, where other tasks read them too.
        """
        reads = reader is not None and request.capability in _READING
        try:
            return cast("PreparedRequest", task.prepare(request, reader) if reads else task.prepare(request))
        except VsrError:
            raise
        except Exception as error:
            raise self._failure("preparing a request", error) from error

    def finish(
        self, task: EncoderTask, prepared: PreparedRequest, results: Sequence[ItemResult], call: CallContext
    ) -> Response:
        """The response of what the engine gave; whatever goes wrong is an error of this handle."""
        try:
            return task.finish(prepared, results, call)
        except VsrError:
            raise
        except Exception as error:
            raise self._failure("finishing a response", error) from error

    def _failure(self, doing: str, error: Exception) -> InferenceError:
        name = str(self._info.backend_id)
        return InferenceError(f"{name} failed while {doing}: {describe(error)}", backend_id=name)


@dataclass(slots=True, eq=False)
class _Member:
    """One of several requests that are answered together, once it is prepared."""

    handle: EncoderHandle
    task: EncoderTask
    prepared: PreparedRequest
    call: CallContext
    ticket: Ticket | None = None

    @property
    def items(self) -> Sequence[WorkItem]:
        return self.prepared.items

    def answer_blocking(self) -> Response | VsrError:
        try:
            return self._finish(_blocking_outcome(self._ticket, self.call))
        except VsrError as error:
            return error

    async def answer(self, *, short: bool) -> Response | VsrError:
        try:
            results = await _outcome(self._ticket, self.call)
            return self._finish(results) if short else await asyncio.to_thread(self._finish, results)
        except VsrError as error:
            return error

    @property
    def _ticket(self) -> Ticket:
        if self.ticket is None:
            raise RuntimeError("the request was not queued")
        return self.ticket

    def _finish(self, results: Sequence[ItemResult]) -> Response:
        return self.handle.finish(self.task, self.prepared, results, self.call)


def _prepare_together(calls: Sequence[JointCall]) -> list[_Member | VsrError]:
    reader = TextReader(offsets=any(call.request.capability is Capability.TOKEN_CLASSIFICATION for call in calls))
    return [_prepare_one(call, reader) for call in calls]


def _prepare_one(joint: JointCall, reader: TextReader) -> _Member | VsrError:
    handle, request, call = joint.handle, joint.request, joint.call
    try:
        if not isinstance(handle, EncoderHandle):
            raise TypeError(f"{handle.info.backend_id} is served by another pipeline")
        task = handle.task(request, call)
        return _Member(handle, task, handle.prepare(task, request, reader), call)
    except VsrError as error:
        return error


def _submit_alone(base: EncoderBase, member: _Member) -> _Member | VsrError:
    try:
        member.ticket = base.batcher.submit(member.items, deadline=member.call.deadline)
    except VsrError as error:
        return error
    return member


def _withdraw(members: Sequence[_Member | VsrError]) -> None:
    """Give up whatever is not answered yet; a finished ticket does not mind."""
    for one in members:
        if not isinstance(one, VsrError) and one.ticket is not None:
            one.ticket.cancel()


def _characters(calls: Sequence[JointCall]) -> int:
    return sum(len(text) for call in calls for text in getattr(call.request, "texts", ()) if isinstance(text, str))


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
