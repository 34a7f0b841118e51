#!/usr/bin/env python3
# python/scripts/plot_ring.py: a plot of corrected clocks, from the JSON object that `tandem bench ring --json` prints.
"""Draw the durations of messages over time, with clocks corrected in several ways (figure 17 of the article on traces)."""

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

METHODS = {
    "plain_barrier": ("a plain barrier", "#999999"),
    "one_barrier": ("one synchronised barrier", "#0072b2"),
    "two_barriers": ("two synchronised barriers", "#e69f00"),
    "piecewise": ("points each second, and messages", "#009e73"),
}


def draw(axes, row, column, name):
    """One dot for each message of the series; hops share a colour, since each is a line of its own where clocks drift."""
    label, colour = METHODS[name]
    for hop, messages in enumerate(row["details"]["series"]):
        axes.plot([message[0] for message in messages], [message[column] for message in messages], ".", color=colour,
                  markersize=2.5, alpha=0.6, markeredgewidth=0, label=label if hop == 0 else None)


def dress(axes, title, unit):
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylabel(unit)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, markerscale=4, loc="upper left", ncols=4)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="file of `tandem bench ring --json`")
    parser.add_argument("--output", default="ring.png", help="the picture to write (default: %(default)s)")
    arguments = parser.parse_args()
    report = json.loads(Path(arguments.report).read_text(encoding="utf-8"))
    if report.get("benchmark") != "ring":
        sys.exit(f"{arguments.report}: holds the benchmark {report.get('benchmark')!r}, expected 'ring' "
                 "(tandem bench ring --json)")
    rows = {entry["name"]: entry for entry in report["results"] if entry["name"] in METHODS}
    if not rows:
        sys.exit("the report holds no results, nothing to draw")

    figure, (all_axes, close_axes, error_axes) = plt.subplots(3, 1, figsize=(9, 9.5), sharex=True, constrained_layout=True)
    for name, row in rows.items():
        draw(all_axes, row, 1, name)
    dress(all_axes, "duration of messages, all methods", "us")
    # The plain barrier leaves the scale at once. The others remain; their differences are the errors.
    close = {name: row for name, row in rows.items() if name != "plain_barrier"}
    for name, row in close.items():
        draw(close_axes, row, 1, name)
    typical = report["results"][0]["value"]
    close_axes.set_ylim(-2 * typical, 5 * typical)
    dress(close_axes, "the same, near the true durations", "us")
    scale = 0
    for name in ("two_barriers", "piecewise"):
        if name in rows:
            draw(error_axes, rows[name], 2, name)
            scale = max(scale, abs(rows[name]["details"]["error_p01"]), abs(rows[name]["details"]["error_p99"]))
    error_axes.set_ylim(-1.5 * scale - 0.1, 1.5 * scale + 0.1)
    dress(error_axes, "measured minus true duration", "us")
    error_axes.set_xlabel("seconds of the run")
    params = report["results"][0]["params"]
    figure.suptitle(f"4 bytes round {params['ranks']} ranks over {params['transport']}, drifts injected; "
                    f"{report['machine']['processor']}, commit {report['commit']}", fontsize=9, x=0.01, ha="left")
    figure.savefig(arguments.output, dpi=120)


if __name__ == "__main__":
    main()
