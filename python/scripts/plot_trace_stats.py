#!/usr/bin/env python3
# python/scripts/plot_trace_stats.py: three plots of the events in a trace, from `tandem trace stats --json`.
"""Draw events by type, events over time, and events over time by type (figures 5 to 7 of the CCPE 2023 article on traces)."""

import argparse
import json
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(f"{sys.executable} has no {error.name}: run `scripts/setup --analysis`, or install matplotlib "
             "(Debian: python3-matplotlib)")

COLOURS = {"task": "#0072b2", "sched": "#56b4e9", "worker": "#009e73", "data": "#8c6d31", "comm": "#d55e00",
           "broadcast": "#e69f00", "dist": "#cc79a7", "flow": "#7f3c8d", "tracer": "#666666",
           "user": "#80ba5a", "about": "#bbbbbb"}
MOST_TYPES = 24


def unit_for(span_ns):
    return ("s", 1e9) if span_ns >= 5e9 else ("ms", 1e6) if span_ns >= 5e6 else ("µs", 1e3)


def timeline(stats):
    """The bins' middles, their width and the unit."""
    unit, unit_ns = unit_for(stats["duration_ns"])
    count = len(stats["types"][0]["bins"])
    width = max(stats["duration_ns"], 1) / unit_ns / count
    return [(place + 0.5) * width for place in range(count)], width, unit


def tidy(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2)


def draw_types(stats, output):
    types = stats["types"][:MOST_TYPES]
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.27 * len(types)), constrained_layout=True)
    places = range(len(types))
    colours = [COLOURS.get(entry["category"], "#888888") for entry in types]
    axes.barh(places, [entry["events"] for entry in types], color=colours, height=0.75)
    for place, entry in zip(places, types):
        axes.annotate(f"{entry['events']:,}  ({100 * entry['share']:.1f} %)", (entry["events"], place), xytext=(4, 0),
                      textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(places, [entry["type"] for entry in types], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.22 * max(entry["events"] for entry in types))
    axes.set_xlabel("events")
    axes.set_title(f"{stats['events']:,} events in {stats['stream_bytes'] / 1e6:,.2f} MB", loc="left", fontsize=11)
    tidy(axes)
    figure.savefig(output, dpi=140)
    plt.close(figure)


def draw_time(stats, output):
    middles, width, unit = timeline(stats)
    categories = list(dict.fromkeys(entry["category"] for entry in stats["types"] if any(entry["bins"])))
    figure, axes = plt.subplots(figsize=(10, 3.4), constrained_layout=True)
    below = [0] * len(middles)
    for category in categories:
        counts = [sum(column) for column in zip(*(entry["bins"] for entry in stats["types"] if entry["category"] == category))]
        axes.bar(middles, counts, width, bottom=below, color=COLOURS.get(category, "#888888"), label=category, linewidth=0)
        below = [a + b for a, b in zip(below, counts)]
    axes.set_xlim(0, width * len(middles))
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel(f"events per {width:.3g} {unit}")
    axes.legend(frameon=False, fontsize=8, ncol=len(categories), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    tidy(axes)
    figure.savefig(output, dpi=140)
    plt.close(figure)


def draw_time_types(stats, output):
    middles, width, unit = timeline(stats)
    types = [entry for entry in stats["types"] if any(entry["bins"])][:MOST_TYPES]
    figure, rows = plt.subplots(len(types), 1, figsize=(10, 0.8 + 0.5 * len(types)), sharex=True, squeeze=False,
                                constrained_layout=True)
    for axes, entry in zip(rows[:, 0], types):
        axes.bar(middles, entry["bins"], width, color=COLOURS.get(entry["category"], "#888888"), linewidth=0)
        axes.set_ylabel(entry["type"], rotation=0, ha="right", va="center", fontsize=8)
        axes.set_yticks([max(entry["bins"])], [f"{max(entry['bins']):,}"], fontsize=7)
        axes.yaxis.tick_right()
        axes.set_ylim(0, 1.15 * max(entry["bins"]))
        axes.spines[["top", "left", "right"]].set_visible(False)
        axes.tick_params(length=0)
    rows[-1, 0].set_xlim(0, width * len(middles))
    rows[-1, 0].set_xlabel(f"time ({unit}); at the right the most events per {width:.3g} {unit}")
    figure.savefig(output, dpi=140)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stats", help="what `tandem trace stats --json` printed")
    parser.add_argument("--output", default="events", help="prefix of the pictures (default: %(default)s)")
    arguments = parser.parse_args()
    with open(arguments.stats, encoding="utf-8") as file:
        stats = json.load(file)
    if not any(any(entry["bins"]) for entry in stats["types"]):
        sys.exit(f"{arguments.stats}: holds no events, nothing to draw")
    draw_types(stats, arguments.output + "-types.png")
    draw_time(stats, arguments.output + "-time.png")
    draw_time_types(stats, arguments.output + "-time-types.png")


if __name__ == "__main__":
    main()
