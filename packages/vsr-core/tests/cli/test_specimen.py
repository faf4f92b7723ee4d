import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from vsr_core.catalog import CORE_FAMILIES, specify
from vsr_core.cli.specimen import WORDS, write_specimen
from vsr_core.contract import CatalogEntry
from vsr_core.taxonomy import Capability


def test_the_specimen_is_a_model_of_embeddings_in_the_shape_of_minilm(tmp_path):
    folder = write_specimen(tmp_path / "specimen")
    entry = CatalogEntry(name="specimen", source=str(folder))
    spec = specify(entry, folder, families={family.name: family for family in CORE_FAMILIES})
    assert Capability.EMBEDDING in spec.capabilities
    assert (spec.layers, spec.hidden_size, spec.pooling.modes) == (6, 384, ("mean",))
    tensors = load_file(folder / "model.safetensors")
    assert all(values.dtype == np.float32 and np.isfinite(values).all() for values in tensors.values())
    assert sum(values.size for name, values in tensors.items() if "encoder" in name) == 6 * 1_774_464


def test_its_tokenizer_knows_every_word_of_the_texts(tmp_path):
    tokenizer = Tokenizer.from_file(str(write_specimen(tmp_path / "specimen") / "tokenizer.json"))
    encoded = tokenizer.encode(" ".join(WORDS))
    assert encoded.tokens == ["[CLS]", *WORDS, "[SEP]"]
