"""Which of the waiting sequences share the next batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .engine import BatchShape

__all__ = ["MAX_WASTE", "choose"]

MAX_WASTE = 1.5
"""How much quadratic work padding may cause: ``n * longest**2 / sum(length**2)`` of a batch stays within it."""


def choose(
    lengths: Sequence[int], *, max_batch_tokens: int, fits: Callable[[BatchShape], bool] | None = None
) -> list[int]:
    """Choose a batch: the first of ``lengths``, which is the oldest, and the others nearest to it in length.

    Grows from the oldest to either side of the length order, nearest first, while the padded tokens stay within
    ``max_batch_tokens``, the waste within :data:`MAX_WASTE`, and ``fits`` agrees. The oldest alone is always a batch.

    :param lengths: tokens of each waiting sequence, oldest first.
    :param fits: a further bound on the shape of the batch, such as memory.
    :returns: positions in ``lengths``, by length.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    oldest = lengths[0]
    low = high = order.index(0)
    tokens, squares, longest = oldest, oldest * oldest, oldest

    def admissible(length: int) -> bool:
        count, peak = high - low + 2, max(longest, length)
        return (
            count * peak <= max_batch_tokens
            and count * peak * peak <= MAX_WASTE * (squares + length * length)
            and (fits is None or fits(BatchShape(count, peak, tokens + length)))
        )

    up = down = True
    while True:
        above = lengths[order[high + 1]] if up and high + 1 < len(order) else None
        below = lengths[order[low - 1]] if down and low > 0 else None
        if above is not None and (below is None or above - oldest <= oldest - below):
            if admissible(above):
                high, tokens, squares, longest = high + 1, tokens + above, squares + above * above, above
            else:
                up = False
        elif below is not None:
            if admissible(below):
                low, tokens, squares = low - 1, tokens + below, squares + below * below
            else:
                down = False
        else:
            return order[low : high + 1]
