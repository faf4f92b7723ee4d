"""The backend says what it can do, loads that, and refuses the rest with the reason it listed."""

import json
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from vsr_candle_torch.adapter import TorchBackend
from vsr_core import Runtime
from vsr_core.contract import BackendContext, CapabilityQuery, Refused, Supported
from vsr_core.errors import CapabilityUnmetError, CheckpointError, InvalidInputError, LoadError
from vsr_core.taxonomy import Artifact, Capability, Feature
from vsr_core.testing import BertShape, write_bert


@pytest.fixture
def backend():
    return TorchBackend(BackendContext(name="torch", threads=1))


def runtime(folder, **options):
    backends = {"torch": {"precision": "fp32", **options}}
    return Runtime({"catalog": {"m": {"source": str(folder)}}, "backends": backends})


def test_it_serves_encoders_from_full_weights_and_refuses_the_rest(backend):
    rules = backend.capabilities()
    for family in ("bert", "minilm", "roberta", "xlm_roberta", "modernbert", "mmbert", "deberta", "distilbert"):
        for capability in (Capability.EMBEDDING, Capability.TOKEN_CLASSIFICATION, Capability.RERANKING):
            cell = CapabilityQuery(capability=capability, family=family, artifact=Artifact.FULL)
            assert isinstance(rules.decide(cell), Supported)
            exits = CapabilityQuery(
                capability=capability, family=family, artifact=Artifact.FULL, feature=Feature.LAYER_EXIT
            )
            assert isinstance(rules.decide(exits), Supported) is (family not in ("deberta", "distilbert"))
    for cell in (
        CapabilityQuery(capability=Capability.EMBEDDING, family="bert", artifact=Artifact.ONNX),
        CapabilityQuery(capability=Capability.EMBEDDING, family="qwen3", artifact=Artifact.FULL),
        CapabilityQuery(capability=Capability.GENERATION),
        CapabilityQuery(capability=Capability.EMBEDDING, feature=Feature.STREAMING),
    ):
        verdict = rules.decide(cell)
        assert isinstance(verdict, Refused)
        assert verdict.reason


def test_saying_so_imports_no_framework():
    code = (
        "import sys; from vsr_core.contract import BackendContext; from vsr_candle_torch.adapter import TorchBackend;"
        "TorchBackend(BackendContext(name='torch')).capabilities();"
        "sys.exit(bool({'torch', 'transformers', 'peft'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_probe_reports_this_host(backend):
    found = backend.probe()
    assert found.usable
    assert found.versions["torch"]
    assert found.devices == ("cpu",)
    assert "float32" in found.dtypes


def test_vectors_are_those_of_the_reference(folder, reference):
    with runtime(folder) as vsr:
        response = vsr.embed(["the river bank", "a"])
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        for text, vector in zip(["the river bank", "a"], response.vectors, strict=True):
            ids = np.array(tokenizer.encode(text).ids, np.int32)
            expected = reference(folder, ids)[3].mean(0)
            np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "max", "last"])
def test_pooling_follows_the_checkpoint(tmp_path, pooling, reference):
    folder = write_bert(tmp_path / "m", pooling=pooling, normalize=False)
    ids = np.array(Tokenizer.from_file(str(folder / "tokenizer.json")).encode("two dog tree").ids, np.int32)
    states = reference(folder, ids)[3]
    expected = {"cls": states[0], "max": states.max(0), "last": states[-1]}[pooling]
    with runtime(folder) as vsr:
        np.testing.assert_allclose(vsr.embed("two dog tree").vectors[0], expected, atol=2e-5)


def test_a_stated_exit_layer_and_width_are_served_and_others_refused(tmp_path, reference):
    folder = write_bert(tmp_path / "m")
    catalog = {"m": {"source": str(folder), "layers": [1, 3], "dimensions": [8, 32]}}
    with Runtime({"catalog": catalog, "backends": {"torch": {"precision": "fp32"}}}) as vsr:
        response = vsr.embed("a cat", layer=1, dimensions=8)
        assert response.vectors.shape == (1, 8)
        assert (response.envelope.layer, response.envelope.dimensions) == (1, 8)
        np.testing.assert_allclose(np.linalg.norm(response.vectors), 1, atol=1e-6)
        for wrong in ({"layer": 2}, {"dimensions": 16}, {"dimensions": 64}):
            with pytest.raises(InvalidInputError, match="is not offered"):
                vsr.embed("a cat", **wrong)
        assert vsr.embed("a cat").vectors.shape == (1, 32)


