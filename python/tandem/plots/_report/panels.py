# python/tandem/plots/_report/panels.py: the panels of a report's page, drawn by matplotlib.
"""A panel is a class with a name. It says how high it would like to be, and draws itself into axes.

Those of a run over time draw in units of `View.unit_s`, between the ends of the view. To add one, write the class, append it to PANELS, and
add its name, which is that of the page (tools/report/page/panels.js), to names.py; a test compares the names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory

from ..._intervals import covered_until, mean_in_bins
from .drawing import (GREY, INK, PALE, STEPS, Panel, View, bars, byte_axis, count_axis, format_bytes, format_seconds, inches_of, name_rows)
from .names import NAMES
from .tables import Array, Look, Run

LATE, TREE, PATH_WAIT, MESSAGE = "#d00000", "#5b7fa3", "#d00000", "#780078"
SHADES = LinearSegmentedColormap.from_list("use", ["#ffffff", "#6baed6", "#08306b"])
MOST_BARS = 10_000     # of the workers; beyond, they are an image as fine as the picture
MOST_POINTS = 20_000   # drawn as shapes; beyond, as an image
MOST_STEPS = 40_000    # of the occupation of ranks, all together
MOST_WORKERS = 64      # with a box each
MOST_LINES = 1_500     # messages, and edges of broadcasts: more would cover each other

Legend = list[tuple[str, str]]
Rows = list[tuple[str, str, Array]]


def kernel_legend(run: Run, look: Look, tasks: Array) -> Legend:
    """Of the kernels of some tasks."""
    last = len(look.kernels) - 1  # the colour that the others share
    there = np.unique(np.minimum(run.kernel[tasks], last))
    names = {i: run.kernels[i]["codelet"] or "without a name" for i in there if i < len(run.kernels)}
    if len(run.kernels) > last + 1:
        names[last] = "other kernels"
    return [(names[i], look.kernel(run, i)) for i in there if i in names]


def box_of(values: Array) -> dict[str, Any]:
    """Quartiles as tandem/analysis/tables/quartiles.hpp has them; the least and greatest value that is no outlier, and the outliers above."""
    ordered = np.maximum(np.sort(values), 1e-9)  # for a logarithmic axis
    last = len(ordered) - 1
    first, third = ordered[last // 4], ordered[last - last // 4]
    outlier = ordered > third + 1.5 * (third - first)
    return {"least": ordered[0], "first": first, "median": ordered[last // 2], "third": third, "most": ordered[~outlier].max(),
            "outliers": ordered[outlier]}


def note_left_out(axes: Any, lines: int, what: str) -> None:
    """Says in the picture how many of `lines` are not drawn since they are more than MOST_LINES."""
    if lines > MOST_LINES:
        axes.text(0.995, 0.985, f"{lines - MOST_LINES:,} {what} are not drawn", fontsize=5.5, ha="right", va="top", color=INK,
                  transform=axes.transAxes, zorder=5, bbox={"boxstyle": "square,pad=0.2", "facecolor": "#ffffffd0", "linewidth": 0})


class Workers(Panel):
    name = "workers"

    def __init__(self, run: Run, view: View) -> None:
        super().__init__(run, view)
        self.label = run.row_label
        if "outliers" in view.show:
            self.hint = "outliers in the colour of their kernel, other tasks pale"
        self.idle_kinds = np.unique(run["idle.spent"])
        self.hidden = [i for i, name in enumerate(run.facts["spent"]) if name not in view.look.spent or name in ("outside", "unknown")]

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run.workers) > 0

    def height(self) -> float:
        return min(max(0.17 * len(self.run.workers), 0.4), 3.6)

    def legend(self) -> Legend:
        run, look = self.run, self.view.look
        tasks, idle = self.seen()
        kinds = [run.facts["spent"][kind] for kind in np.unique(run["idle.spent"][idle])]
        over = [("message: posted, arrived", MESSAGE)] * ("messages" in self.view.show)
        over += [("realised path: in a task", INK), ("realised path: it waits", PATH_WAIT)] * ("path" in self.view.show)
        return kernel_legend(run, look, tasks) + [(look.texts[kind], look.spent[kind]) for kind in kinds] + over

    def seen(self) -> tuple[Array, Array]:
        """The tasks to draw, and of each idle time whether it is to be drawn."""
        run = self.run
        tasks, end = run.ran, run.end
        tasks = tasks[self.view.seen(run, run["task.start"][tasks], end[tasks])]
        idle = self.view.seen(run, run["idle.start"], run["idle.start"] + run["idle.duration"])
        return tasks, idle & ~np.isin(run["idle.spent"], self.hidden)

    def draw(self, axes: Any) -> None:
        run = self.run
        tasks, idle = self.seen()
        if len(tasks) + np.count_nonzero(idle) <= MOST_BARS:
            self.draw_bars(axes, tasks, np.flatnonzero(idle))
        else:
            self.draw_image(axes, tasks, idle)
        name_rows(axes, [run.row_name(worker) for worker in run.workers], inches_of(axes))
        if "path" in self.view.show:
            self.draw_path(axes)
        if "messages" in self.view.show:
            self.draw_messages(axes)

    def tone(self, kernel: int, outlier: bool) -> Array:
        """The colour of a task; where outliers are shown, that of others is pale."""
        colour = np.array(to_rgb(self.view.look.kernel(self.run, kernel)))
        return colour if outlier or "outliers" not in self.view.show else 1 + (colour - 1) * 0.35

    def draw_bars(self, axes: Any, tasks: Array, idle: Array) -> None:
        run, view = self.run, self.view
        start, end = view.x(run, run["task.start"]), view.x(run, run.end)
        shapes: list[Array] = []
        colours: list[Any] = []
        idle_start, idle_end = view.x(run, run["idle.start"]), view.x(run, run["idle.start"] + run["idle.duration"])
        for kind in self.idle_kinds:
            some = idle[run["idle.spent"][idle] == kind]
            shapes.append(bars(idle_start[some], idle_end[some], run["idle.worker"][some][:, None]))
            colours += [to_rgb(view.look.spent[run.facts["spent"][kind]])] * len(some) if len(some) > 0 else []
        kernel, outlier = run.kernel, run.outlier
        shapes.append(bars(start[tasks], end[tasks], run["task.lane"][tasks][:, None] - 1))
        colours += [self.tone(kernel[task], outlier[task]) for task in tasks]
        axes.add_collection(PolyCollection(list(np.concatenate(shapes)), facecolors=colours, linewidths=0, snap=False))
        self.draw_names(axes, tasks, start, end)

    def draw_names(self, axes: Any, tasks: Array, start: Array, end: Array) -> None:
        """Of tasks that are wide enough; and a line where one follows another."""
        run, view = self.run, self.view
        if inches_of(axes) / len(run.workers) < 0.1:
            return
        begin, length = view.begin / view.unit_s, (view.end - view.begin) / view.unit_s
        inches = axes.get_position().width * axes.figure.get_size_inches()[0] / length
        wide = tasks[(end[tasks] - start[tasks]) * inches > 0.03]
        rows = run["task.lane"][wide] - 1
        axes.add_collection(LineCollection(list(np.stack([np.stack([start[wide], rows - 0.45], 1), np.stack([start[wide], rows + 0.45], 1)], 1)),
                                           colors="#00000060", linewidths=0.3))
        for task, row in zip(wide, rows):
            a, b, name = max(start[task], begin), min(end[task], begin + length), run.name_of(task)
            if (b - a) * inches > 0.055 * len(name) + 0.04:
                white = "outliers" not in view.show or run.outlier[task]
                axes.text((a + b) / 2, row, name, fontsize=5.5, color="white" if white else INK, ha="center", va="center_baseline",
                          clip_on=True)

    def draw_image(self, axes: Any, tasks: Array, idle: Array) -> None:
        """What took most of each column of each worker, as bright as it took less of it."""
        run, view = self.run, self.view
        edges, lanes = view.edges(run), run["task.lane"][tasks] - 1
        start, end, kernel, outlier = run["task.start"][tasks], run.end[tasks], run.kernel[tasks], run.outlier[tasks]
        idle_end = run["idle.start"] + run["idle.duration"]
        image = np.ones((len(run.workers), view.columns, 3))
        idle_tones = np.array([(1, 1, 1)] + [to_rgb(view.look.spent.get(name, "#ffffff")) for name in run.facts["spent"]])
        tones = np.array([self.tone(i, False) for i in range(len(run.kernels) + 1)])
        strong = np.array([self.tone(i, True) for i in range(len(run.kernels) + 1)])
        by_lane, by_worker = np.argsort(lanes, kind="stable"), np.flatnonzero(idle)
        lane_begins = np.searchsorted(lanes[by_lane], np.arange(len(run.workers) + 1))
        for lane in range(len(run.workers)):
            here = by_worker[run["idle.worker"][by_worker] == lane]
            ground = idle_tones[1 + self.greatest(edges, run["idle.start"][here], idle_end[here], run["idle.spent"][here])[0]]
            own = by_lane[lane_begins[lane]:lane_begins[lane + 1]]
            most, share = self.greatest(edges, start[own], end[own], kernel[own])
            marked = mean_in_bins(edges, start[own][outlier[own]], end[own][outlier[own]]) > 0
            tone = np.where(marked[:, None], strong[most], tones[most])
            image[lane] = ground + (tone - ground) * np.clip(share, 0, 1)[:, None]
        axes.imshow(image, extent=(view.begin / view.unit_s, view.end / view.unit_s, len(run.workers) - 0.5, -0.5), aspect="auto",
                    interpolation="nearest")

    @staticmethod
    def greatest(edges: Array, start: Array, end: Array, kind: Array) -> tuple[Array, Array]:
        """Of each column the kind that takes most of it, -1: none; and the share of all kinds."""
        best, most, total = np.full(len(edges) - 1, -1), np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
        for one in np.unique(kind):
            part = mean_in_bins(edges, start[kind == one], end[kind == one])
            total += part
            more = part > most + 1e-9
            best[more], most[more] = one, part[more]
        return best, total

    def draw_path(self, axes: Any) -> None:
        """The realised path: black where it executes, red where it waits."""
        run, view = self.run, self.view
        executes = np.array([name in ("execution", "busy") for name in run.facts["steps"]])[run["path.kind"]]
        task = run["path.task"] - 1
        edges = np.concatenate(([0], run["path.end"]))
        known = (task >= 0) & (run["task.lane"][task] > 0) if len(task) > 0 else np.zeros(0, bool)
        x, rows = view.x(run, edges), run["task.lane"][task] - 1
        lines, colours, last = [], [], None
        for i in np.flatnonzero(known & view.seen(run, edges[:-1], edges[1:])):
            lines.append(([last] if last is not None else []) + [(x[i], rows[i]), (x[i + 1], rows[i])])
            colours.append(INK if executes[i] else PATH_WAIT)
            last = (x[i + 1], rows[i])
        axes.add_collection(LineCollection(lines, colors=colours, linewidths=0.9))

    def draw_messages(self, axes: Any) -> None:
        run, view = self.run, self.view
        posted, arrived = run["message.posted"], run["message.posted"] + run["message.arrived"]
        shown = np.flatnonzero(view.seen(run, posted, arrived) & (run["message.source"] != run["message.destination"]))
        note_left_out(axes, len(shown), "smaller messages")
        shown = shown[np.argsort(-run["message.bytes"][shown], kind="stable")][:MOST_LINES]
        middle = {rank: np.mean([i for i, worker in enumerate(run.workers) if worker["rank"] == rank]) for rank in run.ranks}
        ends = [(i, middle.get(run["message.source"][i]), middle.get(run["message.destination"][i])) for i in shown]
        lines = [((view.x(run, posted[i]), a), (view.x(run, arrived[i]), b)) for i, a, b in ends if a is not None and b is not None]
        axes.add_collection(LineCollection(lines, colors=MESSAGE + "90", linewidths=0.4))


class Series(Panel):
    """Lines, or areas upon each other, of `rows`: [(name, colour, values of the columns)]."""
    stacked, in_bytes, per_second = False, False, False
    most = 0.0

    def __init__(self, run: Run, view: View) -> None:
        super().__init__(run, view)
        self.edges = view.edges(run)
        self.rows = self.values()

    def values(self) -> Rows:
        raise NotImplementedError

    def legend(self) -> Legend:
        return [(name, colour) for name, colour, values in self.rows if values.any()] or [self.rows[0][:2]]

    def draw(self, axes: Any) -> None:
        x = self.view.x(self.run, self.edges)
        below, most = np.zeros(self.view.columns), self.most
        for _, colour, values in self.rows:
            if self.stacked:
                axes.fill_between(x, np.append(below, below[-1:]), np.append(below + values, (below + values)[-1:]), step="post",
                                  facecolor=colour, linewidth=0)
                below = below + values
                most = max(most, below.max(initial=0))
            else:
                changes = np.flatnonzero(np.concatenate(([True], np.diff(values) != 0)))  # a line has no point where nothing changes
                axes.step(np.append(x[changes], x[-1]), np.append(values[changes], values[-1:]), where="post", color=colour, linewidth=0.8)
                most = max(most, values.max(initial=0))
        if self.in_bytes:
            byte_axis(axes, most, self.per_second)
        else:
            count_axis(axes, most)
        axes.set_axisbelow(not self.stacked)


class Occupation(Series):
    name = "occupation"
    label, stacked = "workers", True

    def values(self) -> Rows:
        run, look = self.run, self.view.look
        self.most = len(run.workers)
        tasks, shown = run.ran, min(len(run.kernels), len(look.kernels))
        kernel, start, end = np.minimum(run.kernel[tasks], shown - 1), run["task.start"][tasks], run.end[tasks]
        rows = []
        for i in range(shown):
            others = i + 1 == shown and len(run.kernels) > shown
            name = "other kernels" if others else run.kernels[i]["codelet"] or "without a name"
            rows.append((name, look.kernel(run, i), mean_in_bins(self.edges, start[kernel == i], end[kernel == i])))
        return rows


class Use(Panel):
    name = "use"
    label = "rank"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run.ranks) > 1

    def height(self) -> float:
        return min(max(0.13 * len(self.run.ranks), 0.4), 2.6)

    def legend(self) -> Legend:
        return [(name, to_hex(SHADES(share))) for name, share in (("all work", 1.0), ("half", 0.5), ("none", 0.0))]

    def draw(self, axes: Any) -> None:
        run, view, edges = self.run, self.view, self.view.edges(self.run)
        tasks = run.ran
        rank_of_lane = np.array([worker["rank"] for worker in run.workers])
        rank, start, end = rank_of_lane[run["task.lane"][tasks] - 1], run["task.start"][tasks], run.end[tasks]
        shares = [mean_in_bins(edges, start[rank == one], end[rank == one]) / np.count_nonzero(rank_of_lane == one) for one in run.ranks]
        axes.imshow(np.array(shares), extent=(view.begin / view.unit_s, view.end / view.unit_s, len(run.ranks) - 0.5, -0.5), aspect="auto",
                    interpolation="nearest", cmap=SHADES, vmin=0, vmax=1)
        for row in range(1, len(run.ranks)):
            axes.axhline(row - 0.5, color="white", linewidth=0.4)
        name_rows(axes, [str(rank) for rank in run.ranks], inches_of(axes))


class Balance(Series):
    """Over a hundredth of the run around each column."""
    name = "balance"
    label, most = "%", 100.0

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return super().is_there(run) and len(run.workers) > 1

    def values(self) -> Rows:
        run, tasks = self.run, self.run.ran
        part_of_lane = np.array([worker["rank"] for worker in run.workers]) if len(run.ranks) > 1 else np.arange(len(run.workers))
        part, start, end = part_of_lane[run["task.lane"][tasks] - 1], run["task.start"][tasks], run.end[tasks]
        middles = (self.edges[:-1] + self.edges[1:]) / 2
        half = np.maximum(np.diff(self.edges), run.makespan / 100) / 2
        busy = []
        for one in np.unique(part_of_lane):
            own = part == one
            until = [covered_until(times, start[own], end[own]) for times in (middles - half, middles + half)]
            busy.append((until[1] - until[0]) / (2 * half * np.count_nonzero(part_of_lane == one)))
        most = np.max(busy, axis=0)
        return [("mean / most", "#009e73", np.divide(100 * np.mean(busy, axis=0), most, out=np.zeros(len(most)), where=most > 1e-9))]


class Nodes(Panel):
    """The node occupation of the affinity paper (figure 1): rows of stacked areas."""
    name = "nodes"
    label = "rank"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return super().is_there(run) and len(run.ranks) > 1

    def height(self) -> float:
        return min(max(0.24 * len(self.run.ranks), 0.6), 4.5)

    def legend(self) -> Legend:
        return kernel_legend(self.run, self.view.look, Workers(self.run, self.view).seen()[0])

    def rows(self, columns: int) -> tuple[Array, Array]:
        """The edges of the time steps; and [rank, kernel, step]: the share of the rank's workers that execute the kernel."""
        run, view, shown = self.run, self.view, min(len(self.run.kernels), len(self.view.look.kernels))
        edges = np.linspace(view.begin, view.end, columns + 1) * (1e9 / run.unit_ns)
        tasks, rank_of_lane = run.ran, np.array([worker["rank"] for worker in run.workers])
        rank, kernel = rank_of_lane[run["task.lane"][tasks] - 1], np.minimum(run.kernel[tasks], shown - 1)
        start, end = run["task.start"][tasks], run.end[tasks]
        shares = np.zeros((len(run.ranks), shown, columns))
        for row, one in enumerate(run.ranks):
            for each in range(shown):
                some = (rank == one) & (kernel == each)
                if some.any():
                    shares[row, each] = mean_in_bins(edges, start[some], end[some]) / np.count_nonzero(rank_of_lane == one)
        return edges, shares

    def draw(self, axes: Any) -> None:
        run, look = self.run, self.view.look
        series = len(run.ranks) * min(len(run.kernels), len(look.kernels))
        edges, shares = self.rows(int(np.clip(MOST_STEPS // max(series, 1), 60, 400)))
        x = self.view.x(run, edges)
        for row in range(len(run.ranks)):
            below = np.full(len(x) - 1, row + 0.42)
            for kernel in range(shares.shape[1]):
                if not shares[row, kernel].any():
                    continue
                above = below - 0.84 * shares[row, kernel]  # the first row is at the top
                axes.fill_between(x, np.append(below, below[-1]), np.append(above, above[-1]), step="post", linewidth=0,
                                  facecolor=look.kernel(run, kernel))
                below = above
            axes.axhline(row + 0.42, color=PALE, linewidth=0.4)
        name_rows(axes, [str(rank) for rank in run.ranks], inches_of(axes))


class Submitted(Series):
    name = "submitted"
    label = "tasks"

    def values(self) -> Rows:
        run = self.run
        tasks = run.ran
        submit = np.minimum(run["task.submit"][tasks], run["task.start"][tasks])
        return [("submitted, not ended", "#6f6f6f", mean_in_bins(self.edges, submit, run.end[tasks]))]


class Ready(Series):
    name = "ready"
    label = "tasks"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return super().is_there(run) and run.facts["readied"]

    def values(self) -> Rows:
        run = self.run
        tasks, waited = run.ran, run["task.waited"]  # -1: not known
        tasks = tasks[waited[tasks] >= 0]
        start = run["task.start"][tasks]
        return [("ready", "#d55e00", mean_in_bins(self.edges, start - waited[tasks], start))]


class Points(Panel):
    """A point for each task at its start."""

    def height(self) -> float:
        return 1.3

    def tasks(self) -> Array:
        return self.run.ran

    def ends(self) -> tuple[float, float]:
        """Of the vertical axis."""
        raise NotImplementedError

    def rows(self, tasks: Array) -> Array:
        """Where the points of some tasks are."""
        raise NotImplementedError

    def seen(self) -> Array:
        tasks = self.tasks()
        start = self.run["task.start"][tasks]
        return tasks[self.view.seen(self.run, start, start + 1)]

    def draw(self, axes: Any) -> None:
        run, view = self.run, self.view
        tasks = self.seen()
        least, most = self.ends()
        x, y, kernel = view.x(run, run["task.start"][tasks]), self.rows(tasks), run.kernel[tasks]
        # One point for each place that can be told apart, of each kernel.
        grid = np.stack([kernel, (x - view.begin / view.unit_s) / (view.end - view.begin) * view.unit_s * view.columns,
                         (y - least) / max(most - least, 1) * 600], 1).astype(np.int64)
        _, first = np.unique(grid, axis=0, return_index=True)
        many = len(first) > MOST_POINTS
        for one in np.unique(kernel[first]):
            some = first[kernel[first] == one]
            axes.plot(x[some], y[some], linestyle="", marker="s", markersize=0.9 if len(first) > 3000 else 1.8, markeredgewidth=0,
                      color=view.look.kernel(run, one), rasterized=many)
        axes.set_ylim(least, most)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True, steps=STEPS))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{int(value):,}" if value == int(value) else ""))

    def legend(self) -> Legend:
        return kernel_legend(self.run, self.view.look, self.seen())


class Iterations(Points):
    name = "iterations"
    label = "iteration"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return super().is_there(run) and bool((run["task.iteration"] >= 0).any())

    def tasks(self) -> Array:
        return self.run.ran[self.run["task.iteration"][self.run.ran] >= 0]

    def ends(self) -> tuple[float, float]:
        iterations = self.run["task.iteration"][self.tasks()]
        return iterations.min() - 0.5, iterations.max() + 0.5

    def rows(self, tasks: Array) -> Array:
        return self.run["task.iteration"][tasks]


class Flight(Series):
    """As tandem/analysis/verdict/iterations.hpp has them."""
    name = "flight"
    label = "iterations"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run["pass.start"]) > 0

    def values(self) -> Rows:
        start = self.run["pass.start"]
        return [("iterations", "#0072b2", mean_in_bins(self.edges, start, start + self.run["pass.duration"]))]


