"""A name becomes candidates, or the plain call says at once why it does not."""

import pytest
from vsr_core.contract import (
    BackendDescriptor,
    BackendId,
    CapabilitySet,
    CatalogEntry,
    ModelSpec,
    Refused,
    RoleTable,
    Selector,
    Supported,
)
from vsr_core.errors import (
    CapabilityUnmetError,
    InvalidInputError,
    ModelNotFoundError,
    PluginError,
)
from vsr_core.routing import Planner, Requirements, Resolver
from vsr_core.taxonomy import Artifact, Capability, Feature, Kind

EMBED = Requirements.of(Kind.EMBEDDING, Capability.EMBEDDING)
RERANK = Requirements.of(Kind.RERANKING, Capability.RERANKING)


class Installed:
    """Three backends: one embeds, one refuses everything, one is open; and one that is broken."""

    rules = {
        "able": CapabilitySet.of(
            [
                (Selector(capability=Capability.EMBEDDING, family="bert"), Supported()),
                (Selector(capability=Capability.EMBEDDING, feature=Feature.DIMENSIONS), Supported()),
            ]
        ),
        "open": CapabilitySet.of([(Selector(capability=Capability.EMBEDDING), Supported())]),
        "unable": CapabilitySet.of([(Selector(), Refused("not_yet", "no engine yet"))]),
    }

    def names(self):
        return tuple(sorted(self.rules))

    def descriptor(self, name):
        if name == "broken":
            raise PluginError("the plugin 'broken' failed", plugin="broken", stage="import")
        if name not in self.rules:
            raise ModelNotFoundError(f"no backend is called {name!r}", name=name)
        return BackendDescriptor(name=name, contract="1.0", factory="x:y", open_namespace=name == "open")

    def declared(self, name):
        return self.rules[name]


class Files:
    learned = 0

    def __init__(self, specs):
        self._specs = specs

    def spec(self, backend_id):
        return self._specs.get(backend_id.model)


def spec(*capabilities, family="bert"):
    return ModelSpec(capabilities=capabilities, family=family, artifact=Artifact.FULL)


def planner(*, roles=None, catalog=("mini",), specs=None, backends=()):
    entries = {name: CatalogEntry(name=name, source="x", backends=backends) for name in catalog}
    made = []
    resolver = Resolver(RoleTable(roles or {}), entries, backends_for=lambda entry: made[0].serving(entry))
    files = Files({"mini": spec(Capability.EMBEDDING)} if specs is None else specs)
    made.append(Planner(resolver, entries, backends=Installed(), specs=files))
    return made[0]


def ids(plan):
    return [str(candidate.backend_id) for candidate in plan.candidates]


def test_a_backend_id_is_its_own_candidate():
    assert ids(planner().plan(EMBED, "able:mini")) == ["able:mini"]


def test_a_role_gives_its_group_and_drops_who_cannot_with_the_reason():
    plan = planner(roles={Kind.EMBEDDING: {"fast": ["unable:mini", "able:mini"]}}).plan(EMBED, "fast")
    assert ids(plan) == ["able:mini"]
    assert [(str(drop.backend_id), drop.reason) for drop in plan.drops] == [
        ("unable:mini", "unable:mini does not offer embedding: no engine yet")
    ]


def test_a_bare_catalog_name_goes_to_every_backend_that_can_serve_it():
    assert ids(planner().plan(EMBED, "mini")) == ["able:mini", "open:mini"]


def test_a_bare_catalog_name_follows_the_backends_of_its_entry():
    assert ids(planner(backends=("open", "able")).plan(EMBED, "mini")) == ["open:mini", "able:mini"]


def test_an_entry_that_names_its_backends_is_refused_on_others():
    with pytest.raises(CapabilityUnmetError) as caught:
        planner(backends=("open",)).plan(EMBED, "able:mini")
    assert caught.value.unmet == "backend"


def test_an_open_backend_takes_models_the_catalog_does_not_name():
    assert ids(planner().plan(EMBED, "open:anything:at-all")) == ["open:anything:at-all"]


def test_default_is_the_one_model_that_can_where_nobody_defined_it():
    assert ids(planner().plan(EMBED, "default")) == ["able:mini", "open:mini"]


def test_default_is_ambiguous_with_two_models():
    specs = {"mini": spec(Capability.EMBEDDING), "other": spec(Capability.EMBEDDING)}
    with pytest.raises(ModelNotFoundError, match=r"2 models could serve it; set roles\.embedding\.default"):
        planner(catalog=("mini", "other"), specs=specs).plan(EMBED, "default")


@pytest.mark.parametrize("name", ["nobody", "able:nobody", "nowhere:mini"])
def test_an_unknown_name_is_not_found_and_no_other_name_is_given_away(name):
    with pytest.raises(ModelNotFoundError) as caught:
        planner(catalog=("mini", "secret")).plan(EMBED, name)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("name", ["", None, 3, ["able:mini"], "able:", ":mini"])
def test_a_malformed_name_is_refused(name):
    with pytest.raises(InvalidInputError):
        planner().plan(EMBED, name)


