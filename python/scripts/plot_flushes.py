#!/usr/bin/env python3
# python/scripts/plot_flushes.py: a plot of flushes beside tasks, from what `tandem bench flushes --json` prints.
"""Draw the time of each factorisation over its number, by what full buffers lead to (figure 2 of the CCPE 2023 article)."""

import argparse
import json
import sys
from pathlib import Path

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(f"{sys.executable} has no {error.name}: run `scripts/setup --analysis`, or install matplotlib "
             "(Debian: python3-matplotlib)")

WAYS = {
    "untraced": ("untraced", "#666666"),
    "lose": ("traced; events that find no buffer are lost", "#0072b2"),
    "wait": ("traced; actors that find no buffer wait", "#d55e00"),
}


def draw(axes, entry, most_s):
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
        title += (f"; {sum(details['trace_bytes']) / len(details['trace_bytes']) / 1e6:.1f} MB in "
                  f"{sum(details['buffers']) / len(details['buffers']):,.0f} buffers, {100 * lost:.2g} % lost")
    axes.set_title(title, loc="left", fontsize=9, color=colour)
    axes.set_ylim(0, 1.08e3 * most_s)
    axes.set_xlim(0, begin + 1)
    axes.set_ylabel("ms")
    axes.grid(axis="y", alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="file of `tandem bench flushes --json`")
    parser.add_argument("--output", default="flushes.png", help="the picture to write (default: %(default)s)")
    arguments = parser.parse_args()
    report = json.loads(Path(arguments.report).read_text(encoding="utf-8"))
    if report.get("benchmark") != "flushes":
        sys.exit(f"{arguments.report}: holds the benchmark {report.get('benchmark')!r}, expected 'flushes' "
                 "(tandem bench flushes --json)")
    entries = [entry for entry in report["results"] if entry["name"] in WAYS]
    if not entries:
        sys.exit("the report holds no results, nothing to draw")

    most_s = max(max(entry["details"]["slowest_s"]) for entry in entries)
    figure, all_axes = plt.subplots(len(entries), 1, figsize=(9, 2.3 * len(entries) + 0.6), sharex=True, squeeze=False,
                                    constrained_layout=True)
    for axes, entry in zip(all_axes[:, 0], entries):
        draw(axes, entry, most_s)
    all_axes[-1, 0].set_xlabel("factorisation")
    params = entries[0]["params"]
    rounds = len(entries[0]["details"]["seconds"])
    figure.suptitle(f"Cholesky, n = {params['n']}, tile {params['nb']}, {params['workers']} workers; trace through "
                    f"{params['memory']} in buffers of {params['buffer']}; {'1 round' if rounds == 1 else f'{rounds} rounds'}\n"
                    f"{report['machine']['processor']}, commit {report['commit']}", fontsize=9, x=0.01, ha="left")
    try:
        figure.savefig(arguments.output, dpi=120)
    except (OSError, ValueError) as error:
        sys.exit(f"{arguments.output}: cannot be drawn: {error}")


if __name__ == "__main__":
    main()
