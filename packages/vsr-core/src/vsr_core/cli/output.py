"""Results on stdout: JSON objects for machines, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = ["SCHEMA", "Page", "bar", "bytes_text", "one_line", "print_json", "seconds_text"]

SCHEMA: Final = 1
"""Version of the JSON form of every command."""

_UNBOUNDED: Final = 100_000
"""The width of a table nobody looks at: every value is on its line in full."""


def print_json(command: str, body: Mapping[str, Any]) -> None:
    """Print the one JSON object of a run, on one line."""
    sys.stdout.write(json.dumps({"schema": SCHEMA, "command": command} | dict(body), allow_nan=False) + "\n")


class Page:
    """Text and tables on stdout, as wide as the terminal; in a pipe, as wide as they need to be.

    Nothing is read as markup: what is shown was written by others.
    """

    def __init__(self) -> None:
        from rich.console import Console

        self._console: Console = Console(
            file=sys.stdout,
            width=None if sys.stdout.isatty() else _UNBOUNDED,
            markup=False,
            highlight=False,
            emoji=False,
        )

    @property
    def plain(self) -> bool:
        """Whether the terminal shows ASCII alone."""
        return not self._console.encoding.lower().startswith("utf")

    @property
    def terminal(self) -> bool:
        """Whether people watch, rather than a pipe being read."""
        return self._console.is_terminal

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """One line of text; a terminal wraps it itself."""
        self._console.print(text, style=style, soft_wrap=True)

    def pieces(self, parts: Iterable[tuple[str, str]]) -> None:
        """One line of texts, each with its style."""
        from rich.text import Text

        self._console.print(Text.assemble(*parts), soft_wrap=True)

    def heading(self, text: str) -> None:
        """A line over a part."""
        self.line(text, style="bold")

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Sequence[str] = (),
        styles: Mapping[str, str] | None = None,
    ) -> None:
        """A table with a heading per column.

        :param right: the columns that are set to the right.
        :param styles: the style of a cell by its text.
        """
        from rich import box
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, safe_box=True)
        for column in columns:
            grid.add_column(column, justify="right" if column in right else "left", overflow="fold")
        for row in rows:
            cells: list[RenderableType] = [Text(cell, style=(styles or {}).get(cell, "")) for cell in row]
            grid.add_row(*cells)
        self._print(grid)

    def pairs(self, facts: Iterable[tuple[str, str | None]]) -> None:
        """Names and values in two columns; what is not known is left out."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in facts:
            if value:
                grid.add_row(Text(name), Text(value))
        self._print(grid)

    def _print(self, grid: Table) -> None:
        """Print a table; in a pipe without the blanks that fill its last column."""
        if self._console.is_terminal:
            self._console.print(grid)
            return
        with self._console.capture() as captured:
            self._console.print(grid)
        self.line("\n".join(line.rstrip() for line in captured.get().splitlines()))


def bar(share: float, *, plain: bool, width: int = 20) -> str:
    """A bar that fills ``share`` of ``width`` characters."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    return ("#" if plain else "█") * filled + ("." if plain else "░") * (width - filled)


def one_line(text: str, limit: int | None = None) -> str:
    """A text without line breaks and control characters, cut to ``limit`` characters where one is given."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1].rstrip() + "…"


def bytes_text(count: int | None) -> str | None:
    """A number of bytes for people."""
    if count is None:
        return None
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def seconds_text(seconds: float | None) -> str | None:
    """A duration for people."""
    if seconds is None:
        return None
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
