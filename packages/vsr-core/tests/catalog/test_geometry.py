from __future__ import annotations

from dataclasses import replace

import pytest
from vsr_core.catalog import inspect_checkpoint, specify
from vsr_core.contract import CatalogEntry, FamilyDescriptor


def contributed(name, model_type):
    return {name: FamilyDescriptor(name=name, contract="1.0", model_types=(model_type,))}


def test_distilberts_names_of_its_sizes_are_known(weights, write):
    config = {"model_type": "distilbert", "architectures": ["DistilBertModel"], "dim": 8, "n_layers": 3, "n_heads": 2}
    files = {"config.json": config, "model.safetensors": weights}

    facts = inspect_checkpoint(write(files), contributed("distilbert", "distilbert"))

    assert (facts.hidden_size, facts.layers, facts.native_dimensions) == (8, 3, 8)


@pytest.mark.parametrize(("after_padding", "limit"), [(True, 512), (False, 514)])
def test_positions_before_the_first_are_no_tokens(after_padding, limit, bert, weights, write):
    config = bert | {"model_type": "mine", "max_position_embeddings": 514, "pad_token_id": 1}
    files = {"config.json": config, "model.safetensors": weights}
    family = replace(contributed("mine", "mine")["mine"], positions_after_padding=after_padding)

    assert inspect_checkpoint(write(files), {"mine": family}).max_tokens == limit


def test_several_stated_poolings_make_a_wider_vector(bert, weights, write, families):
    folder = write({"config.json": bert, "model.safetensors": weights, "tokenizer.json": {}})

    spec = specify(CatalogEntry(name="m", pooling=("mean", "cls", "max")), folder, families=families)

    assert (spec.hidden_size, spec.native_dimensions, spec.dimensions) == (8, 24, (24,))
