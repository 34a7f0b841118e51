# python/tandem/plots/_gantt.py: Gantt charts: a row for each worker, a bar for each task, coloured by codelet.
from __future__ import annotations

import csv
import json
import os
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from .._intervals import covered_until
from ._figure import COLOURS, IDLE_COLOUR, place_legend, unit_for, with_legend

Array = npt.NDArray[Any]

COLUMNS = ["worker", "codelet", "start_ns", "end_ns", "task"]
MOST_BARS = 20_000  # beyond, the chart is drawn as an image, since a bar would be thinner than a pixel
IMAGE_COLUMNS = 1500
MOST_CODELETS = 24  # in the legend


def gantt(timeline: Union[str, os.PathLike[str]], title: Optional[str] = None) -> Figure:
    """Tasks of one process: a row for each worker, a bar for each task, coloured by codelet; light areas are idle time.

    `timeline` is a file of CSV with a header, or of JSON lines (``.jsonl``), with worker, codelet, start_ns, end_ns and task; the example
    ``co2_forecast`` writes one. A run that was traced has `Run.plot_gantt`.
    """
    tasks = _read_tasks(os.fspath(timeline))
    rows, starts, ends = (np.array([task[column] for task in tasks], np.int64) for column in ("worker", "start_ns", "end_ns"))
    names = list(dict.fromkeys(task["codelet"] for task in tasks))
    place = {name: number for number, name in enumerate(names)}
    of_codelet = np.array([place[task["codelet"]] for task in tasks])
    begin, workers = int(starts.min()), int(rows.max()) + 1
    makespan = max(int(ends.max()) - begin, 1)
    busy = np.bincount(rows, weights=ends - starts, minlength=workers)
    unit, unit_ns = unit_for(makespan)
    labels = [f"worker {worker}\n{100 * busy[worker] / makespan:.1f} % busy" for worker in range(workers)]
    return draw_gantt(labels, rows, starts - begin, ends - begin, of_codelet, names, makespan, f"time ({unit})",
                      title or f"{len(tasks):,} tasks on {workers} workers in {makespan / unit_ns:.1f} {unit}")


