"""The comparisons with references are able to fail: every fault put into the product makes the check named with it fail.

A mutant changes one function of the product for the length of one check, and the check loads its models anew.
"""

import builtins
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from vsr_candle_torch import bert, borrowed, engine, heads, linear, modernbert, network
from vsr_candle_torch.attention import EqualRun
from vsr_core.catalog import schemes
from vsr_core.local import (
    classification,
    embedding,
    pairs,
    pooling,
    ragged,
    reducing,
    reranking,
    scoring,
    spans,
    tagging,
    tasks,
    tokenize,
    windows,
)
from vsr_core.local.tickets import Entry
from vsr_core.runtime import derived

from tests import checks
from tests.checks import CHECKS, Workshop


@dataclass(frozen=True)
class Mutant:
    """A fault: which function becomes what, and the check that notices."""

    name: str
    owner: Any
    attribute: str
    make: Callable[[Any], Any]
    caught_by: Callable[[Workshop], None]

    def __str__(self):
        return self.name


def of_the_answer(change):
    """Makes a function answer something else."""
    return lambda original: lambda *args, **options: change(original(*args, **options), *args, **options)


def of_the_arguments(change):
    """Makes a function be asked something else."""
    return lambda original: lambda *args, **options: original(*change(*args), **options)


def instead(function):
    return lambda _: function


def mean_over_one_more(pooled, states, packed, mode):
    if mode != "mean":
        return pooled
    lengths = packed.offsets.diff()[:, None]
    return pooled * lengths / (lengths + 1)


def second_token(pooled, states, packed, mode=None):
    after = (packed.offsets[:-1] + 1).clamp(max=packed.tokens - 1)
    return states[after] if mode in (None, "cls") else pooled


def changed_places(pooled, states, packed, mode):
    order = [run.first + place for run in packed.runs for place in reversed(range(run.count))]
    return pooled[order]


def without_final_norm(original):
    def forward(encoder, packed, *, exits):
        if max(exits) == encoder.layers or not hasattr(encoder, "_final_norm"):
            return original(encoder, packed, exits=exits)
        norm, encoder._final_norm = encoder._final_norm, SimpleNamespace(apply=lambda x: x)
        try:
            return original(encoder, packed, exits=exits)
        finally:
            encoder._final_norm = norm

    return forward


def merged_runs(runs):
    return tuple(EqualRun(run.first, run.row, 1, run.count * run.length) for run in runs)


def wider_window(original):
    def attend(qkv, runs, *, heads, window=None):
        return original(qkv, runs, heads=heads, window=None if window is None else window + 1)

    return attend


def keys_not_turned(original):
    def rotate(qkv, turns, *, heads):
        hidden = qkv.shape[1] // 3
        keys = qkv[:, hidden : 2 * hidden].clone()
        original(qkv, turns, heads=heads)
        qkv[:, hidden : 2 * hidden] = keys

    return rotate


def swapped_reaches(reaches, fields):
    other = {"full_attention": "sliding_attention", "sliding_attention": "full_attention"}
    return tuple(other[reach] for reach in reaches)


def one_base_for_all(rotary, fields):
    return dict.fromkeys(rotary, rotary["full_attention"])


def one_layer_less(layer, spec, asked):
    return layer if layer is None else layer - 1


