from __future__ import annotations

import asyncio
import threading
import time

import pytest
from vsr_core.contract import CapabilityQuery, CapabilitySet, RuntimeInfo
from vsr_core.errors import ConfigError, ModelNotFoundError, PluginError
from vsr_core.plugins import BackendInstances, InstanceSettings
from vsr_core.taxonomy import Capability

ENGINE = """
    import threading
    from dataclasses import dataclass
    from pydantic import BaseModel, SecretStr

    made = []
    gate = threading.Event()

    class Options(BaseModel):
        url: str = "here"
        key: SecretStr | None = None

    @dataclass
    class Plain:
        width: int = 1

    class Adapter(BackendAdapter):
        def __init__(self, context):
            self.namespace = context.name
            self.context = context
            self.probes = self.asked = self.closed = 0
            made.append(self)

        def capabilities(self):
            self.asked += 1
            return CapabilitySet.of([(Selector(capability=Capability.EMBEDDING, family="bert"), Supported())])

        def probe(self):
            self.probes += 1
            return RuntimeInfo(usable=True, devices=("cpu",))

        def load(self, request):
            raise LoadError("no", backend_id="echo:x")

        async def close(self):
            self.closed += 1

    class OtherName(Adapter):
        def __init__(self, context):
            super().__init__(context)
            self.namespace = "somebody"

    class Abstract(BackendAdapter):
        def __init__(self, context):
            self.namespace = context.name

    class Lies:
        def __init__(self, context):
            self.namespace = context.name

        @property
        def __class__(self):
            return Adapter

    class BadCapabilities(Adapter):
        def capabilities(self):
            raise ValueError("cannot say")

    class WrongCapabilities(Adapter):
        def capabilities(self):
            return ["embedding"]

    class HollowCapabilities(Adapter):
        def capabilities(self):
            return CapabilitySet(("everything",))

    class BadProbe(Adapter):
        def probe(self):
            raise SystemExit("no driver")

    class WrongProbe(Adapter):
        def probe(self):
            return True

    class SlowProbe(Adapter):
        def probe(self):
            self.probes += 1
            gate.wait(5)
            return RuntimeInfo(usable=True)

    class BadClose(Adapter):
        async def close(self):
            raise ValueError("stuck")

    def leaks(context):
        raise RuntimeError(f"cannot reach {context.options.url} with {context.options.key.get_secret_value()}")

    def refuses(context):
        raise ConfigError(f"{context.options.key.get_secret_value()} is worn out")

    def not_an_adapter(context):
        return {"namespace": context.name}

    def hangs(context):
        gate.wait(5)
        return Adapter(context)
"""


@pytest.fixture
def backend(site, backend_plugin):
    """A host with the backend ``echo``, made by an attribute of the engine module."""
    site.module("planted_engine", ENGINE)

    def install(attribute="Adapter", timeout=5.0, **more):
        site.plugin("echo-plugin", backend_plugin(factory=f"planted_engine:{attribute}", **more), version="1.2")
        return site.discover(timeout=timeout)

    yield install
    import planted_engine

    planted_engine.gate.set()


def work(**options):
    return {"work": InstanceSettings(name="work", adapter="echo", options=options)}


def test_every_backend_has_a_default_instance_of_its_name(backend):
    instances = BackendInstances(backend())
    assert instances.names() == ("echo",)
    assert instances.settings("echo") == InstanceSettings(name="echo", adapter="echo")
    assert instances.descriptor("echo").factory == "planted_engine:Adapter"


def test_configured_instances_join_the_default_ones_sorted(backend):
    instances = BackendInstances(backend(), {**work(), "alpha": InstanceSettings(name="alpha", adapter="echo")})
    assert instances.names() == ("alpha", "echo", "work")
    assert instances.adapter("work") is not instances.adapter("echo")
    assert instances.adapter("work").namespace == "work"


def test_a_configured_only_backend_has_no_default_instance(backend):
    instances = BackendInstances(backend(configured_only=True), work())
    assert instances.names() == ("work",)
    with pytest.raises(ModelNotFoundError, match="only where the configuration has an instance of it"):
        instances.adapter("echo")


def test_a_name_that_nobody_has_is_not_found(backend):
    with pytest.raises(ModelNotFoundError, match="no plugin offers a backend called 'nobody'"):
        BackendInstances(backend()).adapter("nobody")


