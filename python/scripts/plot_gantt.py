#!/usr/bin/env python3
# python/scripts/plot_gantt.py: a Gantt chart of workers, from a timeline that a Tandem program wrote.
"""Draw one row per worker and one bar per task, coloured by codelet; light areas are idle time."""

import argparse
import csv
import json
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

COLUMNS = ["worker", "codelet", "start_ns", "end_ns", "task"]
# Okabe and Ito's colours, then lighter ones: most eyes can distinguish them, also on paper.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d31", "#f0e442", "#7f3c8d", "#80ba5a",
           "#a5aa99", "#3969ac"]
IDLE_COLOUR = "#ececec"


def read_tasks(path):
    """The tasks as dictionaries, from CSV with a header or from JSON lines; worker and times are integers."""
    with open(path, newline="", encoding="utf-8") as file:
        if path.endswith((".jsonl", ".json")):
            tasks = [json.loads(line) for line in file if line.strip()]
        else:
            tasks = list(csv.DictReader(file))
    for number, task in enumerate(tasks, start=1):
        missing = [column for column in COLUMNS if task.get(column) is None]
        if missing:
            sys.exit(f"{path}: task {number} lacks {', '.join(missing)}; expected {','.join(COLUMNS)}")
        for column in ("worker", "start_ns", "end_ns"):
            task[column] = int(task[column])
        if task["end_ns"] < task["start_ns"]:
            sys.exit(f"{path}: task {number} ends before it starts")
    if not tasks:
        sys.exit(f"{path}: holds no tasks, nothing to draw")
    return tasks


def unit_for(span_ns):
    """The unit in which a span has few digits: its name and its length in ns."""
    return ("s", 1e9) if span_ns >= 5e9 else ("ms", 1e6) if span_ns >= 5e6 else ("µs", 1e3)


def draw(tasks, title, output):
    begin_ns = min(task["start_ns"] for task in tasks)
    makespan_ns = max(max(task["end_ns"] for task in tasks) - begin_ns, 1)
    unit, unit_ns = unit_for(makespan_ns)
    workers = list(range(max(task["worker"] for task in tasks) + 1))

    bars = defaultdict(list)  # (codelet, worker) -> [(start, length), ...]
    busy_ns, count, worker_busy_ns = defaultdict(int), defaultdict(int), defaultdict(int)
    for task in tasks:
        length_ns = task["end_ns"] - task["start_ns"]
        bars[task["codelet"], task["worker"]].append(((task["start_ns"] - begin_ns) / unit_ns, length_ns / unit_ns))
        busy_ns[task["codelet"]] += length_ns
        count[task["codelet"]] += 1
        worker_busy_ns[task["worker"]] += length_ns
    codelets = sorted(busy_ns, key=busy_ns.get, reverse=True)
    colour = {codelet: COLOURS[index % len(COLOURS)] for index, codelet in enumerate(codelets)}

    legend_rows = (len(codelets) + 4) // 4
    heights = [0.5 + 0.6 * len(workers), 0.45 + 0.22 * legend_rows]  # inches
    figure, (axes, below) = plt.subplots(2, 1, figsize=(13, sum(heights) + 0.6), gridspec_kw={"height_ratios": heights},
                                         constrained_layout=True)
    for worker in workers:
        axes.broken_barh([(0, makespan_ns / unit_ns)], (worker - 0.4, 0.8), color=IDLE_COLOUR, linewidth=0)
    # A thin, darker edge separates neighbours while bars are wide enough to show it.
    edge_width = 0.25 if len(tasks) < 1500 * len(workers) else 0
    for (codelet, worker), spans in bars.items():
        axes.broken_barh(spans, (worker - 0.4, 0.8), facecolors=colour[codelet], linewidth=edge_width,
                         edgecolor=[0.55 * part for part in to_rgb(colour[codelet])])

    whole_ns = makespan_ns * len(workers)
    idle = 100 * (1 - sum(busy_ns.values()) / whole_ns)
    entries = [Patch(color=colour[codelet], label=f"{codelet}  {100 * busy_ns[codelet] / whole_ns:.1f} %  ({count[codelet]:,})")
               for codelet in codelets]
    entries.append(Patch(facecolor=IDLE_COLOUR, edgecolor="#bbbbbb", label=f"idle  {max(idle, 0):.1f} %"))
    below.axis("off")
    below.legend(handles=entries, loc="upper center", ncol=min(4, len(entries)), frameon=False, fontsize=9,
                 title="share of all workers' time (number of tasks)", title_fontsize=9, borderaxespad=0)
    axes.set_yticks(workers, [f"worker {worker}\n{100 * worker_busy_ns[worker] / makespan_ns:.1f} % busy" for worker in workers])
    axes.set_ylim(len(workers) - 0.45, -0.55)
    axes.set_xlim(0, makespan_ns / unit_ns)
    axes.set_xlabel(f"time ({unit})")
    axes.set_title(title or f"{len(tasks):,} tasks on {len(workers)} workers in {makespan_ns / unit_ns:.1f} {unit}", loc="left",
                   fontsize=12)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(output, dpi=140)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("timeline", help="CSV or JSON lines (.jsonl) with " + ",".join(COLUMNS))
    parser.add_argument("--output", default="gantt.png", help="the picture to write (default: %(default)s)")
    parser.add_argument("--title", help="the line above the picture")
    arguments = parser.parse_args()
    draw(read_tasks(arguments.timeline), arguments.title, arguments.output)


if __name__ == "__main__":
    main()
