"""Several tasks about the same texts: which of them travel together, and what becomes of each."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..contract import (
    BackendId,
    CallContext,
    ClassificationResponse,
    Envelope,
    InferenceRequest,
    JointCall,
    JointModelHandle,
    ModelHandle,
    ModelSpec,
    MultiTaskRequest,
    MultiTaskResponse,
    Response,
    TaggingResponse,
    TaskOutcome,
)
from ..errors import DeadlineExceededError, InferenceError, VsrError
from ..models import Lease
from .answers import foreign_failure
from .planned import Ask

__all__ = [
    "AskAll",
    "Member",
    "TaskAsk",
    "answer_blocking",
    "answer_groups",
    "groups_of",
    "join_outcomes",
    "members_of",
    "wanted",
]

TaskAsk = Ask[ClassificationResponse] | Ask[TaggingResponse]


@dataclass(frozen=True, slots=True)
class AskAll:
    """A planned multi-task call that has not been made yet.

    :param asks: for each task by name what is asked for it, or why nothing can be, such as files that are damaged.
    :param request: of the tasks that can be asked.
    """

    request: MultiTaskRequest
    asks: Mapping[str, TaskAsk | VsrError]
    call: CallContext


@dataclass(slots=True, eq=False)
class Member:
    """One task on its way: the lease it runs on, then its answer, or else what it failed with."""

    name: str
    ask: TaskAsk | None
    lease: Lease | None = None
    spec: ModelSpec | None = None
    answer: Response | VsrError | None = None

    def outcome(self) -> TaskOutcome | VsrError:
        """The checked response, or the error."""
        ask, answer = self.ask, self.answer
        if isinstance(answer, VsrError):
            return answer
        if ask is None or answer is None:
            return InferenceError(f"{self.name} was not answered", backend_id=self.name)
        try:
            return TaskOutcome(task=self.name, response=ask.operation.result(ask.plan.first, self.spec, [answer]))
        except VsrError as error:
            return error


def members_of(ask: AskAll) -> list[Member]:
    """A member for each task of a call, in order."""
    return [
        Member(name, None, answer=one) if isinstance(one, VsrError) else Member(name, one)
        for name, one in ask.asks.items()
    ]


def wanted(members: Sequence[Member]) -> list[tuple[Member, BackendId]]:
    """The members that can be asked, each with the model to lease for it."""
    return [(member, member.ask.plan.first.backend_id) for member in members if member.ask is not None]


@dataclass(frozen=True, slots=True, eq=False)
class _Rider:
    """A member that can be asked."""

    member: Member
    handle: ModelHandle
    request: InferenceRequest[Response]
    call: CallContext
    backend_id: BackendId


Group = Sequence[_Rider]


def groups_of(members: Sequence[Member]) -> list[Group]:
    """The members that were leased, those together whose handles can answer together."""
    groups: dict[object, list[_Rider]] = {}
    for member in members:
        if member.lease is not None and member.ask is not None:
            handle, ask = member.lease.handle, member.ask
            (request,) = ask.operation.requests(ask.plan.first, member.spec)
            rider = _Rider(member, handle, request, ask.call, ask.plan.first.backend_id)
            key: object = handle.joint_key if isinstance(handle, JointModelHandle) else member
            groups.setdefault(key, []).append(rider)
    return list(groups.values())


async def answer_groups(groups: Sequence[Group], call: CallContext) -> None:
    """Answer every member, groups side by side; what goes wrong is the member's own."""
    try:
        async with asyncio.timeout(call.remaining()):
            await asyncio.gather(*(_answer(group) for group in groups))
    except TimeoutError:
        late = DeadlineExceededError(f"no answer within {call.timeout:g} s", timeout=call.timeout)
        for rider in (rider for group in groups for rider in group if rider.member.answer is None):
            rider.member.answer = late


def answer_blocking(group: Group) -> bool:
    """Answer the members of one group without an event loop; false where their handle cannot."""
    handle = group[0].handle
    if not isinstance(handle, JointModelHandle):
        return False
    try:
        answers: Sequence[Response | VsrError] = handle.infer_together_blocking(_calls(group))
    except VsrError as error:
        answers = [error] * len(group)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code; it fails these tasks and nobody else
        answers = [foreign_failure(rider.backend_id, error) for rider in group]
    _hand_out(group, answers)
    return True


async def _answer(group: Group) -> None:
    handle = group[0].handle
    try:
        if isinstance(handle, JointModelHandle):
            answers: Sequence[Response | VsrError] = await handle.infer_together(_calls(group))
        else:
            answers = [await handle.infer(group[0].request, group[0].call)]
    except VsrError as error:
        answers = [error] * len(group)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
        answers = [foreign_failure(rider.backend_id, error) for rider in group]
    _hand_out(group, answers)


def _calls(group: Group) -> list[JointCall]:
    handles = [(rider, rider.handle) for rider in group]
    return [
        JointCall(handle=handle, request=rider.request, call=rider.call)
        for rider, handle in handles
        if isinstance(handle, JointModelHandle)
    ]


def _hand_out(group: Group, answers: Sequence[Response | VsrError]) -> None:
    for rider, answer in zip(group, answers, strict=False):  # whoever gets none was not answered
        rider.member.answer = answer


def join_outcomes(members: Sequence[Member], groups: Sequence[Group]) -> MultiTaskResponse:
    """One response of all tasks.

    :raises VsrError: every task failed; the first one's error.
    """
    found = [(member, member.outcome()) for member in members]
    outcomes = tuple(
        TaskOutcome(task=member.name, error=one.to_dict()) if isinstance(one, VsrError) else one
        for member, one in found
    )
    failures = [one for _, one in found if isinstance(one, VsrError)]
    if len(failures) == len(found):
        raise failures[0]
    return MultiTaskResponse(envelope=_envelope(outcomes), outcomes=outcomes, shared_layers=_shared(members, groups))


def _envelope(outcomes: Sequence[TaskOutcome]) -> Envelope:
    """That of the first task that was answered; which adapter answered is in the envelope of each."""
    first = next(one.response.envelope for one in outcomes if one.response is not None)
    return dataclasses.replace(first, adapter_revision=None)


def _shared(members: Sequence[Member], groups: Sequence[Group]) -> int | None:
    """How many layers ran once for all tasks: those that no adapter of a base they all share has changed."""
    infos = [member.lease.info for member in members if member.lease is not None]
    if len(groups) != 1 or len(infos) < 2 or len(infos) != len(members):
        return None
    return min((info.shared_layers or 0) if info.base is not None else info.native_layers or 0 for info in infos)