def _read_tasks(path: str) -> list[dict[str, Any]]:
    """The tasks as dictionaries; worker and times are integers."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = path.endswith((".jsonl", ".json"))
        tasks: list[dict[str, Any]] = [json.loads(line) for line in file if line.strip()] if lines else list(csv.DictReader(file))
    for number, task in enumerate(tasks, start=1):
        missing = [column for column in COLUMNS if task.get(column) is None]
        if missing:
            raise ValueError(f"{path}: task {number} lacks {', '.join(missing)}; expected {','.join(COLUMNS)}")
        for column in ("worker", "start_ns", "end_ns"):
            task[column] = int(task[column])
        if task["end_ns"] < task["start_ns"]:
            raise ValueError(f"{path}: task {number} ends before it starts")
    if not tasks:
        raise ValueError(f"{path}: holds no tasks, nothing to draw")
    return tasks


def draw_gantt(labels: list[str], rows: Array, starts: Array, ends: Array, of_codelet: Array, names: list[str], span_ns: int, time: str,
               title: str) -> Figure:
    """The chart of intervals: of each its row, its start and end in ns from 0 to `span_ns`, and the place of its codelet in `names`.

    `labels` are the names of the rows, `time` is that of the axis. Where there are more than 20,000 intervals, each point has the colour
    of what took most of its time.
    """
    _, unit_ns = unit_for(span_ns)
    taken = np.bincount(of_codelet, weights=ends - starts, minlength=len(names)) if len(names) else np.empty(0)
    count = np.bincount(of_codelet, minlength=len(names)) if len(names) else np.empty(0, int)
    order = [int(number) for number in np.argsort(-taken, kind="stable") if count[number] > 0]
    colours = {number: COLOURS[place % len(COLOURS)] for place, number in enumerate(order)}
    whole = max(span_ns * len(labels), 1)
    idle = 100 * max(1 - float(taken.sum()) / whole, 0)
    entries = [(f"{names[number] or '(no name)'}  {100 * taken[number] / whole:.1f} %  ({count[number]:,})", colours[number])
               for number in order[:MOST_CODELETS]] + [(f"idle  {idle:.1f} %", IDLE_COLOUR)]

    each = 0.6 if len(labels) <= 8 else 0.32
    figure, axes, below = with_legend(13, 0.5 + min(each * max(len(labels), 1), 14), len(entries))
    axes.set_facecolor(IDLE_COLOUR)
    if len(starts) <= MOST_BARS:
        _draw_bars(axes, rows, starts / unit_ns, ends / unit_ns, of_codelet, colours, len(labels))
    else:
        _draw_image(axes, rows, starts, ends, of_codelet, colours, len(labels), span_ns, unit_ns)
    if len(labels) <= 40:
        for row in range(1, len(labels)):
            axes.axhline(row - 0.5, color="white", linewidth=4 if len(labels) <= 8 else 2)
    axes.set_xlim(0, max(span_ns, 1) / unit_ns)
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    shown = range(0, len(labels), max(len(labels) // 40, 1))
    axes.set_yticks(list(shown), [labels[row] for row in shown], fontsize=10 if len(labels) <= 8 else 8)
    axes.set_xlabel(time)
    axes.set_title(title, loc="left", fontsize=12)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    place_legend(below, entries, title="share of all workers' time (number of tasks)")
    return figure


def _draw_bars(axes: Any, rows: Array, starts: Array, ends: Array, of_codelet: Array, colours: dict[int, str], workers: int) -> None:
    # A thin, darker edge separates neighbours while bars are wide enough to show it.
    width = 0.25 if len(starts) < 1500 * workers else 0
    for number, colour in colours.items():
        here = of_codelet == number
        left, right, middle = starts[here], ends[here], rows[here].astype(float)
        corners = np.stack([np.stack([left, middle - 0.4], 1), np.stack([right, middle - 0.4], 1), np.stack([right, middle + 0.4], 1),
                            np.stack([left, middle + 0.4], 1)], 1)
        axes.add_collection(PolyCollection(list(corners), facecolors=colour, linewidths=width,
                                           edgecolors=[[0.55 * part for part in to_rgb(colour)]]))


def _draw_image(axes: Any, rows: Array, starts: Array, ends: Array, of_codelet: Array, colours: dict[int, str], workers: int, span_ns: int,
                unit_ns: float) -> None:
    # All workers one after the other on one line of time, so that one pass counts for all of them.
    edges = (np.arange(IMAGE_COLUMNS + 1, dtype=np.int64) * span_ns) // IMAGE_COLUMNS
    line = (np.arange(workers, dtype=np.int64)[:, None] * (span_ns + 1) + edges[None, :]).ravel()
    offset = rows.astype(np.int64) * (span_ns + 1)
    pixels = np.empty((workers, IMAGE_COLUMNS, 3))
    pixels[:] = to_rgb(IDLE_COLOUR)
    most = np.zeros((workers, IMAGE_COLUMNS), np.int64)
    busy = np.zeros_like(most)
    for number, colour in colours.items():
        here = of_codelet == number
        until = covered_until(line, starts[here] + offset[here], ends[here] + offset[here])
        time = np.diff(until.reshape(workers, IMAGE_COLUMNS + 1), axis=1)
        pixels[time > most] = to_rgb(colour)
        most = np.maximum(most, time)
        busy += time
    idle = np.diff(edges)[None, :] - busy
    pixels[idle > most] = to_rgb(IDLE_COLOUR)
    axes.imshow(pixels, aspect="auto", interpolation="nearest", extent=(0, span_ns / unit_ns, workers - 0.5, -0.5))
