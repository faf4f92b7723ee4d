"""ModernBERT on OpenVINO where whole attention windows hold nothing but padding (openvinotoolkit/openvino#35959).

OpenVINO's own tracing of the PyTorch model answers NaN there; reading the ONNX graph does not.
"""

import warnings

import numpy as np
import pytest
import torch
from transformers import AutoModel
from vsr_core import Runtime
from vsr_core.testing import write_encoder
from vsr_openvino.reading import read_graph
from vsr_openvino.untracked import ov

from tests.oracle import Reference

pytestmark = pytest.mark.timeout(90)  # the first test waits for the export

SHORT = "a"
LONG = "the red cat and the blue dog in the green tree by the river bank one two three of it is for the answer " * 3


class Encoder(torch.nn.Module):
    def __init__(self, folder):
        super().__init__()
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()

    def forward(self, ids, mask):
        return self.model(ids, attention_mask=mask).last_hidden_state


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A ModernBERT with a window of 8 tokens, as ONNX and as IR beside its weights."""
    place = write_encoder(tmp_path_factory.mktemp("modernbert") / "model", "modernbert")
    ids, mask = torch.randint(5, 60, (2, 12)), torch.ones(2, 12, dtype=torch.int64)
    mask[0, 5:] = 0
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=64)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        torch.onnx.export(
            Encoder(place).eval(),
            (ids, mask),
            place / "model.onnx",
            dynamo=True,
            verbose=False,
            input_names=["input_ids", "attention_mask"],
            output_names=["last_hidden_state"],
            dynamic_shapes=(sizes, sizes),
        )
    ov.save_model(read_graph(place / "model.onnx").model, place / "openvino_model.xml", compress_to_fp16=False)
    return place


@pytest.mark.parametrize("artifact", ["onnx", "openvino_ir"])
def test_a_short_text_beside_a_long_one_is_what_it_is_alone(folder, artifact):
    entry = {"source": str(folder), "artifact": artifact, "backends": ["openvino"], "pooling": "mean"}
    reference = Reference(folder)
    config = {"catalog": {"m": entry}, "backends": {"openvino": {"precision": "fp32", "threads": 1}}}
    with Runtime(config) as vsr:
        together = vsr.embed([SHORT, LONG, SHORT], truncate="end")
        assert [report.tokens for report in together.envelope.inputs] == [3, 64, 3]
        assert np.isfinite(together.vectors).all()
        for text, vector in zip([SHORT, LONG, SHORT], together.vectors, strict=True):
            np.testing.assert_allclose(vector, reference.answer(text).mean(0), atol=1e-4)
            np.testing.assert_allclose(vector, vsr.embed(text, truncate="end").vectors[0], atol=1e-4)
