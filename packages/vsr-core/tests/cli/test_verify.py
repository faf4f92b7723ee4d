import sys

import pytest
from vsr_core.plugins import read_receipt

PLUGIN = """
from vsr_core.contract import BackendDescriptor, CapabilitySet, Refused, Selector, Supported, hookimpl
from vsr_core.taxonomy import Capability, Feature
from vsr_core.testing.toy import ToyBackend

@hookimpl
def vsr_backends():
    return [BackendDescriptor(name="toy", contract="1.0", factory=f"{__name__}:CLASS")]

class Honest(ToyBackend):
    def capabilities(self):
        refused = Refused("other", "vectors alone")
        return CapabilitySet.of([
            (Selector(), refused),
            *((Selector(feature=feature), refused) for feature in Feature),
            (Selector(capability=Capability.EMBEDDING), Supported()),
            (Selector(capability=Capability.EMBEDDING, feature=Feature.BATCHING), Supported()),
        ])

class Shuffling(Honest):
    def load(self, request):
        handle = super().load(request)
        whole = handle._embed

        def shuffled(request, call):
            response = whole(request, call)
            response.vectors[:] = response.vectors[::-1].copy()
            return response

        handle._embed = shuffled
        return handle
"""


@pytest.fixture
def honest(plant):
    """A backend ``toy`` that embeds, and does as it says."""
    plant("toy", PLUGIN.replace("CLASS", "Honest"))


def states_of(receipt):
    return {(cell.capability.value, cell.claim, cell.feature and cell.feature.value): cell for cell in receipt.cells}


def test_every_claim_is_tried_and_every_refusal_provoked(vsr, honest, tmp_path):
    ran = vsr("verify", "--receipt", tmp_path / "r.json")
    assert ran.code == 0, ran.out
    receipt = read_receipt(tmp_path / "r.json")
    cells = states_of(receipt)
    embedding = cells["embedding", "supported", None]
    assert (embedding.state, embedding.family, embedding.measured) == ("verified", "modernbert", 0.0)
    assert {"in the order of the texts", "alone as in company"} <= set(embedding.checks)
    assert (embedding.device.requested, embedding.device.actual) == ("auto", "cpu")
    assert len(receipt.checkpoints[embedding.checkpoint]) == 64
    assert cells["similarity", "supported", None].state == "verified"
    assert cells["embedding", "supported", "batching"].state == "verified"
    assert cells["guard", "refused", None].reason == "vectors alone"
    assert cells["embedding", "refused", "streaming"].state == "verified"
    assert set(receipt.backends) == {"toy"}
    assert receipt.backends["toy"].versions == {"dist-toy": "1.0"}
    assert {"python", "vsr-core"} <= set(receipt.versions)


def test_the_matrix_shows_what_a_receipt_vouches_for(vsr, honest, tmp_path):
    vsr("verify", "--receipt", "r.json")
    body = vsr("matrix", "--receipt", "r.json", "--json").body
    states = {cell["capability"]: cell["state"] for cell in body["cells"]}
    assert (states["embedding"], states["similarity"], states["guard"]) == ("verified", "verified", "refused")
    assert (states["sequence_classification"], states["modality_routing"]) == ("refused", "refused")
    assert body["differing"] == {}
    assert "verified with modernbert/full" in vsr("matrix", "--receipt", "r.json", "--why").out
    text = (tmp_path / "r.json").read_text().replace('"dist-toy": "1.0"', '"dist-toy": "0.9"')
    (tmp_path / "r.json").write_text(text)
    assert "does not count for toy: dist-toy was 0.9 and is 1.0" in vsr("matrix", "--receipt", "r.json").out


def test_what_does_not_hold_is_named_and_exits_with_one(vsr, plant):
    plant("toy", PLUGIN.replace("CLASS", "Shuffling"))
    ran = vsr("verify", "--json")
    assert ran.code == 1
    assert not ran.body["ok"]
    failed = [cell for cell in ran.body["receipt"]["cells"] if cell["state"] == "failed"]
    assert {cell["capability"] for cell in failed} == {"embedding"}
    assert any("the answer in the place of 'the cat' is the one to" in cell["reason"] for cell in failed)
    assert "failed (embedding modernbert full)" in vsr("verify").out


def test_a_claimed_feature_that_does_nothing_fails_and_keeps_the_capability_from_being_verified(vsr, toy, tmp_path):
    ran = vsr("verify", "--receipt", "r.json")
    assert ran.code == 1
    assert "layer=1 answers as the full depth does" in ran.out
    assert "modality_routing" in ran.out
    receipt = read_receipt(tmp_path / "r.json")
    routing = states_of(receipt)["modality_routing", "refused", None]
    assert (routing.state, ("modality_routing", "supported", None) in states_of(receipt)) == ("verified", False)
    assert "no call of this version asks for it" in routing.reason
    body = vsr("matrix", "--receipt", "r.json", "--json").body
    states = {cell["capability"]: cell["state"] for cell in body["cells"]}
    assert (states["embedding"], states["sequence_classification"]) == ("verified", "declared")


def test_one_model_is_verified_alone(vsr, mini):
    body = vsr("verify", "mini", "--json").body
    (cell,) = body["receipt"]["cells"]
    assert (cell["capability"], cell["state"], cell["checkpoint"]) == ("embedding", "verified", "toy:mini")
    assert list(body["receipt"]["checkpoints"]) == ["toy:mini"]


def test_a_model_that_is_not_there_is_an_error(vsr, mini):
    assert vsr("verify", "nosuch", "--json").error["code"] == "model_not_found"


@pytest.mark.parametrize("place", ["nowhere/r.json", ".", f"{'long' * 64}.json", "r.json/r.json"])
def test_a_receipt_that_cannot_be_written_is_refused_before_anything_runs(vsr, toy, tmp_path, place):
    (tmp_path / "r.json").touch()
    ran = vsr("verify", "--receipt", place)
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be written" in ran.err


def test_a_receipt_that_is_there_is_kept_until_there_is_another(vsr, mini, tmp_path):
    (tmp_path / "r.json").write_text("an old one")
    assert vsr("verify", "nosuch", "--receipt", "r.json").code == 1
    assert (tmp_path / "r.json").read_text() == "an old one"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
    assert vsr("verify", "mini", "--receipt", "r.json").code == 0
    assert read_receipt(tmp_path / "r.json").count("verified") == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_without_the_extra_it_says_how_to_install_it(vsr, toy, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("vsr_core.testing.verif", "vsr_core.testing.conf"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psutil", None)
    ran = vsr("verify", "--json")
    assert ran.code == 1
    assert 'pip install "vsr-core[testing]"' in ran.error["message"]
