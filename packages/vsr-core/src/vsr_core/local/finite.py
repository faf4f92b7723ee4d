"""A model that answers NaN or infinity: the values are withheld, and the inputs named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..contract import BackendId, FloatArray
from ..errors import NonFiniteOutputError

__all__ = ["check_finite", "withheld"]

_NAMED = 20


def check_finite(answers: Sequence[Sequence[FloatArray]], *, backend_id: BackendId, param: str) -> None:
    """Refuse answers with NaN or infinity in them.

    :param answers: the arrays of each input, in input order; ``param`` is what a request calls its inputs.
    :raises NonFiniteOutputError: names the inputs.
    """
    bad = [index for index, arrays in enumerate(answers) if not all(bool(np.isfinite(array).all()) for array in arrays)]
    if bad:
        raise withheld(bad, backend_id=backend_id, param=param)


def withheld(bad: Sequence[int], *, backend_id: BackendId, param: str) -> NonFiniteOutputError:
    """The error for the inputs numbered ``bad``."""
    named = ", ".join(f"{param}[{index}]" for index in bad[:_NAMED])
    return NonFiniteOutputError(
        f"{backend_id} gave NaN or infinity for {named}: the values are withheld", backend_id=str(backend_id)
    )
