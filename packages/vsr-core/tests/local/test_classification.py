from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vsr_core.contract import (
    CallContext,
    CatalogEntry,
    InputReport,
    PairClassificationRequest,
    SequenceClassificationRequest,
)
from vsr_core.errors import InferenceError, InputTooLongError, InvalidInputError, NonFiniteOutputError
from vsr_core.local import activate
from vsr_core.taxonomy import Capability

CALL = CallContext(request_id="q1")
LABELS = ("safe", "unsafe", "other")
LONG = "the cat sat on a mat fast dog ran " * 4  # 36 tokens, in a model for 16


@pytest.fixture
def classifier(build, spec):
    """Builds a classifier of texts and of pairs with the toy's head of three labels."""
    both = (Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION)
    head = replace(spec, capabilities=both, labels=LABELS, activation="softmax", pooling=None, dimensions=())

    def make(engine=None, *, entry=None, **changes):
        load = {"entry": CatalogEntry(name="model", **entry)} if entry else None
        return build(engine, spec=replace(head, **changes), load=load)

    return make


def classify(handle, *texts, **options):
    return handle.infer_blocking(SequenceClassificationRequest(texts=texts, **options), CALL)


def judge(handle, *pairs, **options):
    return handle.infer_blocking(PairClassificationRequest(pairs=pairs, **options), CALL)


def logits_of(response):
    return np.array([result.logits for result in response.results])


def masses(response):
    return [sum(result.distribution.values()) for result in response.results]


class TestTexts:
    def test_each_text_gets_a_label_with_its_probability_and_the_whole_distribution(self, classifier):
        response = classify(classifier(), "the cat", "dog ran fast")
        for result in response.results:
            assert tuple(result.distribution) == LABELS
            assert result.score == max(result.distribution.values()) == result.distribution[result.label]
        assert masses(response) == pytest.approx([1, 1])
        assert [result.tokens for result in response.results] == [4, 5]

    def test_probabilities_are_those_of_the_logits_that_can_be_asked_for(self, classifier):
        handle = classifier(entry={"temperature": 2.5})
        [result] = classify(handle, "the cat", logits=True).results
        expected = activate(np.array(result.logits, np.float32), "softmax", temperature=2.5)
        assert list(result.distribution.values()) == expected.tolist()
        assert classify(handle, "the cat").results[0].logits is None

    def test_temperature_changes_probabilities_and_never_logits(self, classifier):
        plain = classify(classifier(), "the cat", logits=True).results[0]
        cooled = classify(classifier(entry={"temperature": 4.0}), "the cat", logits=True).results[0]
        assert cooled.logits == plain.logits
        assert cooled.label == plain.label
        assert cooled.score < plain.score

    def test_independent_labels_each_have_a_probability_of_their_own(self, classifier):
        response = classify(classifier(activation="sigmoid"), "the cat", logits=True)
        [result] = response.results
        np.testing.assert_allclose(
            list(result.distribution.values()), 1 / (1 + np.exp(-logits_of(response)[0])), rtol=1e-12
        )

    def test_raw_scores_are_given_as_they_are(self, classifier, toy):
        [result] = classify(classifier(toy(labels=1), activation="none", labels=None), "cat", logits=True).results
        assert (result.label, result.score, result.distribution) == ("LABEL_0", result.logits[0], None)

    def test_a_threshold_gives_a_verdict(self, classifier):
        label = classify(classifier(), "the cat").results[0].label
        others = tuple(name for name in LABELS if name != label)
        passed = [
            classify(classifier(entry={"threshold": 0.0, "positive_labels": names}), "the cat").results[0].passed
            for names in ((), (label,), others)
        ]
        assert passed == [True, True, False]

    @pytest.mark.parametrize("text", ["", " ", "\t\n"])
    def test_an_empty_or_blank_text_is_classified_by_its_special_tokens(self, classifier, text):
        response = classify(classifier(), text)
        assert response.results == classify(classifier(), "").results
        assert response.envelope.inputs == (InputReport(tokens=2, total_tokens=2, truncated=False),)

    def test_the_envelope_says_what_was_really_done(self, classifier):
        envelope = classify(classifier(), "the cat", LONG, layer=1, truncate="end").envelope
        assert (str(envelope.backend_id), envelope.request_id, envelope.revision) == ("toy:model", "q1", "r1")
        assert (envelope.requested_layer, envelope.layer, envelope.dimensions) == (1, 1, None)
        assert envelope.inputs == (
            InputReport(tokens=4, total_tokens=4, truncated=False),
            InputReport(tokens=16, total_tokens=38, truncated=True),
        )
        assert envelope.usage.input_tokens == 20

    def test_an_earlier_exit_gives_other_logits(self, classifier):
        handle = classifier()
        full, early = classify(handle, "cat", logits=True), classify(handle, "cat", logits=True, layer=1)
        assert full.envelope.layer == 3
        assert not np.allclose(logits_of(full), logits_of(early))
        with pytest.raises(InvalidInputError, match="layer=2 is not offered; there are: 1, 3"):
            classify(handle, "cat", layer=2)

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.text(st.sampled_from("the cat dog sat"), max_size=90), min_size=1, max_size=12))
    def test_a_text_has_one_answer_whatever_company_it_keeps(self, shared_handle, texts):
        together = logits_of(classify(shared_handle, *texts, logits=True, truncate="window"))
        alone = [logits_of(classify(shared_handle, text, logits=True, truncate="window")) for text in texts]
        np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-5)

    @pytest.fixture
    def shared_handle(self, classifier):
        return classifier()


