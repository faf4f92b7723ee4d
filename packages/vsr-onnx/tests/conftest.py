"""Small encoders as ONNX graphs, drawn by hand, and the same forward in numpy to hold them against."""

import json
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from vsr_core.testing import BertShape, EncoderShape, write_bert, write_encoder

HIDDEN, LAYERS = 32, 3


@dataclass
class SmallEncoder:
    """Token vectors that each layer mixes with the mean of their sequence: ``tanh(h @ w + mean(h))``."""

    vocabulary: int
    layers: int = LAYERS
    logits: int | None = None
    per_token: bool = False
    masked: bool = True
    seed: int = 0
    opset: int = 17

    def __post_init__(self):
        source = np.random.default_rng(self.seed)
        self.weights = {
            "table": source.normal(size=(self.vocabulary, HIDDEN)).astype(np.float32),
            "types": source.normal(size=(2, HIDDEN)).astype(np.float32),
            **{f"w{n}": source.normal(0, 0.3, (HIDDEN, HIDDEN)).astype(np.float32) for n in range(1, self.layers + 1)},
            "classifier": source.normal(size=(HIDDEN, self.logits or 1)).astype(np.float32),
        }

    def forward(self, ids, layer=None):
        """Hidden states ``[tokens, hidden]`` of one sequence."""
        found = self.weights["table"][ids] + self.weights["types"][0]
        for number in range(1, (layer or self.layers) + 1):
            found = np.tanh(found @ self.weights[f"w{number}"] + found.mean(0))
        return found

    def classify(self, ids):
        """Logits of one sequence, from its first token or for each."""
        states = self.forward(ids)
        return (states if self.per_token else states[0]) @ self.weights["classifier"]

    def model(self, outputs=("last_hidden_state",)):
        """The graph; an output ``hidden_<k>`` is layer k, ``logits`` the head, any other the last layer."""
        nodes = [
            helper.make_node("Gather", ["table", "input_ids"], ["words"]),
            helper.make_node("Gather", ["types", "token_type_ids"], ["kinds"]),
            helper.make_node("Add", ["words", "kinds"], ["h0"]),
            helper.make_node("Cast", ["attention_mask"], ["flags"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["flags", "last"], ["mask"]),
            helper.make_node("ReduceSum", ["mask", "middle"], ["count"], keepdims=1),
        ]
        for n in range(1, self.layers + 1):
            nodes += [
                helper.make_node("Mul", [f"h{n - 1}", "mask"], [f"kept{n}"]),
                helper.make_node("ReduceSum", [f"kept{n}" if self.masked else f"h{n - 1}", "middle"], [f"sum{n}"]),
                helper.make_node("Div", [f"sum{n}", "count"], [f"mean{n}"]),
                helper.make_node("MatMul", [f"h{n - 1}", f"w{n}"], [f"product{n}"]),
                helper.make_node("Add", [f"product{n}", f"mean{n}"], [f"mixed{n}"]),
                helper.make_node("Tanh", [f"mixed{n}"], [f"h{n}"]),
            ]
        ports = []
        for name in outputs:
            depth = f"h{name.removeprefix('hidden_')}" if name.startswith("hidden_") else f"h{self.layers}"
            if name == "logits":
                first = ["first"] if not self.per_token else [depth]
                if not self.per_token:
                    nodes.append(helper.make_node("Gather", [depth, "zero"], ["first"], axis=1))
                nodes.append(helper.make_node("MatMul", [*first, "classifier"], ["logits"]))
                sizes = ["batch", self.logits] if not self.per_token else ["batch", "sequence", self.logits]
            else:
                nodes.append(helper.make_node("Identity", [depth], [name]))
                sizes = ["batch", "sequence", HIDDEN]
            ports.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes))
        constants = {"last": np.array([2]), "middle": np.array([1]), "zero": np.array(0)}
        graph = helper.make_graph(
            nodes,
            "small",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
                for name in ("input_ids", "attention_mask", "token_type_ids")
            ],
            ports,
            [numpy_helper.from_array(value, name) for name, value in {**self.weights, **constants}.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    def write(self, path, outputs=("last_hidden_state",), *, external=False):
        """Write the graph, its larger weights beside it where ``external``; gives the path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"save_as_external_data": True, "location": f"{path.name}.data", "size_threshold": 1024}
        onnx.save(self.model(outputs), str(path), **(options if external else {}))
        return path


@pytest.fixture(scope="session")
def small():
    """The class of the encoders."""
    return SmallEncoder


@pytest.fixture
def checkpoint(tmp_path):
    """Writes tokenizer and configuration of a tiny BERT with a head, without weights."""

    def write(head="embedding", name="m", **options):
        if head == "embedding":
            folder = write_bert(tmp_path / name, BertShape(hidden=HIDDEN, layers=LAYERS), **options)
        else:
            shape = EncoderShape(hidden=HIDDEN, layers=LAYERS)
            folder = write_encoder(tmp_path / name, "bert", head=head, shape=shape, **options)
        (folder / "model.safetensors").unlink()
        return folder

    return write


@pytest.fixture
def exported(checkpoint):
    """Writes a whole folder with a graph in it; gives the folder and the encoder."""

    def write(head="embedding", outputs=None, *, name="m", file="model.onnx", external=False, seed=0, **options):
        folder = checkpoint(head, name, **options)
        vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
        labels = len(json.loads((folder / "config.json").read_text()).get("id2label", ())) or None
        encoder = SmallEncoder(vocabulary, logits=labels, per_token=head == "token", seed=seed)
        outputs = outputs or (("last_hidden_state",) if head == "embedding" else ("logits",))
        encoder.write(folder / file, outputs, external=external)
        return folder, encoder

    return write


@pytest.fixture(scope="session")
def ids_of():
    """The token ids of a text or a pair by the tokenizer of a folder."""

    def read(folder, *texts):
        return np.array(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(*texts).ids)

    return read
