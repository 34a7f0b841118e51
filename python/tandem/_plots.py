# python/tandem/_plots.py: pictures of a run, as matplotlib figures.
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ._columns import as_numpy, codes
from ._messages import comm_matrix
from ._profiles import time_profile

# Pictures are imported where they are drawn, since only they need matplotlib.
if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._run import Run


def plot_gantt(run: Run, start_ns: Optional[int] = None, end_ns: Optional[int] = None) -> Figure:
    """A row for each worker, a bar for each task, coloured by codelet; light areas are idle time, schedulers' and others'.

    From `start_ns` to `end_ns` since the first event; by default the makespan. Where there are more than 20,000 bars, each point has
    the colour of what took most of its time.
    """
    from .plots._figure import unit_for
    from .plots._gantt import draw_gantt

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

    unit, unit_ns = unit_for(end - begin)
    labels = [f"rank {place // 65536}, worker {place % 65536}" for place in places]
    origin = "the first submission" if start_ns is None else f"{begin / unit_ns:.6g} {unit}"
    return draw_gantt(labels, rows, starts - begin, ends - begin, of_codelet, names, end - begin, f"time since {origin} ({unit})",
                      f"{run.program}: tasks of {len(places)} workers")


def plot_comm_matrix(run: Run, output: str = "bytes") -> Figure:
    """What each rank sent to each, in MiB or, with `output="count"`, in messages; senders are rows."""
    from .plots._figure import new_figure

    matrix = comm_matrix(run, output)
    figure = new_figure(5.5, 4.6)
    axes = figure.add_subplot()
    values = matrix / 2**20 if output == "bytes" else matrix
    image = axes.imshow(values, cmap="cividis", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="MiB" if output == "bytes" else "messages")
    if len(matrix) <= 12:
        for source, destination in np.ndindex(matrix.shape):
            value = values[source, destination]
            axes.text(destination, source, f"{value:.3g}", ha="center", va="center", fontsize=8,
                      color="white" if value < values.max() / 2 or values.max() == 0 else "black")
        axes.set_xticks(range(len(matrix)))
        axes.set_yticks(range(len(matrix)))
    axes.set_xlabel("to rank")
    axes.set_ylabel("from rank")
    axes.set_title(f"{run.program}: {'data' if output == 'bytes' else 'messages'} sent", loc="left", fontsize=11)
    return figure


def plot_time_profile(run: Run, bins: int = 100, by: str = "codelet") -> Figure:
    """How many workers executed what, over time: `time_profile`, stacked."""
    from matplotlib.ticker import MaxNLocator

    from .plots._figure import COLOURS, place_legend, unit_for, with_legend

    profile = time_profile(run, bins, by)
    edges = np.append(as_numpy(profile["start_ns"]), profile["end_ns"][-1].as_py()) - run.makespan[0]
    lengths = np.maximum(np.diff(edges), 1)
    totals = {name: int(pc.sum(profile[name]).as_py() or 0) for name in profile.column_names[2:]}
    names = sorted(totals, key=lambda name: -totals[name])
    unit, unit_ns = unit_for(float(edges[-1]))
    figure, axes, legend = with_legend(11, 3, len(names[:24]), 6)
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
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(f"{run.program}: what workers did, by {by}", loc="left", fontsize=11)
    place_legend(legend, zip(names[:24], colours[:24]), 6)
    return figure
