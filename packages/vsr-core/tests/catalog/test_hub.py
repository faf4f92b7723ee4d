from __future__ import annotations

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from vsr_core.catalog import cached_source, parse_source
from vsr_core.catalog.hub import wanted_files
from vsr_core.errors import CheckpointError
from vsr_core.taxonomy import Artifact

COMMIT = "0123456789abcdef0123456789abcdef01234567"

RESOLVE = """
import sys
from vsr_core.catalog import parse_source, resolve_source
from vsr_core.errors import CheckpointError
try:
    found = resolve_source(parse_source(sys.argv[1]), progress=lambda *told: print("progress", *told, file=sys.stderr))
    print(found.revision, *sorted(str(p.relative_to(found.path)) for p in found.path.rglob("*") if p.is_file()))
except CheckpointError as error:
    print("refused:", error)
"""


CACHED = """
import sys
from vsr_core.catalog import cached_source, parse_source
found = cached_source(parse_source(sys.argv[1]))
print(found and found.revision)
"""


def resolve(source: str, home: Path, *, script: str = RESOLVE, **environ: str) -> subprocess.CompletedProcess[str]:
    """Resolve in a process of its own, since the hub library reads its environment when it is imported."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    env |= {"HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **environ}
    return subprocess.run(
        [sys.executable, "-c", script, source], env=env, capture_output=True, text=True, check=True, timeout=15
    )


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """A hub cache with one repository: files are links from the snapshot to the blobs."""
    repository = tmp_path / "hub" / "models--org--name"
    snapshot = repository / "snapshots" / COMMIT
    for folder in (repository / "blobs", repository / "refs", snapshot):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "blobs" / "1234").write_text('{"model_type": "bert"}')
    (snapshot / "config.json").symlink_to("../../blobs/1234")
    return tmp_path


def test_offline_the_cache_is_used_and_the_branch_becomes_its_commit(cached):
    assert resolve("hf://org/name", cached, HF_HUB_OFFLINE="1").stdout.split() == [COMMIT, "config.json"]


def test_offline_a_commit_in_the_cache_is_found(cached):
    assert resolve(f"hf://org/name@{COMMIT}", cached, HF_HUB_OFFLINE="1").stdout.split() == [COMMIT, "config.json"]


def test_offline_and_not_in_the_cache_says_so_with_the_way_out(cached):
    told = resolve("hf://org/name@v2", cached, HF_HUB_OFFLINE="1").stdout

    assert "hf://org/name@v2: revision 'v2' is not in the local cache" in told
    assert "unset HF_HUB_OFFLINE" in told


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as the hub library asks for one repository."""

    files: ClassVar[dict[str, bytes]] = {
        "config.json": b"{}",
        "tokenizer.json": b"{}",
        "model.safetensors": b"weights",
        "1_Pooling/config.json": b"{}",
        "pytorch_model.bin": b"pickle",
        "modeling_custom.py": b"code",
        "onnx/model.onnx": b"graph",
        "README.md": b"text",
    }

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/org/name/tree/"):
            body = json.dumps(
                [
                    {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for name, data in self.files.items()
                ]
            ).encode()
            self.reply(200, {"Content-Type": "application/json"}, body, with_body=with_body)
        elif path.startswith("/api/models/org/name"):
            body = json.dumps({"id": "org/name", "sha": COMMIT, "siblings": []}).encode()
            self.reply(200, {"Content-Type": "application/json"}, body, with_body=with_body)
        elif path.startswith(f"/org/name/resolve/{COMMIT}/"):
            data = self.files[path.split(f"{COMMIT}/")[1]]
            headers = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
            self.reply(200, headers, data, with_body=with_body)
        elif "gated" in path:
            self.reply(403, {"X-Error-Code": "GatedRepo"}, b"", with_body=with_body)
        else:
            self.reply(404, {"X-Error-Code": "RepoNotFound"}, b"", with_body=with_body)

    def reply(self, status: int, headers: dict[str, str], body: bytes, *, with_body: bool) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hub():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_brings_what_the_model_needs_and_nothing_else(hub, tmp_path):
    told = resolve("hf://org/name", tmp_path, HF_ENDPOINT=hub)

    assert told.stdout.split() == [
        COMMIT,
        "1_Pooling/config.json",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert "progress hf://org/name@main: Fetching 4 files 4 4" in told.stderr


def test_a_model_that_was_fetched_counts_as_cached_though_the_repository_holds_more(hub, tmp_path):
    resolve("hf://org/name", tmp_path, HF_ENDPOINT=hub)

    assert resolve("hf://org/name", tmp_path, script=CACHED, HF_ENDPOINT=hub).stdout.strip() == COMMIT
    assert resolve("hf://org/other", tmp_path, script=CACHED, HF_ENDPOINT=hub).stdout.strip() == "None"


def test_a_snapshot_without_a_tokenizer_does_not_count_as_cached(cached):
    source, (snapshot,) = parse_source("hf://org/name"), (cached / "hub").glob("*/snapshots/*")
    (snapshot / "model.safetensors").write_bytes(b"1")
    assert cached_source(source, cache_dir=cached / "hub") is None

    (snapshot / "tokenizer.json").write_bytes(b"{}")
    found = cached_source(source, cache_dir=cached / "hub")
    assert found is not None
    assert found.revision == COMMIT


def test_a_snapshot_without_weights_does_not_count_as_cached(cached):
    assert resolve("hf://org/name", cached, script=CACHED).stdout.strip() == "None"


def test_a_repository_nobody_knows_and_a_gated_one_are_told_apart_and_no_token_shows(hub, tmp_path):
    unknown = resolve("hf://org/unknown", tmp_path, HF_ENDPOINT=hub, HF_TOKEN="hf_secret")
    gated = resolve("hf://org/gated", tmp_path, HF_ENDPOINT=hub, HF_TOKEN="hf_secret")

    assert "refused: hf://org/unknown@main: there is no repository 'org/unknown'" in unknown.stdout
    assert "refused: hf://org/gated@main: org/gated is gated; ask for access" in gated.stdout
    assert "hf_secret" not in unknown.stdout + unknown.stderr + gated.stdout + gated.stderr


FILES = [
    "config.json",
    "vocab.txt",
    "model.safetensors",
    "pytorch_model.bin",
    "onnx/model.onnx",
    "onnx/model.onnx_data",
    "onnx/model_O4.onnx",
    "openvino/openvino_model.xml",
    "openvino/openvino_model.bin",
    "2_Dense/config.json",
    "2_Dense/model.safetensors",
    "code.py",
]


def test_safetensors_are_preferred():
    assert wanted_files(FILES, name="x") == (
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "config.json",
        "model.safetensors",
        "vocab.txt",
    )


def test_the_form_asked_for_is_fetched_with_what_belongs_to_it():
    onnx = wanted_files(FILES, artifact=Artifact.ONNX, name="x")
    openvino = wanted_files(FILES, artifact=Artifact.OPENVINO_IR, name="x")

    assert {"onnx/model.onnx", "onnx/model.onnx_data"} <= set(onnx)
    assert not {"onnx/model_O4.onnx", "model.safetensors", "openvino/openvino_model.bin"} & set(onnx)
    assert {"openvino/openvino_model.xml", "openvino/openvino_model.bin"} <= set(openvino)


def test_one_file_of_many_can_be_named():
    names = ["config.json", "m.Q4.gguf", "m.Q8.gguf"]

    assert wanted_files(names, path="m.Q4.gguf", name="x") == ("config.json", "m.Q4.gguf")
    with pytest.raises(CheckpointError, match="several gguf weights; name the file"):
        wanted_files(names, name="x")


def test_pickles_alone_are_refused():
    with pytest.raises(CheckpointError, match="only pickled weights"):
        wanted_files(["config.json", "pytorch_model.bin"], name="hf://org/name@main")


def test_a_graph_comes_with_its_manifest_its_head_and_its_exits():
    names = ["config.json", "vsr_manifest.json", "head.safetensors", "onnx/layer-2/model.onnx", "onnx/model.onnx"]
    names += ["onnx/layer-2/model.onnx.data", "onnx/model_int8.onnx"]

    assert set(wanted_files(names, name="x")) == {*names[:-1]}
    assert wanted_files(names, artifact=Artifact.QUANTIZED, name="x") == (
        "config.json",
        "head.safetensors",
        "onnx/model_int8.onnx",
        "vsr_manifest.json",
    )
