"""The most specific rule decides; what nobody declares is refused."""

from vsr_core.contract import CapabilityQuery, CapabilitySet, Limits, Refused, Selector, Supported
from vsr_core.taxonomy import Artifact, Capability, Feature

RULES = CapabilitySet.of(
    [
        (Selector(), Refused("other", "not here")),
        (Selector(capability=Capability.EMBEDDING, family="bert"), Supported(Limits(max_tokens=512))),
        (
            Selector(capability=Capability.EMBEDDING, family="bert", artifact=Artifact.QUANTIZED),
            Refused("quantized", "no int8"),
        ),
        (Selector(capability=Capability.EMBEDDING, feature=Feature.BATCHING), Supported()),
    ]
)


def ask(**axes):
    return RULES.decide(CapabilityQuery(**axes))


def test_a_specific_rule_beats_a_general_one():
    assert ask(capability=Capability.EMBEDDING, family="bert") == Supported(Limits(max_tokens=512))
    assert ask(capability=Capability.EMBEDDING, family="bert", artifact=Artifact.QUANTIZED) == Refused(
        "quantized", "no int8"
    )
    assert ask(capability=Capability.GUARD, family="bert") == Refused("other", "not here")


def test_an_empty_set_refuses_everything():
    verdict = CapabilitySet().decide(CapabilityQuery(capability=Capability.EMBEDDING))
    assert isinstance(verdict, Refused)
    assert verdict.code == "undeclared"


def test_a_capability_says_nothing_of_its_features():
    assert ask(capability=Capability.EMBEDDING, feature=Feature.BATCHING) == Supported()
    assert isinstance(ask(capability=Capability.EMBEDDING, family="bert", feature=Feature.TOOLS), Refused)


def test_among_equals_the_later_rule_wins():
    rules = CapabilitySet.of([(Selector(), Supported()), (Selector(), Refused("late", "later"))])
    assert rules.decide(CapabilityQuery(capability=Capability.GUARD)) == Refused("late", "later")


def test_the_overview_is_supported_where_some_cell_is():
    assert RULES.overview(Capability.EMBEDDING) == Supported(Limits(max_tokens=512))
    assert RULES.overview(Capability.GUARD) == Refused("other", "not here")
    assert RULES.families(Capability.EMBEDDING) == ("bert",)
