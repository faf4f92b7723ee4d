"""Whether products of 8 bits are summed exactly on this processor.

ONNX Runtime multiplies unsigned activations with signed weights. On x64 without VNNI it adds two such products in 16
bits, where they saturate. Its option ``session.x64quantprecision`` makes the weights unsigned, which is exact and slower,
and it does so on processors that would need it not: 8-bit MiniLM takes 28 % longer with it on one with AVX512-VNNI.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import onnxruntime

from .proto import encode_bytes, encode_int

__all__ = ["saturates"]

_DEPTH: Final = 64
_WIDTH: Final = 16
_MOST: Final = 127
_UINT8, _INT8, _INT32 = 2, 3, 6


@functools.cache
def saturates() -> bool:
    """Whether the largest products there are come out wrong without the option, for one row or for several."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(_product(), options, providers=["CPUExecutionProvider"])
    found = [session.run(None, {"x": np.full((rows, _DEPTH), 255, np.uint8)})[0] for rows in (1, 5)]
    return not all((sums == _DEPTH * 255 * _MOST).all() for sums in found)


def _product() -> bytes:
    """An ONNX file with a product of activations ``x`` and constant weights, all of them the largest number."""
    node = encode_bytes(1, "x") + encode_bytes(1, "w") + encode_bytes(2, "y") + encode_bytes(4, "MatMulInteger")
    weight = encode_int(1, _DEPTH) + encode_int(1, _WIDTH) + encode_int(2, _INT8) + encode_bytes(8, "w")
    weight += encode_bytes(9, bytes([_MOST]) * (_DEPTH * _WIDTH))
    body = encode_bytes(1, node) + encode_bytes(2, "product") + encode_bytes(5, weight)
    body += encode_bytes(11, _port("x", _UINT8, _DEPTH)) + encode_bytes(12, _port("y", _INT32, _WIDTH))
    return encode_int(1, 8) + encode_bytes(7, body) + encode_bytes(8, encode_int(2, 13))


def _port(name: str, element_type: int, width: int) -> bytes:
    sizes = encode_bytes(1, encode_bytes(2, "rows")) + encode_bytes(1, encode_int(1, width))
    tensor = encode_int(1, element_type) + encode_bytes(2, sizes)
    return encode_bytes(1, name) + encode_bytes(2, encode_bytes(1, tensor))
