"""Attention over packed runs is that of torch, short and long, alone and in blocks, in both dtypes."""

import pytest
import torch
from vsr_candle_torch import attention
from vsr_candle_torch.attention import EqualRun, attend, attention_bytes, equal_runs

HEADS, WIDTH = 4, 8


def qkv(rows, dtype=torch.float32):
    return (2 * torch.randn(rows, 3 * HEADS * WIDTH, generator=torch.Generator().manual_seed(rows))).to(dtype)


def expected(packed, lengths, window=None):
    parts, start = [], 0
    for length in lengths:
        grid = packed[start : start + length].float().view(length, 3, HEADS, WIDTH).permute(1, 2, 0, 3)
        query, key, value = grid.unbind(0)
        scores = query @ key.transpose(-1, -2) / WIDTH**0.5
        if window is not None:
            far = (torch.arange(length) - torch.arange(length)[:, None]).abs() > window
            scores = scores.masked_fill(far, -torch.inf)
        weights = torch.softmax(scores, -1)
        parts.append((weights @ value).transpose(0, 1).reshape(length, -1))
        start += length
    return torch.cat(parts)


LENGTHS = [3, 3, 3, 1, 70, 70, 9, 3]


def test_runs_are_neighbours_of_one_length():
    runs = equal_runs(LENGTHS)
    assert [(run.first, run.row, run.count, run.length) for run in runs] == [
        (0, 0, 3, 3),
        (3, 9, 1, 1),
        (4, 10, 2, 70),
        (6, 150, 1, 9),
        (7, 159, 1, 3),
    ]
    assert runs[-1].end == sum(LENGTHS)


@pytest.mark.parametrize("area", [1, 5000, 10**6])
@pytest.mark.parametrize("long", [0, 5, 1024])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_every_block_size_and_kernel_gives_the_same(monkeypatch, area, long, dtype, tolerance):
    monkeypatch.setattr(attention, "_AREA", area)
    monkeypatch.setattr(attention, "_LONG", long)
    packed = qkv(sum(LENGTHS), dtype)
    found = attend(packed, equal_runs(LENGTHS), heads=HEADS)
    torch.testing.assert_close(found.float(), expected(packed, LENGTHS), atol=tolerance, rtol=tolerance)


def test_padding_rows_are_zero():
    found = attend(qkv(16), (EqualRun(0, 0, 1, 11),), heads=HEADS)
    assert (found[11:] == 0).all()


@pytest.mark.parametrize("block", [7, 16, 128])
@pytest.mark.parametrize("window", [1, 5, 20, 68, 69, 500])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
def test_a_window_lets_a_token_see_so_far_and_no_farther(monkeypatch, block, window, dtype, tolerance):
    monkeypatch.setattr(attention, "_BLOCK", block)
    lengths = [*LENGTHS, 300]
    packed = qkv(sum(lengths), dtype)
    found = attend(packed, equal_runs(lengths), heads=HEADS, window=window)
    torch.testing.assert_close(found.float(), expected(packed, lengths, window), atol=tolerance, rtol=tolerance)


def test_the_memory_of_a_window_does_not_grow_with_the_text():
    sizes = [attention_bytes(length, heads=HEADS, window=64) for length in (1000, 8000, 32000)]
    assert len(set(sizes)) == 1
    assert attention_bytes(1024, heads=HEADS) == 4 * attention_bytes(512, heads=HEADS)
    assert attention_bytes(8000, heads=HEADS) == 0
