# python/tandem/plots/_events.py: which events a trace holds, from what `tandem trace stats --json` prints.
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from ._figure import Source, new_figure, read_object, unit_for

Stats = Mapping[str, Any]

COLOURS = {"task": "#0072b2", "sched": "#56b4e9", "worker": "#009e73", "data": "#8c6d31", "comm": "#d55e00",
           "broadcast": "#e69f00", "dist": "#cc79a7", "flow": "#7f3c8d", "tracer": "#666666",
           "user": "#80ba5a", "about": "#bbbbbb"}
MOST_TYPES = 24


def event_types(report: Source) -> Figure:
    """How many events of each type there are, the most frequent types first (figure 5 of the CCPE 2023 article on traces).

    `report` is what ``tandem trace stats --json`` prints.
    """
    stats = _read(report)
    types = stats["types"][:MOST_TYPES]
    figure = new_figure(9, 1.2 + 0.27 * len(types))
    axes = figure.subplots()
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
    axes.set_title(f"{stats['events']:,} events in {stats['stream_bytes'] / 2**20:,.2f} MiB", loc="left", fontsize=11)
    _tidy(axes)
    return figure


def events_over_time(report: Source) -> Figure:
    """How many events were recorded when, by category (figure 6 of the CCPE 2023 article on traces).

    `report` is what ``tandem trace stats --json`` prints.
    """
    stats = _read(report)
    middles, width, unit = _timeline(stats)
    categories = list(dict.fromkeys(entry["category"] for entry in stats["types"] if any(entry["bins"])))
    figure = new_figure(10, 3.4)
    axes = figure.subplots()
    below = [0] * len(middles)
    for category in categories:
        counts = [sum(column) for column in zip(*(entry["bins"] for entry in stats["types"] if entry["category"] == category))]
        axes.bar(middles, counts, width, bottom=below, color=COLOURS.get(category, "#888888"), label=category, linewidth=0)
        below = [a + b for a, b in zip(below, counts)]
    axes.set_xlim(0, width * len(middles))
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel(f"events per {width:.3g} {unit}")
    axes.legend(frameon=False, fontsize=8, ncol=len(categories), loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    _tidy(axes)
    return figure


def event_types_over_time(report: Source) -> Figure:
    """How many events of each type were recorded when (figure 7 of the CCPE 2023 article on traces).

    `report` is what ``tandem trace stats --json`` prints.
    """
    stats = _read(report)
    middles, width, unit = _timeline(stats)
    types = [entry for entry in stats["types"] if any(entry["bins"])][:MOST_TYPES]
    figure = new_figure(10, 0.8 + 0.5 * len(types))
    rows = figure.subplots(len(types), 1, sharex=True, squeeze=False)
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
    return figure


def _read(report: Source) -> Stats:
    where, stats = read_object(report)
    if not any(any(entry["bins"]) for entry in stats["types"]):
        raise ValueError(f"{where}: holds no events, nothing to draw")
    return stats


def _timeline(stats: Stats) -> tuple[list[float], float, str]:
    """The bins' middles, their width and the unit."""
    unit, unit_ns = unit_for(stats["duration_ns"])
    count = len(stats["types"][0]["bins"])
    width = max(stats["duration_ns"], 1) / unit_ns / count
    return [(place + 0.5) * width for place in range(count)], width, unit


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=2)
