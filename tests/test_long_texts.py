"""Long texts under a limit on memory: read where they fit, refused with the number that would where they do not."""

import json
import subprocess
import sys
import textwrap

import pytest
from vsr_core.testing import EncoderShape, write_encoder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is set through Linux's RLIMIT_AS")

SCRIPT = """
    import json, resource, sys
    import numpy as np
    import psutil
    import torch
    from vsr_core import Runtime
    from vsr_core.errors import InputTooLongError

    folder, words, spare = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    backends = {"torch": {"precision": "fp32", "threads": 1}}
    with Runtime({"catalog": {"m": {"source": folder}}, "backends": backends}) as vsr:
        vsr.classify("a word to warm up")
        limit = psutil.Process().memory_info().vms + spare
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            result = vsr.classify("a " * words).results[0]
            found = {"tokens": result.tokens, "label": result.label, "sum": sum(result.distribution.values())}
        except InputTooLongError as error:
            shorter = vsr.classify("a " * (error.limit - 8)).results[0]
            found = {"refused": error.message, "limit": error.limit, "unit": error.unit, "fits": shorter.tokens}
    print(json.dumps(found))
"""

MEBIBYTE = 1 << 20


def ask(folder, *, words, spare):
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder), str(words), str(spare)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_thirty_two_thousand_tokens_are_read_in_memory_that_their_square_would_exceed(tmp_path):
    """With scores written out, one layer that looks everywhere would take 8 GiB; with a mask for the window, 4 GiB."""
    shape = EncoderShape(hidden=16, layers=4, heads=2, intermediate=24, positions=32768)
    folder = write_encoder(tmp_path / "m", "modernbert", head="sequence", shape=shape)
    found = ask(folder, words=32765, spare=400 * MEBIBYTE)
    assert found["tokens"] == 32768
    assert found["sum"] == pytest.approx(1)


def test_what_would_not_fit_is_refused_with_the_number_of_tokens_that_would(tmp_path):
    """DeBERTa runs in transformers' code, which writes its scores out, so that its memory grows with the square."""
    folder = write_encoder(tmp_path / "m", "deberta", head="sequence", shape=EncoderShape(positions=8192))
    found = ask(folder, words=8000, spare=500 * MEBIBYTE)
    assert found["unit"] == "tokens"
    assert 500 < found["limit"] < 8000
    assert f"{found['limit']} tokens would fit" in found["refused"]
    assert found["limit"] - 8 < found["fits"] <= found["limit"]
