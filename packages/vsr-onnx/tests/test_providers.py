"""A device policy is held against the session that was really created."""

import onnxruntime
import pytest
from vsr_core.contract import Preference
from vsr_core.errors import LoadError
from vsr_onnx import providers
from vsr_onnx.providers import CPU, place

CUDA, TENSORRT = "CUDAExecutionProvider", "TensorrtExecutionProvider"


class Session:
    """What was created, on whichever provider the host has."""

    def __init__(self, provider):
        self.provider = provider
        self.closed = False

    def close(self):
        self.closed = True


class Host:
    """A host on which some providers start and some sessions end up on others."""

    def __init__(self, lands_on=None):
        self.asked = []
        self.sessions = []
        self._lands_on = lands_on or {}

    def create(self, wanted):
        self.asked.append([(name, dict(settings)) for name, settings in wanted])
        first = wanted[0][0]
        self.sessions.append(Session(self._lands_on.get(first, first)))
        return self.sessions[-1]


def placed(policy, host):
    return place(Preference.parse(policy), host.create, backend_id="onnx:m")


@pytest.fixture
def with_gpu(monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [TENSORRT, CUDA, CPU])
    monkeypatch.setattr(providers, "starts", lambda provider: True)


@pytest.fixture
def without_gpu(monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [TENSORRT, CUDA, CPU])
    monkeypatch.setattr(providers, "starts", lambda provider: provider == CPU)


def test_auto_takes_the_gpu_where_it_starts_and_the_processor_elsewhere(with_gpu, monkeypatch):
    host = Host()
    found = placed("auto", host)
    assert (found.device.actual, found.provider.actual) == ("cuda", CUDA)
    monkeypatch.setattr(providers, "starts", lambda provider: provider == CPU)
    found = placed("auto", host)
    assert (found.device.requested, found.device.actual, found.provider.actual) == ("auto", "cpu", CPU)
    assert host.asked == [[(CUDA, {"use_tf32": "0"}), (CPU, {})], [(CPU, {})]]


def test_a_preferred_provider_that_does_not_start_is_told(without_gpu):
    found = placed("prefer:cuda", Host())
    assert (found.provider.requested, found.provider.actual) == ("prefer:cuda", CPU)
    assert found.device.actual == "cpu"
    assert "does not start here" in found.provider.reason


def test_a_required_provider_that_does_not_start_fails(without_gpu):
    host = Host()
    with pytest.raises(LoadError, match=r"'require:cuda' is not to be had.*does not start.*'prefer:cuda'"):
        placed("require:cuda", host)
    assert host.asked == []


def test_a_session_that_landed_elsewhere_is_never_taken_for_the_provider_asked_for(with_gpu):
    host = Host(lands_on={CUDA: CPU})
    with pytest.raises(LoadError, match=f"created on {CPU} instead of {CUDA}"):
        placed("require:cuda", host)
    assert host.sessions[0].closed
    found = placed("prefer:cuda", host)
    assert (found.provider.actual, found.device.actual) == (CPU, "cpu")
    assert f"instead of {CUDA}" in found.provider.reason


def test_a_provider_that_refuses_the_graph_is_told(with_gpu):
    host = Host()

    def create(wanted):
        if wanted[0][0] == CUDA:
            raise LoadError("onnx:m: no memory left on the device", backend_id="onnx:m")
        return host.create(wanted)

    found = place(Preference.parse("prefer:cuda"), create, backend_id="onnx:m")
    assert (found.provider.actual, found.provider.reason) == (CPU, "onnx:m: no memory left on the device")


def test_a_provider_that_is_not_built_in_is_told(with_gpu):
    with pytest.raises(LoadError, match="this build of ONNX Runtime has no MIGraphXExecutionProvider"):
        placed("require:migraphx", Host())


def test_numbers_of_devices_reach_the_provider_and_tensorrt_falls_back_to_cuda_for_what_it_lacks(with_gpu):
    host = Host()
    assert placed("require:cuda:1", host).device.actual == "cuda:1"
    assert placed("require:tensorrt", host).provider.actual == TENSORRT
    assert host.asked[0] == [(CUDA, {"use_tf32": "0", "device_id": "1"}), (CPU, {})]
    assert [name for name, _ in host.asked[1]] == [TENSORRT, CUDA, CPU]


@pytest.mark.parametrize("policy", ["require:gpu", "prefer:cuda:x", "require:cpu:1"])
def test_a_name_that_is_none_is_refused_with_the_list(policy, with_gpu):
    with pytest.raises(LoadError, match="use one of cpu, cuda, tensorrt, rocm, migraphx, openvino"):
        placed(policy, Host())


def test_the_processor_always_starts_and_what_is_not_there_does_not():
    assert providers.starts(CPU)
    assert not providers.starts("ROCMExecutionProvider")


def test_looking_for_a_provider_prints_nothing(capfd):
    providers.starts.cache_clear()
    for provider in onnxruntime.get_available_providers():
        providers.starts(provider)
    assert capfd.readouterr() == ("", "")
