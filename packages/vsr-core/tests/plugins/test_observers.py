from __future__ import annotations

import threading

from vsr_core.contract import AttemptRecord, hookimpl
from vsr_core.plugins import PluginHost
from vsr_core.plugins.observers import Observer
from vsr_core.taxonomy import Capability


def attempt(number):
    return AttemptRecord(
        request_id="r",
        attempt_id=f"a{number}",
        number=number,
        capability=Capability.EMBEDDING,
        logical_name="default",
        outcome="served",
    )


class Watches:
    def __init__(self):
        self.seen = []
        self.threads = set()

    @hookimpl
    def vsr_on_attempt(self, record):
        self.seen.append(record.number)
        self.threads.add(threading.current_thread())


class Raises:
    @hookimpl
    def vsr_on_attempt(self, record):
        raise SystemExit(f"number {record.number}")


class Hangs:
    def __init__(self):
        self.gate = threading.Event()

    @hookimpl
    def vsr_on_attempt(self, record):
        self.gate.wait(5)


def test_observers_see_every_attempt_in_order_and_never_on_the_callers_thread():
    host, watcher = PluginHost(), Watches()
    host.register(watcher, name="watcher")
    for number in range(50):
        host.notify(attempt(number))
    host.close(timeout=5)
    assert watcher.seen == list(range(50))
    assert threading.current_thread() not in watcher.threads


def test_an_observer_that_raises_is_listed_and_harms_nobody():
    host, watcher = PluginHost(), Watches()
    host.register(Raises(), name="raises")
    host.register(watcher, name="watcher")
    host.notify(attempt(1))
    host.notify(attempt(1))
    host.close(timeout=5)
    assert watcher.seen == [1, 1]
    (failure,) = host.report().plugins[0].failures
    assert (failure.stage, failure.error, failure.reason) == ("run", "SystemExit", "it called sys.exit(number 1)")


def test_an_observer_that_hangs_delays_nobody_and_loses_records_in_the_end():
    host, watcher, hanging = PluginHost(), Watches(), Hangs()
    host.register(hanging, name="hangs")
    host.register(watcher, name="watcher")
    for number in range(500):
        host.notify(attempt(number))
    assert host.report().plugins[0].failures == ()
    for number in range(1500):
        host.notify(attempt(number))
    failures = host.report().plugins[0].failures
    hanging.gate.set()
    host.close(timeout=5)
    assert [failure.reason for failure in failures] == ["its observer is 1024 records behind, so records are lost"]
    assert watcher.seen[:500] == list(range(500))


def test_closing_does_not_wait_for_an_observer_that_hangs():
    gate = threading.Event()
    failures = []
    observer = Observer("hangs", lambda record: gate.wait(5), failures.append)
    observer.notify(attempt(1))
    assert not observer.close(0.05)
    gate.set()
    assert failures == []


def test_a_host_without_observers_starts_no_thread():
    host = PluginHost()
    before = threading.active_count()
    host.notify(attempt(1))
    host.close()
    assert threading.active_count() == before