class Order(Points):
    """On several ranks, each of which submits its own tasks, as a share of them: then steps of the program are at one height."""
    name = "order"

    def __init__(self, run: Run, view: View) -> None:
        super().__init__(run, view)
        self.several = run.summary["ranks"] > 1
        self.label = "% of the rank's tasks" if self.several else "task"

    def ends(self) -> tuple[float, float]:
        return (0, 101) if self.several else (0, len(self.run["task.lane"]) + 1)

    def rows(self, tasks: Array) -> Array:
        order = self.run.order
        if not self.several:
            return order[tasks]
        rank = self.run["task.rank"]
        return 100 * order[tasks] / np.bincount(rank)[rank[tasks]]


def crossing(run: Run) -> Array:
    """Messages between ranks."""
    return np.flatnonzero(run["message.source"] != run["message.destination"])


class Rate(Series):
    name = "rate"
    label, stacked, in_bytes, per_second = "bytes per second", True, True, True

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(crossing(run)) > 0

    def values(self) -> Rows:
        run, look = self.run, self.view.look
        some = crossing(run)
        posted, took = run["message.posted"][some], np.maximum(run["message.arrived"][some], run.makespan / 32768)
        rate, destination = run["message.bytes"][some] / took * (1e9 / run.unit_ns), run["message.destination"][some]
        rows = []
        for i, rank in enumerate(run.ranks[:len(look.kernels)]):
            to = destination == rank
            rows.append((f"to rank {rank}", look.kernels[i], mean_in_bins(self.edges, posted[to], (posted + took)[to], rate[to])))
        rest = ~np.isin(destination, run.ranks[:len(look.kernels)])
        if rest.any():
            rows.append(("to other ranks", "#aaaaaa", mean_in_bins(self.edges, posted[rest], (posted + took)[rest], rate[rest])))
        return rows


