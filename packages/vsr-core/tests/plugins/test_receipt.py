from __future__ import annotations

import json
from dataclasses import replace

import pytest
from vsr_core.contract import Refused, Supported
from vsr_core.errors import InvalidInputError
from vsr_core.plugins import (
    BackendFacts,
    CapabilityMatrix,
    HostFacts,
    MatrixCell,
    Receipt,
    ReceiptCell,
    differences,
    installed_version,
    read_receipt,
    system_name,
)
from vsr_core.taxonomy import Artifact, Capability, Feature

EMBEDS = ReceiptCell(
    backend="echo",
    capability=Capability.EMBEDDING,
    claim="supported",
    state="verified",
    family="bert",
    artifact=Artifact.FULL,
    measured=2e-7,
)
MATRIX = CapabilityMatrix(
    cells=(
        MatrixCell(backend="echo", capability=Capability.EMBEDDING, state="declared", verdict=Supported()),
        MatrixCell(backend="echo", capability=Capability.GUARD, state="refused", verdict=Refused("no", "it cannot")),
    )
)


def receipt(*cells, **facts):
    found = Receipt(
        created="2030-01-01T00:00:00+00:00",
        host=HostFacts(system=system_name(), processors=2),
        versions={name: installed_version(name) for name in ("python", "vsr-core")},
        backends={"echo": BackendFacts(adapter="echo", usable=True, versions={"numpy": installed_version("numpy")})},
        checkpoints={"bert-embedding-full": "00"},
        cells=cells,
    )
    return replace(found, **facts)


def state_of(matrix):
    return matrix.cell("echo", Capability.EMBEDDING).state


def test_a_receipt_is_read_as_it_was_written(tmp_path):
    written = receipt(EMBEDS, replace(EMBEDS, state="failed", reason="off by 1"))
    written.write(tmp_path / "r.json")
    assert read_receipt(tmp_path / "r.json") == written
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    assert (written.count("verified"), written.count("failed"), written.count("not_run")) == (1, 1, 0)


def test_a_cell_is_verified_where_a_receipt_has_seen_it_work():
    cell = MATRIX.vouched(receipt(EMBEDS, replace(EMBEDS, family="minilm"))).cell("echo", Capability.EMBEDDING)
    assert (cell.state, cell.verified) == ("verified", ("bert/full", "minilm/full"))


@pytest.mark.parametrize(
    "cells",
    [
        (),
        (replace(EMBEDS, state="not_run"),),
        (replace(EMBEDS, feature=Feature.UNLOAD),),
        (replace(EMBEDS, backend="other"),),
        (replace(EMBEDS, claim="refused"),),
        (EMBEDS, replace(EMBEDS, family="minilm", state="failed")),
        (EMBEDS, replace(EMBEDS, feature=Feature.BATCHING, state="failed")),
    ],
)
def test_it_is_not_where_nothing_of_it_ran_or_something_failed(cells):
    assert state_of(MATRIX.vouched(receipt(*cells))) == "declared"


def test_what_is_refused_stays_so():
    cells = (EMBEDS, replace(EMBEDS, capability=Capability.GUARD))
    assert MATRIX.vouched(receipt(*cells)).cell("echo", Capability.GUARD).state == "refused"


def test_other_versions_make_a_receipt_worthless_for_the_backend():
    old = {"echo": BackendFacts(adapter="echo", usable=True, versions={"numpy": "0.1", "gone": "1"})}
    found = receipt(EMBEDS, backends=old)
    assert state_of(MATRIX.vouched(found)) == "declared"
    assert differences(found, "echo") == (
        f"numpy was 0.1 and is {installed_version('numpy')}",
        "gone was 1 and is not installed",
    )
    assert differences(receipt(versions={}), "echo")[0].startswith("python was unknown and is 3.")
    assert differences(receipt(), "other") == ("the receipt says nothing of other",)
    moved = receipt(host=HostFacts(system="Plan9 mips", processors=1))
    assert differences(moved, "echo") == (f"the system was Plan9 mips and is {system_name()}",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("{", "it holds no JSON"),
        ("[]", "its schema is None"),
        ('{"schema": 2}', "its schema is 2"),
        ('{"schema": 1}', "is no receipt: "),
        (json.dumps({"schema": 1, "created": "x", "host": 3}), "is no receipt: "),
    ],
)
def test_what_is_no_receipt_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "r.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_receipt(path)
    assert "r.json" in caught.value.message
