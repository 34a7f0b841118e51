# python/tandem/plots/_ring.py: durations of messages with corrected clocks, from what `tandem bench ring --json` prints.
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ._figure import Source, new_figure, origin_of, read_benchmark

METHODS = {
    "plain_barrier": ("a plain barrier", "#999999"),
    "one_barrier": ("one synchronised barrier", "#0072b2"),
    "two_barriers": ("two synchronised barriers", "#e69f00"),
    "piecewise": ("points each second, and messages", "#009e73"),
}


def ring(report: Source) -> Figure:
    """The durations of messages over time, with clocks corrected in several ways (figure 17 of the CCPE 2023 article on traces).

    `report` is a result of ``tandem bench ring --json``.
    """
    said = read_benchmark(report, "ring")
    rows = {entry["name"]: entry for entry in said["results"] if entry["name"] in METHODS}
    if not rows:
        raise ValueError("the report holds no results of a method that is known, nothing to draw")

    figure = new_figure(9, 9.5)
    all_axes, close_axes, error_axes = figure.subplots(3, 1, sharex=True)
    for name, row in rows.items():
        _draw(all_axes, row, 1, name)
    _dress(all_axes, "duration of messages, all methods", "us")
    # The plain barrier leaves the scale at once. The others remain; their differences are the errors.
    close = {name: row for name, row in rows.items() if name != "plain_barrier"}
    for name, row in close.items():
        _draw(close_axes, row, 1, name)
    typical = said["results"][0]["value"]
    close_axes.set_ylim(-2 * typical, 5 * typical)
    _dress(close_axes, "the same, near the true durations", "us")
    scale = 0.0
    for name in ("two_barriers", "piecewise"):
        if name in rows:
            _draw(error_axes, rows[name], 2, name)
            scale = max(scale, abs(rows[name]["details"]["error_p01"]), abs(rows[name]["details"]["error_p99"]))
    error_axes.set_ylim(-1.5 * scale - 0.1, 1.5 * scale + 0.1)
    _dress(error_axes, "measured minus true duration", "us")
    error_axes.set_xlabel("seconds of the run")
    params = said["results"][0]["params"]
    figure.suptitle(f"4 bytes round {params['ranks']} ranks over {params['transport']}, drifts injected; {origin_of(said)}",
                    fontsize=9, x=0.01, ha="left")
    return figure


def _draw(axes: Any, row: Mapping[str, Any], column: int, name: str) -> None:
    """One dot for each message of the series; hops share a colour, since each is a line of its own where clocks drift."""
    label, colour = METHODS[name]
    for hop, messages in enumerate(row["details"]["series"]):
        axes.plot([message[0] for message in messages], [message[column] for message in messages], ".", color=colour,
                  markersize=2.5, alpha=0.6, markeredgewidth=0, label=label if hop == 0 else None)


def _dress(axes: Any, title: str, unit: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylabel(unit)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, markerscale=4, loc="upper left", ncols=4)
