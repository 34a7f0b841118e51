# python/tandem/plots/_report/drawing.py: what the panels of a report share when matplotlib draws them: the time that they show, axes, rows.
"""See panels.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .names import NAMES
from .tables import Array, Look, Run

INK, GREY, PALE = "#222222", "#555555", "#d8d8d8"
STEPS = [1, 2, 5, 10]  # between numbers of an axis, times a power of ten


class View:
    """The time from `begin` to `end`, in seconds, that a picture shows in `columns` parts."""

    def __init__(self, begin: float, end: float, columns: int, look: Look, show: Sequence[str] = ()) -> None:
        self.begin, self.end, self.columns, self.look, self.show = begin, end, columns, look, show
        span = end - begin
        self.unit, self.unit_s = ("s", 1.0) if span >= 2 else ("ms", 1e-3) if span >= 2e-3 else ("µs", 1e-6) if span >= 2e-6 else ("ns", 1e-9)

    def edges(self, run: Run) -> Array:
        """Of the columns, in units of the run."""
        return np.linspace(self.begin, self.end, self.columns + 1) * (1e9 / run.unit_ns)

    def ends(self, run: Run) -> tuple[float, float]:
        return self.begin * 1e9 / run.unit_ns, self.end * 1e9 / run.unit_ns

    def x(self, run: Run, times: npt.ArrayLike) -> Array:
        """What axes are in, of times of a run."""
        return np.asarray(times, np.float64) * (run.unit_ns / 1e9 / self.unit_s)

    def seen(self, run: Run, starts: Array, ends: Array) -> Array:
        begin, end = self.ends(run)
        seen: Array = (starts < end) & (ends > begin)
        return seen


def format_bytes(value: float, _: Any = None) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.3g} {unit}"


def format_seconds(value: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def count_axis(axes: Any, most: float) -> None:
    axes.set_ylim(0, most * 1.05 if most > 0 else 1)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=most >= 2, steps=STEPS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.grid(axis="y", color=PALE, linewidth=0.4)


def byte_axis(axes: Any, most: float, per_second: bool = False) -> None:
    axes.set_ylim(0, most * 1.05 if most > 0 else 1)
    step = 2.0 ** np.ceil(np.log2(max(most / 4, 1)))
    axes.set_yticks(np.arange(0, max(most, 1) * 1.05, step))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_bytes(value) + ("/s" if per_second else "")))
    axes.grid(axis="y", color=PALE, linewidth=0.4)


def name_rows(axes: Any, names: list[str], inches: float) -> None:
    """At the rows 0, 1, ... from the top, as many as can be read."""
    each = int(np.ceil(0.1 * len(names) / max(inches, 0.01))) if names else 1
    axes.set_yticks(range(0, len(names), each), names[::each], fontsize=6)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)


def inches_of(axes: Any) -> float:
    return float(axes.get_position().height * axes.figure.get_size_inches()[1])


def bars(starts: Array, ends: Array, row: Array, low: float = -0.45, high: float = 0.45) -> Array:
    """A rectangle for each."""
    xs = np.stack([starts, ends, ends, starts], axis=1)
    ys = np.broadcast_to(np.array([low, low, high, high]) + row, xs.shape)
    return np.stack([xs, ys], axis=2)


class Panel:
    name = ""
    over_time = True
    label = ""  # of the y axis

    def __init__(self, run: Run, view: View) -> None:
        self.run, self.view = run, view
        self.title, self.hint = NAMES[self.name]

    def height(self) -> float:
        return 0.85

    def legend(self) -> list[tuple[str, str]]:
        """[(name, colour)]"""
        return []

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run.kernels) > 0

    def draw(self, axes: Any) -> None:
        raise NotImplementedError
