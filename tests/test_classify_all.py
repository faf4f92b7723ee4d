"""``classify_all`` on torch: many tasks about the same texts, each answered as by itself, each failing by itself."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from vsr_candle_torch.adapted import AdaptableEngine
from vsr_core import AsyncRuntime, Runtime
from vsr_core.errors import CapabilityUnmetError, InputTooLongError, InvalidInputError, ModelNotFoundError
from vsr_core.local import TextTokenizer
from vsr_core.testing import write_encoder

from tests.peft_files import edit_tensors, train

TEXTS = ("What does the contract say?", "abc", "one two three four five six seven")
TASKS = ("intent", "tone", "names")
UPPER = {"target_modules": ["query", "value"], "layers_to_transform": [2, 3]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A base with four adapters, and a model of its own."""
    folder = tmp_path_factory.mktemp("together")
    base = write_encoder(folder / "base", "bert", head="sequence", labels=("no", "yes"))
    train(base, folder / "intent", "SEQ_CLS", labels=("question", "order"), seed=1, target_modules=["query", "dense"])
    train(base, folder / "tone", "SEQ_CLS", labels=("kind", "rude", "flat"), seed=2, **UPPER)
    train(base, folder / "haste", "SEQ_CLS", labels=("now", "later"), seed=4, **UPPER)
    train(base, folder / "names", "TOKEN_CLS", labels=("O", "B-PER", "I-PER"), seed=3, **UPPER)
    broken = train(base, folder / "broken", "SEQ_CLS", labels=("x", "y"), seed=5, **UPPER)
    edit_tensors(broken.folder, lambda tensors: dict(list(tensors.items())[1:]))
    write_encoder(folder / "whole", "bert", head="sequence", seed=7)
    return folder


@pytest.fixture
def config(made):
    adapters = ("intent", "tone", "haste", "names", "broken")
    catalog = {name: {"base": "base", "adapter": str(made / name)} for name in adapters}
    catalog["short"] = catalog["tone"] | {"max_tokens": 8}
    catalog |= {name: {"source": str(made / name)} for name in ("base", "whole")}
    roles = {
        "classification": {"mood": ["torch:tone"], "both": ["torch:tone"]},
        "token_classification": {"who": ["torch:names"], "both": ["torch:names"]},
    }
    return {
        "catalog": {name: entry | {"backends": ["torch"]} for name, entry in catalog.items()},
        "roles": roles,
        "backends": {"torch": {"precision": "fp32", "threads": 2}},
    }


@pytest.fixture
def vsr(config):
    with Runtime(config) as runtime:
        yield runtime


def same(outcome, single):
    """Whether a task was answered as it is by itself, but for the record of the request and the last few bits."""
    for one, other in zip(outcome.response.results, single.results, strict=True):
        if hasattr(one, "label"):
            assert one.label == other.label
            np.testing.assert_allclose(list(one.distribution.values()), list(other.distribution.values()), atol=1e-5)
        else:
            assert [(span.start, span.label) for span in one.spans] == [
                (span.start, span.label) for span in other.spans
            ]


def test_each_task_is_answered_as_by_itself_and_says_who_answered(vsr):
    response = vsr.classify_all(TEXTS, tasks=TASKS)
    assert [outcome.task for outcome in response.outcomes] == list(TASKS)
    intent, tone, names = response.outcomes
    same(intent, vsr.classify(TEXTS, model="intent"))
    same(tone, vsr.classify(TEXTS, model="tone"))
    same(names, vsr.tag(TEXTS, model="names"))
    revisions = [outcome.response.envelope.adapter_revision for outcome in response.outcomes]
    assert [str(outcome.response.envelope.backend_id) for outcome in response.outcomes] == [
        f"torch:{task}" for task in TASKS
    ]
    assert len(set(revisions) - {None}) == 3


def test_the_asynchronous_facade_answers_alike(config, vsr):
    async def ask():
        async with AsyncRuntime(config) as runtime:
            return await runtime.classify_all(TEXTS[0], tasks=TASKS)

    for one, other in zip(asyncio.run(ask()).outcomes, vsr.classify_all(TEXTS[0], tasks=TASKS).outcomes, strict=True):
        same(one, other.response)


