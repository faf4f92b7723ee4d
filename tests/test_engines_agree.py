"""Whatever the texts, the three engines answer the same from one checkpoint, alone and in company."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vsr_core import Runtime
from vsr_core.testing import write_encoder

pytest.importorskip("vsr_onnx.export")

pytestmark = pytest.mark.timeout(180)  # the first test exports the model

FP32 = {name: {"precision": "fp32", "threads": 1} for name in ("torch", "onnx", "openvino")}
WORDS = st.lists(st.sampled_from(["red", "river", "bank", "cat", "😀", "1994,", "naïve", "the"]), max_size=30)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TEXTS = st.lists(WORDS.map(" ".join) | ANY, min_size=1, max_size=5)


@pytest.fixture(scope="module")
def vsr(tmp_path_factory):
    place = tmp_path_factory.mktemp("engines")
    source = write_encoder(place / "source", "modernbert", head="sequence")
    with Runtime({"catalog": {"m": {"source": str(source)}}, "backends": FP32}) as runtime:
        runtime.export("m", to="onnx", out=place / "graph")
    catalog = {"m": {"source": str(source)}, "graph": {"source": str(place / "graph")}}
    with Runtime({"catalog": catalog, "backends": FP32}) as runtime:
        yield runtime


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=TEXTS)
def test_logits_are_the_same_on_every_engine(vsr, texts):
    expected = vsr.classify(texts, model="torch:m", logits=True, truncate="end").results
    for engine in ("onnx:graph", "openvino:graph"):
        together = vsr.classify(texts, model=engine, logits=True, truncate="end").results
        alone = [vsr.classify(text, model=engine, logits=True, truncate="end").results[0] for text in texts]
        for ours, one, theirs in zip(together, alone, expected, strict=True):
            assert ours.tokens == theirs.tokens
            assert ours.logits == pytest.approx(theirs.logits, abs=1e-4)
            assert one.logits == pytest.approx(theirs.logits, abs=1e-4)
