# python/tandem/plots/_flushes.py: flushes beside tasks, from what `tandem bench flushes --json` prints.
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ._figure import Source, new_figure, origin_of, read_benchmark

WAYS = {
    "untraced": ("untraced", "#666666"),
    "lose": ("traced; events that find no buffer are lost", "#0072b2"),
    "wait": ("traced; actors that find no buffer wait", "#d55e00"),
}


def flushes(report: Source) -> Figure:
    """The time of each factorisation over its number, by what full buffers lead to (figure 2 of the CCPE 2023 article on traces).

    `report` is a result of ``tandem bench flushes --json``.
    """
    said = read_benchmark(report, "flushes")
    entries = [entry for entry in said["results"] if entry["name"] in WAYS]
    if not entries:
        raise ValueError("the report holds no results of a way that is known, nothing to draw")

    most_s = max(max(entry["details"]["slowest_s"]) for entry in entries)
    figure = new_figure(9, 2.3 * len(entries) + 0.6)
    all_axes = figure.subplots(len(entries), 1, sharex=True, squeeze=False)
    for axes, entry in zip(all_axes[:, 0], entries):
        _draw(axes, entry, most_s)
    all_axes[-1, 0].set_xlabel("factorisation")
    params = entries[0]["params"]
    rounds = len(entries[0]["details"]["seconds"])
    figure.suptitle(f"Cholesky, n = {params['n']}, tile {params['nb']}, {params['workers']} workers; trace through "
                    f"{params['memory']} in buffers of {params['buffer']}; {'1 round' if rounds == 1 else f'{rounds} rounds'}\n"
                    f"{origin_of(said)}", fontsize=9, x=0.01, ha="left")
    return figure


def _draw(axes: Any, entry: Mapping[str, Any], most_s: float) -> None:
    """All rounds in a row, with a line between them, and each round's median."""
    label, colour = WAYS[entry["name"]]
    begin = 0
    for number, seconds in enumerate(entry["details"]["seconds"]):
        end = begin + len(seconds)
        axes.plot(range(begin + 1, end + 1), [1e3 * one for one in seconds], "o", color=colour, markersize=3.5, markeredgewidth=0)
        axes.hlines(1e3 * entry["details"]["median_s"][number], begin + 0.5, end + 0.5, color=colour, linewidth=0.8, alpha=0.6)
        if number > 0:
            axes.axvline(begin + 0.5, color="#bbbbbb", linewidth=0.6, linestyle=":")
        begin = end
    title = f"{label}: slowest/median, median of the rounds: {entry['value']:.3f}"
    if "trace_bytes" in entry["details"]:
        details = entry["details"]
        lost = sum(details["lost_events"]) / max(1, sum(details["lost_events"]) + sum(details["events"]))
        title += (f"; {sum(details['trace_bytes']) / len(details['trace_bytes']) / 2**20:.1f} MiB in "
                  f"{sum(details['buffers']) / len(details['buffers']):,.0f} buffers, {100 * lost:.2g} % lost")
    axes.set_title(title, loc="left", fontsize=9, color=colour)
    axes.set_ylim(0, 1.08e3 * most_s)
    axes.set_xlim(0, begin + 1)
    axes.set_ylabel("ms")
    axes.grid(axis="y", alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