def test_a_malformed_instance_name_is_refused(backend):
    with pytest.raises(ConfigError, match="'My Work' is no backend name"):
        BackendInstances(backend(), {"My Work": InstanceSettings(name="My Work", adapter="echo")})


def test_a_factory_gets_its_context(backend, tmp_path):
    host = backend(options="planted_engine:Plain")
    settings = {"work": InstanceSettings(name="work", adapter="echo", threads=3, options={"width": 4})}
    instances = BackendInstances(host, settings, cache_dir=tmp_path, threads=2, gateway=object())
    context = instances.adapter("work").context
    assert (context.name, context.options.width, context.threads) == ("work", 4, 3)
    assert context.cache_dir == tmp_path / "work"
    assert context.families is host.families
    assert context.gateway is None
    assert instances.adapter("echo").context.threads == 2


def test_a_delegating_backend_gets_the_gateway(backend):
    gateway = object()
    instances = BackendInstances(backend(delegating=True), gateway=gateway)
    assert instances.adapter("echo").context.gateway is gateway


def test_nothing_is_imported_before_an_instance_is_used(site, backend_plugin):
    import sys

    site.plugin("echo-plugin", backend_plugin(factory="planted_later:Adapter"))
    instances = BackendInstances(site.discover())
    assert instances.names() == ("echo",)
    assert "planted_later" not in sys.modules
    site.module("planted_later", ENGINE)
    assert instances.declared("echo").families(Capability.EMBEDDING) == ("bert",)


def test_an_adapter_is_made_once_and_asked_once_by_many_threads(backend):
    instances = BackendInstances(backend())
    start = threading.Barrier(8)

    def use():
        start.wait()
        instances.declared("echo")
        instances.probe("echo")

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    import planted_engine

    (adapter,) = planted_engine.made
    assert (adapter.asked, adapter.probes) == (1, 1)
    assert instances.failures() == {}


def test_what_is_declared_and_found_is_given_as_plain_values(backend):
    instances = BackendInstances(backend())
    assert type(instances.declared("echo")) is CapabilitySet
    assert instances.declared("echo").supports(CapabilityQuery(capability=Capability.EMBEDDING, family="bert"))
    assert instances.probe("echo") == RuntimeInfo(usable=True, devices=("cpu",))


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("nowhere", "AttributeError"),
        ("not_an_adapter", "gave a dict, not a BackendAdapter"),
        ("Lies", "gave a Lies, not a BackendAdapter"),
        ("Abstract", "abstract"),
        ("OtherName", "the adapter's namespace is 'somebody', not the instance's name"),
        ("BadCapabilities", "cannot say"),
        ("WrongCapabilities", r"capabilities\(\) gave a list, not a CapabilitySet"),
        ("HollowCapabilities", "Rule"),
    ],
)
def test_a_broken_adapter_is_an_error_that_names_plugin_and_distribution(backend, record_of, attribute, reason):
    host = backend(attribute)
    instances = BackendInstances(host)
    with pytest.raises(PluginError, match=reason) as caught:
        instances.declared("echo")
    error = caught.value
    assert "plugin 'echo-plugin' (dist-echo-plugin 1.2) failed at describe" in error.message
    assert (error.plugin, error.distribution, error.stage) == ("echo-plugin", "dist-echo-plugin", "describe")
    assert instances.failures()["echo"].message == error.message
    assert record_of(host, "echo-plugin").failures[0].stage == "describe"
    with pytest.raises(PluginError, match=reason):
        instances.declared("echo")
    assert len(record_of(host, "echo-plugin").failures) == 1


def test_a_factory_whose_module_is_missing_says_so(site, backend_plugin):
    site.plugin("echo-plugin", backend_plugin(factory="planted_nowhere:Adapter"))
    with pytest.raises(PluginError, match="No module named 'planted_nowhere'") as caught:
        BackendInstances(site.discover()).adapter("echo")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize(
    ("attribute", "reason"), [("BadProbe", "no driver"), ("WrongProbe", "not a RuntimeInfo"), ("nowhere", "nowhere")]
)
def test_a_failing_probe_is_an_answer_with_the_reason(backend, record_of, attribute, reason):
    host = backend(attribute)
    found = BackendInstances(host).probe("echo")
    assert not found.usable
    assert reason in found.reason
    assert record_of(host, "echo-plugin").failures


