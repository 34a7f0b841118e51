# python/tandem/plots/_bcast.py: the time of broadcasts, from what `tandem bench bcast --json` prints.
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ._figure import Source, new_figure, origin_of, read_benchmark

Row = dict[str, Any]

COLOURS = {"automatic": "#000000", "ordered": "#444444", "flat": "#d55e00", "binomial": "#0072b2", "binary": "#009e73", "chain": "#cc79a7",
           "two_tree": "#e69f00", "knomial": "#56b4e9", "kary": "#999933", "delegate": "#882255", "two_groups": "#6699cc"}
PEERS: dict[str, tuple[str, Any]] = {
    "openmpi": ("MPI_Bcast", ":"), "openmpi_ibcast": ("MPI_Ibcast", (0, (1, 3))),
    "openmpi_pipeline": ("MPI_Bcast, 16 KiB pipeline", "--"), "starpu": ("StarPU-MPI", "-.")}
AREAS = ["flat", "binary", "binomial", "automatic"]


def bcast(reports: Union[Source, Sequence[Source]], recipients: Optional[int] = None) -> Figure:
    """The time of broadcasts by number of recipients, and when each rank has the data and has forwarded it.

    `reports` are results of ``tandem bench bcast --json``, of one rate, and of one size; with several sizes, of one number of recipients:
    times are then by size. `recipients` of the picture by rank, which is of the largest size: by default the most that there are.
    """
    one = isinstance(reports, (str, os.PathLike, Mapping))
    rows, origin = _read_results([reports] if one else reports)  # type: ignore[list-item,arg-type]
    networks = {(row["rate"], row["namespaces"]) for row in rows}
    sizes, counts = ({row[name] for row in rows} for name in ("bytes", "recipients"))
    if len(networks) > 1:
        raise ValueError(f"the reports mix (rate, namespaces) {sorted(networks)}; draw one of them at a time")
    if len(sizes) > 1 and len(counts) > 1:
        raise ValueError(f"the reports mix sizes {sorted(sizes)} and numbers of recipients {sorted(counts)}; draw one of either")
    rate, namespaces = networks.pop()
    figure = new_figure(13, 5)
    latency, ranks = figure.subplots(1, 2)
    _draw_latency(latency, rows, "bytes" if len(sizes) > 1 else "recipients", rate)
    largest = [row for row in rows if row["bytes"] == max(sizes) and "program" not in row]
    _draw_ranks(ranks, largest, recipients or max(counts))
    for axes in (latency, ranks):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    where = "one host" if not namespaces else f"network namespaces, limit {rate}"
    figure.suptitle(f"{where}; {origin}", fontsize=9, x=0.01, ha="left")
    return figure


def _read_results(sources: Sequence[Source]) -> tuple[list[Row], str]:
    """The results of all (their params, "value", "peers" and "details" in one dictionary each), and where they are from."""
    reports = [read_benchmark(source, "bcast") for source in sources]
    if not reports:
        raise ValueError("there are no reports, nothing to draw")
    rows = [dict(entry["params"], value=entry["value"], peers=entry["peers"], details=entry.get("details"))
            for report in reports for entry in report["results"]]
    return rows, origin_of(reports[0])


def _rate_bytes_per_ms(text: str) -> Optional[float]:
    """Bytes per ms of a rate as `tc` writes it; None without a limit."""
    units = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "bit": 1.0}
    for unit, factor in units.items():
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor / 8e3
    return None


def _dress(axes: Any) -> None:
    """Whole numbers below, milliseconds as people write them at the side."""
    axes.set_yscale("log")
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(plain)
    low, high = axes.get_ylim()
    axes.yaxis.set_minor_formatter(plain if high < 20 * low else FuncFormatter(lambda *_: ""))
    if axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_latency(axes: Any, rows: list[Row], across: str, rate: str) -> None:
    """One line for each tree, and one for each peer that chooses its own, by "recipients" or by "bytes"."""
    own = [row for row in rows if "program" not in row]
    for tree, colour in COLOURS.items():
        points = sorted((row[across], row["value"]) for row in own if row["tree"] == tree)
        if points:
            width = 2.4 if tree == "automatic" else 1.2
            axes.plot(*zip(*points), marker="o", markersize=3, color=colour, linewidth=width, label=tree)
    for peer, (label, style) in PEERS.items():
        found = {(row[across], row["value"] if row.get("program") == peer else row["peers"].get(peer)) for row in rows}
        points = sorted(point for point in found if point[1] is not None)
        if points:
            axes.plot(*zip(*points), linestyle=style, marker="x", markersize=4, color="#777777", linewidth=1.2, label=label)
    limit, sizes = _rate_bytes_per_ms(rate), sorted({row["bytes"] for row in rows})
    if limit:
        ends = sizes if across == "bytes" else [min(row[across] for row in rows), max(row[across] for row in rows)]
        times = [size / limit for size in (sizes if across == "bytes" else 2 * sizes)]
        axes.plot(ends, times, color="#bbbbbb", linewidth=1)
        axes.annotate("size / rate", (ends[-1], times[-1]), xytext=(-3, 3), textcoords="offset points", ha="right", fontsize=8, color="#777777")
    if across == "bytes":
        axes.set_xscale("log")
    _dress(axes)
    axes.set_xlabel("bytes" if across == "bytes" else "number of recipients")
    axes.set_ylabel("until the last one has the data (ms)")
    to = f"to {rows[0]['recipients']} recipients" if across == "bytes" else f"of {sizes[0]:,} bytes"
    axes.set_title(f"Broadcasts {to}", loc="left", fontsize=12)
    axes.legend(frameon=False, fontsize=8, ncols=2)


def _draw_ranks(axes: Any, rows: list[Row], recipients: int) -> None:
    """For each tree, the area between arrival (below) and release (above), by rank."""
    drawn = False
    for tree in AREAS:
        found = [row for row in rows if row["tree"] == tree and row["recipients"] == recipients and row["details"]]
        if not found:
            continue
        drawn = True
        details = found[0]["details"]
        ranks = range(1, len(details["arrived_ms"]) + 1)
        axes.fill_between(ranks, details["arrived_ms"], details["released_ms"], color=COLOURS[tree], alpha=0.3, linewidth=0)
        axes.plot(ranks, details["arrived_ms"], color=COLOURS[tree], linewidth=1.2, label=tree)
        axes.plot(ranks, details["released_ms"], color=COLOURS[tree], linewidth=0.5)
    _dress(axes)
    axes.set_xlabel("rank (higher ranks have higher priority)")
    axes.set_ylabel("arrival to release (ms)")
    axes.set_title(f"By rank, {recipients} recipients", loc="left", fontsize=12)
    if drawn:
        axes.legend(frameon=False, fontsize=8)
    else:
        axes.text(0.5, 0.5, f"none of {', '.join(AREAS)}\nwas measured with each rank's times", transform=axes.transAxes, ha="center", va="center",
                  fontsize=9, color="#777777")
