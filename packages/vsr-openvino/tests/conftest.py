"""Small graphs with real, if little, mathematics, and the numpy reference they are held against."""

import hashlib
import json
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from vsr_core.catalog import (
    CORE_FAMILIES,
    ExitLayer,
    ExportManifest,
    HeadLayout,
    hash_files,
    specify,
    write_manifest,
)
from vsr_core.contract import BackendId, CatalogEntry, LoadRequest, PoolingSpec
from vsr_core.taxonomy import Capability
from vsr_core.testing import BertShape, EncoderShape, write_bert, write_encoder
from vsr_openvino.compiling import Compiler
from vsr_openvino.reading import read_graph
from vsr_openvino.untracked import ov

HIDDEN, LAYERS, VOCABULARY = 32, 2, 400


@dataclass(frozen=True, eq=False)
class Model:
    """Two layers in which every token sees the mean of the real ones."""

    embedding: np.ndarray
    layers: tuple = field(default_factory=tuple)
    classifier: np.ndarray | None = None

    @classmethod
    def draw(cls, seed=0, vocabulary=VOCABULARY):
        source = np.random.default_rng(seed)
        shapes = [(vocabulary, HIDDEN), *[(HIDDEN, HIDDEN)] * LAYERS]
        first, *layers = (source.normal(0, 0.3, shape).astype(np.float32) for shape in shapes)
        return cls(first, tuple(layers), source.normal(0, 1, (4, HIDDEN)).astype(np.float32))

    def hidden(self, ids, layer=LAYERS, types=None):
        """``[tokens, hidden]`` of one sequence, in float64; a type is added to every number of its token."""
        states = self.embedding[ids].astype(np.float64)
        if types is not None:
            states += np.array(types)[:, None]
        for weight in self.layers[:layer]:
            states = np.tanh(states @ weight + states.mean(0))
        return states

    def proto(self, *, outputs=("hidden_1", "hidden_2"), opset=20, types=False, dims=("batch", "sequence"), deep=None):
        """The graph; ``outputs`` are names of hidden states, or ``logits``."""
        names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
        weights = {"embedding": self.embedding, "last": np.array([-1]), "first": np.array([1])}
        weights |= {f"weight_{number}": weight for number, weight in enumerate(self.layers, 1)}
        nodes = [("Gather", ["embedding", "input_ids"], "looked_up" if types else "state_0")]
        if types:
            nodes += [
                ("Cast", ["token_type_ids"], "type", {"to": TensorProto.FLOAT}),
                ("Unsqueeze", ["type", "last"], "type_column"),
                ("Add", ["looked_up", "type_column"], "state_0"),
            ]
        nodes += [
            ("Cast", ["attention_mask"], "real", {"to": TensorProto.FLOAT}),
            ("Unsqueeze", ["real", "last"], "mask"),
            ("ReduceSum", ["mask", "first"], "count"),
        ]
        for number in range(1, (deep or LAYERS) + 1):
            before = f"state_{number - 1}"
            nodes += [
                ("Mul", [before, "mask"], f"kept_{number}"),
                ("ReduceSum", [f"kept_{number}", "first"], f"sum_{number}"),
                ("Div", [f"sum_{number}", "count"], f"mean_{number}"),
                ("MatMul", [before, f"weight_{number}"], f"product_{number}"),
                ("Add", [f"product_{number}", f"mean_{number}"], f"added_{number}"),
                ("Tanh", [f"added_{number}"], f"state_{number}"),
            ]
        return helper.make_model(
            self._graph(names, outputs, nodes, weights, dims, deep or LAYERS),
            opset_imports=[helper.make_opsetid("", opset)],
            ir_version=10,
        )

    def _graph(self, names, outputs, nodes, weights, dims, depth):
        given = []
        for name in outputs:
            if name == "logits":
                weights |= {"classifier": self.classifier.T.copy(), "zero": np.array(0)}
                nodes += [
                    ("Gather", [f"state_{depth}", "zero"], "first_token", {"axis": 1}),
                    ("MatMul", ["first_token", "classifier"], name),
                ]
                given.append((name, [dims[0], len(self.classifier)]))
            else:
                number = int(name[-1]) if name.startswith("hidden_") and name[-1].isdigit() else depth
                nodes.append(("Identity", [f"state_{number}"], name))
                given.append((name, [*dims, HIDDEN]))
        return helper.make_graph(
            [helper.make_node(op, reads, [gives], **(rest[0] if rest else {})) for op, reads, gives, *rest in nodes],
            "graph",
            [helper.make_tensor_value_info(name, TensorProto.INT64, dims) for name in names],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given],
            [numpy_helper.from_array(np.asarray(value, order="C"), name) for name, value in weights.items()],
        )