class TestLongTexts:
    def test_they_are_refused_unless_the_request_says_otherwise(self, classifier):
        with pytest.raises(InputTooLongError, match=r"texts\[1\] has 38 tokens, the limit is 16") as caught:
            classify(classifier(), "the", LONG)
        assert caught.value.param == "texts[1]"

    @pytest.mark.parametrize("truncate", ["end", "start"])
    def test_they_can_be_cut_and_the_result_says_so(self, classifier, truncate):
        [result] = classify(classifier(), LONG, truncate=truncate).results
        assert (result.truncated, result.tokens) == (True, 16)

    def test_windows_read_all_of_a_text_and_average_its_logits_by_fresh_tokens(self, classifier, toy):
        engine = toy()
        handle = classifier(engine)
        response = classify(handle, LONG, logits=True, truncate="window")
        words = LONG.split()
        windows = [(0, 14), (11, 25), (22, 36)]
        alone = logits_of(classify(handle, *(" ".join(words[a:b]) for a, b in windows), logits=True))
        np.testing.assert_allclose(
            logits_of(response)[0], (14 * alone[0] + 11 * alone[1] + 11 * alone[2]) / 36, rtol=1e-5, atol=1e-6
        )
        assert response.envelope.inputs == (InputReport(tokens=38, total_tokens=38, truncated=False, windows=3),)
        assert (response.results[0].truncated, response.results[0].tokens) == (False, 38)
        assert response.envelope.usage.input_tokens == 38

    def test_a_text_that_fits_is_read_at_once_in_window_mode_too(self, classifier):
        handle = classifier()
        windowed, plain = (classify(handle, "the cat", "", truncate=mode) for mode in ("window", "error"))
        assert windowed == plain

    def test_what_windows_cannot_cover_is_refused(self, classifier):
        with pytest.raises(InputTooLongError) as caught:
            classify(classifier(), "the", "a " * 4000, truncate="window")
        assert caught.value.param == "texts[1]"


