"""Command line of the benchmarks: ``python -m bench embed|encoders|adapters|cycles|gpu|overhead|startup``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console, RenderableType

from .adapters.race import KINDS, AdapterSettings, run_adapters
from .adapters.report import adapters_table, plot_adapters
from .corpus import DEFAULT_TEXTS, load_corpus
from .cycles import ENGINES, CycleSettings, cycles_table, run_cycles
from .embed import EmbedSettings, run_embed
from .encoders.plot import plot_encoders
from .encoders.race import EncoderSettings, run_encoders
from .encoders.report import encoders_table
from .encoders.results import problems
from .encoders.shapes import SHAPES
from .encoders.workloads import LENGTHS
from .gpu import gpu_table, run_gpu
from .overhead import overhead_table, run_overhead
from .plot import plot_embed
from .report import embed_table, print_report
from .results import to_json
from .startup import run_startup, startup_table
from .variants import VARIANTS, choose

__all__ = ["main"]

RESULTS = Path("bench/results")
_SINGLE_TEXTS = 80
_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


def main() -> int:
    """Run one benchmark; 1 where part of it failed, 130 where it was interrupted."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, _terminate)
    command: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return command(arguments)
    except KeyboardInterrupt:
        _progress("interrupted; everything started has been ended")
        return 130
    except ValueError as error:
        _progress(f"error: {error}")
        return 2


def _embed(arguments: argparse.Namespace) -> int:
    names = [name.strip() for name in arguments.variants.split(",") if name.strip()]
    settings = EmbedSettings(
        variants=choose(names),
        texts=load_corpus(None if arguments.full else arguments.texts),
        rounds=arguments.rounds,
        timeout=arguments.timeout,
    )
    report = run_embed(settings, progress=_progress)
    _publish(embed_table(report), arguments.json or _file(arguments, "embed", "json"), to_json(report))
    if report.summary:
        _progress(f"wrote {plot_embed(report, arguments.plot or _file(arguments, 'embed', 'png'))}")
    return int(any(variant.failure is not None for variant in report.variants))


def _encoders(arguments: argparse.Namespace) -> int:
    settings = EncoderSettings(
        shape=SHAPES[arguments.shape],
        dtype=_DTYPES[arguments.precision],
        lengths=arguments.lengths,
        rounds=arguments.rounds,
        timeout=arguments.timeout,
    )
    report = run_encoders(settings, progress=_progress)
    _publish(encoders_table(report), arguments.json or _file(arguments, "encoders", "json"), to_json(report))
    if report.summary.workloads:
        _progress(f"wrote {plot_encoders(report, arguments.plot or _file(arguments, 'encoders', 'png'))}")
    return int(bool(problems(report)))


def _adapters(arguments: argparse.Namespace) -> int:
    names = [name.strip() for name in arguments.contestants.split(",") if name.strip()]
    if unknown := [name for name in names if name not in KINDS]:
        raise ValueError(f"no contestant is called {unknown[0]!r}; there are {', '.join(KINDS)}")
    settings = AdapterSettings(
        shape=SHAPES[arguments.shape],
        precision=arguments.precision,
        contestants=tuple(name for name in KINDS if not names or name in names),
        rounds=arguments.rounds,
        timeout=arguments.timeout,
    )
    report = run_adapters(settings, progress=_progress)
    _publish(adapters_table(report), arguments.json or _file(arguments, "adapters", "json"), to_json(report))
    if any(result.crowds for result in report.results):
        _progress(f"wrote {plot_adapters(report, arguments.plot or _file(arguments, 'adapters', 'png'))}")
    return int(any(result.failure is not None for result in report.results))


def _cycles(arguments: argparse.Namespace) -> int:
    names = [name.strip() for name in arguments.engines.split(",") if name.strip()]
    if unknown := [name for name in names if name not in ENGINES]:
        raise ValueError(f"no engine is called {unknown[0]!r}; there are {', '.join(ENGINES)}")
    settings = CycleSettings(
        engines=tuple(engine for engine in ENGINES if not names or engine in names),
        cycles=arguments.cycles,
        idle_seconds=arguments.idle,
    )
    report = run_cycles(settings, progress=_progress)
    _publish(cycles_table(report), arguments.json or _file(arguments, "cycles", "json"), to_json(report))
    return int(any(engine.failure is not None for engine in report.engines))


def _gpu(arguments: argparse.Namespace) -> int:
    report = run_gpu(load_corpus(arguments.texts), progress=_progress)
    _publish(gpu_table(report), arguments.json or _file(arguments, "gpu", "json"), to_json(report))
    return int(any(row.failed for row in report.rows))


def _overhead(arguments: argparse.Namespace) -> int:
    texts = load_corpus(_SINGLE_TEXTS)
    report = run_overhead(texts, calls=arguments.calls, precision=arguments.precision, progress=_progress)
    _publish(overhead_table(report), arguments.json or _file(arguments, "overhead", "json"), to_json(report))
    return 0


