"""Several tasks about the same texts, of backends that answer each request by itself."""

import asyncio
import dataclasses
import threading

import pytest
from vsr_core import AsyncRuntime, Runtime
from vsr_core.contract import SequenceClassificationRequest, TokenClassificationRequest
from vsr_core.errors import (
    DeadlineExceededError,
    InferenceError,
    InvalidInputError,
    ModelNotFoundError,
    NonFiniteOutputError,
    RuntimeClosedError,
)
from vsr_core.testing import ToyHandle

TEXTS = ("a WHO", "b")
TASKS = ("labels", "names")


@pytest.fixture
def config(heads):
    catalog = {"labels": "sequence", "names": "token"}
    return {
        "catalog": {name: {"source": str(heads / head)} for name, head in catalog.items()}
        | {"gone": {"source": "/nowhere/at/all"}},
        "roles": {
            "classification": {"topic": ["toy:labels"], "either": ["toy:labels"]},
            "token_classification": {"either": ["toy:names"]},
        },
    }


@pytest.fixture(params=[Runtime, AsyncRuntime])
def ask(request, config, host):
    """Ask either facade; ``prepare`` is given the toy backend before."""

    def blocking(prepare=None, **options):
        with Runtime(config, host=host) as runtime:
            if prepare is not None:
                prepare(toy(runtime))
            return runtime.classify_all(TEXTS, **options), list(toy(runtime).asked)

    async def awaiting(prepare=None, **options):
        async with AsyncRuntime(config, host=host) as runtime:
            if prepare is not None:
                prepare(toy(runtime))
            return await runtime.classify_all(TEXTS, **options), list(toy(runtime).asked)

    if request.param is Runtime:
        return blocking
    return lambda *args, **options: asyncio.run(awaiting(*args, **options))


def toy(runtime):
    return runtime._core.instances.adapter("toy")


def breaking(monkeypatch, model, error):
    """Have one model of the toy fail."""
    answer = ToyHandle._answer

    def fail(self, request, call):
        if self.info.backend_id.model == model:
            raise error
        return answer(self, request, call)

    monkeypatch.setattr(ToyHandle, "_answer", fail)


def test_each_task_is_asked_for_by_a_request_of_its_own(ask):
    response, asked = ask(tasks=TASKS, aggregation="max", truncate="window")
    assert sorted(asked, key=lambda request: request.capability) == [
        SequenceClassificationRequest(texts=TEXTS, truncate="window"),
        TokenClassificationRequest(texts=TEXTS, aggregation="max", truncate="window"),
    ]
    labels, names = response.outcomes
    assert (labels.task, names.task) == TASKS
    assert [str(one.response.envelope.backend_id) for one in response.outcomes] == ["toy:labels", "toy:names"]
    assert [span.text for span in names.response.results[0].spans] == ["WHO"]


def test_backends_that_do_not_answer_together_share_no_layers(ask):
    assert ask(tasks=TASKS)[0].shared_layers is None


def test_outcomes_keep_the_order_asked_and_the_names_they_were_asked_by(ask):
    response, _ = ask(tasks=["toy:names", "topic"])
    assert [outcome.task for outcome in response.outcomes] == ["toy:names", "topic"]


@pytest.mark.parametrize(
    "error",
    [InferenceError("it broke", backend_id="toy:labels"), ZeroDivisionError("foreign")],
    ids=["error of ours", "error of others"],
)
def test_a_task_that_fails_leaves_the_others_alone(ask, monkeypatch, error):
    breaking(monkeypatch, "labels", error)
    labels, names = ask(tasks=TASKS)[0].outcomes
    assert (labels.response, labels.error["code"]) == (None, InferenceError.code)
    assert str(error) in labels.error["message"]
    assert (names.error, len(names.response.results)) == (None, 2)


def test_an_answer_that_is_none_fails_its_task_alone(ask, monkeypatch):
    label = ToyHandle._label
    monkeypatch.setattr(
        ToyHandle, "_label", lambda *args, **rest: dataclasses.replace(label(*args, **rest), score=float("nan"))
    )
    labels, names = ask(tasks=TASKS)[0].outcomes
    assert (labels.response, names.error) == (None, None)
    assert labels.error["code"] == NonFiniteOutputError.code


def test_a_model_whose_files_are_gone_fails_its_task_alone(ask):
    gone, names = ask(tasks=["toy:gone", "names"])[0].outcomes
    assert (gone.response, names.error) == (None, None)


def test_where_all_fail_the_first_error_is_raised(ask, monkeypatch):
    breaking(monkeypatch, "labels", InferenceError("it broke", backend_id="toy:labels"))
    with pytest.raises(InferenceError, match="it broke"):
        ask(tasks=["labels", "toy:gone"])


def test_tasks_of_different_bases_run_side_by_side(config, host):
    async def main():
        meeting = threading.Barrier(2, timeout=5)  # passed by two at once or by nobody
        async with AsyncRuntime(config, host=host) as runtime:
            for task in TASKS:
                await runtime.load(task)

            async def infer(self, request, call):
                return await asyncio.to_thread(lambda: meeting.wait() >= 0 and self.infer_blocking(request, call))

            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(ToyHandle, "infer", infer)
                return await runtime.classify_all(TEXTS, tasks=TASKS)

    assert [outcome.error for outcome in asyncio.run(main()).outcomes] == [None, None]


def test_a_deadline_holds_for_all_and_whoever_answered_has_answered(config, host):
    async def main():
        async with AsyncRuntime(config, host=host) as runtime:
            for task in TASKS:
                await runtime.load(task)

            async def infer(self, request, call):
                if isinstance(request, TokenClassificationRequest):
                    await asyncio.sleep(30)
                return self.infer_blocking(request, call)

            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(ToyHandle, "infer", infer)
                return await runtime.classify_all(TEXTS, tasks=TASKS, timeout=0.2)

    labels, names = asyncio.run(main()).outcomes
    assert (labels.error, names.error["code"]) == (None, DeadlineExceededError.code)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tasks": ["labels", "nosuch"]}, ModelNotFoundError, "nosuch"),
        ({"tasks": ["either"]}, InvalidInputError, "may be classification or token classification"),
        ({"tasks": []}, InvalidInputError, "at least one"),
        ({"tasks": ["labels", "labels"]}, InvalidInputError, "more than once"),
        ({"tasks": TASKS, "aggregation": "sum"}, InvalidInputError, "aggregation"),
        ({"tasks": TASKS, "truncate": "middle"}, InvalidInputError, "truncate"),
        ({"tasks": TASKS, "timeout": 0}, InvalidInputError, "timeout"),
    ],
)
def test_what_is_wrong_with_a_call_is_raised_before_anything_is_awaited(config, host, options, error, message):
    for facade in (Runtime, AsyncRuntime):
        runtime = facade(config, host=host)
        with pytest.raises(error, match=message):
            runtime.classify_all(TEXTS, **options)


def test_a_closed_runtime_refuses(config, host):
    with Runtime(config, host=host) as runtime:
        pass
    with pytest.raises(RuntimeClosedError):
        runtime.classify_all(TEXTS, tasks=TASKS)