class Messages(Series):
    name = "messages"
    label = "messages"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(crossing(run)) > 0

    def values(self) -> Rows:
        run, some = self.run, crossing(self.run)
        posted = run["message.posted"][some]
        return [("messages", "#7b3294", mean_in_bins(self.edges, posted, posted + run["message.arrived"][some]))]


class Memory(Series):
    name = "memory"
    label, in_bytes = "bytes", True

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run["memory.time"]) > 0

    def values(self) -> Rows:
        """The most in each column."""
        run, look = self.run, self.view.look
        rank, node, time, used = (run["memory." + name] for name in ("rank", "node", "time", "used"))
        names = {(memory["rank"], memory["node"]): memory["name"] for memory in run.facts.get("memories", [])}
        rows = []
        for i, (of_rank, of_node) in enumerate(dict.fromkeys(zip(rank.tolist(), node.tolist()))):
            if i == 16:
                break
            own = (rank == of_rank) & (node == of_node)
            values, places = np.concatenate(([0], used[own])), np.searchsorted(time[own], self.edges, "right")
            most = np.maximum.reduceat(values, places)[:-1]
            rows.append((f"rank {of_rank}, {names.get((of_rank, of_node), f'memory {of_node}')}", look.kernels[i % len(look.kernels)], most))
        return rows