def doubled_queries(qkv, *rest):
    wide = qkv.clone()
    wide[:, : qkv.shape[1] // 3] *= 2
    return (wide, *rest)


def passed_without_labels(original):
    def passed(self, label, score):
        return None if self._threshold is None else score >= self._threshold

    return passed


def passed_below(original):
    return lambda self, label, score: None if (found := original(self, label, score)) is None else not found


def reversed_labels(original):
    return lambda labels, **options: original(labels and labels[::-1], **options)


def sigmoid_for_softmax(original):
    def activate(logits, activation, *, temperature=1.0):
        return original(logits, "sigmoid" if activation == "softmax" else "softmax", temperature=temperature)

    return activate


def temperature_upside_down(original):
    def activate(logits, activation, *, temperature=1.0):
        return original(logits, activation, temperature=1 / temperature)

    return activate


def last_of_equals(original):
    def result(self, logits):
        found = original(self, logits)
        best = max(found.distribution.values())
        return replace(found, label=[label for label, score in found.distribution.items() if score == best][-1])

    return result


def in_bytes(places, encoding, text, read, *, shift):
    return [tuple(len(text[:place].encode()) for place in each) for each in places]


def shifted_by_one(places, *_, **__):
    return [(start + 1, end + 1) for start, end in places]


def another_aggregation(aggregation):
    def make(original):
        return lambda group, places, rows, mode: original(
            group, places, rows, aggregation if mode == "average" else mode
        )

    return make


def all_of_type_zero(arrays, *_):
    return arrays[0], np.zeros_like(arrays[1])


def second_only(counts, room):
    first = min(counts[0], room)
    return first, room - first


def later_window(values, starts):
    merged = values[0]
    for value, start in zip(values[1:], starts[1:], strict=True):
        merged = np.concatenate((merged[:start], value))
    return merged


def later_of_equals(places, *, key, reverse):
    return sorted(places, key=lambda place: (key(place), place), reverse=reverse)


def shared_whatever_the_types(original):
    def share(entries):
        blind = [Entry(each.ticket, each.index, replace(each.item, type_ids=each.item.ids)) for each in entries]
        found = original(blind)
        return replace(found, distinct=[entries[found.number.index(place)] for place in range(len(found.distinct))])

    return share


def mean_of_windows(windows, fresh):
    return np.mean(windows, axis=0)


def with_eps(norm, x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, 1e-3)


def approximate_gelu(linear, x, activation):
    return torch.nn.functional.gelu(linear.apply(x), approximate="tanh")


def last_state_of_another_layer(original):
    def forward(self, packed, first, count, **options):
        output = original(self, packed, first, count, **options)
        if options:
            output.last_hidden_state = output.hidden_states[-2]
        return output

    return forward


def front_for_back(original):
    def kept(self, count, limit, prompt_tokens):
        other = {"end": "start", "start": "end"}[limit.truncate]
        return original(self, count, replace(limit, truncate=other), prompt_tokens)

    return kept


def wrong_tokens(original):
    return lambda hidden, spec, *, prompt_tokens=0: original(hidden, spec)


def one_token_more(original):
    return lambda hidden, spec, *, prompt_tokens=0: original(hidden, spec, prompt_tokens=prompt_tokens + 1)


def mean_of_one_more(pooled, tokens, mode, skipped):
    return pooled * len(tokens) / (len(tokens) + 1) if mode == "mean" else pooled


def continues_anything(original):
    return lambda self, before, index: self.labels[index].role != "outside" and self.labels[before].role != "outside"


def dot_products(original):
    return lambda vector, others, function: original(vector, others, "dot")


MUTANTS = (
    Mutant(
        "the mean divides by one more",
        engine,
        "_pool",
        of_the_answer(mean_over_one_more),
        checks.vectors_of_bert,
    ),
    Mutant("the first token is the second", engine, "_pool", of_the_answer(second_token), checks.vectors_of_bert),
    Mutant(
        "sequences of one length change places",
        engine,
        "_pool",
        of_the_answer(changed_places),
        checks.vectors_of_bert,
    ),
    Mutant(
        "the mean in numpy divides by one more",
        pooling,
        "_reduce",
        of_the_answer(mean_of_one_more),
        checks.vectors_of_several_poolings,
    ),
    Mutant(
        "no final norm at an exit",
        network,
        "forward",
        without_final_norm,
        checks.vectors_of_exits,
    ),
    Mutant("the window is one wider", modernbert, "attend", wider_window, checks.vectors_of_modernbert),
    Mutant("keys are not turned", modernbert, "rotate_", keys_not_turned, checks.vectors_of_modernbert),
    Mutant(
        "the wrong layers have windows",
        modernbert,
        "_reaches",
        of_the_answer(swapped_reaches),
        checks.vectors_of_modernbert,
    ),
    Mutant(
        "one rotary base for all layers",
        modernbert,
        "_rotary",
        of_the_answer(one_base_for_all),
        checks.vectors_of_modernbert,
    ),
    Mutant(
        "features are not put in pairs",
        modernbert,
        "interleave",
        instead(lambda weight, heads: weight),
        checks.vectors_of_modernbert,
    ),
    Mutant(
        "sequences of one length see each other",
        bert,
        "attend",
        of_the_arguments(lambda qkv, runs: (qkv, merged_runs(runs))),
        checks.vectors_of_bert,
    ),
    Mutant("scores are doubled", bert, "attend", of_the_arguments(doubled_queries), checks.vectors_of_bert),
    Mutant(
        "positions of RoBERTa start at 0",
        bert.BertEncoder,
        "_positions",
        instead(lambda self, packed: packed.positions()),
        checks.vectors_of_roberta,
    ),
    Mutant("norms with another epsilon", linear.Norm, "apply", instead(with_eps), checks.vectors_of_bert),
    Mutant("GELU is approximate", linear.Linear, "apply_activation", instead(approximate_gelu), checks.vectors_of_bert),
    Mutant(
        "no residual around attention",
        linear.Linear,
        "apply_residual",
        instead(lambda linear, x, residual: linear.apply(x)),
        checks.vectors_of_bert,
    ),
    Mutant(
        "the last state is that of another layer",
        borrowed.BorrowedNetwork,
        "_forward",
        last_state_of_another_layer,
        checks.vectors_of_deberta,
    ),
    Mutant(
        "an exit comes a layer early",
        embedding,
        "engine_layer",
        of_the_answer(one_layer_less),
        checks.vectors_of_exits,
    ),
    Mutant(
        "a head's exit comes a layer early",
        classification,
        "engine_layer",
        of_the_answer(one_layer_less),
        checks.labels_at_exits,
    ),
    Mutant("a request's exit is ignored", embedding, "engine_layer", instead(lambda *_: None), checks.vectors_of_exits),
    Mutant("the prompt is pooled too", reducing, "pool", wrong_tokens, checks.vectors_without_their_prompt),
    Mutant(
        "one token more than the prompt is left out",
        reducing,
        "pool",
        one_token_more,
        checks.vectors_without_their_prompt,
    ),
    Mutant(
        "no prompt is put before the text",
        embedding.EmbeddingTask,
        "_prompt",
        instead(lambda *_: ""),
        checks.vectors_without_their_prompt,
    ),
    Mutant(
        "dense modules are passed over",
        embedding,
        "apply_dense",
        instead(lambda vectors, _: vectors),
        checks.vectors_through_dense_modules,
    ),
    Mutant(
        "vectors are not normalised",
        embedding,
        "l2_normalize",
        instead(lambda x: x),
        checks.vectors_through_dense_modules,
    ),
    Mutant("the wrong end is cut", tokenize.TextTokenizer, "_kept", front_for_back, checks.vectors_of_cut_texts),
    Mutant("cosines are products", derived, "score", dot_products, checks.similarities_of_texts),
    Mutant("a head takes the mean", heads, "_first", instead(heads._mean), checks.labels_of_texts),
    Mutant("a head takes the second token", heads, "_first", of_the_answer(second_token), checks.labels_of_texts),
    Mutant(
        "a head takes the first token",
        heads,
        "_mean",
        instead(heads._first),
        checks.labels_by_modernbert,
    ),
    Mutant("labels in reverse", tasks, "Scorer", reversed_labels, checks.labels_of_texts),
    Mutant("sigmoid for softmax", scoring, "activate", sigmoid_for_softmax, checks.labels_of_texts),
    Mutant("softmax for sigmoid", scoring, "activate", sigmoid_for_softmax, checks.several_labels_of_texts),
    Mutant("the temperature multiplies", scoring, "activate", temperature_upside_down, checks.labels_of_texts),
    Mutant("any label may pass", scoring.Scorer, "_passed", passed_without_labels, checks.labels_of_texts),
    Mutant("what is below the threshold passes", scoring.Scorer, "_passed", passed_below, checks.labels_of_texts),
    Mutant("the last of equal labels", scoring.Scorer, "result", last_of_equals, checks.the_first_of_equal_labels),
    Mutant(
        "both texts of a pair have one type",
        pairs,
        "_arrays",
        of_the_answer(all_of_type_zero),
        checks.labels_of_pairs,
    ),
    Mutant("the second text is cut alone", pairs, "_longest_first", instead(second_only), checks.labels_of_pairs),
    Mutant("pairs of the same tokens are one", ragged, "_share", shared_whatever_the_types, checks.labels_of_pairs),
    Mutant(
        "the later of equal documents first",
        reranking,
        "sorted",
        instead(later_of_equals),
        checks.order_of_documents,
    ),
    Mutant("a document counts by its worst window", reranking, "max", instead(min), checks.scores_of_long_documents),
    Mutant("windows count alike", classification, "_merge", instead(mean_of_windows), checks.labels_of_long_texts),
    Mutant(
        "windows overlap by half",
        windows,
        "OVERLAP",
        instead(0.5),
        checks.labels_of_long_texts,
    ),
    Mutant(
        "the last window is not full",
        windows,
        "window_starts",
        instead(lambda count, *, room: tuple(range(0, count, room - room // 4))),
        checks.labels_of_long_texts,
    ),
    Mutant("the later window is kept", tagging, "merge_windows", instead(later_window), checks.tags_of_tokens),
    Mutant("places are in bytes", tokenize, "token_places", of_the_answer(in_bytes), checks.tags_of_tokens),
    Mutant("places are one off", tokenize, "token_places", of_the_answer(shifted_by_one), checks.tags_of_tokens),
    Mutant("the most certain token counts", spans, "_word", another_aggregation("max"), checks.tags_of_words),
    Mutant("the first token counts", spans, "_word", another_aggregation("first"), checks.tags_of_words),
    Mutant(
        "spans join whatever their labels",
        schemes.LabelScheme,
        "continues",
        continues_anything,
        checks.tags_of_words,
    ),
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Workshop(tmp_path_factory.mktemp("mutants"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_product_passes(shop, check):
    check(shop)


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_is_noticed(shop, monkeypatch, mutant):
    assert any(hasattr(place, mutant.attribute) for place in (mutant.owner, builtins))  # a module sees both
    original = getattr(mutant.owner, mutant.attribute, None)
    monkeypatch.setattr(mutant.owner, mutant.attribute, mutant.make(original), raising=False)
    with pytest.raises(AssertionError):
        mutant.caught_by(shop)


def test_every_check_notices_something():
    assert {mutant.caught_by for mutant in MUTANTS} == set(CHECKS)