def test_where_no_backend_can_serve_a_model_each_one_says_why():
    one = planner(specs={"mini": spec(Capability.GUARD)})
    for name in ("mini", "default"):
        with pytest.raises(CapabilityUnmetError) as caught:
            one.plan(EMBED, name)
        assert "able:mini: the model is for guard" in caught.value.message
        assert "unable:mini: the model is for guard" in caught.value.message


def test_a_broken_plugin_is_named_where_its_backend_is_asked_for():
    with pytest.raises(PluginError):
        planner().plan(EMBED, "broken:mini")


def test_a_missing_capability_names_what_is_unmet_and_why():
    with pytest.raises(CapabilityUnmetError) as caught:
        planner().plan(Requirements.of(Kind.GUARD, Capability.GUARD), "able:mini")
    assert (caught.value.unmet, caught.value.backend_id) == ("guard", "able:mini")


def test_the_first_candidates_error_is_the_one_raised():
    with pytest.raises(CapabilityUnmetError, match="no engine yet"):
        planner(roles={Kind.EMBEDDING: {"x": ["unable:mini", "able:nobody"]}}).plan(EMBED, "x")


def test_a_family_the_backend_does_not_name_is_refused():
    with pytest.raises(CapabilityUnmetError):
        planner(specs={"mini": spec(Capability.EMBEDDING, family="mamba")}).plan(EMBED, "able:mini")


def test_features_must_be_declared():
    needs = Requirements.of(Kind.EMBEDDING, Capability.EMBEDDING, derived=[Feature.DIMENSIONS])
    assert ids(planner().plan(needs, "mini")) == ["able:mini"]
    with pytest.raises(CapabilityUnmetError) as caught:
        planner().plan(needs, "open:mini")
    assert caught.value.unmet == "matryoshka_dimensions"


def test_a_caller_can_only_ask_for_features_that_exist():
    with pytest.raises(InvalidInputError, match="did you mean 'layer_exit'"):
        Requirements.of(Kind.EMBEDDING, Capability.EMBEDDING, requires=["layer_exits"])
    for wrong in ("batching", 5):
        with pytest.raises(InvalidInputError, match="list of feature names"):
            Requirements.of(Kind.EMBEDDING, Capability.EMBEDDING, requires=wrong)


def test_reranking_is_derived_from_embedding_where_there_is_no_reranker():
    (candidate,) = planner().plan(RERANK, "able:mini").candidates
    assert (candidate.asks, candidate.derives) == (Capability.EMBEDDING, Capability.BIENCODER_RERANKING)


def test_what_no_call_asks_for_is_refused_even_where_its_source_is_served():
    rules = CapabilitySet.of([(Selector(capability=Capability.SEQUENCE_CLASSIFICATION), Supported())])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Installed.rules, "able", rules)
        found = planner(specs={"mini": spec(Capability.SEQUENCE_CLASSIFICATION)})
        classes = Requirements.of(Kind.CLASSIFICATION, Capability.SEQUENCE_CLASSIFICATION)
        assert ids(found.plan(classes, "able:mini")) == ["able:mini"]
        with pytest.raises(CapabilityUnmetError, match="no call of this version asks for it"):
            found.plan(Requirements.of(Kind.CLASSIFICATION, Capability.MODALITY_ROUTING), "able:mini")


def test_reranking_borrows_the_roles_of_embedding_until_it_has_its_own():
    roles = {Kind.EMBEDDING: {"fast": ["able:mini"]}}
    assert ids(planner(roles=roles).plan(RERANK, "fast")) == ["able:mini"]
    roles[Kind.RERANKING] = {"best": ["able:mini"]}
    with pytest.raises(ModelNotFoundError):
        planner(roles=roles).plan(RERANK, "fast")


def test_a_plan_is_made_once():
    one = planner()
    assert one.plan(EMBED, "mini") is one.plan(EMBED, "mini")


def test_a_plan_is_made_anew_once_more_is_known_of_a_model():
    one = planner(specs={})
    before = one.plan(EMBED, "able:mini")
    one._specs._specs["mini"] = spec(Capability.GUARD)
    assert one.plan(EMBED, "able:mini") is before
    one._specs.learned += 1
    with pytest.raises(CapabilityUnmetError):
        one.plan(EMBED, "able:mini")


def test_plans_for_names_without_end_are_not_kept_without_end():
    one = planner()
    for number in range(3000):
        one.plan(EMBED, f"open:model-{number}")
    assert len(one._plans) <= 1024


def test_a_model_nobody_has_looked_at_goes_to_whoever_might_serve_it():
    assert ids(planner(specs={}).plan(EMBED, "mini")) == ["able:mini", "open:mini"]


def test_an_unknown_checkpoint_is_taken_on_trust_until_it_is_loaded():
    assert ids(planner(specs={}).plan(EMBED, "able:mini")) == ["able:mini"]
    assert BackendId("able", "mini") == planner(specs={}).plan(EMBED, "able:mini").first.backend_id
