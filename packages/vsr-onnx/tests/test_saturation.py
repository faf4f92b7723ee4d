"""What a processor does with products of 8 bits is found by multiplying."""

import numpy as np
import onnx
import pytest
from vsr_onnx import saturation
from vsr_onnx.saturation import saturates


def test_the_product_is_a_sound_graph_with_the_largest_weights():
    model = onnx.load_from_string(saturation._product())
    onnx.checker.check_model(model, full_check=True)
    assert (onnx.numpy_helper.to_array(model.graph.initializer[0]) == 127).all()


@pytest.mark.parametrize(("cut_off", "expected"), [(0, False), (1, True)])
def test_one_wrong_sum_is_noticed(monkeypatch, cut_off, expected):
    class Session:
        def __init__(self, *_, **__):
            pass

        def run(self, _, feeds):
            sums = np.full((len(feeds["x"]), 16), 64 * 255 * 127)
            sums[-1, -1] -= cut_off if len(sums) > 1 else 0
            return [sums]

    monkeypatch.setattr(saturation.onnxruntime, "InferenceSession", Session)
    assert saturates.__wrapped__() is expected