class Tracer(Series):
    name = "tracer"
    label, stacked = "threads", True

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run["tracer.kind"]) > 0

    def values(self) -> Rows:
        run, rows = self.run, []
        for kind, name, colour in ((0, "write the trace", "#6f6f6f"), (1, "wait for room in it", "#d55e00")):
            some = run["tracer.kind"] == kind
            start = run["tracer.start"][some]
            rows.append((name, colour, mean_in_bins(self.edges, start, start + run["tracer.duration"][some])))
        return rows


class Broadcasts(Panel):
    name = "broadcasts"
    label = "rank"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run["edge.message"]) > 0

    def height(self) -> float:
        return min(max(0.15 * len(self.ranks()), 0.7), 3)

    def ranks(self) -> list[int]:
        return sorted({*self.run.ranks, *self.run["broadcast.root"].tolist()})

    def legend(self) -> Legend:
        late = [("late arrival", LATE)] if self.run["edge.late"].any() else []
        return [("posted at its root", INK), ("sent or forwarded, and arrived", TREE), *late]

    def draw(self, axes: Any) -> None:
        run, view = self.run, self.view
        message, late = run["edge.message"], run["edge.late"] > 0
        start, end, parent, child = run["edge.start"], run["edge.end"], run["edge.parent"], run["message.destination"][message]
        row_of = {rank: row for row, rank in enumerate(self.ranks())}
        shown = np.flatnonzero(view.seen(run, start, end))
        # Late ones first, then those that took longest: more than some would cover each other.
        note_left_out(axes, len(shown), "shorter ones")
        shown = shown[np.lexsort((start[shown] - end[shown], ~late[shown]))][:MOST_LINES]
        x0, x1 = view.x(run, start), view.x(run, end)
        for some, colour, width in ((shown[~late[shown]], TREE + "b0", 0.45), (shown[late[shown]], LATE, 0.9)):
            ends = [((x0[i], row_of.get(parent[i], 0)), (x1[i], row_of.get(child[i], 0))) for i in some]
            axes.add_collection(LineCollection(ends, colors=colour, linewidths=width))
            axes.plot([end[0] for _, end in ends], [end[1] for _, end in ends], linestyle="", marker="o", markersize=1.4 + width,
                      markeredgewidth=0, color=colour[:7], rasterized=len(ends) > MOST_POINTS)
        roots = np.unique(run["message.broadcast"][message[shown]]) - 1
        axes.plot(view.x(run, run["broadcast.posted"][roots]), [row_of[rank] for rank in run["broadcast.root"][roots]], linestyle="",
                  marker="D", markersize=2.4, markeredgewidth=0, color=INK)
        name_rows(axes, [str(rank) for rank in row_of], inches_of(axes))