def test_requiring_another_device_fails_and_preferring_it_is_reported(folder):
    with (
        runtime(folder, device="require:cuda") as vsr,
        pytest.raises(LoadError, match="'require:cuda' is not to be had"),
    ):
        vsr.load("torch:m")
    with runtime(folder, device="prefer:cuda") as vsr:
        found = vsr.load("torch:m")
        assert (found.device.requested, found.device.actual) == ("prefer:cuda", "cpu")
        assert "computes on the CPU" in found.device.reason


def test_dtype_is_part_of_the_compatibility_key(folder):
    with runtime(folder) as full, runtime(folder, precision="bf16") as half:
        if "bfloat16" not in TorchBackend(BackendContext(name="torch")).probe().dtypes:
            pytest.skip("this CPU has no native bf16")
        keys = [vsr.load("torch:m").compatibility_key for vsr in (full, half)]
        assert keys[0] != keys[1]


def test_weights_that_do_not_fit_the_configuration_are_refused(tmp_path):
    folder = write_bert(tmp_path / "m", config={"num_hidden_layers": 4})
    with runtime(folder) as vsr, pytest.raises(CheckpointError, match="is missing"):
        vsr.embed("a")


def test_a_configuration_with_a_byte_order_mark_is_read_by_the_catalog_and_here_alike(folder, tmp_path):
    marked = write_bert(tmp_path / "marked")
    file = marked / "config.json"
    file.write_text(file.read_text(encoding="utf-8"), encoding="utf-8-sig")
    with runtime(folder) as plain, runtime(marked) as other:
        np.testing.assert_array_equal(plain.embed("a cat").vectors, other.embed("a cat").vectors)


def test_a_file_of_weights_may_be_the_source(folder):
    with runtime(folder) as whole, runtime(folder / "model.safetensors") as file:
        np.testing.assert_array_equal(whole.embed("a cat").vectors, file.embed("a cat").vectors)


def test_a_limit_without_room_for_text_is_the_checkpoints_fault(folder):
    catalog = {"m": {"source": str(folder), "max_tokens": 2}}
    with Runtime({"catalog": catalog}) as vsr, pytest.raises(CheckpointError):
        vsr.embed("a cat")


def test_another_family_is_refused_before_it_is_loaded(tmp_path):
    folder = write_bert(tmp_path / "m", config={"model_type": "qwen3", "architectures": ["Qwen3Model"]})
    with runtime(folder) as vsr, pytest.raises(CapabilityUnmetError, match="bert, minilm"):
        vsr.embed("a")


def test_a_checkpoint_replaced_under_a_loaded_model_is_served_after_a_swap(tmp_path):
    folder = write_bert(tmp_path / "m", BertShape(seed=1))
    with runtime(folder) as vsr:
        first = vsr.embed("a cat")
        other = write_bert(tmp_path / "other", BertShape(seed=2))
        shutil.copy(other / "model.safetensors", folder / "model.safetensors")
        np.testing.assert_array_equal(vsr.embed("a cat").vectors, first.vectors)
        vsr.swap("torch:m")
        assert np.abs(vsr.embed("a cat").vectors - first.vectors).max() > 0.01


@pytest.mark.parametrize("include", [True, False])
def test_a_prompt_is_pooled_or_left_out_as_the_checkpoint_says(tmp_path, reference, include):
    folder = write_bert(tmp_path / "m", normalize=False, prompts={"query": "query two: "})
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text()) | {"include_prompt": include}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    ids = np.array(Tokenizer.from_file(str(folder / "tokenizer.json")).encode("query two: a cat").ids, np.int32)
    states = reference(folder, ids)[3]
    prompt = 0 if include else 4  # [CLS] query two :
    with runtime(folder) as vsr:
        np.testing.assert_allclose(vsr.embed("a cat", prompt="query").vectors[0], states[prompt:].mean(0), atol=2e-5)
        with pytest.raises(InvalidInputError, match="'query'"):
            vsr.embed("a cat", prompt="document")


def test_loading_leaves_torchs_number_of_threads_as_it_was(folder):
    before = torch.get_num_threads()
    with runtime(folder) as vsr:
        vsr.load("torch:m")
        found = []
        thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        thread.start()
        thread.join()
    assert found == [before]
