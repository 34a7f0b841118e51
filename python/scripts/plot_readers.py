#!/usr/bin/env python3
# python/scripts/plot_readers.py: a plot of early reading, from the JSON object that `tandem bench readers --json` prints.
"""Draw, by rank, when the task that reads a broadcast datum starts, and when the one that writes it (thesis, figure 4.6)."""

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TITLES = {"off": "without broadcasts"}


def draw(axes, tree, early, late):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="file of `tandem bench readers --json`")
    parser.add_argument("--output", default="readers.png", help="the picture to write (default: %(default)s)")
    arguments = parser.parse_args()
    report = json.loads(Path(arguments.report).read_text(encoding="utf-8"))
    if report.get("benchmark") != "readers":
        sys.exit(f"{arguments.report}: holds the benchmark {report.get('benchmark')!r}, expected 'readers' "
                 "(tandem bench readers --json)")
    rows = {entry["params"]["tree"]: entry for entry in report["results"]}
    trees = list(dict.fromkeys(name.removesuffix(" wait") for name in rows))
    if not trees:
        sys.exit("the report holds no results, nothing to draw")

    figure, all_axes = plt.subplots(1, len(trees), figsize=(4 * len(trees), 4.4), sharex=True, squeeze=False,
                                    constrained_layout=True)
    # Each tree has its own vertical scale: the flat tree takes so much longer that the others would look like zero.
    for axes, tree in zip(all_axes[0], trees):
        draw(axes, tree, rows.get(tree), rows.get(f"{tree} wait"))
        axes.set_ylim(bottom=0)
    all_axes[0][0].set_ylabel("start of the reading task to start of the writing task (ms)")
    params = next(iter(rows.values()))["params"]
    figure.suptitle(f"{params['bytes']:,} bytes to {params['recipients']} ranks, limit {params['rate']}; "
                    f"{report['machine']['processor']}, commit {report['commit']}", fontsize=9, x=0.01, ha="left")
    figure.savefig(arguments.output, dpi=120)


if __name__ == "__main__":
    main()
