"""One checkpoint, three engines: the same answers, alone and in company, at every exit and dimension.

Here a cover of all pairs of engine, family, head, exit and dimension; ``hatch run parity`` runs every combination.
"""

from contextlib import closing
from itertools import chain

import numpy as np
import pytest

from tests.oracle import TEXTS
from tests.parity import CLOSE, FAMILIES, Case, Workshop, cover, pairs_of, product

pytestmark = pytest.mark.timeout(180)  # a test may be the first to need an export

HEADS = ("mean", "cls", "mean+max", "sequence", "pairs", "token")
SMALL = product(layers=2, engines=("onnx", "openvino"), heads=HEADS)
COVER = cover(SMALL)
OTHERS = [
    *(Case(engine, "bert", "reranker") for engine in ("onnx", "openvino")),
    *(Case("openvino-ir", "modernbert", head, 1) for head in ("mean", "cls", "mean+max")),
]
"""What would take an export for each family: here of one alone."""

EIGHT_BITS = {
    "sequence_classification": ("sequence", 1.0),
    "pair_classification": ("pairs", 1.0),
    "token_classification": ("token", None),
    "reranking": ("reranker", 0.3),
}
"""Heads on a quantised graph by capability, and how far their numbers may be from those of float32."""


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    with closing(Workshop(tmp_path_factory.mktemp("small"), layers=2)) as shop:
        yield shop


@pytest.fixture(scope="session")
def deeper(tmp_path_factory):
    with closing(Workshop(tmp_path_factory.mktemp("deeper"), layers=3)) as shop:
        yield shop


def by_model(cases):
    """Cases of one checkpoint after another, so that it is written and loaded once."""
    return sorted(cases, key=lambda case: (FAMILIES.index(case.family), case.head, case.engine, str(case)))


def test_the_cover_shows_every_pair_of_values_that_there_is():
    assert set(chain.from_iterable(map(pairs_of, COVER))) == set(chain.from_iterable(map(pairs_of, SMALL)))
    assert len(COVER) < len(SMALL) / 4


@pytest.mark.parametrize("case", by_model([*COVER, *OTHERS]), ids=str)
def test_engines_agree(workshop, case):
    assert workshop.check(case) <= CLOSE


@pytest.mark.parity
@pytest.mark.parametrize("case", by_model(product(layers=3)), ids=str)
def test_engines_agree_in_every_combination(deeper, case):
    assert deeper.check(case) <= CLOSE


@pytest.mark.parity
@pytest.mark.parametrize("capability", EIGHT_BITS)
def test_eight_bits_serve_heads_too(deeper, capability):
    """Near torch as far as 8 bits are, and the same alone as in company, at every exit."""
    head, bound = EIGHT_BITS[capability]
    for layer in (None,) if head == "reranker" else (None, 1):
        case = Case("int8", "bert", head, layer)
        together, alone = deeper.answers(case, [TEXTS]), deeper.answers(case, [[text] for text in TEXTS])
        for one, other, exact in zip(together, alone, deeper.expected(case)[0], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
            if head != "token":  # whose labels may differ where two are as likely
                assert np.abs(one - exact).max() < bound
