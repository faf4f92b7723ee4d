from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vsr_core.contract import (
    Aggregation,
    CallContext,
    CatalogEntry,
    InputReport,
    Span,
    TaggingResult,
    TokenClassificationRequest,
)
from vsr_core.errors import (
    CheckpointError,
    InferenceError,
    InputTooLongError,
    InvalidInputError,
    NonFiniteOutputError,
)
from vsr_core.taxonomy import Capability

CALL = CallContext(request_id="q1")
LABELS = ("O", "B-PET", "I-PET", "B-PLACE", "I-PLACE")
MARKED = {"cat": 1, "dog": 1, "slow": 2, "mat": 3, "fast": 4}
SURE = {"cat": 4.0, "dog": 2.0}


@pytest.fixture
def lookup(toy, vocabulary):
    """The class of an engine whose head looks the logits of each token up: by its word alone, at every layer."""

    class Lookup(toy):
        def answer(self, batch, row):
            table = np.zeros((len(vocabulary), len(LABELS)), np.float32)
            table[:, 0] = 3
            for word, label in MARKED.items():
                table[vocabulary[word]] = 0
                table[vocabulary[word], label] = SURE.get(word, 3)
            table[vocabulary["nan"]] = np.nan
            start, end = batch.offsets[row.sequence : row.sequence + 2]
            return table[batch.ids[start:end]]

    return Lookup


@pytest.fixture
def tagger(build, spec, lookup):
    def make(engine=None, *, labels=LABELS, layer=None, **entry):
        return build(
            engine or lookup(),
            spec=replace(spec, capabilities=(Capability.TOKEN_CLASSIFICATION,), labels=labels, activation="softmax"),
            load={"entry": CatalogEntry(name="model", source="pkg://toy", **entry), "layer": layer},
        )

    return make


def ask(handle, *texts, **options):
    return handle.infer_blocking(TokenClassificationRequest(texts=texts, **options), CALL)


def found(handle, *texts, **options):
    return [[(span.label, span.text) for span in result.spans] for result in ask(handle, *texts, **options).results]


def probability(logit, others=4):
    return np.exp(logit) / (np.exp(logit) + others)


def test_each_text_gets_its_spans_in_order(tagger):
    assert found(tagger(), "The Cat slow sat on the mat", "ran", "dog") == [
        [("PET", "Cat slow"), ("PLACE", "mat")],
        [],
        [("PET", "dog")],
    ]


def test_a_span_is_a_slice_of_the_text_with_the_mean_of_its_scores(tagger):
    [result] = ask(tagger(), " The Cat slow sat").results
    score = (probability(4) + probability(3)) / 2
    assert result == TaggingResult(
        spans=(Span(start=5, end=13, label="PET", score=pytest.approx(score), text="Cat slow"),),
        truncated=False,
        tokens=6,
    )


def test_none_gives_each_token_under_its_whole_label(tagger):
    assert found(tagger(), "cat slow", aggregation="none") == [[("B-PET", "cat"), ("I-PET", "slow")]]


@pytest.mark.parametrize("text", ["", " \n"])
@pytest.mark.parametrize("truncate", ["error", "window"])
def test_an_empty_text_has_no_spans(tagger, text, truncate):
    [result] = ask(tagger(), text, truncate=truncate).results
    assert result == TaggingResult(spans=(), truncated=False, tokens=2)


def test_the_envelope_says_what_was_really_done(tagger):
    envelope = ask(tagger(), "the cat", "the " * 30, layer=1, truncate="end").envelope
    assert (str(envelope.backend_id), envelope.request_id, envelope.revision) == ("toy:model", "q1", "r1")
    assert (envelope.device, envelope.dtype) == ("cpu", "float32")
    assert (envelope.requested_layer, envelope.layer) == (1, 1)
    assert envelope.inputs == (
        InputReport(tokens=4, total_tokens=4, truncated=False),
        InputReport(tokens=16, total_tokens=32, truncated=True),
    )
    assert envelope.usage.input_tokens == 20


def test_the_head_is_asked_at_the_layer_in_effect(tagger, lookup):
    engine = lookup()
    handle = tagger(engine, layer=1)
    assert ask(handle, "cat").envelope.layer == 1
    assert ask(handle, "cat", layer=3).envelope.layer == 3
    assert [batch.rows[0].layer for batch in engine.batches] == [1, None]


