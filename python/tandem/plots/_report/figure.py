# python/tandem/plots/_report/figure.py: places panels of a report below each other, with titles, legends and one time axis.
"""Lengths are in inches."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any, Optional, Union

import matplotlib
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .._figure import Picture
from .drawing import GREY, INK, STEPS, Panel, View
from .names import SHOWN
from .panels import PANELS
from .tables import Run, read_page

LEFT, RIGHT, BOTTOM, GAP = 0.72, 0.12, 0.36, 0.12  # beside the axes, and between two panels
TITLE, ROW = 0.15, 0.125                           # a title, a row of a legend
LEAST, MOST = 0.2, 100                             # the height of a panel, of a picture
COARSE, FINE = 300, 600                            # dots per inch of PNG, and of what is drawn as an image in PDF and SVG
STYLE: Any = {"pdf.fonttype": 42, "svg.fonttype": "path", "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "xtick.labelcolor": INK,
         "ytick.labelcolor": INK, "path.simplify_threshold": 0.05}


@functools.cache
def text_width(text: str, size: float) -> float:
    """Inches."""
    return float(TextPath((0, 0), text, size=size, prop=FontProperties()).vertices[:, 0].max()) / 72 if text.strip() else 0.0


class Entry:
    """A panel of a run, and the rows of its legend: [(offset in inches, name, colour)]."""

    def __init__(self, panel: Panel, letter: str, width: float) -> None:
        self.panel = panel
        self.title = f"{letter}: {panel.title}" if letter else panel.title
        self.rows: list[list[tuple[float, str, str]]] = []
        at, self.top = 0.0, 0.0
        for name, colour in panel.legend():
            wide = 0.24 + text_width(name, 6)
            if not self.rows or at + wide > width:
                self.rows.append([])
                at = 0.0
            self.rows[-1].append((at, name, colour))
            at += wide
        self.above = TITLE + ROW * len(self.rows)
        self.below = BOTTOM if not panel.over_time else 0
        self.height = panel.height()


class Layout:
    """Places the panels from the top down: those over time first, which share the axis below the last of them."""

    def __init__(self, entries: list[Entry], width: float, height: Optional[float]) -> None:
        self.entries = sorted(entries, key=lambda entry: not entry.panel.over_time)
        times = [entry for entry in self.entries if entry.panel.over_time]
        if times:
            times[-1].below = BOTTOM
        around = sum(entry.above + entry.below + GAP for entry in self.entries) - GAP
        wanted = sum(entry.height for entry in self.entries)
        if height is not None:
            least = around + LEAST * len(self.entries)
            if height < least:
                raise ValueError(f"{len(self.entries)} panels need a height of {least + 0.05:.1f}in at least")
            # Each gets its share, and none less than what can be read.
            for _ in self.entries:
                fixed = [entry for entry in self.entries if entry.height * (height - around) / wanted < LEAST]
                if not fixed:
                    break
                for entry in fixed:
                    entry.height = LEAST * wanted / (height - around)
                wanted = sum(entry.height for entry in self.entries)
            for entry in self.entries:
                entry.height *= (height - around) / wanted
            wanted = height - around
        self.width, self.height = width, min(around + wanted, MOST)
        at = self.height
        for entry in self.entries:
            entry.top = at
            at -= entry.above + entry.height + entry.below + GAP


def draw_above(figure: Figure, layout: Layout, entry: Entry) -> None:
    """Title, hint and legend."""
    x, y = LEFT / layout.width, (entry.top - 0.12) / layout.height
    figure.text(x, y, entry.title, fontsize=8, fontweight="bold", color=INK)
    hint, at = entry.panel.hint, LEFT + 1.15 * text_width(entry.title, 8) + 0.1
    if hint and at + text_width(hint, 6) < layout.width - RIGHT:
        figure.text(at / layout.width, y, hint, fontsize=6, color=GREY)
    for i, row in enumerate(entry.rows):
        y = (entry.top - TITLE - ROW * (i + 1) + 0.035) / layout.height
        for at, name, colour in row:
            figure.add_artist(Rectangle(((LEFT + at) / layout.width, y), 0.08 / layout.width, 0.08 / layout.height, facecolor=colour,
                                        edgecolor="#00000040", linewidth=0.3, transform=figure.transFigure))
            figure.text((LEFT + at + 0.11) / layout.width, y, name, fontsize=6, color=INK)


def draw(entries: list[Entry], view: View, width: float, height: Optional[float]) -> StillPicture:
    layout = Layout(entries, width, height)
    figure = StillPicture(figsize=(layout.width, layout.height))
    last = [entry for entry in layout.entries if entry.panel.over_time][-1:]
    for entry in layout.entries:
        bottom = entry.top - entry.above - entry.height
        wide = width - LEFT - RIGHT - (1.35 if entry.panel.name == "kernels" else 0)  # numbers stand at the right of kernels
        axes = figure.add_axes((LEFT / width, bottom / layout.height, wide / width, entry.height / layout.height))
        axes.tick_params(labelsize=6, length=2, width=0.4, pad=2)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_linewidth(0.4)
        entry.panel.draw(axes)
        draw_above(figure, layout, entry)
        if entry.panel.label:
            axes.annotate(entry.panel.label, (0.08, bottom + entry.height / 2), xycoords=figure.dpi_scale_trans, rotation=90, fontsize=6,
                          ha="left", va="center", color=INK)
        if not entry.panel.over_time:
            continue
        axes.set_xlim(view.begin / view.unit_s, view.end / view.unit_s)
        axes.xaxis.set_major_locator(MaxNLocator(max(int(width * 1.4), 3), steps=STEPS))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
        if [entry] == last:
            axes.set_xlabel(f"time ({view.unit})", labelpad=1)
        else:
            axes.tick_params(axis="x", labelbottom=False)
    share_durations(layout.entries, figure)
    for axes in figure.axes:
        for text in (axes.xaxis.label, axes.yaxis.label):
            text.set_fontsize(6.5)
    return figure


def share_durations(entries: list[Entry], figure: Figure) -> None:
    """Gives the panels of one name that are not over time one scale, so that two runs can be compared."""
    for name in ("kernels", "durations"):
        own = [axes for entry, axes in zip(entries, figure.axes) if entry.panel.name == name]
        if len(own) > 1:
            limits = [axes.get_xlim() for axes in own]
            for axes in own:
                axes.set_xlim(min(least for least, _ in limits), max(most for _, most in limits))


def panels_of(runs: list[Run], wanted: Optional[Sequence[str]]) -> list[tuple[str, Run, type[Panel]]]:
    """[(letter, run, class)] of the panels that were asked for, or of all that the runs have."""
    letters = "AB" if len(runs) > 1 else [""]
    found: list[tuple[str, Run, type[Panel]]] = []
    for name in wanted or PANELS:
        of = [(letter, run, PANELS[name]) for letter, run in zip(letters, runs) if PANELS[name].is_there(run)]
        if not of and wanted:
            there = [name for name, panel in PANELS.items() if any(panel.is_there(run) for run in runs)]
            raise ValueError(f"the run has nothing for panel {name}; it has {', '.join(there) or 'no panel at all'}")
        found += of
    if not found:
        raise ValueError("the run has nothing to draw: no task, no worker, no message")
    return found


def stretch(runs: list[Run], begin: float, end: Optional[float]) -> tuple[float, float]:
    whole = max(run.seconds(run.makespan) for run in runs)
    end = whole if end is None else min(end, whole)
    if not 0 <= begin < end:
        raise ValueError(f"from {begin:g} s to {end:g} s there is nothing to draw: the run takes {whole:.9g} s")
    return begin, end


class StillPicture(Picture):
    """A figure of panels, which knows how it is saved best."""

    panels: list[str]

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """As any figure: letters remain letters, and the dots are fine enough for print unless `dpi` says otherwise."""
        file = arguments[0] if arguments else options.get("fname", "")
        form = options.get("format") or os.path.splitext(str(file))[1][1:] or "png"
        options.setdefault("dpi", COARSE if form == "png" else FINE)
        with matplotlib.rc_context(STYLE):
            super().savefig(*arguments, **options)


def report(page: Union[str, os.PathLike[str]], panels: Optional[Sequence[str]] = None, show: Sequence[str] = (), begin_s: float = 0,
           end_s: Optional[float] = None, width: float = 7, height: Optional[float] = None) -> StillPicture:
    """Panels of a page that ``tandem trace report`` wrote, below each other, over the same time and in the page's colours.

    `panels` are names of `tandem.plots.panels`, by default all that the run has something for. `show` draws over the workers: "messages",
    "path" (the realised one), or "outliers" alone. `begin_s` and `end_s` cut the time; `width` and `height` are in inches. Of a page that
    compares two runs each panel is drawn twice.
    """
    for known, names in ((PANELS, panels or ()), (SHOWN, show)):
        for name in names:
            if name not in known:
                raise ValueError(f"there is no {name!r}; there are {', '.join(known)}")
    with matplotlib.rc_context(STYLE):
        runs, look = read_page(page)
        wanted = panels_of(runs, panels)
        begin_s, end = stretch(runs, begin_s, end_s)
        inches = width - LEFT - RIGHT
        view = View(begin_s, end, max(int(inches * 300), 1), look, show)
        figure = draw([Entry(panel(run, view), letter, inches) for letter, run, panel in wanted], view, width, height)
    figure.panels = list(dict.fromkeys(panel.name for _, _, panel in wanted))
    return figure
