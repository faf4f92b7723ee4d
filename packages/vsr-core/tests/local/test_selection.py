from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from vsr_core.local import choose

LENGTHS = st.lists(st.integers(1, 600), min_size=1, max_size=60)


def chosen(lengths, **options):
    return [lengths[place] for place in choose(lengths, **({"max_batch_tokens": 1024} | options))]


def test_equal_lengths_fill_the_batch():
    assert len(chosen([32] * 100)) == 32


def test_the_oldest_comes_first_even_where_others_would_fit_better():
    assert 0 in choose([500, 10, 10, 10, 10], max_batch_tokens=1024)


def test_the_oldest_shares_with_its_neighbours_in_length():
    assert chosen([50, 500, 49, 52]) == [49, 50, 52]


def test_a_sequence_over_the_cap_runs_alone():
    assert chosen([5000, 5000, 4999]) == [5000]


def test_padding_counts_the_longest_for_everyone():
    assert chosen([100, 110, 120], max_batch_tokens=220) == [100, 110]


def test_a_short_text_does_not_join_a_much_longer_one():
    assert chosen([100, 10]) == [100]
    assert chosen([10, 100]) == [10]


def test_a_further_bound_stops_growth():
    assert len(chosen([10] * 20, fits=lambda shape: shape.sequences <= 3)) == 3


def test_equal_lengths_go_by_age():
    assert sorted(choose([10] * 9, max_batch_tokens=40)) == [0, 1, 2, 3]


@given(lengths=LENGTHS, cap=st.integers(1, 4096))
def test_every_batch_keeps_its_bounds(lengths, cap):
    places = choose(lengths, max_batch_tokens=cap)
    picked = [lengths[place] for place in places]
    assert 0 in places
    assert len(set(places)) == len(places)
    assert picked == sorted(picked)
    if len(picked) > 1:
        assert len(picked) * picked[-1] <= cap
        assert len(picked) * picked[-1] ** 2 <= 1.5 * sum(length**2 for length in picked)


@given(lengths=LENGTHS)
def test_repeated_choice_serves_everyone(lengths):
    waiting = list(lengths)
    rounds = 0
    while waiting:
        taken = set(choose(waiting, max_batch_tokens=512))
        waiting = [length for place, length in enumerate(waiting) if place not in taken]
        rounds += 1
    assert rounds <= len(lengths)