class Times(Panel):
    name = "times"
    over_time = False

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(run.workers) > 0

    def __init__(self, run: Run, view: View) -> None:
        super().__init__(run, view)
        workers = run.summary["workers"]
        self.label = run.row_label
        self.bars = [(run.row_name(worker), worker["seconds"]) for worker in workers]
        if len(workers) > 40:
            sums: dict[int, dict[str, float]] = {}
            for worker in workers:
                for key, seconds in worker["seconds"].items():
                    of = sums.setdefault(worker["rank"], {})
                    of[key] = of.get(key, 0) + seconds
            self.bars, self.label = [(str(rank), seconds) for rank, seconds in sums.items()], "rank"
        self.keys = [key for key in run.facts["spent"] if run.summary["seconds"].get(key, 0) > 0]

    def height(self) -> float:
        return min(max(0.16 * len(self.bars), 0.4), 3)

    def colour(self, key: str) -> str:
        return "#0072b2" if key == "executing" else "#f0f0f0" if key in ("outside", "unknown") else self.view.look.spent[key]

    def legend(self) -> Legend:
        seconds, texts = self.run.summary["seconds"], self.view.look.texts
        total = sum(seconds.values())
        return [(f"{texts[key]} {100 * seconds[key] / total:.1f} %", self.colour(key)) for key in self.keys]

    def draw(self, axes: Any) -> None:
        for row, (_, seconds) in enumerate(self.bars):
            at, total = 0, sum(seconds.values()) or 1
            for key in self.keys:
                axes.barh(row, 100 * seconds.get(key, 0) / total, 0.8, left=at, color=self.colour(key), linewidth=0)
                at += 100 * seconds.get(key, 0) / total
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the worker's time (%)", labelpad=1)
        name_rows(axes, [name for name, _ in self.bars], inches_of(axes))


