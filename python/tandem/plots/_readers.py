# python/tandem/plots/_readers.py: early reading, from what `tandem bench readers --json` prints.
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from matplotlib.figure import Figure

from ._figure import Source, new_figure, origin_of, read_benchmark

Row = Mapping[str, Any]

TITLES = {"off": "without broadcasts"}


def readers(report: Source) -> Figure:
    """By rank, when the task that reads a broadcast datum starts, and when the one that writes it (figure 4.6 of the thesis).

    `report` is a result of ``tandem bench readers --json``.
    """
    said = read_benchmark(report, "readers")
    rows = {entry["params"]["tree"]: entry for entry in said["results"]}
    trees = list(dict.fromkeys(name.removesuffix(" wait") for name in rows))
    figure = new_figure(4 * len(trees), 4.4)
    all_axes = figure.subplots(1, len(trees), sharex=True, squeeze=False)
    # Each tree has its own vertical scale: the flat tree takes so much longer that the others would look like zero.
    for axes, tree in zip(all_axes[0], trees):
        _draw(axes, tree, rows.get(tree), rows.get(f"{tree} wait"))
        axes.set_ylim(bottom=0)
    all_axes[0][0].set_ylabel("start of the reading task to start of the writing task (ms)")
    params = next(iter(rows.values()))["params"]
    figure.suptitle(f"{params['bytes']:,} bytes to {params['recipients']} ranks, limit {params['rate']}; "
                    f"{origin_of(said)}", fontsize=9, x=0.01, ha="left")
    return figure


def _draw(axes: Any, tree: str, early: Optional[Row], late: Optional[Row]) -> None:
    """The area between the start of the reader (below) and of the writer (above): readable at arrival, and once forwarded."""
    for row, colour, label in ((early, "#0072b2", "may read at arrival"), (late, "#d55e00", "waits for forwarding")):
        if row is None:
            continue
        below, above = row["details"]["arrived_ms"], row["details"]["released_ms"]
        ranks = range(1, len(below) + 1)
        axes.fill_between(ranks, below, above, color=colour, alpha=0.3, linewidth=0)
        axes.plot(ranks, below, color=colour, linewidth=1.2, label=label)
        axes.plot(ranks, above, color=colour, linewidth=0.5)
    axes.set_title(TITLES.get(tree, tree), loc="left", fontsize=11)
    axes.set_xlabel("rank (higher ranks have higher priority)")
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
