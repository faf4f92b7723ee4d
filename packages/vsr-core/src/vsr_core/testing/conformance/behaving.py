"""How a loaded model behaves, whatever it is for."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from ...contract import (
    BlockingModelHandle,
    CallContext,
    FloatArray,
    InferenceRequest,
    InputReport,
    ModelHandle,
    ModelInfo,
    Response,
    Truncation,
)
from ...errors import CapabilityError, DeadlineExceededError, RequestError
from ...taxonomy import Capability
from ...wire import from_json, to_json
from .answers import check_envelope
from .asking import CROWD, TEXTS, answer, ask, question, vectors
from .claims import apart, demand, distance, nearest
from .folders import Folders
from .offers import Cell
from .subject import BackendSubject, Model

__all__ = ["Behaving"]

Make = Callable[[Cell | Exception], Model]

_CYCLES = 6
_SLACK = 16 << 20
_WITHOUT_LIMIT = 200
"""Words that count as a long text where a model states no limit."""


class Behaving(BackendSubject):
    """Tests of handles, one model for each capability."""

    def test_answers_come_in_the_order_of_the_inputs(self, first: Cell | Exception, make_model: Make) -> None:
        """Each is the answer to the text in its place, and not to another."""
        model = make_model(first)
        handle, capability = model.load(), model.cell.capability
        texts = (*TEXTS, *CROWD)
        alone = [ask(handle, question(capability, [text]))[0] for text in texts]
        for step in (1, 5):  # 5 and the number of texts have no divisor in common
            order = [index * step % len(texts) for index in range(len(texts))]
            rows = ask(handle, question(capability, [texts[index] for index in order]))
            demand(len(rows) == len(order), f"{len(order)} texts give {len(rows)} answers")
            for place, (index, row) in enumerate(zip(order, rows, strict=True)):
                found = nearest(row, alone)
                demand(found == index, f"answer {place} is to {texts[found]!r}, the text there is {texts[index]!r}")

    def test_an_answer_does_not_depend_on_the_others(self, first: Cell | Exception, make_model: Make) -> None:
        """Whatever shares the request; which place it is in is another test's matter."""
        model = make_model(first)
        handle, capability = model.load(), model.cell.capability
        together = ask(handle, question(capability, (*TEXTS, *CROWD)))
        for text in (*TEXTS[:3], *CROWD[:3]):
            (alone,) = ask(handle, question(capability, [text]))
            gap = min(distance(alone, row) for row in together)
            demand(
                gap <= self.tolerance, f"{text!r} among others is off by {gap:g}, the tolerance is {self.tolerance:g}"
            )

    def test_a_text_over_the_limit_is_refused_where_that_is_asked(
        self, first: Cell | Exception, make_model: Make
    ) -> None:
        """``truncate="error"`` is an ``InputTooLongError`` with the limit and the length."""
        model = make_model(first)
        handle = model.load()
        limit = handle.info.max_tokens
        if limit is None:
            pytest.skip("the model states no limit")
        with pytest.raises(RequestError) as caught:
            answer(handle, question(model.cell.capability, [_long(limit)], truncate="error"))
        facts = caught.value.details()
        demand(facts.get("limit") and facts.get("actual", 0) > facts["limit"], f"the error says {facts}")

    @pytest.mark.parametrize("policy", ["end", "start"])
    def test_what_is_cut_is_told(self, first: Cell | Exception, make_model: Make, policy: Truncation) -> None:
        """A text is said to be truncated if and only if its far end makes no difference."""
        model = make_model(first)
        handle = model.load()
        filler = _long(handle.info.max_tokens or _WITHOUT_LIMIT)
        for text, other in (_tailed(filler, policy), _tailed("the red cat", policy)):
            reports = []
            rows = []
            for each in (text, other):
                request = question(model.cell.capability, [each], truncate=policy)
                response = answer(handle, request)
                rows += vectors(request, response)
                reports.append(_report(response))
            self._judge(reports[0], rows, text)

    def _judge(self, report: InputReport | None, rows: Sequence[FloatArray], text: str) -> None:
        matters = distance(rows[0], rows[1]) > 0
        said = report.truncated if report is not None else None
        shown = f"{text[:12]!r}...{text[-12:]!r} of {len(text)} characters"
        demand(said or matters, f"{shown}: its far end was not read, and truncated is {said}")
        demand(not said or distance(rows[0], rows[1]) <= self.tolerance, f"{shown}: truncated, yet its far end matters")
        if report is not None and None not in (report.tokens, report.total_tokens) and said is not None:
            fewer = (report.tokens or 0) < (report.total_tokens or 0)
            demand(fewer is said, f"{shown}: {report} says truncated={said}")

    def test_a_long_text_is_read_in_windows_or_refused(self, first: Cell | Exception, make_model: Make) -> None:
        """``truncate="window"`` reads all of it, or is a typed refusal."""
        model = make_model(first)
        handle = model.load()
        texts = _tailed(_long(handle.info.max_tokens or _WITHOUT_LIMIT), "end")
        request = question(model.cell.capability, texts, truncate="window")
        try:
            response = answer(handle, request)
        except (RequestError, CapabilityError):
            return
        rows, report = vectors(request, response), _report(response)
        demand(report is None or not report.truncated, f"read in windows, and said to be truncated: {report}")
        if model.cell.capability is not Capability.RERANKING:  # of a document the best window may be another
            demand(distance(rows[0], rows[1]) > 0, "read in windows, and the end makes no difference")

    def test_a_handle_says_what_was_loaded(self, first: Cell | Exception, make_model: Make) -> None:
        """Id, files, device and dtype as they are; JSON keeps all of it; answers name the same."""
        model = make_model(first)
        handle, known = model.load(), model.bench.request(model.entry)
        info = handle.info
        demand(info.backend_id == known.backend_id, f"the info is of {info.backend_id}, not of {known.backend_id}")
        demand(info.state == "ready", f"a loaded model is {info.state}")
        for name in ("content_hash", "revision"):
            said, found = getattr(info, name), getattr(known.spec, name)
            demand(found is None or said == found, f"the info says {name}={said!r}, the files {found!r}")
        for name in ("device", "dtype"):
            choice = getattr(info, name)
            demand(choice is not None and choice.requested and choice.actual, f"the info says {name}={choice}")
        demand(from_json(ModelInfo, to_json(info)) == info, "the model's info does not survive JSON")
        request = question(model.cell.capability, TEXTS[:1])
        response = answer(handle, request, call=CallContext(request_id="r-1"))
        check_envelope(response, info)
        demand(response.envelope.request_id in (None, "r-1"), f"the envelope is of {response.envelope.request_id}")

    def test_closing_twice_does_nothing_more(self, first: Cell | Exception, make_model: Make) -> None:
        """And the adapter loads again after it."""
        model = make_model(first)
        handle = model.load()
        asyncio.run(handle.close())
        asyncio.run(handle.close())
        ask(model.load(name="again"), question(model.cell.capability, TEXTS[:1]))

    def test_a_deadline_that_passed_is_an_error(self, first: Cell | Exception, make_model: Make) -> None:
        """A ``DeadlineExceededError``, by whichever way the handle is asked; the next request is answered."""
        model = make_model(first)
        handle, request = model.load(), question(model.cell.capability, TEXTS)
        late = CallContext(request_id="late", deadline=time.monotonic() - 1, timeout=1.0)
        with pytest.raises(DeadlineExceededError):
            answer(handle, request, call=late)
        with pytest.raises(DeadlineExceededError):
            asyncio.run(handle.infer(request, late))
        ask(handle, request)

    def test_a_cancelled_request_holds_up_no_other(self, first: Cell | Exception, make_model: Make) -> None:
        """The task ends, and the next request is answered as before."""
        model = make_model(first)
        handle, request = model.load(), question(model.cell.capability, TEXTS)
        expected = ask(handle, request)
        after = asyncio.run(_cancel_then_ask(handle, question(model.cell.capability, TEXTS * 20), request))
        for row, known in zip(vectors(request, after), expected, strict=True):
            demand(distance(row, known) <= self.tolerance, "after a cancelled request the answer is another")

    def test_both_ways_of_asking_answer_alike(self, first: Cell | Exception, make_model: Make) -> None:
        """Blocking and awaited."""
        model = make_model(first)
        handle, request = model.load(), question(model.cell.capability, TEXTS)
        if not isinstance(handle, BlockingModelHandle):
            pytest.skip("the handle has one way of asking")
        awaited = asyncio.run(handle.infer(request, CallContext(request_id="awaited")))
        for row, known in zip(vectors(request, awaited), ask(handle, request), strict=True):
            demand(distance(row, known) <= self.tolerance, f"awaited and blocking are {distance(row, known):g} apart")

    def test_threads_may_share_a_handle(self, first: Cell | Exception, make_model: Make) -> None:
        """Each gets the answer to its own text."""
        model = make_model(first)
        handle, capability = model.load(), model.cell.capability
        alone = [ask(handle, question(capability, [text]))[0] for text in TEXTS]

        def one(number: int) -> tuple[int, FloatArray]:
            index = number % len(TEXTS)
            return index, ask(handle, question(capability, [TEXTS[index]]))[0]

        with ThreadPoolExecutor(4) as threads:
            for index, row in threads.map(one, range(6 * len(TEXTS))):
                gap = distance(row, alone[index])
                demand(gap <= self.tolerance, f"{TEXTS[index]!r} asked by one of 4 threads is off by {gap:g}")

    def test_models_of_one_adapter_do_not_mix(self, only: Cell | Exception, make_model: Make, folders: Folders) -> None:
        """A model answers as before once another is loaded, and once that is closed."""
        model = make_model(only)
        request, other = question(model.cell.capability, TEXTS), self.entry(model.cell, folders, seed=1)
        handle = model.load(name="one")
        expected = ask(handle, request)
        second = model.bench.load(other, name="two")
        others = ask(second, request)
        demand(apart(ask(handle, request), expected) <= self.tolerance, "loading another model changes the answers")
        demand(apart(others, expected) > self.tolerance, "a model with other weights gives the same answers")
        model.bench.unload(second)
        demand(apart(ask(handle, request), expected) <= self.tolerance, "closing another model changes the answers")

    def test_loading_again_and_again_gives_memory_and_threads_back(
        self, only: Cell | Exception, make_model: Make
    ) -> None:
        """Within a tenth of what the process had after the first cycles."""
        model = make_model(only)
        held: list[tuple[int, int]] = []
        for _ in range(_CYCLES):
            handle = model.load()
            ask(handle, question(model.cell.capability, TEXTS))
            model.bench.unload(handle)
            del handle
            gc.collect()
            held.append((psutil.Process().memory_info().rss, threading.active_count()))
        (memory, threads), (last, left) = held[1], held[-1]
        demand(last <= memory * 1.1 + _SLACK, f"{_CYCLES} loads take the process from {memory} to {last} bytes")
        demand(left <= threads, f"{_CYCLES} loads take the process from {threads} to {left} threads")


async def _cancel_then_ask(
    handle: ModelHandle, large: InferenceRequest[Response], small: InferenceRequest[Response]
) -> Response:
    task = asyncio.create_task(handle.infer(large, CallContext(request_id="cancelled")))
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, 15)
    return await asyncio.wait_for(handle.infer(small, CallContext(request_id="after")), 15)


def _long(limit: int) -> str:
    """Words of every vocabulary, more than ``limit`` of them."""
    return " ".join(("the red cat is on a green tree", "one dog of two in the blue river") * max(1, limit // 8))


def _tailed(text: str, policy: Truncation) -> tuple[str, str]:
    """Two texts that differ at the end that a policy cuts, in as many letters."""
    if policy == "start":
        return f"dog {text}", f"cat {text}"
    return f"{text} dog", f"{text} cat"


def _report(response: Response) -> InputReport | None:
    """What is told of the last input."""
    inputs = response.envelope.inputs
    return inputs[-1] if inputs else None
