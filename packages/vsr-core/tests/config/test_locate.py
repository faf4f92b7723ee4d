"""Which file is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from vsr_core.config import find_config
from vsr_core.errors import ConfigError


@pytest.fixture
def folder(tmp_path):
    for name in ("vsr.yaml", "other.yaml", "named.yaml"):
        (tmp_path / name).touch()
    return tmp_path


def test_an_explicit_file_comes_first(folder):
    assert find_config(Path("other.yaml"), {"VSR_CONFIG": "named.yaml"}, folder) == folder / "other.yaml"


def test_then_the_one_the_variable_names(folder):
    assert find_config(None, {"VSR_CONFIG": "named.yaml"}, folder) == folder / "named.yaml"


def test_then_the_one_in_the_working_folder(folder):
    assert find_config(None, {"VSR_CONFIG": ""}, folder) == folder / "vsr.yaml"


def test_none_of_them_is_no_error(tmp_path):
    assert find_config(None, {}, tmp_path) is None


def test_an_explicit_file_must_exist(folder):
    with pytest.raises(ConfigError, match=r"^the configuration file 'no\.yaml' does not exist$"):
        find_config(Path("no.yaml"), {}, folder)


def test_a_file_the_variable_names_must_exist(folder):
    with pytest.raises(ConfigError, match=r"'no\.yaml', which VSR_CONFIG names, does not exist"):
        find_config(None, {"VSR_CONFIG": "no.yaml"}, folder)
