# python/tandem/plots/_contention.py: how cores and the network share memory: measured points and predicted lines, a panel per placement.
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from ._figure import COLOURS, Source, new_figure

COMPUTATION, COMMUNICATION, ALONE = COLOURS[1], COLOURS[0], COLOURS[2]
THESIS = {"computation": "#7a4d00", "communication": "#00344f"}  # darker, since both models may lie on one line
Rows = Sequence[Mapping[str, Any]]


def contention(source: Source, stacked: bool = False) -> Figure:
    """Bandwidths by number of computing cores, for each placement of data (figures 6.2 to 6.10 of the thesis).

    `source` is what ``tandem contention plot`` writes. Round points: alone; triangles: both at once. Full lines: the soft model; dashed
    lines: the thesis's. `stacked` puts communication on top of computation (figure 6.1).
    """
    said: Mapping[str, Any] = source if isinstance(source, Mapping) else json.loads(Path(source).read_text(encoding="utf-8"))
    if said.get("picture") != "contention" or not said.get("panels"):
        raise ValueError("this is no picture of `tandem contention plot`, or it has no panels")
    panels = said["panels"]
    columns = sorted({panel["computation_node"] for panel in panels})
    rows = sorted({panel["communication_node"] for panel in panels})
    figure = new_figure(max(5.5, 3.2 * len(columns) + 1.2), 2.5 * len(rows) + 1.3)
    all_axes = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True)
    most = {name: 1.08 * max((_most(panel, name) for panel in panels), default=1) for name in ("computation", "communication")}
    most_cores = max(row["cores"] for panel in panels for row in (*panel["points"], *panel.get("soft", ())))
    highest = max(total for panel in panels for total in _totals(panel))
    for line in all_axes:
        for axes in line:
            axes.set_visible(False)
    for panel in panels:
        axes = all_axes[rows.index(panel["communication_node"])][columns.index(panel["computation_node"])]
        axes.set_visible(True)
        _frame(axes, panel)
        axes.set_xlim(0.5, most_cores + 0.5)
        if stacked:
            _stack(axes, panel)
            if panel["computation_node"] == columns[0]:
                axes.set_ylabel("both (GB/s)", fontsize=8)
            axes.set_ylim(0, 1.1 * highest)
        else:
            _lines(axes, panel, most, left=panel["computation_node"] == columns[0], right=panel["computation_node"] == columns[-1])
    handles, labels = _legend(figure)
    columns_of_legend = min(4, 1 + len(columns))
    room = 0.22 * (1 + (len(labels) - 1) // columns_of_legend) / figure.get_figheight()
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, room, 1, 1 - room))  # loc="outside lower center" needs matplotlib 3.7
    figure.legend(handles, labels, loc="lower center", ncols=columns_of_legend, fontsize=8, frameon=False)
    kernel = f", kernel {said['kernel']}" if "kernel" in said else ""
    figure.suptitle(f"memory contention, {said['name']}{kernel}: bandwidths in GB/s", fontsize=10, x=0.01, ha="left")
    return figure


def _most(panel: Mapping[str, Any], name: str) -> float:
    values = [row[key] for rows in (panel["points"], panel.get("soft", ()), panel.get("thesis", ())) for row in rows
              for key in (name, name + "_alone") if row[key] is not None]
    return max(values, default=0.0) / 1e3 or 1.0


def _totals(panel: Mapping[str, Any]) -> list[float]:
    rows = [*panel["points"], *panel.get("soft", ())]
    totals = [(row["computation"] + row["communication"]) / 1e3 for row in rows if None not in (row["computation"], row["communication"])]
    return [*totals, *(row["computation_alone"] / 1e3 for row in rows if row["computation_alone"] is not None), 1e-9]


