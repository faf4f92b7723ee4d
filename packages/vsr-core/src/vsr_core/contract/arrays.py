"""The array type of the contract, named without importing numpy at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["FloatArray"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float32]
else:

    class ndarray:  # noqa: N801 - stands in for numpy.ndarray in annotations; vsr_core.wire knows it by name
        """A numpy array; at run time the annotation alone, since the contract imports no numpy."""

    FloatArray: Any = ndarray
