"""Messages are read and written as protocol buffers have them."""

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vsr_onnx.proto import encode_bytes, encode_int, read_fields


@given(st.lists(st.tuples(st.integers(1, 5000), st.one_of(st.integers(0, 2**63), st.binary(max_size=300)))))
def test_what_was_written_is_read(fields):
    message = b"".join(
        encode_int(tag, value) if isinstance(value, int) else encode_bytes(tag, value) for tag, value in fields
    )
    found = list(read_fields(memoryview(message)))
    assert [(field.tag, field.number or bytes(field.payload)) for field in found] == [
        (tag, value or b"") for tag, value in fields
    ]
    assert b"".join(field.raw for field in found) == message


def test_it_reads_what_onnx_writes():
    entry = onnx.StringStringEntryProto(key="location", value="weights.bin")
    assert [field.text for field in read_fields(memoryview(entry.SerializeToString()))] == ["location", "weights.bin"]
    tensor = onnx.TensorProto(dims=[300, 4], data_type=1, float_data=[1.5])
    tags = [field.tag for field in read_fields(memoryview(tensor.SerializeToString()))]
    assert set(tags) == {1, 2, 4}


@pytest.mark.parametrize("damaged", [b"\x80", b"\x0a\x05ab", b"\x0b", b"\x00\x01", b"\x0d\x01", b"\xff" * 12])
def test_damage_is_noticed(damaged):
    with pytest.raises(ValueError):
        list(read_fields(memoryview(damaged)))