def _frame(axes: Any, panel: Mapping[str, Any]) -> None:
    """Bold and thick where parameters come from."""
    axes.set_title(f"NUMA nodes: computation {panel['computation_node']}, communication {panel['communication_node']}", fontsize=8,
                   fontweight="bold" if panel["sample"] else "normal")
    for spine in axes.spines.values():
        spine.set_linewidth(2 if panel["sample"] else 0.8)
    axes.set_xlabel("computing cores", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.label_outer()


def _series(rows: Rows, key: str) -> tuple[list[int], list[float]]:
    known = [(row["cores"], row[key] / 1e3) for row in rows if row[key] is not None]
    return [cores for cores, _ in known], [value for _, value in known]


def _beside(series: tuple[list[int], list[float]], by: float) -> tuple[list[float], list[float]]:
    return [cores + by for cores in series[0]], series[1]


def _lines(axes: Any, panel: Mapping[str, Any], most: Mapping[str, float], left: bool, right: bool) -> None:
    """Each bandwidth has its own scale; `left` and `right`: it is said here. Points of the two stand beside each other,
    since they would cover each other."""
    other = axes.twinx()
    other.tick_params(labelsize=7, colors=COMPUTATION)
    axes.tick_params(axis="y", colors=COMMUNICATION)
    for spine in other.spines.values():
        spine.set_visible(False)  # the frame is that of `axes`
    if left:
        axes.set_ylabel("communication (GB/s)", fontsize=8, color=COMMUNICATION)
    if right:
        other.set_ylabel("computation (GB/s)", fontsize=8, color=COMPUTATION)
    for where, name, colour, by in ((axes, "communication", COMMUNICATION, -0.1), (other, "computation", COMPUTATION, 0.1)):
        where.set_ylim(0, most[name])
        where.plot(*_beside(_series(panel["points"], name + "_alone"), by), "o", color=colour, markersize=3.5,
                   alpha=0.7, mew=0, label=f"{name} alone")
        where.plot(*_beside(_series(panel["points"], name), by), "v", color=colour, markersize=4, alpha=0.7, mew=0, label=f"{name}, both at once")
        where.plot(*_series(panel.get("soft", ()), name), "-", color=colour, linewidth=1.8, label=f"{name}, soft model")
        where.plot(*_series(panel.get("thesis", ()), name), linestyle=(0, (3, 4)), color=THESIS[name], linewidth=1.2,
                   label=f"{name}, the thesis's model")


def _means(rows: Rows, *keys: str) -> tuple[list[int], list[list[float]]]:
    """By number of cores, of rows that know all keys."""
    known = [row for row in rows if all(row[key] is not None for key in keys)]
    cores = sorted({row["cores"] for row in known})
    values = [[sum(row[key] for row in known if row["cores"] == n) / sum(row["cores"] == n for row in known) / 1e3 for n in cores]
              for key in keys]
    return cores, values


def _stack(axes: Any, panel: Mapping[str, Any]) -> None:
    measured = bool(panel["points"])
    rows = panel["points"] if measured else panel.get("thesis", ())
    cores, (computation, communication) = _means(rows, "computation", "communication")
    labels = ["computation, both at once", "communication, both at once"]
    if len(cores) > 1:
        axes.stackplot(cores, computation, communication, colors=[COMPUTATION, COMMUNICATION], alpha=0.55, labels=labels)
    else:  # an area needs two numbers of cores
        for heights, below, colour, label in ((computation, 0, COMPUTATION, labels[0]), (communication, computation, COMMUNICATION, labels[1])):
            axes.bar(cores, heights, 0.3, below, color=colour, alpha=0.55, label=label)
    cores, (alone,) = _means(rows, "computation_alone")
    axes.plot(cores, alone, "-" if len(cores) > 1 else "o", color=ALONE, linewidth=1.5, label="computation alone")
    for name, style in (("soft", "-"), ("thesis", "--")):
        if measured and panel.get(name):
            cores, (computation, communication) = _means(panel[name], "computation", "communication")
            label = "total, soft model" if name == "soft" else "total, the thesis's model"
            axes.plot(cores, [a + b for a, b in zip(computation, communication)], style, color="black", linewidth=1.1, label=label)


def _legend(figure: Any) -> tuple[list[Any], list[str]]:
    """Each label once, of lines that have points."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            empty: Optional[bool] = hasattr(handle, "get_xdata") and len(handle.get_xdata()) == 0
            if not empty:
                found.setdefault(label, handle)
    return list(found.values()), list(found)