@pytest.fixture(scope="session")
def model():
    return Model.draw()


@pytest.fixture(scope="session")
def draw():
    return Model.draw


@pytest.fixture(scope="session")
def write_onnx():
    """Writes a graph as ONNX, with its weights inside or beside it."""

    def write(path, model, *, external=False, **options):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = {"save_as_external_data": True, "location": f"{path.name}.data", "size_threshold": 0}
        onnx.save_model(model.proto(**options), path, **(beside if external else {}))
        return path

    return write


@pytest.fixture(scope="session")
def write_ir(write_onnx):
    """Writes a graph as OpenVINO IR."""

    def write(path, model, *, compress=False, **options):
        source = write_onnx(path.with_name("source.onnx"), model, **options)
        ov.save_model(read_graph(source).model, path, compress_to_fp16=compress)
        source.unlink()
        return path

    return write


@pytest.fixture
def compiler():
    def make(**stated):
        settings = {"device": "CPU", "dtype": "float32", "threads": 2, "performance": "throughput"}
        return Compiler(core=ov.Core(), **(settings | stated))

    return make


@pytest.fixture
def embedder(tmp_path, model, write_ir, write_onnx):
    """Writes the folder of an embedding model whose weights are a graph."""

    def write(form="ir", *, name=None, into=None, of=model, **options):
        folder = write_bert(tmp_path / (into or "model"), BertShape(layers=LAYERS), normalize=False)
        (folder / "model.safetensors").unlink()
        graph = folder / (name or ("openvino_model.xml" if form == "ir" else "model.onnx"))
        (write_ir if form == "ir" else write_onnx)(graph, of, **options)
        return folder

    return write


@pytest.fixture
def classifier(tmp_path, write_ir):
    """Writes the folder of an exported classifier whose head lies beside its graph; gives the head's weights."""

    def write(model, head="sequence"):
        shape = EncoderShape(layers=LAYERS, hidden=HIDDEN)
        folder = write_encoder(tmp_path / head, "bert", head=head, shape=shape)
        (folder / "model.safetensors").unlink()
        pairs = head in ("nli", "reranker")
        write_ir(folder / "openvino_model.xml", model, types=pairs)
        labels = len(json.loads((folder / "config.json").read_text())["id2label"])
        weight = np.random.default_rng(7).normal(0, 1, (labels, HIDDEN)).astype(np.float32)
        save_file(
            {"classifier.weight": weight, "classifier.bias": np.zeros(labels, np.float32)}, folder / "head.safetensors"
        )
        token = head == "token"
        layout = HeadLayout(kind="token" if token else "sequence", labels=labels, pool=None if token else "cls")
        sign(folder, head=layout, inputs=("input_ids", "attention_mask", *(["token_type_ids"] if pairs else [])))
        return folder, weight

    return write


def sign(folder, **stated):
    """Write the manifest of an export over the files of a folder."""
    files = [path for path in folder.iterdir() if path.stem == "openvino_model" or path.suffix == ".onnx"]
    files += [path for path in [folder / "head.safetensors"] if path.exists()]
    settings = {
        "family": "bert",
        "architecture": "BertModel",
        "capabilities": (Capability.EMBEDDING,),
        "hidden_size": HIDDEN,
        "layers": LAYERS,
        "exits": tuple(ExitLayer(layer=layer, output=f"hidden_{layer}") for layer in range(1, LAYERS + 1)),
        "max_tokens": 64,
        "inputs": ("input_ids", "attention_mask"),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "pooling": PoolingSpec(modes=("mean",)),
    }
    write_manifest(folder, ExportManifest(**(settings | stated)))


@pytest.fixture(name="sign")
def sign_fixture():
    return sign


@pytest.fixture
def load_request():
    """What the backend would be told to load a folder."""

    def make(folder, *, device=None, precision=None, cache_dir=None, **stated):
        entry = CatalogEntry(name="m", source=str(folder), **stated)
        spec = specify(entry, folder, families={family.name: family for family in CORE_FAMILIES})
        policies = {"device": device, "precision": precision}
        return LoadRequest(
            backend_id=BackendId("openvino", "m"),
            entry=entry,
            path=folder,
            spec=replace(spec, content_hash=hash_files(folder, spec.files)),
            cache_dir=cache_dir,
            labels=spec.labels,
            **{name: value for name, value in policies.items() if value is not None},
        )

    return make
