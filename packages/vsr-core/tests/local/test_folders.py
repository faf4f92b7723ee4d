import dataclasses

import pytest
from vsr_core.catalog import CORE_FAMILIES, specify
from vsr_core.contract import CatalogEntry
from vsr_core.errors import InvalidInputError
from vsr_core.local.folders import copy_documents, listed, new_folder
from vsr_core.testing import DenseShape, write_encoder, write_sentence_transformer


@pytest.mark.parametrize("exists", [True, False])
def test_the_folder_appears_whole_when_the_block_is_done(tmp_path, exists):
    out = tmp_path / "out"
    if exists:
        out.mkdir()
    with new_folder(out) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "file").write_text("x")
        assert not exists or list(out.iterdir()) == []
        assert folder.parent == tmp_path
    assert listed(out) == ("inner/file",)
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_nothing_is_left_where_the_block_fails(tmp_path, raised):
    def fail():
        with new_folder(tmp_path / "out") as folder:
            (folder / "file").write_text("x")
            raise raised

    with pytest.raises(raised):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_else_wrote_meanwhile_is_kept(tmp_path):
    out = tmp_path / "out"

    def collide():
        with new_folder(out):
            out.mkdir()
            (out / "theirs").write_text("x")

    with pytest.raises(InvalidInputError, match="cannot be made") as caught:
        collide()
    assert caught.value.param == "out"
    assert listed(tmp_path) == ("out/theirs",)


def test_a_parent_that_is_gone_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be made"), new_folder(tmp_path / "gone" / "out"):
        pass


def test_the_weights_of_dense_layers_are_copied_and_those_of_the_encoder_are_not(tmp_path):
    source = write_encoder(tmp_path / "source", "bert")
    write_sentence_transformer(source, hidden=32, dense=(DenseShape(out=16),))
    spec = specify(CatalogEntry(name="m"), source, families={family.name: family for family in CORE_FAMILIES})
    spec = dataclasses.replace(spec, files=(*spec.files, "model.safetensors.index.json"))
    target = tmp_path / "target"
    target.mkdir()
    copy_documents(source, spec, target)
    assert {"1_Pooling/config.json", "2_Dense/model.safetensors", "config.json", "modules.json"} <= set(listed(target))
    assert not [name for name in listed(target) if name.startswith("model.safetensors")]
