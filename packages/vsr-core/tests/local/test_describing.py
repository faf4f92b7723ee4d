from __future__ import annotations

from dataclasses import replace

import pytest
from vsr_core.contract import ModelInfo
from vsr_core.taxonomy import Capability, Feature
from vsr_core.wire import from_json, to_json


@pytest.fixture
def classifier(build, spec):
    def make(*labels, **changes):
        capabilities = (Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION)
        head = replace(spec, capabilities=capabilities, labels=labels, activation="softmax", pooling=None)
        return build(spec=replace(head, **changes)).info

    return make


def test_a_classifier_tells_its_labels_and_depths_and_no_dimensions(classifier):
    info = classifier("safe", "unsafe", "other")
    assert info.capabilities == (Capability.SEQUENCE_CLASSIFICATION, Capability.PAIR_CLASSIFICATION)
    assert info.labels == ("safe", "unsafe", "other")
    assert (info.native_dimensions, info.dimensions, info.default_dimensions) == (None, (), None)
    assert (info.native_layers, info.exit_layers, info.default_layer) == (3, (1, 3), 3)
    assert from_json(ModelInfo, to_json(info)) == info


def test_features_of_a_classifier_hold_with_reasons(classifier):
    states = {state.feature: state for state in classifier("a", "b", "c", exit_layers=(3,)).features}
    assert not states[Feature.DIMENSIONS].supported
    assert states[Feature.DIMENSIONS].reason == "the model gives no vectors"
    assert not states[Feature.LAYER_EXIT].supported
    assert states[Feature.BATCHING].supported
    assert all(state.reason for state in states.values() if not state.supported)


def test_classifiers_may_stand_in_for_one_another_where_their_labels_are_the_same(classifier):
    key = classifier("a", "b", "c").compatibility_key
    assert key == classifier("c", "a", "b", content_hash="other").compatibility_key
    assert key != classifier("a", "b", "d").compatibility_key
    assert classifier().compatibility_key is None


def test_a_model_that_also_embeds_has_the_key_and_the_dimensions_of_its_vectors(build, spec):
    capabilities = (Capability.SEQUENCE_CLASSIFICATION, Capability.EMBEDDING)
    info = build(spec=replace(spec, capabilities=capabilities, labels=("a", "b", "c"), activation="softmax")).info
    assert info.compatibility_key == build().info.compatibility_key
    assert (info.native_dimensions, info.dimensions, info.labels) == (8, (4, 8), ("a", "b", "c"))
    assert {state.feature: state.supported for state in info.features}[Feature.DIMENSIONS]
