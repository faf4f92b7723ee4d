"""What the core's own tests share: a host with the toy backend alone, and a tiny checkpoint."""

import pytest
from vsr_core.plugins import PluginHost
from vsr_core.testing import ToyPlugin, write_bert, write_encoder


@pytest.fixture
def host():
    """Plugins as no machine has them: the toy backend, and nothing that is installed."""
    host = PluginHost.discover(entry_points=())
    host.register(ToyPlugin(), name="toy")
    return host


@pytest.fixture
def checkpoint(tmp_path):
    return write_bert(tmp_path / "mini")


@pytest.fixture
def heads(tmp_path):
    """A folder with a tiny checkpoint for each kind of head, under the head's name."""
    folder = tmp_path / "heads"
    for head in ("sequence", "nli", "token", "reranker"):
        write_encoder(folder / head, "bert", head=head)
    return folder
