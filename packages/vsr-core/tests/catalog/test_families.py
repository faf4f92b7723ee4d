from __future__ import annotations

import pytest
from vsr_core.catalog import CORE_FAMILIES, recognise
from vsr_core.catalog.families import belongs
from vsr_core.contract import FamilyDescriptor
from vsr_core.taxonomy import Capability, Family
from vsr_core.wire import from_json, to_json


@pytest.mark.parametrize(
    ("config", "family"),
    [
        ({"model_type": "bert", "hidden_size": 768}, "bert"),
        ({"model_type": "bert", "hidden_size": 384}, "minilm"),
        ({"model_type": "roberta"}, "roberta"),
        ({"model_type": "xlm-roberta"}, "xlm_roberta"),
        ({"model_type": "modernbert", "vocab_size": 50368}, "modernbert"),
        ({"model_type": "modernbert", "vocab_size": 256000}, "mmbert"),
        ({"model_type": "deberta-v2"}, "deberta"),
        ({"model_type": "qwen3"}, "qwen3"),
        ({"model_type": "gemma3_text"}, "gemma"),
        ({"model_type": "siglip"}, "siglip"),
        ({"model_type": "llama"}, "llama"),
        ({"architectures": ["BertForTokenClassification"], "hidden_size": 384}, "minilm"),
    ],
)
def test_a_config_is_recognised(config, family, families):
    found = recognise(config, families)

    assert found is not None
    assert found.name == family


@pytest.mark.parametrize(
    "config", [{}, {"model_type": "t5"}, {"architectures": ["T5Model"]}, {"architectures": "Bert"}]
)
def test_what_no_family_claims_is_not_guessed(config, families):
    assert recognise(config, families) is None


def test_qwen3_guard_is_never_recognised_since_its_files_are_those_of_any_qwen3(families):
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}

    found = recognise(config, families)

    assert found is not None
    assert found.name == "qwen3"
    assert belongs(config, families["qwen3_guard"])


def test_a_plugins_family_is_recognised_by_its_model_type(families):
    families["nomic"] = FamilyDescriptor(name="nomic", contract="1.0", model_types=("nomic_bert",))

    assert recognise({"model_type": "nomic_bert", "architectures": ["BertModel"]}, families) is families["nomic"]


def test_a_plugins_family_is_recognised_by_its_architecture_where_nobody_claims_the_model_type(families):
    families["nomic"] = FamilyDescriptor(
        name="nomic", contract="1.0", architectures={"NomicBertModel": Capability.EMBEDDING}
    )

    assert recognise({"model_type": "new", "architectures": ["NomicBertModel"]}, families) is families["nomic"]


def test_two_families_that_fit_alike_are_not_guessed_between(families):
    for name in ("left", "right"):
        families[name] = FamilyDescriptor(name=name, contract="1.0", model_types=("shared",))

    assert recognise({"model_type": "shared"}, families) is None


def test_mmbert_is_contradicted_by_another_vocabulary(families):
    assert not belongs({"model_type": "modernbert", "vocab_size": 50368}, families["mmbert"])
    assert belongs({"model_type": "bert", "hidden_size": 384}, families["bert"])


def test_core_families_carry_locked_names_and_travel_as_json():
    assert {family.name for family in CORE_FAMILIES} == set(Family.values()) - {"mlp"}
    for family in CORE_FAMILIES:
        assert from_json(FamilyDescriptor, to_json(family)) == family
