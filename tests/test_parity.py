"""One checkpoint, three engines: the same answers, alone and in company, at every exit and dimension.

Here a cover of all pairs of engine, family, head, exit and dimension; ``hatch run parity`` runs every combination.
"""

from itertools import chain

import pytest

from tests.parity import CLOSE, FAMILIES, Case, Workshop, cover, pairs_of, product

pytestmark = pytest.mark.timeout(180)  # a test may be the first to need an export

SMALL = product(engines=("onnx", "openvino"), heads=("mean", "cls", "mean+max", "sequence", "pairs", "token"))
COVER = cover(SMALL)
OTHERS = [
    *(Case(engine, "bert", "reranker") for engine in ("onnx", "openvino")),
    *(Case("openvino-ir", "modernbert", head, 1) for head in ("mean", "cls", "mean+max")),
]
"""What would take an export for each family: here of one alone."""


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    shop = Workshop(tmp_path_factory.mktemp("parity"))
    yield shop
    shop.close()


def by_model(cases):
    """Cases of one checkpoint after another, so that it is written and loaded once."""
    return sorted(cases, key=lambda case: (list(FAMILIES).index(case.family), case.head, case.engine, str(case)))


def test_the_cover_shows_every_pair_of_values_that_there_is():
    assert set(chain.from_iterable(map(pairs_of, COVER))) == set(chain.from_iterable(map(pairs_of, SMALL)))
    assert len(COVER) < len(SMALL) / 4


@pytest.mark.parametrize("case", by_model([*COVER, *OTHERS]), ids=str)
def test_engines_agree(workshop, case):
    assert workshop.check(case) <= CLOSE


@pytest.mark.parity
@pytest.mark.parametrize("case", by_model(product()), ids=str)
def test_engines_agree_in_every_combination(workshop, case):
    assert workshop.check(case) <= CLOSE