class TestLongTexts:
    TEXT = "the " * 20 + "cat " + "the " * 20 + "dog"

    def test_are_refused_unless_asked_otherwise(self, tagger):
        with pytest.raises(InputTooLongError, match="limit is 16"):
            ask(tagger(), self.TEXT)

    def test_are_cut_where_asked(self, tagger):
        for truncate, spans in (("end", []), ("start", [("PET", "dog")])):
            [result] = ask(tagger(), self.TEXT, truncate=truncate).results
            assert [(span.label, span.text) for span in result.spans] == spans
            assert (result.truncated, result.tokens) == (True, 16)
            assert all(self.TEXT[span.start : span.end] == span.text for span in result.spans)

    def test_are_read_whole_in_windows(self, tagger):
        response = ask(tagger(), self.TEXT, "cat", truncate="window")
        [result, short] = response.results
        assert [(span.start, span.text) for span in result.spans] == [(80, "cat"), (164, "dog")]
        assert (result.truncated, result.tokens) == (False, 44)
        assert response.envelope.inputs == (
            InputReport(tokens=44, total_tokens=44, truncated=False, windows=4),
            InputReport(tokens=3, total_tokens=3, truncated=False),
        )
        assert [span.text for span in short.spans] == ["cat"]

    def test_are_refused_beyond_what_windows_cover(self, tagger):
        with pytest.raises(InputTooLongError) as caught:
            ask(tagger(), "a " * 4000, truncate="window")
        assert caught.value.unit == "tokens"

    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        words=st.lists(st.sampled_from(["the", "Cat", "dog", "slow", "mat", "fast", "cats", "\n"]), max_size=80),
        aggregation=st.sampled_from(get_args(Aggregation)),
    )
    def test_give_the_spans_of_the_whole_where_labels_depend_on_the_token_alone(self, handles, words, aggregation):
        text = " ".join(words)
        narrow, wide = handles
        windowed = ask(narrow, text, aggregation=aggregation, truncate="window").results
        assert windowed == ask(wide, text, aggregation=aggregation).results

    @pytest.fixture
    def handles(self, build, spec, lookup):
        parts = {"capabilities": (Capability.TOKEN_CLASSIFICATION,), "labels": LABELS, "activation": "softmax"}
        return [build(lookup(), spec=replace(spec, max_tokens=limit, **parts)) for limit in (9, 256)]


class TestEntry:
    def test_the_temperature_divides_the_logits(self, tagger):
        [result] = ask(tagger(temperature=2.0), "cat").results
        assert result.spans[0].score == pytest.approx(probability(2))

    def test_spans_below_the_threshold_are_left_out(self, tagger):
        assert probability(2) < 0.8 < probability(4)
        assert found(tagger(threshold=0.8), "cat dog") == [[("PET", "cat")]]
        exactly = ask(tagger(), "dog").results[0].spans[0].score
        assert found(tagger(threshold=exactly), "dog") == [[("PET", "dog")]]

    @pytest.mark.parametrize("named", ["PLACE", "B-PLACE", "I-PLACE"])
    def test_positive_labels_name_the_entities_that_are_kept(self, tagger, named):
        handle = tagger(positive_labels=(named,))
        assert found(handle, "cat slow mat fast") == [[("PLACE", "mat fast")]]
        assert found(handle, "cat mat fast", aggregation="none") == [[("B-PLACE", "mat"), ("I-PLACE", "fast")]]

    def test_positive_labels_of_no_entity_are_refused(self, tagger):
        with pytest.raises(CheckpointError, match=r"toy:model: 'positive_labels' has 'X'.*B-PET.*PLACE"):
            tagger(positive_labels=("X",))

    def test_labels_that_make_no_scheme_are_refused_with_the_name_of_the_model(self, tagger):
        with pytest.raises(CheckpointError, match=r"toy:model: .*none is 'O'"):
            tagger(labels=("B-PET", "I-PET"))

    def test_flat_labels_are_served(self, tagger):
        labels = ("O", "pet", "slow", "place", "fast")
        assert found(tagger(labels=labels), "cat dog mat") == [[("pet", "cat dog"), ("place", "mat")]]


class TestRefusals:
    def test_an_unknown_aggregation(self, tagger):
        with pytest.raises(InvalidInputError, match="'none', 'simple', 'first', 'average', 'max'") as caught:
            ask(tagger(), "cat", aggregation="mean")
        assert caught.value.param == "aggregation"

    def test_an_unknown_truncation(self, tagger):
        with pytest.raises(InvalidInputError) as caught:
            ask(tagger(), "cat", truncate="middle")
        assert caught.value.param == "truncate"

    def test_a_layer_that_is_not_offered(self, tagger):
        with pytest.raises(InvalidInputError, match="there are: 1, 3"):
            ask(tagger(), "cat", layer=2)

    def test_a_default_layer_that_is_not_offered(self, tagger):
        with pytest.raises(CheckpointError, match="layer=2"):
            tagger(layer=2)

    def test_no_texts(self, tagger):
        with pytest.raises(InvalidInputError, match="texts is empty"):
            ask(tagger())

    @pytest.mark.parametrize("truncate", ["error", "window"])
    def test_values_that_are_not_finite_are_withheld_and_the_texts_named(self, tagger, truncate):
        with pytest.raises(NonFiniteOutputError, match=r"texts\[1\], texts\[2\]:"):
            ask(tagger(), "cat", "nan", "the cat nan", "dog", truncate=truncate)

    @pytest.mark.parametrize("labels", [LABELS[:3], (*LABELS, "B-DAY")])
    def test_a_head_with_another_number_of_labels(self, tagger, labels):
        with pytest.raises(InferenceError, match=rf"\[3, 5\] where \[3, {len(labels)}\] was expected"):
            ask(tagger(labels=labels), "cat")

    def test_a_head_that_answers_for_the_sequence(self, tagger, toy):
        with pytest.raises(InferenceError, match=r"\[5\] where \[3, 5\] was expected"):
            ask(tagger(toy(labels=5)), "cat")
