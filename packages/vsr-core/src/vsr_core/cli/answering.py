"""Asking a model about many inputs, a part at a time, and what is told of every such answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ..errors import DeadlineExceededError, RequestError
from ..wire import to_json
from .activity import Activity
from .output import Page, seconds_text
from .session import info_of

if TYPE_CHECKING:
    from ..contract import Envelope, InputReport, ModelInfo, Response
    from ..runtime import Runtime

__all__ = ["Answer", "ask_in_parts", "show_cut", "truncation_text", "who"]

_PART: Final = 256
"""How many inputs go into one request: enough to fill batches, few enough to show how it goes."""

T = TypeVar("T")
R = TypeVar("R", bound="Response")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T, R]):
    """What came of all inputs, in order; ``parts`` has the inputs of each response."""

    parts: tuple[tuple[Sequence[T], R], ...]
    info: ModelInfo
    seconds: float

    @property
    def asked(self) -> list[T]:
        """All inputs."""
        return [item for part, _ in self.parts for item in part]

    @property
    def responses(self) -> tuple[R, ...]:
        """The response to each part."""
        return tuple(response for _, response in self.parts)

    @property
    def envelope(self) -> Envelope:
        """Who answered, and how; of the inputs it has those of the first part alone."""
        return self.responses[0].envelope

    def inputs(self) -> list[InputReport]:
        """What became of each input."""
        from ..contract import InputReport

        return [
            report
            for part, response in self.parts
            for report in response.envelope.inputs or (InputReport(),) * len(part)
        ]

    def facts(self) -> dict[str, Any]:
        """Everything but the results, in JSON-ready form."""
        inputs = {"inputs": to_json(self.inputs()), "usage": {"input_tokens": self._tokens()}}
        return {
            "count": len(self.asked),
            "envelope": to_json(self.envelope) | inputs,
            "seconds": self.seconds,
            "load_seconds": self.info.load_seconds,
        }

    def closing(self, noun: str) -> str:
        """One line on who answered and what it took; ``noun`` is what one input is called."""
        count, tokens, loading = len(self.asked), self._tokens(), self.info.load_seconds
        parts = [
            f"{count} {noun}" if count == 1 else f"{count} {noun}s",
            f"{tokens} tokens" if tokens is not None else None,
            f"{seconds_text(self.seconds)} in all",
            f"{seconds_text(loading)} of them loading" if loading is not None else None,
        ]
        return f"{who(self.envelope)}: {', '.join(part for part in parts if part)}"

    def _tokens(self) -> int | None:
        counts = [report.tokens for report in self.inputs()]
        return None if None in counts else sum(count for count in counts if count is not None)


def ask_in_parts(
    ask: Callable[[Sequence[T], float | None], R],
    items: Sequence[T],
    *,
    runtime: Runtime,
    timeout: float | None,
    activity: Activity,
) -> Answer[T, R]:
    """Ask about some of the items after the others, showing how it goes.

    :param ask: makes one request about some items within the seconds it is given.
    :param timeout: the seconds for everything.
    :raises DeadlineExceededError: they are over.
    """
    began = time.monotonic()
    parts: list[tuple[Sequence[T], R]] = []
    for start in range(0, len(items), _PART):
        part = items[start : start + _PART]
        try:
            parts.append((part, ask(part, _remaining(timeout, began, done=start))))
        except DeadlineExceededError:
            if start == 0 or timeout is None:
                raise
            raise _passed(timeout, done=start) from None  # the part was given what was left of it
        except RequestError as error:
            if start:
                error.add_note(f"the message counts from input {start}, with which this part begins")
            raise
        if start == 0:
            activity.step("asking the model", total=len(items))
        activity.advance(len(part))
    seconds = time.monotonic() - began
    info = info_of(runtime, parts[0][1].envelope.backend_id)
    return Answer(parts=tuple(parts), info=info, seconds=seconds)


def _remaining(timeout: float | None, began: float, *, done: int) -> float | None:
    """What is left of the time for all items; the first request is given what the user wrote, right or wrong."""
    if timeout is None or done == 0:
        return timeout
    left = timeout - (time.monotonic() - began)
    if left <= 0:
        raise _passed(timeout, done=done)
    return left


def _passed(timeout: float, *, done: int) -> DeadlineExceededError:
    return DeadlineExceededError(f"{timeout:g} s passed when {done} inputs were answered", timeout=timeout)


def truncation_text(report: InputReport) -> str:
    """Whether an input was cut or read in windows, and how many tokens it had."""
    if report.truncated is None:
        return "-"
    if not report.truncated:
        return "no" if report.windows is None else f"no, {report.windows} windows"
    of = "" if report.total_tokens is None else f", of {report.total_tokens}"
    cut = f" ({' and '.join(report.cut)})" if report.cut else ""
    return f"yes{of}{cut}"


def show_cut(page: Page, inputs: Sequence[InputReport], *, noun: str) -> None:
    """A line on how many inputs were cut, if any was; ``noun`` is what one input is called."""
    cut = sum(report.truncated is True for report in inputs)
    if cut:
        page.line(f"{cut} of {len(inputs)} {noun}s were cut", style="yellow")


def who(envelope: Envelope) -> str:
    """Who answered, where and in which precision, as far as it is known."""
    place = f" on {envelope.device}" if envelope.device else ""
    precision = f" in {envelope.dtype}" if envelope.dtype else ""
    return f"{envelope.backend_id}{place}{precision}"