def _startup(arguments: argparse.Namespace) -> int:
    report = run_startup(arguments.runs, progress=_progress)
    _publish(startup_table(report), arguments.json or _file(arguments, "startup", "json"), to_json(report))
    return int(any(command.failure is not None for command in report.commands))


def _publish(table: RenderableType, path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print_report(table, Console())
    _progress(f"wrote {path}")


def _file(arguments: argparse.Namespace, command: str, suffix: str) -> Path:
    out: Path = arguments.out
    return out / f"{command}-{arguments.started}.{suffix}"


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind as for Ctrl-C, so that workers end with this process."""
    raise KeyboardInterrupt


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def _lengths(text: str) -> tuple[int, ...]:
    return tuple(_positive(length) for length in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description="Benchmarks of vsr against raw engines and peers.")
    commands = parser.add_subparsers(required=True, metavar="benchmark")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", type=Path, metavar="FILE", help="where the raw results go")
    shared.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER", help="where files go by default")
    shared.set_defaults(started=datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"))

    embed = commands.add_parser("embed", parents=[shared], help="throughput, latency, memory and exactness")
    embed.add_argument("--texts", type=_positive, default=DEFAULT_TEXTS, help="how many texts (default %(default)s)")
    embed.add_argument("--full", action="store_true", help="all texts there are")
    embed.add_argument("--rounds", type=_positive, default=5, help="passes over the texts (default %(default)s)")
    names = ", ".join(variant.name for variant in VARIANTS)
    embed.add_argument("--variants", default="", metavar="A,B", help=f"some of: {names}; all by default")
    embed.add_argument("--plot", type=Path, metavar="FILE", help="where the picture goes")
    embed.add_argument("--timeout", type=float, default=1800.0, metavar="SECONDS", help="of any one step of a variant")
    embed.set_defaults(run=_embed)

    _add_encoders(commands.add_parser("encoders", parents=[shared], help="time and memory by length of text"))

    adapters = commands.add_parser("adapters", parents=[shared], help="six tasks: one base and adapters, or six models")
    adapters.add_argument("--precision", choices=sorted(_DTYPES), default="fp32", help="default %(default)s")
    adapters.add_argument(
        "--contestants", default="", metavar="A,B", help=f"some of: {', '.join(KINDS)}; all by default"
    )
    adapters.add_argument("--rounds", type=_positive, default=3, help="default %(default)s")
    adapters.add_argument("--plot", type=Path, metavar="FILE", help="where the picture goes")
    adapters.add_argument(
        "--timeout", type=float, default=1800.0, metavar="SECONDS", help="of any one step of a worker"
    )
    adapters.add_argument("--shape", choices=sorted(SHAPES), default="base", help=argparse.SUPPRESS)
    adapters.set_defaults(run=_adapters)

    cycles = commands.add_parser("cycles", parents=[shared], help="memory after unloading, processor time of idling")
    cycles.add_argument("--engines", default="", metavar="A,B", help=f"some of: {', '.join(ENGINES)}; all by default")
    cycles.add_argument("--cycles", type=_positive, default=20, help="of each engine (default %(default)s)")
    cycles.add_argument("--idle", type=_positive, default=5, metavar="SECONDS", help="default %(default)s")
    cycles.set_defaults(run=_cycles)

    gpu = commands.add_parser("gpu", parents=[shared], help="CUDA beside the CPU, where there is CUDA")
    gpu.add_argument("--texts", type=_positive, default=200, help="how many texts (default %(default)s)")
    gpu.set_defaults(run=_gpu)

    overhead = commands.add_parser("overhead", parents=[shared], help="Runtime.embed of one text above the engine")
    overhead.add_argument("--calls", type=_positive, default=300, help="of each path (default %(default)s)")
    overhead.add_argument("--precision", default="auto", help="precision policy (default %(default)s)")
    overhead.set_defaults(run=_overhead)

    startup = commands.add_parser("startup", parents=[shared], help="vsr plugins above its imports")
    startup.add_argument("--runs", type=_positive, default=10, help="of each command (default %(default)s)")
    startup.set_defaults(run=_startup)
    return parser


def _add_encoders(parser: argparse.ArgumentParser) -> None:
    lengths = ",".join(map(str, LENGTHS))
    parser.add_argument(
        "--lengths", type=_lengths, default=LENGTHS, metavar="N,N", help=f"tokens, rising (default {lengths})"
    )
    parser.add_argument("--rounds", type=_positive, help="of every length (default: the longer, the fewer)")
    parser.add_argument("--precision", choices=sorted(_DTYPES), default="fp32", help="default %(default)s")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where the picture goes")
    parser.add_argument("--timeout", type=float, default=1800.0, metavar="SECONDS", help="of any one step of a worker")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="base", help=argparse.SUPPRESS)
    parser.set_defaults(run=_encoders)


if __name__ == "__main__":
    sys.exit(main())
