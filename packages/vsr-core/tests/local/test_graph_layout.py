from __future__ import annotations

import json
from dataclasses import replace

import pytest
from vsr_core.catalog import ExitLayer, ExportManifest, HeadLayout
from vsr_core.contract import DenseSpec, PoolingSpec
from vsr_core.errors import CheckpointError
from vsr_core.local import GraphLayout, read_layout
from vsr_core.taxonomy import Artifact, Capability

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
CONFIG = {"num_attention_heads": 4, "intermediate_size": 32, "type_vocab_size": 2}
MANIFEST = ExportManifest(
    family="bert",
    architecture="BertModel",
    capabilities=(Capability.EMBEDDING,),
    hidden_size=8,
    layers=3,
    exits=(ExitLayer(layer=1, output="early"), ExitLayer(layer=3, output="late")),
    max_tokens=16,
    inputs=INPUTS,
    files={},
)


@pytest.fixture
def read(tmp_path, spec):
    """Reads the layout of a graph for a model of three layers."""
    spec = replace(spec, exit_layers=(3,))

    def make(*outputs, manifest=None, inputs=INPUTS, config=CONFIG, **changes):
        if config is not None:
            (tmp_path / "config.json").write_text(json.dumps(config))
        return read_layout(tmp_path, replace(spec, **changes), manifest=manifest, inputs=inputs, outputs=outputs)

    return make


def test_a_manifest_names_the_outputs(read):
    assert read("late", "early", "other", manifest=MANIFEST, exit_layers=(1, 3)) == GraphLayout(
        hidden={1: "early", 3: "late"}, layers=3, hidden_size=8, types=True, attention_heads=4, inner_size=32
    )


@pytest.mark.parametrize("name", ["last_hidden_state", "token_embeddings", "hidden_states", "hidden_3"])
def test_without_a_manifest_the_usual_names_are_the_native_depth(read, name):
    layout = read(name, "pooler_output", "sentence_embedding")
    assert (layout.hidden, layout.logits, layout.pooled) == ({3: name}, None, None)


def test_outputs_named_by_their_layer_are_its_exits(read):
    assert read("hidden_3", "hidden_1", exit_layers=(1, 3)).hidden == {1: "hidden_1", 3: "hidden_3"}


def test_a_classifier_may_bring_its_logits_or_its_head(read):
    classifier = {"capabilities": (Capability.TOKEN_CLASSIFICATION,)}
    assert read("logits", **classifier).logits == "logits"
    headed = replace(MANIFEST, head=HeadLayout(kind="token", labels=2))
    assert read("early", "late", "logits", manifest=headed, exit_layers=(1, 3), **classifier).logits is None
    for manifest, outputs in ((None, ("last_hidden_state",)), (MANIFEST, ("early", "late"))):
        with pytest.raises(CheckpointError, match=r"takes the output 'logits' or a head in vsr_manifest\.json"):
            read(*outputs, manifest=manifest, **classifier)


def test_logits_of_the_graph_are_those_of_the_native_depth_alone(read):
    with pytest.raises(CheckpointError, match="cannot answer from layer 1; it has 3"):
        read("logits", "hidden_1", exit_layers=(1, 3), capabilities=(Capability.SEQUENCE_CLASSIFICATION,))


def test_a_graph_that_gives_only_a_sentence_embedding_is_taken_where_nothing_follows_it(read):
    assert read("sentence_embedding").pooled == "sentence_embedding"
    dense = (DenseSpec(path="2_Dense", in_features=8, out_features=4),)
    for change in ({"dense": dense}, {"pooling": PoolingSpec(modes=("mean",), include_prompt=False)}):
        with pytest.raises(CheckpointError, match="does not say which of the model's own stages"):
            read("sentence_embedding", **change)


def test_outputs_that_cannot_be_named_are_listed(read):
    with pytest.raises(CheckpointError, match=r"gives '1234', 'pooler_output': no output is called"):
        read("1234", "pooler_output")
    with pytest.raises(CheckpointError, match="none of them is the native depth, 3"):
        read("hidden_1")
    with pytest.raises(CheckpointError, match="the graph has no output 'early', it has 'late'"):
        read("late", manifest=MANIFEST)
    with pytest.raises(CheckpointError, match="cannot answer from layer 2; it has 1, 3"):
        read("hidden_1", "hidden_3", exit_layers=(2, 3))


def test_inputs_that_cannot_be_fed_are_refused(read):
    with pytest.raises(CheckpointError, match="the graph reads 'input_ids', 'position_ids'"):
        read("hidden_3", inputs=("input_ids", "position_ids"))
    with pytest.raises(CheckpointError, match=r"reads 'input_ids', and vsr_manifest\.json says 'input_ids', 'att"):
        read("early", "late", manifest=MANIFEST, inputs=("input_ids",))
    with pytest.raises(CheckpointError, match="the graph reads 'inputs_embeds'"):
        read("hidden_3", inputs=("inputs_embeds",))


def test_pairs_need_the_types_of_a_model_that_has_them(read):
    inputs, reranker = INPUTS[:2], {"capabilities": (Capability.RERANKING,)}
    with pytest.raises(CheckpointError, match="does not read 'token_type_ids'"):
        read("logits", inputs=inputs, **reranker)
    assert not read("logits", inputs=inputs, config={"type_vocab_size": 1}, **reranker).types
    assert not read("hidden_3", inputs=inputs).types


def test_what_depends_on_its_neighbours_is_run_alone(read):
    assert not read("hidden_3").alone
    assert read("hidden_3", artifact=Artifact.QUANTIZED).alone
    assert read("late", "early", manifest=replace(MANIFEST, quantization="int8-dynamic")).alone
    assert read("hidden_3", inputs=("input_ids",)).alone


def test_a_graph_without_config_says_what_is_missing(read):
    with pytest.raises(CheckpointError, match=r"config\.json: a graph needs its 'hidden_size'.*and there is none"):
        read("hidden_3", config=None, layers=None)
    assert read("late", "early", manifest=MANIFEST, config=None, layers=None, hidden_size=None).layers == 3
