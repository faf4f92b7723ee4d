from __future__ import annotations

import numpy as np
import pytest
from vsr_core.contract import BackendId
from vsr_core.errors import NonFiniteOutputError
from vsr_core.local import check_finite, withheld

NAME = BackendId("toy", "model")
GOOD = np.zeros(3, np.float32)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_every_input_with_a_value_that_is_not_finite_is_named(value):
    bad = np.array([0, value], np.float32)
    with pytest.raises(NonFiniteOutputError, match=r"for pairs\[1\], pairs\[2\]: the values are withheld") as caught:
        check_finite([[GOOD], [GOOD, bad], [bad], [GOOD]], backend_id=NAME, param="pairs")
    assert caught.value.backend_id == "toy:model"


def test_finite_answers_pass():
    check_finite([[GOOD, GOOD], [np.zeros((4, 2), np.float32)]], backend_id=NAME, param="texts")


def test_the_message_stays_short_however_many_there_are():
    assert len(withheld(range(10_000), backend_id=NAME, param="texts").message) < 400