def test_one_text_is_tokenised_once_and_runs_in_one_batch(vsr, monkeypatch):
    vsr.classify_all("warm", tasks=TASKS)
    batches, encoded = [], []
    run, encode = AdaptableEngine.run, TextTokenizer.encode_with_offsets
    monkeypatch.setattr(AdaptableEngine, "run", lambda self, batch: batches.append(batch) or run(self, batch))
    monkeypatch.setattr(
        TextTokenizer, "encode_with_offsets", lambda *args, **rest: encoded.append(args[1]) or encode(*args, **rest)
    )
    vsr.classify_all(TEXTS[2], tasks=TASKS)
    assert encoded == [(TEXTS[2],)]
    (batch,) = batches
    assert (len(batch.lengths), len({row.adapter for row in batch.rows})) == (1, 3)


@pytest.mark.parametrize(
    ("tasks", "shared"),
    [
        (("tone", "haste", "names"), 2),
        (("tone", "intent"), 0),
        (("tone", "base"), 2),
        (("tone",), None),
        (("tone", "whole"), None),
    ],
)
def test_layers_that_ran_once_for_all_tasks_are_told(vsr, tasks, shared):
    assert vsr.classify_all(TEXTS[0], tasks=tasks).shared_layers == shared


def test_tasks_without_a_common_base_are_answered_too(vsr):
    tone, whole = vsr.classify_all(TEXTS, tasks=["tone", "whole"]).outcomes
    same(tone, vsr.classify(TEXTS, model="tone"))
    same(whole, vsr.classify(TEXTS, model="whole"))


def test_a_task_is_looked_up_in_the_kind_whose_role_it_is(vsr):
    mood, who = vsr.classify_all(TEXTS[0], tasks=["mood", "who"]).outcomes
    assert (mood.response.results[0].label in ("kind", "rude", "flat"), who.error) == (True, None)
    with pytest.raises(InvalidInputError, match="'both', which may be classification or token classification"):
        vsr.classify_all(TEXTS[0], tasks=["mood", "both"])


def test_a_task_that_is_too_long_fails_alone(vsr):
    short, tone = vsr.classify_all(TEXTS[2], tasks=["short", "tone"]).outcomes
    assert (short.response, short.error["code"]) == (None, InputTooLongError.code)
    same(tone, vsr.classify(TEXTS[2], model="tone"))


def test_an_adapter_that_does_not_load_fails_alone_and_is_never_answered_by_the_base(vsr):
    broken, tone = vsr.classify_all(TEXTS[0], tasks=["broken", "tone"]).outcomes
    assert (broken.response, broken.error["code"]) == (None, "checkpoint_invalid")
    assert tone.response is not None


def test_where_every_task_fails_the_first_error_is_raised(vsr):
    with pytest.raises(InputTooLongError):
        vsr.classify_all(TEXTS[2], tasks=["short"])


@pytest.mark.parametrize(
    ("tasks", "error"),
    [
        (["tone", "nosuch"], ModelNotFoundError),
        ([], InvalidInputError),
        (["tone", "tone"], InvalidInputError),
        ([3], InvalidInputError),
        (["torch:nosuch"], ModelNotFoundError),
    ],
)
def test_a_wrong_task_raises_from_the_plain_call(config, tasks, error):
    with pytest.raises(error):
        AsyncRuntime(config).classify_all(TEXTS, tasks=tasks)


def test_a_model_for_something_else_is_refused(tmp_path):
    folder = write_encoder(tmp_path / "m", "bert")
    catalog = {"m": {"source": str(folder), "pooling": "mean"}}
    with Runtime({"catalog": catalog}) as runtime, pytest.raises(CapabilityUnmetError):
        runtime.classify_all("a", tasks=["m"])


def test_many_callers_and_a_swap_meanwhile_leave_every_answer_right(vsr):
    expected = json.loads(json.dumps(labels(vsr.classify_all(TEXTS, tasks=TASKS))))

    def ask(number):
        if number == 20:
            vsr.swap("torch:tone")
        return labels(vsr.classify_all(TEXTS, tasks=TASKS))

    with ThreadPoolExecutor(8) as threads:
        assert all(found == expected for found in threads.map(ask, range(60)))


def labels(response):
    return [
        [one.label if hasattr(one, "label") else [span.text for span in one.spans] for one in outcome.response.results]
        for outcome in response.outcomes
    ]