def test_a_probe_that_hangs_is_an_answer_and_is_believed_once_it_comes(backend):
    instances = BackendInstances(backend("SlowProbe", timeout=0.2))
    first = instances.probe("echo")
    assert not first.usable
    assert "did not finish within 0.2 s" in first.reason
    started = time.monotonic()
    assert not instances.probe("echo").usable
    assert time.monotonic() - started < 0.2  # nobody waits for it twice
    import planted_engine

    planted_engine.gate.set()
    for _ in range(200):
        if instances.probe("echo").usable:
            break
        time.sleep(0.01)
    assert instances.probe("echo").usable
    assert planted_engine.made[0].probes == 1
    assert instances.failures() == {}


def test_looking_at_a_running_probe_neither_waits_for_it_nor_cuts_it_short(backend):
    instances = BackendInstances(backend("SlowProbe"))
    assert instances.probed("echo") is None
    found = []
    thread = threading.Thread(target=lambda: found.append(instances.probe("echo")))
    thread.start()
    import planted_engine

    while not (planted_engine.made and planted_engine.made[0].probes):
        time.sleep(0.005)
    assert instances.probed("echo") is None
    second = threading.Thread(target=lambda: found.append(instances.probe("echo")))
    second.start()
    planted_engine.gate.set()
    thread.join()
    second.join()
    assert found == [RuntimeInfo(usable=True)] * 2
    assert instances.probed("echo") == RuntimeInfo(usable=True)


def test_a_factory_that_hangs_is_given_up(backend):
    instances = BackendInstances(backend("hangs", timeout=0.2))
    with pytest.raises(PluginError, match=r"did not finish within 0.2 s"):
        instances.adapter("echo")


def test_a_probe_of_nobody_is_not_found(backend):
    with pytest.raises(ModelNotFoundError):
        BackendInstances(backend()).probe("nobody")


def test_wrong_options_are_a_mistake_of_the_configuration_not_of_the_plugin(backend, record_of):
    host = backend(options="planted_engine:Options")
    instances = BackendInstances(host, work(ulr="there"))
    with pytest.raises(ConfigError, match=r"backends.work: there is no option 'ulr'; did you mean 'url'?"):
        instances.adapter("work")
    assert isinstance(instances.failures()["work"], ConfigError)
    assert record_of(host, "echo-plugin").failures == ()
    assert instances.probe("work").reason == instances.failures()["work"].message


def test_a_backend_without_options_takes_none(backend):
    with pytest.raises(ConfigError, match=r"backends.work: 'echo' takes no option 'url'"):
        BackendInstances(backend(), work(url="there")).adapter("work")


@pytest.mark.parametrize("attribute", ["leaks", "refuses"])
def test_a_factory_cannot_leak_a_secret_through_its_error(backend, record_of, attribute):
    import traceback

    host = backend(attribute, options="planted_engine:Options")
    instances = BackendInstances(host, work(key="hunter2"))
    with pytest.raises((PluginError, ConfigError)) as caught:
        instances.adapter("work")
    assert "**********" in caught.value.message
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in repr(record_of(host, "echo-plugin"))


def test_a_load_that_failed_elsewhere_is_listed_with_the_plugin(backend, record_of):
    host = backend()
    instances = BackendInstances(host)
    instances.record_failure("echo", "load", MemoryError("too big"))
    (failure,) = record_of(host, "echo-plugin").failures
    assert (failure.stage, failure.error, failure.reason) == ("load", "MemoryError", "backend 'echo': too big")


def test_closing_closes_every_adapter_once_whatever_the_others_do(backend, record_of):
    host = backend("BadClose")
    instances = BackendInstances(host, work())
    instances.adapter("echo")
    instances.adapter("work")
    asyncio.run(instances.close())
    assert [failure.stage for failure in record_of(host, "echo-plugin").failures] == ["run", "run"]


def test_a_closed_adapter_is_closed_only_once(backend):
    instances = BackendInstances(backend())
    adapter = instances.adapter("echo")
    asyncio.run(instances.close())
    asyncio.run(instances.close())
    assert adapter.closed == 1
