# python/tandem/experiments/page.py: an experiment's table and picture, and the page of several.
from __future__ import annotations

import html
import io
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .comparisons import Outcome, Results
from .definition import Experiment, Place, Value

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933", "#882255")
MARKS = "osD^vP*X<"
STYLES = ("-", "--", ":", "-.")

STYLE = """body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}td.n{text-align:right}
.verdict{background:#f2f6fa;padding:.6em 1em;border-left:4px solid #0072b2}svg{max-width:100%;height:auto}code{white-space:pre-wrap}"""


@dataclass(frozen=True)
class Report:
    """All that is shown of an experiment."""

    experiment: Experiment
    size: str
    results: Results
    outcomes: Sequence[Outcome]
    sentence: str
    missing: str = ""  # why points are missing
    picture: str = ""  # SVG; without points there is none


def table(report: Report) -> str:
    """For a terminal."""
    rows = [["comparison", "here", "published", ""]]
    rows += [[one.text, one.ours, one.published, _word(one)] for one in report.outcomes]
    text = f"{report.experiment.title} ({report.experiment.source}), {report.size}\n\n{_aligned(_points(report), right=True)}\n\n{_aligned(rows)}\n\n"
    return text + report.sentence + (f"\nNot whole: {report.missing}." if report.missing else "") + "\n"


def _word(one: Outcome) -> str:
    return "?" if one.agrees is None else "agrees" if one.agrees else "differs"


def _points(report: Report) -> list[list[str]]:
    experiment = report.experiment
    axes = list(experiment.grids[report.size])
    rows = [[*axes, experiment.unit]]
    return rows + [[*(str(place[name]) for name in axes), f"{value:.0f}" if value >= 1000 else f"{value:.4g}"] for place, value in report.results]


def _aligned(rows: Sequence[Sequence[str]], right: bool = False) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(lines)


def picture(report: Report) -> str:
    """SVG: a curve for each combination of the axes beside the one across; what was published is hollow."""
    from matplotlib.figure import Figure  # here, since it takes half a second

    experiment = report.experiment
    panels = list(dict.fromkeys(place[experiment.panels] for place, _ in report.results)) if experiment.panels else [None]
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(8 if columns == 1 else 5 * columns, 4.6 if rows == 1 else 3.8 * rows), layout="constrained")
    shown: dict[str, Any] = {}  # what stands in the legend, beside the last panel
    for index, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        _draw(axes, report, panel)
        if panel is not None:
            axes.set_title(f"{experiment.panels} {panel}", fontsize=10)
        lines, labels = axes.get_legend_handles_labels()
        shown.update(zip(labels, lines))
    figure.axes[-1].legend(shown.values(), shown, fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1))
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, bbox_inches="tight")
    text = out.getvalue()
    return text[text.index("<svg"):]


