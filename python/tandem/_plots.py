# python/tandem/_plots.py: pictures of a run, as matplotlib figures.
from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any, Optional

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ._columns import as_numpy, codes
from ._intervals import covered_until
from ._messages import comm_matrix
from ._profiles import time_profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._run import Run

# Okabe and Ito's colours, then lighter ones: most eyes can distinguish them, also on paper.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d31", "#f0e442", "#7f3c8d", "#80ba5a",
           "#a5aa99", "#3969ac"]
IDLE_COLOUR = "#ececec"
MOST_BARS = 20_000  # beyond, a Gantt chart is drawn as an image, since a bar would be thinner than a pixel
IMAGE_COLUMNS = 1500


@cache
def _figure_class() -> type[Figure]:
    """matplotlib's, which notebooks also show when nobody has imported pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from error

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

    return Picture


def _new_figure(width: float, height: float) -> tuple[Figure, Any]:
    """A figure that belongs to nobody: pyplot, which keeps figures until they are closed, does not know it."""
    figure = _figure_class()(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _unit_for(span_ns: float) -> tuple[str, float]:
    """The unit in which a span has few digits, and its length in ns."""
    return ("s", 1e9) if span_ns >= 5e9 else ("ms", 1e6) if span_ns >= 5e6 else ("µs", 1e3)


def _legend(axes: Any, names: list[str], colours: list[str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=name or "(no name)") for name, colour in zip(names, colours)]
    axes.figure.legend(handles=handles, loc="outside lower center", ncol=min(6, max(len(handles), 1)), frameon=False, fontsize=9)


def plot_gantt(run: Run, start_ns: Optional[int] = None, end_ns: Optional[int] = None) -> Figure:
    """A row for each worker, a bar for each task, coloured by codelet; light areas are idle time, schedulers' and others'.

    From `start_ns` to `end_ns` since the first event; by default the makespan. Where there are more than 20,000 bars, each point has
    the colour of what took most of its time.
    """
    begin, end = run.makespan
    begin, end = begin if start_ns is None else start_ns, end if end_ns is None else end_ns
    states = run.states.filter(pc.and_(pc.equal(run.states["state"].cast(pa.string()), "executing"), pc.is_valid(run.states["worker"])))
    states = states.filter(pc.and_(pc.less(states["start_ns"], end), pc.greater(states["end_ns"], begin)))
    split = run._native.split()
    places: npt.NDArray[np.int64] = split["rank"].astype(np.int64) * 65536 + split["worker"]
    keys = as_numpy(states["rank"]).astype(np.int64) * 65536 + as_numpy(states["worker"])
    places = np.unique(np.concatenate([places, keys]))
    rows = np.searchsorted(places, keys)
    starts, ends = np.maximum(as_numpy(states["start_ns"]), begin), np.minimum(as_numpy(states["end_ns"]), end)
    of_codelet, names = codes(states["codelet"])

    unit, unit_ns = _unit_for(end - begin)
    figure, axes = _new_figure(11, 1.6 + min(0.32 * max(len(places), 1), 14))
    axes.set_facecolor(IDLE_COLOUR)
    time_of = np.bincount(of_codelet, weights=ends - starts, minlength=len(names)) if len(names) else np.empty(0)
    order = [int(number) for number in np.argsort(-time_of, kind="stable") if time_of[number] > 0]
    colours = {number: COLOURS[place % len(COLOURS)] for place, number in enumerate(order)}
    if len(starts) <= MOST_BARS:
        _draw_bars(axes, rows, (starts - begin) / unit_ns, (ends - begin) / unit_ns, of_codelet, colours)
    else:
        _draw_image(axes, rows, starts - begin, ends - begin, of_codelet, colours, len(places), end - begin, unit_ns)
    axes.set_xlim(0, max(end - begin, 1) / unit_ns)
    axes.set_ylim(max(len(places), 1) - 0.5, -0.5)
    shown = range(0, len(places), max(len(places) // 40, 1))
    axes.set_yticks(list(shown), [f"rank {places[place] // 65536}, worker {places[place] % 65536}" for place in shown], fontsize=8)
    origin = "the first submission" if start_ns is None else f"{begin / unit_ns:.6g} {unit}"
    axes.set_xlabel(f"time since {origin} ({unit})")
    axes.set_title(f"{run.program}: tasks of {len(places)} workers", loc="left", fontsize=11)
    _legend(axes, [names[number] for number in order[:24]], [colours[number] for number in order[:24]])
    return figure


def _draw_bars(axes: Any, rows: Any, starts: Any, ends: Any, of_codelet: Any, colours: dict[int, str]) -> None:
    from matplotlib.collections import PolyCollection

    for number, colour in colours.items():
        here = of_codelet == number
        left, right, middle = starts[here], ends[here], rows[here].astype(float)
        corners = np.stack([np.stack([left, middle - 0.4], 1), np.stack([right, middle - 0.4], 1), np.stack([right, middle + 0.4], 1),
                            np.stack([left, middle + 0.4], 1)], 1)
        axes.add_collection(PolyCollection(list(corners), facecolors=colour, edgecolors="white", linewidths=0.2))


def _draw_image(axes: Any, rows: Any, starts: Any, ends: Any, of_codelet: Any, colours: dict[int, str], workers: int, span_ns: int,
                unit_ns: float) -> None:
    from matplotlib.colors import to_rgb

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
    if workers <= 40:
        axes.hlines(np.arange(1, workers) - 0.5, 0, span_ns / unit_ns, colors="white", linewidths=2)


def plot_comm_matrix(run: Run, output: str = "bytes") -> Figure:
    """What each rank sent to each, in MB or, with `output="count"`, in messages; senders are rows."""
    matrix = comm_matrix(run, output)
    figure, axes = _new_figure(5.5, 4.6)
    values = matrix / 1e6 if output == "bytes" else matrix
    image = axes.imshow(values, cmap="cividis", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="MB" if output == "bytes" else "messages")
    if len(matrix) <= 12:
        for source, destination in np.ndindex(matrix.shape):
            value = values[source, destination]
            axes.text(destination, source, f"{value:.3g}", ha="center", va="center", fontsize=8,
                      color="white" if value < values.max() / 2 or values.max() == 0 else "black")
        axes.set_xticks(range(len(matrix)))
        axes.set_yticks(range(len(matrix)))
    axes.set_xlabel("destination")
    axes.set_ylabel("source")
    axes.set_title(f"{run.program}: {'data' if output == 'bytes' else 'messages'} sent", loc="left", fontsize=11)
    return figure


def plot_time_profile(run: Run, bins: int = 100, by: str = "codelet") -> Figure:
    """How many workers executed what, over time: `time_profile`, stacked."""
    profile = time_profile(run, bins, by)
    edges = np.append(as_numpy(profile["start_ns"]), profile["end_ns"][-1].as_py()) - run.makespan[0]
    lengths = np.maximum(np.diff(edges), 1)
    totals = {name: int(pc.sum(profile[name]).as_py() or 0) for name in profile.column_names[2:]}
    names = sorted(totals, key=lambda name: -totals[name])
    unit, unit_ns = _unit_for(float(edges[-1]))
    figure, axes = _new_figure(11, 3.6)
    below = np.zeros(bins)
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(names))]
    for name, colour in zip(names, colours):
        above = below + as_numpy(profile[name]) / lengths
        axes.stairs(above, edges / unit_ns, baseline=below, fill=True, color=colour)
        below = above
    workers = len(run._native.split()["rank"])
    axes.axhline(workers, color="#888888", linewidth=0.8)
    axes.set_xlim(0, max(float(edges[-1]), 1) / unit_ns)
    axes.set_ylim(0, max(workers, 1) * 1.05)
    axes.set_xlabel(f"time since the first submission ({unit})")
    axes.set_ylabel("workers")
    axes.set_title(f"{run.program}: what workers did, by {by}", loc="left", fontsize=11)
    _legend(axes, names[:24], colours[:24])
    return figure
