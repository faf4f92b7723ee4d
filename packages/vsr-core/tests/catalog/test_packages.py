from __future__ import annotations

import pytest
from vsr_core.catalog.packages import locate_package
from vsr_core.errors import CheckpointError


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "site" / "a_model_package"
    (root / "inner" / "model").mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')")
    (root / "inner" / "__init__.py").write_text("raise RuntimeError('imported')")
    (root / "inner" / "model" / "config.json").write_text("{}")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return root


def test_a_nested_package_is_joined_as_a_path_and_never_imported(package):
    path, revision = locate_package("a_model_package.inner", "model", name="pkg://a_model_package.inner/model")

    assert path == package / "inner" / "model"
    assert revision is None


def test_the_distribution_is_read_from_its_record(package):
    info = package.parent / "a_model_package-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: a-model-package\nVersion: 1.2\n")
    (info / "RECORD").write_text("a_model_package/__init__.py,,\na_model_package/inner/model/config.json,,\n")

    _, revision = locate_package("a_model_package", "inner/model", name="pkg://a_model_package/inner/model")

    assert revision == "a-model-package==1.2"


def test_a_package_that_is_not_installed_says_to_install_it():
    with pytest.raises(CheckpointError, match=r"'no_such_package' is not installed; install"):
        locate_package("no_such_package", "model", name="pkg://no_such_package/model")


def test_a_module_that_is_no_package_has_no_files():
    with pytest.raises(CheckpointError, match="'this' is not installed"):
        locate_package("this", "model", name="pkg://this/model")


def test_a_file_the_package_does_not_have_is_named(package):
    with pytest.raises(CheckpointError, match=r"is installed and has no 'other'"):
        locate_package("a_model_package", "other", name="pkg://a_model_package/other")


def test_a_link_that_leads_out_of_the_package_is_refused(package, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (package / "inner" / "model" / "vocab.txt").symlink_to(tmp_path / "secret")

    with pytest.raises(CheckpointError, match="leads out of the package"):
        locate_package("a_model_package", "inner/model", name="pkg://a_model_package/inner/model")
