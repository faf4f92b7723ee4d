"""What a backend says of itself before any model is loaded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...contract import CapabilityQuery, CapabilitySet, Refused, RuntimeInfo
from ...plugins import UNASKED, verdict_on
from ...taxonomy import Capability, Feature
from ...wire import from_json, to_json
from .claims import demand
from .isolation import Look, look_at_backend
from .subject import BackendSubject
from .workbench import Workbench

__all__ = ["Declaring"]

_LOOKS = pytest.StashKey[dict[type, Look]]()


class Declaring(BackendSubject):
    """Tests of declaring and probing."""

    @pytest.fixture
    def look(self, request: pytest.FixtureRequest, bench: Workbench) -> Look:
        """The backend as a fresh process sees it, once for all tests of the class."""
        looks = request.session.stash.setdefault(_LOOKS, {})
        if type(self) not in looks:
            options = bench.instances.settings(self.backend).options
            descriptor = self.descriptor(bench.host)
            looks[type(self)] = look_at_backend(descriptor, options=options, frameworks=self.frameworks)
        return looks[type(self)]

    def test_declaring_imports_no_framework(self, look: Look, bench: Workbench) -> None:
        """Making the adapter and asking it is what every listing does."""
        package = self.descriptor(bench.host).factory.partition(":")[0].partition(".")[0]
        heavy = look.heavy(own=(package, "vsr_core", *self.light, *_rooms(look)))
        demand(not heavy, f"making the adapter imports {', '.join(heavy)}: import it in probe() and load()")

    def test_declaring_uses_no_network(self, look: Look) -> None:
        """Nor does making the adapter."""
        demand(not look.network, f"making the adapter uses the network: {', '.join(look.network)}")

    def test_the_same_is_declared_every_time(self, bench: Workbench) -> None:
        """A capability set is data: two adapters give equal ones, and JSON keeps it as it is."""
        first, again = (bench.fresh().adapter(self.backend) for _ in range(2))
        rules = first.capabilities()
        same = rules.rules == first.capabilities().rules == again.capabilities().rules
        demand(same, "capabilities() gives another answer each time")
        demand(from_json(CapabilitySet, to_json(rules)).rules == rules.rules, "the capabilities do not survive JSON")

    def test_something_is_claimed(self) -> None:
        """Of a family and a form of weights that are tested; else every other test is empty."""
        cells = self._cells(lambda _, cells: cells)
        tried = f"families={[*self.families]} and artifacts={[str(artifact) for artifact in self.artifacts]}"
        demand(cells, f"{self.backend!r} claims nothing that could be tested with {tried}")

    def test_every_refusal_has_a_code_and_a_reason(self, bench: Workbench) -> None:
        """Codes are for machines, so they are words of ``a-z0-9_``."""
        for query, refused in _refusals(bench.declared()):
            code = refused.code
            demand(code.isascii() and code.isidentifier() and code == code.lower(), f"{query}: the code is {code!r}")
            demand(refused.reason.strip(), f"{query}: refused without a reason")

    def test_the_matrix_says_what_the_adapter_declares(self, bench: Workbench) -> None:
        """For every capability, through the host and a runtime, without loading anything."""
        rules = bench.instances.adapter(self.backend).capabilities()
        with bench.runtime({}) as runtime:
            matrix = runtime.matrix(probe=False)
        for capability in Capability:
            cell = matrix.cell(self.backend, capability)
            expected = UNASKED.get(capability) or rules.overview(capability.derived_from or capability)
            if cell is None or isinstance(cell.verdict, Refused) is not isinstance(expected, Refused):
                raise AssertionError(f"{capability}: declared {expected}, listed as {cell}")
            if capability.derived_from is None:
                demand(cell.verdict == expected, f"{capability}: declared {expected}, listed as {cell.verdict}")

    def test_the_probe_is_an_answer(self, bench: Workbench) -> None:
        """It raises nothing; what is usable names its devices, what is not says why."""
        found = bench.fresh().adapter(self.backend).probe()
        demand(isinstance(found, RuntimeInfo), f"probe() gives a {type(found).__name__}, not a RuntimeInfo")
        demand(from_json(RuntimeInfo, to_json(found)) == found, "what the probe found does not survive JSON")
        demand(found.devices if found.usable else found.reason, "usable without a device, or unusable without a reason")

    def test_without_its_framework_the_probe_says_so(self, look: Look) -> None:
        """Probed as if ``frameworks`` were not installed."""
        if look.probe is None:
            pytest.skip("the author names no frameworks")
        demand("raised" not in look.probe, f"without its framework the probe raises {look.probe.get('raised')}")
        demand(not look.probe["usable"], "without its framework the probe finds the backend usable")
        demand(look.probe["reason"], "without its framework the probe gives no reason")


def _rooms(look: Look) -> Iterator[str]:
    """The rooms of the core that a look saw; an adapter may import any of them."""
    return (".".join(name.split(".")[:2]) for name in look.imported if name.startswith("vsr_core"))


def _refusals(rules: CapabilitySet) -> Iterator[tuple[CapabilityQuery, Refused]]:
    families = {rule.selector.family for rule in rules.rules}
    artifacts = {rule.selector.artifact for rule in rules.rules}
    for capability in Capability:
        for family in families | {None}:
            for artifact in artifacts | {None}:
                for feature in (None, *Feature):
                    query = CapabilityQuery(capability=capability, family=family, artifact=artifact, feature=feature)
                    verdict = verdict_on(rules, query)
                    if isinstance(verdict, Refused):
                        yield query, verdict
