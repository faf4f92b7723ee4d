"""Handles on one base answer together: one tokenisation, one batch, and each fails by itself."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from vsr_core.contract import (
    BatchingHints,
    CallContext,
    JointCall,
    PairClassificationRequest,
    SequenceClassificationRequest,
    TokenClassificationRequest,
)
from vsr_core.errors import (
    CapabilityError,
    DeadlineExceededError,
    InferenceError,
    InputTooLongError,
    NonFiniteOutputError,
    NotReadyError,
)
from vsr_core.local import EncoderHandle, TextTokenizer
from vsr_core.taxonomy import Capability

CALL = CallContext(request_id="q1")
LABELS = ("safe", "unsafe", "other")
LONG = "the cat sat on a mat fast dog ran " * 4  # 36 tokens, in a model for 16


@pytest.fixture
def classifier(build, spec):
    """Builds a classifier of texts and of pairs with the toy's head of three labels."""
    both = (Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION)
    head = replace(spec, capabilities=both, labels=LABELS, activation="softmax", pooling=None, dimensions=())

    def make(engine=None, **options):
        return build(engine, spec=head, **options)

    return make


@pytest.fixture(params=["blocking", "awaiting"])
def together(request):
    """Answer joint calls, blocking or awaiting."""

    def ask(*calls):
        if request.param == "blocking":
            return calls[0].handle.infer_together_blocking(calls)
        return asyncio.run(calls[0].handle.infer_together(calls))

    return ask


def about(handle, *texts, call=CALL, **options):
    return JointCall(handle=handle, request=SequenceClassificationRequest(texts=texts, **options), call=call)


def twin(handle):
    """Another handle on the same base."""
    return EncoderHandle(handle.base, list(handle._tasks.values()), info=handle.info)


def test_handles_on_one_base_can_answer_together_and_no_others(classifier):
    one = classifier()
    assert one.joint_key == twin(one).joint_key
    assert one.joint_key != classifier().joint_key


def test_one_text_is_tokenised_once_and_runs_once_for_all(classifier, toy, together, monkeypatch):
    engine, encoded = toy(), []
    handle = classifier(engine)
    encode = TextTokenizer.encode
    monkeypatch.setattr(
        TextTokenizer, "encode", lambda *args, **options: encoded.append(args[1]) or encode(*args, **options)
    )
    engine.batches.clear()
    one, two = together(about(handle, "the cat"), about(twin(handle), "the cat", layer=1))
    assert encoded == [("the cat",)]
    [batch] = engine.batches
    assert (len(batch.lengths), len(batch.rows)) == (1, 2)
    assert one.results != two.results


@pytest.mark.parametrize("text", ["the cat", LONG], ids=["short", "long"])
def test_each_is_answered_as_by_itself(classifier, together, text):
    handle = classifier()
    calls = [about(handle, text, logits=True, truncate="window"), about(twin(handle), text, "dog", truncate="end")]
    for call, answer in zip(calls, together(*calls), strict=True):
        alone = call.handle.infer_blocking(call.request, CALL)
        assert [one.label for one in answer.results] == [one.label for one in alone.results]
        assert [one.score for one in answer.results] == pytest.approx([one.score for one in alone.results])
        assert answer.envelope == alone.envelope


def test_pairs_travel_with_texts(classifier, together):
    handle = classifier()
    pairs = JointCall(handle=handle, request=PairClassificationRequest(pairs=(("the cat", "sat"),)), call=CALL)
    one, two = together(about(handle, "the cat"), pairs)
    assert two.results == handle.infer_blocking(pairs.request, CALL).results
    assert one.results[0].label in LABELS


@pytest.mark.parametrize(
    ("text", "error"),
    [(LONG, InputTooLongError), ("the nan", NonFiniteOutputError), ("poison", InferenceError)],
    ids=["too long", "not finite", "breaks the engine"],
)
def test_who_fails_fails_alone_wherever_it_stands(classifier, together, text, error):
    handle = classifier()
    bad, good = about(handle, text), about(handle, "the cat")
    for calls in ((bad, good), (good, bad)):
        answers = together(*calls)
        assert isinstance(answers[calls.index(bad)], error)
        assert answers[calls.index(good)].results == handle.infer_blocking(good.request, CALL).results


def test_what_a_handle_does_not_do_is_its_own_error(classifier, together):
    handle = classifier()
    tags = JointCall(handle=handle, request=TokenClassificationRequest(texts=("the cat",)), call=CALL)
    refused, answered = together(tags, about(handle, "the cat"))
    assert isinstance(refused, CapabilityError)
    assert answered.results


def test_a_closed_handle_fails_alone(classifier, together):
    handle = classifier()
    closed = twin(handle)
    asyncio.run(closed.close())
    failed, answered = together(about(closed, "the cat"), about(handle, "the cat"))
    assert isinstance(failed, NotReadyError)
    assert answered.results


def test_where_all_can_fail_all_do(classifier, together):
    handle = classifier()
    assert [type(one) for one in together(about(handle, LONG), about(handle, LONG))] == [InputTooLongError] * 2


def test_where_the_queue_has_no_room_for_all_each_is_admitted_by_itself(classifier, together):
    handle = classifier(load={"batching": BatchingHints(max_queue_items=2)})
    small, large = about(handle, "the cat", "a dog"), about(handle, "a", "cat", "sat")
    answered, refused = together(small, large)
    assert len(answered.results) == 2
    assert isinstance(refused, InputTooLongError)


def test_a_deadline_that_passes_leaves_nothing_in_the_queue(classifier, toy, together, wait_until, idle):
    engine = toy()
    handle = classifier(engine)
    engine.gate.clear()
    soon = CallContext(request_id="q1", deadline=time.monotonic() + 0.05, timeout=0.05)
    answers = together(about(handle, "the cat", call=soon), about(handle, "a dog", call=soon))
    assert [type(one) for one in answers] == [DeadlineExceededError] * 2
    engine.gate.set()
    wait_until(lambda: idle(handle.base.batcher))


def test_a_caller_that_goes_away_takes_all_its_requests_out_of_the_queue(classifier, toy, item, hold, wait_until):
    engine = toy()
    handle = classifier(engine)
    batcher = handle.base.batcher
    hold(engine, batcher, item)

    async def main():
        calls = [about(handle, "the cat"), about(handle, "a dog")]
        task = asyncio.create_task(handle.infer_together(calls))
        while batcher.stats().queued_items < 2:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 10))
    wait_until(lambda: batcher.stats().queued_items == 0)  # the engine is still held
