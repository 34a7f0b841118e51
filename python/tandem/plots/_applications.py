# python/tandem/plots/_applications.py: applications on the task runtime by number of workers: bandwidths of their messages, stalls, speed.
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from ._figure import COLOURS, Source, new_figure

Runs = Sequence[Mapping[str, Any]]

PANELS = (("send_mb_s", "bandwidth sent\n(relative)"), ("delivered_mb_s", "bandwidth delivered\n(relative)"), ("stalled", "stalled cycles\n(%)"),
          ("gflop_s", "speed\n(relative)"))
RELATIVE = {"send_mb_s": (1e3, "GB/s"), "delivered_mb_s": (1e3, "GB/s"), "gflop_s": (1.0, "GFlop/s")}


def applications(source: Source) -> Figure:
    """By number of workers: bandwidths of messages, share of stalled cycles, speed (figure 5.14 of the thesis).

    `source` is what ``tandem contention plot --applications`` writes. Lines: medians; points: all runs. All but stalls are relative to the
    greatest median of each application, which the legend tells. A panel of which no run knows anything is left out.
    """
    said: Mapping[str, Any] = source if isinstance(source, Mapping) else json.loads(Path(source).read_text(encoding="utf-8"))
    if said.get("picture") != "applications" or not said.get("runs"):
        raise ValueError("this is no picture of `tandem contention plot --applications`, or it has no runs")
    runs = said["runs"]
    panels = [(name, title) for name, title in PANELS if any(run[name] is not None for run in runs)]
    figure = new_figure(7.5, 1.9 * len(panels) + 0.6)
    all_axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    names = sorted({run["application"] for run in runs})
    for (name, title), axes in zip(panels, all_axes):
        for application, colour in zip(names, COLOURS):
            _draw(axes, [run for run in runs if run["application"] == application and run[name] is not None], name, application, colour)
        axes.set_ylabel(title, fontsize=8)
        axes.margins(y=0.1)
        axes.set_ylim(bottom=0)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    all_axes[-1].set_xlabel("workers of each rank", fontsize=8)
    all_axes[-1].set_xticks(_ticks(sorted({run["workers"] for run in runs})))
    figure.suptitle(f"applications on two ranks, {said['name']}", fontsize=10, x=0.01, ha="left")
    return figure


def _ticks(workers: list[int]) -> list[int]:
    """All numbers of workers, or those that stand apart."""
    least = (workers[-1] - workers[0]) / 16
    chosen = workers[-1:]
    for number in reversed(workers[:-1]):
        if chosen[-1] - number >= least:
            chosen.append(number)
    return sorted(chosen)


def _draw(axes: Any, runs: Runs, name: str, application: str, colour: str) -> None:
    if not runs:
        return
    workers = sorted({run["workers"] for run in runs})
    medians = [median(run[name] for run in runs if run["workers"] == count) for count in workers]
    label, scale = application, 100.0 if name == "stalled" else 1.0
    if name in RELATIVE:
        greatest = max(medians)
        scale = 1 / greatest if greatest > 0 else 1
        divisor, unit = RELATIVE[name]
        label = f"{application}: 1 is {greatest / divisor:.3g} {unit}"
    axes.plot(workers, [value * scale for value in medians], "-", color=colour, linewidth=1.4, label=label)
    axes.plot([run["workers"] for run in runs], [run[name] * scale for run in runs], "o", color=colour, markersize=3.5, alpha=0.6, mew=0)
