# python/tandem/plots/_figure.py: what pictures share: figures, colours, units, legends, results of benchmarks.
from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

try:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
except ImportError as error:
    raise ImportError(f"pictures need {error.name}: pip install matplotlib (Debian: python3-matplotlib)", name=error.name) from error

Source = Union[str, os.PathLike[str], Mapping[str, Any]]
"""What a program printed as JSON: the file that it was written to, or the object in it."""

# Okabe and Ito's colours, then lighter ones: most eyes can distinguish them, also on paper.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d31", "#f0e442", "#7f3c8d", "#80ba5a",
           "#a5aa99", "#3969ac"]
IDLE_COLOUR = "#ececec"


class Picture(Figure):
    """A figure that pyplot does not know, and which notebooks show all the same."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def new_figure(width: float, height: float) -> Picture:
    """In inches; its parts find their places by themselves."""
    return Picture(figsize=(width, height), layout="constrained")


def unit_for(span_ns: float) -> tuple[str, float]:
    """The unit in which a span has few digits, and its length in ns."""
    return ("s", 1e9) if span_ns >= 5e9 else ("ms", 1e6) if span_ns >= 5e6 else ("µs", 1e3)


def place_legend(axes: Any, entries: Iterable[tuple[str, str]], columns: int = 4, title: str = "") -> None:
    """Names and their colours, into axes that hold nothing else."""
    axes.axis("off")
    handles = [Patch(facecolor=colour, edgecolor="#bbbbbb" if colour == IDLE_COLOUR else colour, label=name or "(no name)")
               for name, colour in entries]
    if handles:
        axes.legend(handles=handles, loc="upper center", ncol=min(columns, len(handles)), frameon=False, fontsize=9, title=title,
                    title_fontsize=9, borderaxespad=0)


def with_legend(width: float, height: float, entries: int, columns: int = 4) -> tuple[Picture, Any, Any]:
    """A figure with axes, and below them axes for a legend."""
    below = 0.45 + 0.22 * ((entries + columns - 1) // columns)
    figure = new_figure(width, height + below + 0.6)
    axes, legend = figure.subplots(2, 1, gridspec_kw={"height_ratios": [height, below]})
    return figure, axes, legend


def read_object(source: Source) -> tuple[str, Mapping[str, Any]]:
    """What to call it, and the object."""
    if isinstance(source, Mapping):
        return "the object", source
    try:
        value = json.loads(Path(source).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{os.fspath(source)}: is no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise ValueError(f"{os.fspath(source)}: holds no object")
    return os.fspath(source), value


def read_benchmark(source: Source, name: str) -> Mapping[str, Any]:
    """The object of `tandem bench NAME --json`. Raises ValueError where it is another one, or has no results."""
    where, report = read_object(source)
    if report.get("benchmark") != name:
        raise ValueError(f"{where}: holds the benchmark {report.get('benchmark')!r}, expected {name!r} (tandem bench {name} --json)")
    if not report["results"]:
        raise ValueError(f"{where}: holds no results, nothing to draw")
    return report


def origin_of(report: Mapping[str, Any]) -> str:
    """Where the results are from."""
    return f"{report['machine']['processor']}, commit {report['commit']}"
