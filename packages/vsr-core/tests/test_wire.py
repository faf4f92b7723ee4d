"""Everything that crosses a process border comes back as it went."""

import json
from decimal import Decimal

import numpy as np
import pytest
import vsr_core.contract as contract
from hypothesis import given
from hypothesis import strategies as st
from vsr_core.contract import (
    AttemptRecord,
    BackendId,
    CapabilityQuery,
    CapabilitySet,
    Choice,
    ClassificationResponse,
    ClassificationResult,
    EmbeddingRequest,
    EmbeddingResponse,
    Envelope,
    FeatureState,
    GenerationEnd,
    GenerationRequest,
    GenerationResponse,
    ImagePart,
    InputReport,
    Limits,
    Message,
    ModelInfo,
    ModelSpec,
    MultiTaskRequest,
    MultiTaskResponse,
    PairClassificationRequest,
    PoolingSpec,
    Refused,
    Selector,
    Span,
    Supported,
    TaggingResponse,
    TaggingResult,
    TaskOutcome,
    TaskRef,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
)
from vsr_core.errors import InvalidInputError
from vsr_core.taxonomy import Artifact, Capability, ErrorClass, Feature
from vsr_core.wire import from_json, to_json

ENVELOPE = Envelope(
    backend_id=BackendId("torch", "m"),
    revision="abc",
    requested_dimensions=64,
    dimensions=64,
    inputs=(InputReport(tokens=3, total_tokens=9, truncated=True),),
    usage=Usage(input_tokens=3),
)

VALUES = [
    ENVELOPE,
    EmbeddingRequest(texts=("a", "日本 😀"), dimensions=64, truncate="start"),
    PairClassificationRequest(pairs=(("a", "b"), ("c", "d"))),
    MultiTaskRequest(
        texts=("a",), tasks=(TaskRef(task="t", model="m", capability=Capability.SEQUENCE_CLASSIFICATION),)
    ),
    GenerationRequest(
        messages=(
            Message(role="user", parts=(TextPart("hi"), ImagePart(url="https://example.org/x.png"))),
            Message(role="assistant", tool_calls=(ToolCall(id="1", name="f", arguments="{}"),)),
        ),
        tools=(ToolSpec(name="f", parameters={"type": "object", "properties": {"x": {"type": "number"}}}),),
        stop=("\n",),
    ),
    GenerationEnd(response=GenerationResponse(envelope=ENVELOPE, text="x", finish_reason="stop")),
    ClassificationResponse(
        envelope=ENVELOPE,
        results=(ClassificationResult(label="a", score=0.75, distribution={"a": 0.75, "b": 0.25}, passed=True),),
    ),
    MultiTaskResponse(
        envelope=ENVELOPE,
        outcomes=(
            TaskOutcome(
                task="pii",
                response=TaggingResponse(
                    envelope=ENVELOPE,
                    results=(TaggingResult(spans=(Span(start=0, end=1, label="X", score=1.0, text="a"),)),),
                ),
            ),
            TaskOutcome(task="bad", error={"code": "inference_failed"}),
        ),
    ),
    CapabilitySet.of(
        [
            (Selector(), Refused("no", "because")),
            (Selector(capability=Capability.EMBEDDING, family="bert"), Supported(Limits(dimensions=(64, 384)))),
        ]
    ),
    CapabilityQuery(capability=Capability.GUARD, feature=Feature.TOOLS),
    ModelSpec(
        capabilities=(Capability.EMBEDDING,),
        family="minilm",
        artifact=Artifact.FULL,
        pooling=PoolingSpec(modes=("cls", "mean")),
        prompts={"query": "q: "},
    ),
    ModelInfo(
        backend_id=BackendId("ollama", "llama3.2:3b"),
        capabilities=(Capability.EMBEDDING,),
        dtype=Choice(requested="auto", actual="float32", reason="no native bf16"),
        features=(FeatureState(feature=Feature.BATCHING, supported=True),),
    ),
    AttemptRecord(
        request_id="r",
        attempt_id="a",
        number=1,
        capability=Capability.GENERATION,
        logical_name="default",
        outcome="absorbed",
        error_class=ErrorClass.RATE_LIMITED,
        cost=Decimal("0.000001"),
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_survives_json(value):
    assert from_json(type(value), json.loads(json.dumps(to_json(value)))) == value


def test_arrays_keep_dtype_shape_and_bits():
    vectors = np.array([[1.0, -0.0, 1e-45], [3.4e38, 2, 3]], dtype=np.float32)
    back = from_json(
        EmbeddingResponse, json.loads(json.dumps(to_json(EmbeddingResponse(envelope=ENVELOPE, vectors=vectors))))
    )
    assert back.vectors.dtype == np.float32
    assert back.vectors.tobytes() == vectors.tobytes()
    assert back.envelope == ENVELOPE


@given(st.text(), st.integers(), st.none() | st.booleans())
def test_any_text_and_number_survives(text, number, flag):
    report = InputReport(tokens=number, truncated=flag)
    assert from_json(InputReport, json.loads(json.dumps(to_json(report)))) == report
    assert from_json(TextPart, json.loads(json.dumps(to_json(TextPart(text))))) == TextPart(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_has_no_json_form_is_refused(value):
    with pytest.raises(InvalidInputError):
        to_json(value)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ([], "EmbeddingRequest"),
        ({}, "texts"),
        ({"texts": "a"}, "EmbeddingRequest.texts"),
        ({"texts": [1]}, "EmbeddingRequest.texts[0]"),
        ({"texts": ["a"], "dimensions": "64"}, "EmbeddingRequest.dimensions"),
        ({"texts": ["a"], "dimensions": True}, "EmbeddingRequest.dimensions"),
        ({"texts": ["a"], "truncate": "middle"}, "EmbeddingRequest.truncate"),
        ({"texts": ["a"], "dimension": 3}, "'dimension'"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(data, where):
    with pytest.raises(InvalidInputError, match=where.replace("[", r"\[").replace("]", r"\]")):
        from_json(EmbeddingRequest, data)


def test_a_number_of_numpy_is_a_number():
    report = InputReport(tokens=np.int64(3))
    assert json.dumps(to_json(report)).startswith('{"tokens": 3, "total_tokens": null, ')
    assert to_json(np.float32(0.5)) == 0.5


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused_on_the_way_in_too(score):
    with pytest.raises(InvalidInputError, match="a finite number"):
        from_json(Span, {"start": 0, "end": 1, "label": "x", "score": score, "text": "a"})


def test_members_of_a_union_are_told_apart_by_their_tag():
    assert to_json(Supported())["type"] == "supported"
    with pytest.raises(InvalidInputError, match="no type 'perhaps' here; known are refused, supported"):
        from_json(CapabilitySet, {"rules": [{"selector": {}, "verdict": {"type": "perhaps"}}]})
    with pytest.raises(InvalidInputError, match="no field 'type'"):
        from_json(InputReport, {"type": "supported"})


def test_the_contract_exports_what_its_modules_list():
    assert len(set(contract.__all__)) == len(contract.__all__)
    for name in contract.__all__:
        assert getattr(contract, name) is not None
