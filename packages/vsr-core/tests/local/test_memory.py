"""What a batch may take goes by what is free, and a small one is never asked about."""

import sys
from dataclasses import replace

import pytest
from vsr_core.local import WorkingMemory, memory
from vsr_core.local.memory import SHARE, free_memory

MEBIBYTE = 1 << 20


def test_a_fixed_number_is_shared_by_the_batches_that_run_at_the_same_time():
    memory = WorkingMemory(1000)
    assert memory.bound(batches=4) == 250
    assert memory.allows(250, batches=4)
    assert not memory.allows(251, batches=4)


def test_without_a_number_most_of_what_is_free_may_be_taken():
    bound, free = WorkingMemory().bound(batches=1), free_memory()
    assert bound == pytest.approx(free * SHARE, rel=0.2)
    assert not WorkingMemory().allows(free * 2, batches=1)


def test_a_small_batch_is_allowed_whatever_is_free(monkeypatch):
    monkeypatch.setattr("vsr_core.local.memory.free_memory", lambda: 0)
    assert WorkingMemory().allows(MEBIBYTE, batches=1)
    assert not WorkingMemory().allows(100 * MEBIBYTE, batches=1)


def test_what_is_free_is_not_looked_up_for_every_batch(monkeypatch):
    looked = []
    monkeypatch.setattr("vsr_core.local.memory.free_memory", lambda: looked.append(1) or 10**9)
    memory = WorkingMemory()
    for _ in range(100):
        memory.allows(100 * MEBIBYTE, batches=1)
    assert len(looked) <= 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_a_limit_on_the_address_space_counts():
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    import psutil

    held = psutil.Process().memory_info().vms
    try:
        resource.setrlimit(resource.RLIMIT_AS, (held + 300 * MEBIBYTE, before[1]))
        assert free_memory() <= 300 * MEBIBYTE
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def container(monkeypatch, tmp_path):
    """A container with 500 MiB, of which 400 are used."""
    groups = tuple(replace(group, folder=tmp_path) for group in memory._CGROUPS)
    monkeypatch.setattr(memory, "_CGROUPS", groups)
    (tmp_path / "memory.max").write_text(f"{500 * MEBIBYTE}\n")
    (tmp_path / "memory.current").write_text(f"{400 * MEBIBYTE}\n")
    return tmp_path


def test_a_container_with_a_limit_counts(container):
    assert free_memory() <= 100 * MEBIBYTE
    (container / "memory.max").write_text("max\n")
    assert free_memory() > 100 * MEBIBYTE


def test_files_that_a_container_keeps_in_memory_are_not_in_the_way(container):
    stat = f"anon 1\ninactive_file {150 * MEBIBYTE}\ntotal_inactive_file 7\nactive_file 9\n"
    (container / "memory.stat").write_text(stat)
    assert 100 * MEBIBYTE < free_memory() <= 250 * MEBIBYTE
    (container / "memory.stat").write_text("\ninactive_file\n")
    assert free_memory() <= 100 * MEBIBYTE


def test_the_older_interface_to_a_container_is_read_too(container):
    (container / "memory.max").unlink()
    (container / "memory.limit_in_bytes").write_text(f"{500 * MEBIBYTE}")
    (container / "memory.usage_in_bytes").write_text(f"{400 * MEBIBYTE}")
    (container / "memory.stat").write_text(f"inactive_file 1\ntotal_inactive_file {50 * MEBIBYTE}\n")
    assert 100 * MEBIBYTE < free_memory() <= 150 * MEBIBYTE