class Kernels(Panel):
    name = "kernels"
    over_time = False

    def height(self) -> float:
        return min(max(0.2 * len(self.run.kernels), 0.45), 3)

    def draw(self, axes: Any) -> None:
        for row, kernel in enumerate(self.run.kernels):
            axes.plot([kernel["min_s"], kernel["max_s"]], [row, row], color=GREY, linewidth=0.6, solid_capstyle="butt")
            axes.barh(row, kernel["third_quartile_s"] - kernel["first_quartile_s"], 0.6, left=kernel["first_quartile_s"],
                      color=self.view.look.kernel(self.run, row), linewidth=0)
            axes.plot([kernel["median_s"]] * 2, [row - 0.36, row + 0.36], color="black", linewidth=1)
            axes.text(1.005, row, f"{kernel['tasks']:,} tasks, {kernel['outliers']:,} outliers", fontsize=5.5, va="center", color=GREY,
                      transform=blended_transform_factory(axes.transAxes, axes.transData))
        axes.set_xscale("log")
        least = max(min(kernel["min_s"] for kernel in self.run.kernels), 1e-9)
        decades = np.log10(max(kernel["max_s"] for kernel in self.run.kernels) / least)
        axes.xaxis.set_major_locator(LogLocator(subs=(1,) if decades > 3 else (1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_seconds(value)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="x", color=PALE, linewidth=0.4)
        axes.set_axisbelow(True)
        axes.set_xlabel("duration of a task (logarithmic)", labelpad=1)
        name_rows(axes, [kernel["codelet"] or "without a name" for kernel in self.run.kernels], inches_of(axes))


class Durations(Panel):
    """Those of the kernel with the greatest total time, of each worker, or of each rank where there are many (affinity paper, figure 2)."""
    name = "durations"
    over_time = False

    def __init__(self, run: Run, view: View) -> None:
        super().__init__(run, view)
        self.title += f": {run.kernels[0]['codelet'] or 'tasks without a name'}"
        tasks = run.ran[run.kernel[run.ran] == 0]
        by_rank = len(run.workers) > MOST_WORKERS
        self.label = "rank" if by_rank else run.row_label
        of_lane = [str(worker["rank"]) if by_rank else run.row_name(worker) for worker in run.workers]
        names = list(dict.fromkeys(of_lane))
        place = np.array([names.index(name) for name in of_lane])[run["task.lane"][tasks] - 1]
        seconds = run["task.duration"][tasks] * (run.unit_ns / 1e9)
        self.boxes = [(name, box_of(seconds[place == row])) for row, name in enumerate(names) if (place == row).any()]

    def height(self) -> float:
        return min(max(0.17 * len(self.boxes), 0.45), 4)

    def draw(self, axes: Any) -> None:
        colour = self.view.look.kernel(self.run, 0)
        for row, (_, box) in enumerate(self.boxes):
            axes.plot([box["least"], box["most"]], [row, row], color=GREY, linewidth=0.6, solid_capstyle="butt")
            axes.barh(row, box["third"] - box["first"], 0.6, left=box["first"], color=colour, linewidth=0)
            axes.plot([box["median"]] * 2, [row - 0.36, row + 0.36], color="black", linewidth=1)
        # All at once, since each part that becomes an image takes as much memory as the whole picture.
        counts = [len(box["outliers"]) for _, box in self.boxes]
        axes.plot(np.concatenate([box["outliers"] for _, box in self.boxes]), np.repeat(np.arange(len(self.boxes)), counts), linestyle="",
                  marker="o", markersize=1.4, markeredgewidth=0, color=INK, rasterized=sum(counts) > MOST_POINTS)
        least, most = min(box["least"] for _, box in self.boxes), max(max(box["most"], *box["outliers"], 0) for _, box in self.boxes)
        axes.set_xscale("log")
        axes.set_xlim(least / 1.1, most * 1.1)
        axes.xaxis.set_major_locator(LogLocator(subs=(1,) if most > 1e3 * least else (1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_seconds(value)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="x", color=PALE, linewidth=0.4)
        axes.set_axisbelow(True)
        axes.set_xlabel("duration of a task (logarithmic)", labelpad=1)
        name_rows(axes, [name for name, _ in self.boxes], inches_of(axes))


class Matrix(Panel):
    name = "matrix"
    over_time = False
    label = "from rank"

    @classmethod
    def is_there(cls, run: Run) -> bool:
        return len(crossing(run)) > 0

    def height(self) -> float:
        ranks: int = self.run.summary["ranks"]
        return min(max(0.2 * ranks, 0.8), 3.5)

    def draw(self, axes: Any) -> None:
        run, some, ranks = self.run, crossing(self.run), self.run.summary["ranks"]
        table, counts = np.zeros((ranks, ranks)), np.zeros((ranks, ranks))
        places = run["message.source"][some], run["message.destination"][some]
        np.add.at(table, places, run["message.bytes"][some])
        np.add.at(counts, places, 1)
        axes.imshow(table / max(table.max(), 1), cmap=SHADES, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        if axes.get_position().width * axes.figure.get_size_inches()[0] / ranks > 0.42:
            for (row, column), value in np.ndenumerate(table):
                if counts[row, column] > 0:
                    axes.text(column, row, format_bytes(value), fontsize=5.5, ha="center", va="center",
                              color="white" if value > table.max() / 2 else INK)
        axes.set_xticks(range(0, ranks, max(ranks // 16, 1)))
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("to rank", labelpad=1)
        name_rows(axes, [str(rank) for rank in range(ranks)], inches_of(axes))


PANELS = {panel.name: panel for panel in (Workers, Occupation, Use, Nodes, Balance, Submitted, Ready, Iterations, Flight, Order, Rate, Messages,
                                          Broadcasts, Memory, Tracer, Times, Kernels, Durations, Matrix)}
assert list(PANELS) == list(NAMES)
