"""What an operator may set on the backend ``onnx``: a few options of ONNX Runtime's sessions, and no others.

ONNX Runtime accepts any key in a session's configuration without a word, so what may be set is listed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["GraphOptimization", "OnnxOptions"]

GraphOptimization = Literal["off", "basic", "extended", "all"]
"""How far graphs are rewritten when they are loaded; ``all`` includes layouts that suit this very processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxOptions:
    """Options of every session of one instance.

    Threads are those of the runtime, nodes always run one after another, and no memory pattern is kept, since the
    shapes of batches vary.

    :param arena: keep freed working memory for the next batch; faster, and holds what the largest batch took until the
        model is unloaded.
    :param graph_optimization: how far graphs are rewritten.
    :param spinning: let idle threads wait busily for work: a little quicker, and an idle model takes whole cores.
    :param denormals_as_zero: compute with denormal numbers as zeros, which many processors do far more quickly.
    """

    arena: bool = True
    graph_optimization: GraphOptimization = "all"
    spinning: bool = False
    denormals_as_zero: bool = True
