from __future__ import annotations

from vsr_core.contract import CallContext, Choice, InputReport
from vsr_core.local import build_envelope


def test_it_names_who_answered_on_what_and_sums_what_was_read(build):
    base = build(provider=Choice(requested="auto", actual="CPU")).base
    inputs = [InputReport(tokens=4), InputReport(tokens=None), InputReport(tokens=7, windows=2)]
    found = build_envelope(
        base,
        CallContext(request_id="q7"),
        backend_id=base.identity.backend_id,
        inputs=inputs,
        layer=3,
        requested_layer=None,
    )
    assert (str(found.backend_id), found.request_id, found.revision) == ("toy:model", "q7", "r1")
    assert (found.device, found.provider, found.dtype) == ("cpu", "CPU", "float32")
    assert (found.layer, found.requested_layer, found.dimensions) == (3, None, None)
    assert found.inputs == tuple(inputs)
    assert found.usage.input_tokens == 11
