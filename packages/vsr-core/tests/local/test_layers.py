from __future__ import annotations

from dataclasses import replace

import pytest
from vsr_core.contract import BackendId
from vsr_core.errors import CheckpointError, InvalidInputError
from vsr_core.local import default_layer, effective_layer, engine_layer

NAME = BackendId("toy", "model")


def test_what_is_asked_for_counts_and_else_the_default(spec):
    assert effective_layer(spec, 1, default=3) == 1
    assert effective_layer(spec, None, default=1) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "layer=2 is not offered; there are: 1, 3"),
        ({"exit_layers": ()}, "there are: 3"),
        ({"exit_layers": (), "layers": None}, "there are: the full depth alone"),
    ],
)
def test_what_is_not_offered_is_refused_with_what_is(spec, changes, message):
    spec = replace(spec, **changes)
    with pytest.raises(InvalidInputError, match=message) as caught:
        effective_layer(spec, 2, default=None)
    assert caught.value.param == "layer"
    with pytest.raises(CheckpointError, match=f"toy:model: the default does not hold: .*{message}"):
        default_layer(spec, 2, backend_id=NAME)


def test_the_native_depth_is_the_default_and_no_number_to_an_engine(spec):
    assert default_layer(spec, None, backend_id=NAME) == 3
    assert (engine_layer(spec, 3), engine_layer(spec, 1), engine_layer(spec, None)) == (None, 1, None)
    assert engine_layer(replace(spec, layers=None), None) is None