class TestPairs:
    def test_each_pair_gets_a_label_and_order_matters(self, classifier):
        response = judge(classifier(), ("the cat", "dog"), ("dog", "the cat"), logits=True)
        assert [result.tokens for result in response.results] == [6, 6]
        assert masses(response) == pytest.approx([1, 1])
        first, second = logits_of(response)
        assert not np.allclose(first, second)

    def test_one_pair_need_not_be_in_a_list(self, classifier):
        handle = classifier()
        assert handle.infer_blocking(PairClassificationRequest(pairs=("a", "cat")), CALL) == judge(handle, ("a", "cat"))

    def test_the_engine_is_told_which_text_a_token_is_of(self, classifier, toy):
        engine = toy()
        judge(classifier(engine), ("the cat", "dog"))
        assert engine.batches[0].type_ids.tolist() == [0, 0, 0, 0, 1, 1]

    def test_the_envelope_says_which_text_was_cut(self, classifier):
        response = judge(classifier(), ("cat", LONG), (LONG, "cat"), (LONG, LONG), ("cat", "dog"), truncate="end")
        assert [report.cut for report in response.envelope.inputs] == [
            ("second",),
            ("first",),
            ("first", "second"),
            (),
        ]
        assert [report.truncated for report in response.envelope.inputs] == [True, True, True, False]
        assert response.envelope.inputs[0] == InputReport(tokens=16, total_tokens=40, truncated=True, cut=("second",))

    def test_they_are_refused_over_the_limit_unless_the_request_says_otherwise(self, classifier):
        with pytest.raises(InputTooLongError, match=r"pairs\[1\] has 40 tokens") as caught:
            judge(classifier(), ("a", "a"), ("cat", LONG))
        assert caught.value.param == "pairs[1]"

    def test_windows_keep_the_first_text_and_stride_the_second(self, classifier):
        handle = classifier()
        response = judge(handle, ("query", LONG), logits=True, truncate="window")
        words = LONG.split()
        windows = [(0, 12), (9, 21), (18, 30), (24, 36)]
        alone = logits_of(judge(handle, *(("query", " ".join(words[a:b])) for a, b in windows), logits=True))
        np.testing.assert_allclose(
            logits_of(response)[0], np.average(alone, axis=0, weights=[12, 9, 9, 6]), rtol=1e-5, atol=1e-6
        )
        assert response.envelope.inputs == (InputReport(tokens=40, total_tokens=40, truncated=False, windows=4),)

    def test_a_first_text_without_room_for_the_second_is_named(self, classifier):
        with pytest.raises(InputTooLongError) as caught:
            judge(classifier(), ("a", "a"), (LONG, "cat"), truncate="window")
        assert caught.value.param == "pairs[1][0]"

    @pytest.mark.parametrize(
        ("pairs", "param"),
        [
            ((), "pairs"),
            ("ab", "pairs"),
            ((("a", "b"), ("a",)), "pairs[1]"),
            ((("a", 3),), "pairs[0][1]"),
            (7, "pairs"),
        ],
    )
    def test_what_is_no_pair_is_refused(self, classifier, pairs, param):
        with pytest.raises(InvalidInputError) as caught:
            classifier().infer_blocking(PairClassificationRequest(pairs=pairs), CALL)
        assert caught.value.param == param


class TestFailures:
    def test_nan_names_the_texts_and_gives_no_result(self, classifier):
        with pytest.raises(NonFiniteOutputError, match=r"for texts\[1\]: the values are withheld"):
            classify(classifier(), "the", "nan", "cat")

    def test_nan_in_any_window_names_the_text(self, classifier):
        with pytest.raises(NonFiniteOutputError, match=r"for pairs\[1\]: "):
            judge(classifier(), ("a", LONG), ("a", LONG + "nan"), truncate="window")

    def test_another_number_of_outputs_than_labels_names_both(self, classifier, toy):
        with pytest.raises(InferenceError, match="toy:model gave 5 logits for 3 labels"):
            classify(classifier(toy(labels=5)), "the")

    def test_a_token_head_behind_a_sequence_task_is_an_error(self, classifier, toy):
        with pytest.raises(InferenceError, match=r"the shape \[3, 3\] where \[3\] was expected"):
            classify(classifier(toy(token_head=True)), "the")

    def test_a_bad_text_fails_its_own_request_alone(self, classifier, toy):
        engine = toy()
        handle = classifier(engine)
        expected = classify(handle, "the").results

        async def together():
            engine.gate.clear()
            asked = [SequenceClassificationRequest(texts=(text,)) for text in ("the", "nan", "poison", LONG, "the")]
            tasks = [asyncio.create_task(handle.infer(each, CALL)) for each in asked]
            await asyncio.sleep(0)
            engine.gate.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

        first, nan, poison, long, last = asyncio.run(together())
        assert [type(each) for each in (nan, poison, long)] == [
            NonFiniteOutputError,
            InferenceError,
            InputTooLongError,
        ]
        for response in (first, last):
            assert response.results[0].label == expected[0].label
            assert response.results[0].score == pytest.approx(expected[0].score, abs=1e-6)


@pytest.mark.parametrize(
    ("asked", "characters"),
    [
        (SequenceClassificationRequest(texts=("abc", "de")), 5),
        (SequenceClassificationRequest(texts="abc"), 3),
        (SequenceClassificationRequest(texts=None), 0),
        (PairClassificationRequest(pairs=(("abc", "de"), ("f", ""))), 6),
        (PairClassificationRequest(pairs=("abc", "de")), 5),
        (PairClassificationRequest(pairs=(("abc", 3), None)), 3),
        (PairClassificationRequest(pairs=None), 0),
    ],
)
def test_the_size_of_a_request_is_its_characters_whatever_it_holds(classifier, asked, characters):
    assert classifier()._tasks[asked.capability].size(asked) == characters
