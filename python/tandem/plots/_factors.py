# python/tandem/plots/_factors.py: many runs of one program with different settings: what each setting did to the response.
"""A result is a mapping with the settings (factors) of a run and what was measured, such as
``{"sched": "lws", "nb": 128, "makespan_s": 1.8}``; several results of one
combination are repetitions. See Nesi and Schnorr (2020), figures 4 to 9."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

import numpy as np
from matplotlib.figure import Figure

from ._figure import COLOURS, new_figure

Result = Mapping[str, Any]


def _level_key(level: Any) -> tuple[int, Any]:
    return (0, level) if isinstance(level, (int, float)) else (1, str(level))


class _Results:
    """Results with their factors, in the order of the first result, and the levels of each, in order."""

    def __init__(self, results: Iterable[Result], response: str, factors: Optional[Sequence[str]], least: int) -> None:
        self.rows = list(results)
        if not self.rows:
            raise ValueError("there are no results, nothing to draw")
        self.response = response
        wanted = list(factors) if factors is not None else [name for name in self.rows[0] if name != response]
        for number, row in enumerate(self.rows, start=1):
            missing = [name for name in [response, *wanted] if name not in row]
            if missing:
                raise ValueError(f"result {number} lacks {', '.join(missing)}")
        self.values = np.array([float(row[response]) for row in self.rows])
        self.levels = {name: sorted({row[name] for row in self.rows}, key=_level_key) for name in wanted}
        if factors is None:  # what is the same in all results is none
            self.levels = {name: levels for name, levels in self.levels.items() if len(levels) > 1}
        self.factors = list(self.levels)
        if len(self.factors) < least:
            raise ValueError(f"{least} factors with different levels are needed, there are {len(self.factors)}: {', '.join(self.factors)}")

    def mean(self, **levels: Any) -> float:
        """Of the results with these levels; NaN where there are none."""
        values = self.of(levels)
        return float(values.mean()) if len(values) > 0 else float("nan")

    def of(self, levels: Mapping[str, Any]) -> Any:
        return self.values[[all(row[name] == level for name, level in levels.items()) for row in self.rows]]


def _finish(axes: Any, levels: Sequence[Any], name: str) -> None:
    axes.set_xticks(range(len(levels)), [str(level) for level in levels], fontsize=8)
    axes.set_xlim(-0.3, len(levels) - 0.7)
    axes.set_xlabel(name, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", labelsize=8)


def main_effects(results: Iterable[Result], response: str = "makespan_s", factors: Optional[Sequence[str]] = None) -> Figure:
    """The mean of the response at each level of each factor, over all levels of the others; a dashed line is the mean of all results.

    `factors`: by default everything in the results that is not the same in all of them. Results must have all combinations equally often, else
    effects of one factor show as effects of another. Raises ValueError where there is nothing to draw, or a result lacks something.
    """
    data = _Results(results, response, factors, 1)
    figure = new_figure(1.0 + 1.7 * len(data.factors), 2.8)
    row = figure.subplots(1, len(data.factors), sharey=True, squeeze=False)[0]
    for axes, name in zip(row, data.factors):
        levels = data.levels[name]
        axes.axhline(data.values.mean(), color="#999999", linewidth=0.8, linestyle="--")
        axes.plot(range(len(levels)), [data.mean(**{name: level}) for level in levels], color=COLOURS[0], marker="o", markersize=4)
        _finish(axes, levels, name)
    row[0].set_ylabel(response)
    return figure


def interactions(results: Iterable[Result], response: str = "makespan_s", factors: Optional[Sequence[str]] = None) -> Figure:
    """For each two factors the mean of the response: a line for each level of the one, over the levels of the other.

    Lines that are parallel say that the two factors do not interact. For `factors` and errors see `main_effects`.
    """
    data = _Results(results, response, factors, 2)
    count = len(data.factors)
    figure = new_figure(1.0 + 2.1 * (count - 1), 0.6 + 1.8 * (count - 1))
    grid = figure.subplots(count - 1, count - 1, sharey=True, squeeze=False)
    for below, one in enumerate(data.factors[:-1]):
        for beside, other in enumerate(data.factors[1:]):
            axes = grid[below][beside]
            if beside < below:
                axes.set_visible(False)
                continue
            levels = data.levels[other]
            for place, level in enumerate(data.levels[one]):
                axes.plot(range(len(levels)), [data.mean(**{one: level, other: at}) for at in levels], color=COLOURS[place % len(COLOURS)],
                          marker="o", markersize=3, linewidth=1.2, label=str(level))
            _finish(axes, levels, other)
            if beside == below:
                axes.legend(title=one, fontsize=7, title_fontsize=7, frameon=False)
                axes.tick_params(axis="y", labelleft=True)
                axes.set_ylabel(response, fontsize=8)
    return figure


def factor_boxes(results: Iterable[Result], response: str = "makespan_s", factors: Optional[Sequence[str]] = None) -> Figure:
    """A box of the response for each combination of levels that occurs: quartiles, the median, whiskers to 1.5 times their distance, and outliers.

    The least median comes first. For `factors` and errors see `main_effects`.
    """
    data = _Results(results, response, factors, 1)
    combinations = {tuple(row[name] for name in data.factors) for row in data.rows}
    boxes = [(combination, data.of(dict(zip(data.factors, combination)))) for combination in combinations]
    boxes.sort(key=lambda box: (float(np.median(box[1])), [_level_key(level) for level in box[0]]))
    figure = new_figure(1.2 + 0.75 * max(len(boxes), 3), 3.4)
    axes = figure.add_subplot()
    axes.boxplot([values for _, values in boxes], widths=0.6, medianprops={"color": "black"}, flierprops={"markersize": 3})
    axes.set_xticks(range(1, len(boxes) + 1), ["\n".join(f"{name}={level}" for name, level in zip(data.factors, combination))
                                               for combination, _ in boxes], fontsize=7)
    axes.set_ylabel(response)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