def _draw(axes: Any, report: Report, panel: Any) -> None:
    experiment = report.experiment
    across = experiment.across
    results = [(place, value) for place, value in report.results if panel is None or place[experiment.panels] == panel]
    values = list(dict.fromkeys(place[across] for place, _ in results))
    numbers = all(isinstance(value, (int, float)) for value in values)
    positions: dict[Any, float] = {value: float(value) if numbers else float(index) for index, value in enumerate(values)}
    grid = experiment.grids[report.size]
    varying = [name for name, some in grid.items() if name not in (across, experiment.panels) and len(some) > 1]
    published = [(place, value) for place, value in experiment.published if all(one in grid[name] for name, one in place.items())]
    curves: dict[str, list[tuple[float, float]]] = {}
    looks: dict[str, tuple[int, int]] = {}
    look_of = _looks(varying, grid)
    for place, value in results:
        name = _name(place, varying)
        curves.setdefault(name, []).append((positions[place[across]], value))
        looks.setdefault(name, look_of(place, len(looks)))
    for name, points in curves.items():
        look, style = looks[name]
        colour, mark = COLOURS[look % len(COLOURS)], MARKS[look % len(MARKS)]
        axes.plot(*zip(*sorted(points)), color=colour, marker=mark, markersize=5, linestyle=STYLES[style], label=name or "here")
        hollow = [(positions[place[across]], value) for place, value in published
                  if _name(place, varying) == name and place.get(across) in positions and place.get(experiment.panels) in (None, panel)]
        if hollow:
            axes.plot(*zip(*sorted(hollow)), color=colour, marker=mark, markersize=10, fillstyle="none", linestyle="none",
                      label=f"{name}, published")
    if numbers and min(positions.values()) > 0 and max(positions.values()) > 8 * min(positions.values()):
        axes.set_xscale("log", base=2)
    if not numbers or len(positions) <= 10:
        axes.set_xticks(list(positions.values()), [str(value) for value in positions], minor=False)
        axes.minorticks_off()
    heights = [value for _, value in results]
    if min(heights) > 0 and max(heights) > 50 * min(heights):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0)
    axes.set(xlabel=across, ylabel=experiment.unit)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _looks(varying: Sequence[str], grid: Mapping[str, Sequence[Value]]) -> Callable[[Place, int], tuple[int, int]]:
    """Colour and style of a curve from its place, and its number among the curves: colours tell values of the axis that has the most of them, and
    styles the others, where there are enough styles; else each curve has a colour of its own."""
    if not varying:
        return lambda _, number: (number, 0)
    coloured = max(varying, key=lambda name: len(grid[name]))
    others = [name for name in varying if name != coloured]
    if math.prod(len(grid[name]) for name in others) > len(STYLES):
        return lambda _, number: (number, 0)
    combinations = list(itertools.product(*(grid[name] for name in others)))
    return lambda place, _: (list(grid[coloured]).index(place[coloured]), combinations.index(tuple(place[name] for name in others)))


def _name(place: Place, axes: Sequence[str]) -> str:
    return ", ".join(f"{place[name]}" if name == "broadcast" else f"{name} {place[name]}" for name in axes if name in place)


def page(reports: Sequence[Report], about: Mapping[str, str]) -> str:
    parts = ["<!doctype html><meta charset=utf-8><title>Published experiments, rebuilt</title>", f"<style>{STYLE}</style>",
             "<h1>Published experiments, rebuilt in virtual time</h1>",
             "<p>" + "; ".join(f"{html.escape(name)}: {html.escape(text)}" for name, text in about.items()) + "</p>"]
    if len(reports) > 1:
        parts.append("<table><tr><th>experiment<th>source<th>what it gives</tr>")
        parts += [f"<tr><td><a href='#{html.escape(one.experiment.name)}'>{html.escape(one.experiment.title)}</a>"
                  f"<td>{html.escape(one.experiment.source)}<td>{html.escape(one.sentence)}</tr>" for one in reports]
        parts.append("</table>")
    return "\n".join([*parts, *(_section(one) for one in reports)]) + "\n"


def _section(report: Report) -> str:
    experiment = report.experiment
    facts = [("Question", experiment.question), ("Set-up of the publication", experiment.setup), ("Simulated", experiment.simulated)]
    assumed = ", ".join(f"{name} = {value:g}" for name, value in experiment.assumed.items())
    facts.append(("Assumed", assumed or "nothing"))
    outcomes = "".join(f"<tr><td>{html.escape(one.text)}<td>{html.escape(one.ours)}<td>{html.escape(one.published)}<td>{_word(one)}</tr>"
                       for one in report.outcomes)
    head, *rows = _points(report)
    points = "<tr>" + "".join(f"<th>{html.escape(cell)}" for cell in head) + "</tr>"
    points += "".join("<tr>" + "".join(f"<td class=n>{html.escape(cell)}" for cell in row) + "</tr>" for row in rows)
    missing = f"<p>Not whole: {html.escape(report.missing)}.</p>" if report.missing else ""
    command = f"<p><code>tandem {html.escape(' '.join(experiment.command))}</code></p>"
    return "\n".join([f"<h2 id='{html.escape(experiment.name)}'>{html.escape(experiment.title)}</h2>",
                      f"<p>{html.escape(experiment.source)}; {report.size}</p>",
                      f"<p class=verdict>{html.escape(report.sentence)}</p>", missing, report.picture,
                      *(f"<p><b>{name}.</b> {html.escape(text)}</p>" for name, text in facts),
                      f"<table><tr><th>comparison<th>here<th>published<th></tr>{outcomes}</table>",
                      f"<details><summary>All points</summary><table>{points}</table>{command}</details>"])
