from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vsr_core.contract import BackendId
from vsr_core.errors import CheckpointError, InferenceError
from vsr_core.local import Scorer, activate

NAME = BackendId("toy", "model")
LOGITS = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=9)


def scorer(labels=("no", "yes"), **options):
    return Scorer(labels, backend_id=NAME, **{"activation": "softmax", **options})


def f32(*values):
    return np.array(values, np.float32)


class TestActivations:
    @pytest.mark.parametrize(
        ("logits", "expected"),
        [
            ((-1000, 1000), (0.0, 1.0)),
            ((-100, 1), (math.exp(-101), 1.0)),
            ((3e38, -3e38), (1.0, 0.0)),
            ((0, 0, 0, 0), (0.25, 0.25, 0.25, 0.25)),
            ((0, math.log(3)), (0.25, 0.75)),
        ],
    )
    def test_softmax_is_exact_for_extreme_logits(self, logits, expected):
        found = activate(f32(*logits), "softmax")
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-7)

    @pytest.mark.parametrize(
        ("logit", "expected"),
        [(1000, 1.0), (-1000, 0.0), (-100, math.exp(-100)), (0, 0.5), (-math.inf, 0.0), (math.inf, 1.0)],
    )
    def test_sigmoid_is_exact_for_extreme_logits(self, logit, expected):
        assert activate(f32(logit), "sigmoid").item() == pytest.approx(expected, rel=1e-12, abs=0)

    def test_several_labels_of_a_sigmoid_are_independent(self):
        assert (activate(f32(3, 2, 4), "sigmoid") > 0.8).all()

    def test_without_an_activation_the_logits_stay_as_they_are(self):
        assert activate(f32(-7.5, 12), "none").tolist() == [-7.5, 12]

    @pytest.mark.parametrize("temperature", [1e-300, 1e300])
    def test_extreme_temperatures_neither_overflow_nor_warn(self, temperature):
        for activation in ("softmax", "sigmoid"):
            found = activate(f32(-3e38, 1, 3e38), activation, temperature=temperature)
            assert np.isfinite(found).all()
            assert (np.diff(found) >= 0).all()

    def test_rows_of_tokens_are_activated_one_by_one(self):
        rows = np.array([[-1000, 1000], [5, 5]], np.float32)
        assert activate(rows, "softmax").tolist() == [[0.0, 1.0], [0.5, 0.5]]

    @given(LOGITS, st.sampled_from([0.25, 1.0, 3.0]))
    def test_softmax_sums_to_one_keeps_the_order_and_is_that_of_scaled_logits(self, logits, temperature):
        found = activate(f32(*logits), "softmax", temperature=temperature)
        assert found.sum() == pytest.approx(1, rel=1e-12)
        exact = [math.exp(Fraction(each - max(logits)) / Fraction(temperature)) for each in logits]
        np.testing.assert_allclose(found, np.array(exact) / math.fsum(exact), rtol=1e-9)


class TestResults:
    def test_a_result_has_the_best_label_its_score_and_the_distribution_in_label_order(self):
        result = scorer(("b", "a", "c")).result(f32(0, math.log(6), 0))
        assert (result.label, result.score) == ("a", pytest.approx(0.75))
        assert list(result.distribution) == ["b", "a", "c"]
        assert result.distribution["a"] == result.score
        assert sum(result.distribution.values()) == pytest.approx(1)
        assert (result.distribution_reason, result.passed, result.logits) == (None, None, None)

    def test_the_first_label_wins_a_tie(self):
        assert scorer(("a", "b", "c")).result(f32(1, 2, 2)).label == "b"

    def test_temperature_flattens_the_distribution(self):
        assert scorer(temperature=2.0).result(f32(0, 2)).score == pytest.approx(1 / (1 + math.exp(-1)))

    def test_raw_scores_have_no_distribution_and_say_why(self):
        result = scorer(("quality",), activation="none").result(f32(-2.5))
        assert (result.label, result.score, result.distribution) == ("quality", -2.5, None)
        assert "raw scores" in result.distribution_reason

    def test_labels_without_names_are_numbered(self):
        result = scorer(None).result(f32(0, 3, 1))
        assert (result.label, list(result.distribution)) == ("LABEL_1", ["LABEL_0", "LABEL_1", "LABEL_2"])

    @pytest.mark.parametrize(
        ("threshold", "positive", "logits", "passed"),
        [
            (None, ("yes",), (0, 5), None),
            (0.5, (), (0, 0), True),
            (0.51, (), (0, 0), False),
            (0.9, ("yes",), (0, 5), True),
            (0.9, ("yes",), (5, 0), False),
            (0.9, ("yes",), (0, 1), False),
        ],
    )
    def test_passed_says_whether_a_label_that_counts_reached_the_threshold(self, threshold, positive, logits, passed):
        assert scorer(threshold=threshold, positive_labels=positive).result(f32(*logits)).passed is passed

    def test_labels_without_names_may_be_positive_by_their_numbers(self):
        made = scorer(None, threshold=0.5, positive_labels=("LABEL_0",))
        assert [made.result(f32(*logits)).passed for logits in ((3, 0), (0, 3))] == [True, False]

    def test_a_raw_score_may_have_any_threshold(self):
        assert scorer(("quality",), activation="none", threshold=-3.0).result(f32(-2.5)).passed is True


class TestChecks:
    def test_as_many_logits_as_labels_are_fine(self):
        scorer().check(f32(1, 2))
        scorer(None).check(f32(1, 2, 3, 4))

    def test_another_number_of_logits_names_both_counts(self):
        with pytest.raises(InferenceError, match="toy:model gave 3 logits for 2 labels") as caught:
            scorer().check(f32(1, 2, 3))
        assert caught.value.backend_id == "toy:model"

    @pytest.mark.parametrize("shape", [(4, 2), (0,), ()])
    def test_logits_of_another_shape_are_refused(self, shape):
        with pytest.raises(InferenceError, match="logits of the shape"):
            scorer(None).check(np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": None}, "no file states how logits become scores"),
        ({"activation": "relu"}, "'relu' does not"),
        ({"temperature": 0.0}, "calibration.temperature: 0 cannot divide logits"),
        ({"temperature": -1.0}, "above 0"),
        ({"temperature": math.nan}, "above 0"),
        ({"temperature": math.inf}, "above 0"),
        ({"activation": "none", "temperature": 2.0}, "calibration.temperature: 2 calibrates probabilities"),
        ({"threshold": 1.5}, "threshold: 1.5 is no probability"),
        ({"threshold": -0.1}, "from 0 to 1"),
        ({"threshold": math.nan}, "from 0 to 1"),
        ({"activation": "none", "threshold": math.nan}, "threshold: nan is no score"),
        ({"positive_labels": ("yes", "maybe")}, r"maybe are none of the model's labels \(no, yes\)"),
        ({"labels": None, "positive_labels": ("LABEL_1", "maybe")}, "positive_labels: maybe are none"),
        ({"labels": ("a", "b", "a")}, "labels: 'a' is at index 0 and at index 2"),
        ({"labels": ("a", "classification_error")}, "a name reserved for failures"),
        ({"labels": ("a",)}, "a softmax over one label is always 1"),
    ],
)
def test_contradictions_are_refused_with_the_way_out(options, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        scorer(**options)
    assert caught.value.message.startswith("toy:model: ")
