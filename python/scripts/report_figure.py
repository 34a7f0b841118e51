# python/scripts/report_figure.py: places panels of a report below each other, with titles, legends and one time axis.
"""Lengths are in inches."""

import functools
import sys

import matplotlib
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, MaxNLocator

from report_drawing import GREY, INK, STEPS, View
from report_panels import PANELS
from report_tables import read_page

LEFT, RIGHT, BOTTOM, GAP = 0.72, 0.12, 0.36, 0.12  # beside the axes, and between two panels
TITLE, ROW = 0.15, 0.125                           # a title, a row of a legend
LEAST, MOST = 0.2, 100                             # the height of a panel, of a picture
FINE = 600                                         # dots of what is drawn as an image in PDF and SVG


@functools.cache
def text_width(text, size):
    """Inches."""
    return TextPath((0, 0), text, size=size, prop=FontProperties()).vertices[:, 0].max() / 72 if text.strip() else 0


class Entry:
    """A panel of a run, and the rows of its legend: [(offset in inches, name, colour)]."""

    def __init__(self, panel, letter, width):
        self.panel = panel
        self.title = f"{letter}: {panel.title}" if letter else panel.title
        self.rows, at = [], 0
        for name, colour in panel.legend():
            wide = 0.24 + text_width(name, 6)
            if not self.rows or at + wide > width:
                self.rows.append([])
                at = 0
            self.rows[-1].append((at, name, colour))
            at += wide
        self.above = TITLE + ROW * len(self.rows)
        self.below = BOTTOM if not panel.over_time else 0
        self.height = panel.height()


class Layout:
    """Places the panels from the top down: those over time first, which share the axis below the last of them."""

    def __init__(self, entries, width, height):
        self.entries = sorted(entries, key=lambda entry: not entry.panel.over_time)
        times = [entry for entry in self.entries if entry.panel.over_time]
        if times:
            times[-1].below = BOTTOM
        around = sum(entry.above + entry.below + GAP for entry in self.entries) - GAP
        wanted = sum(entry.height for entry in self.entries)
        if height is not None:
            least = around + LEAST * len(self.entries)
            if height < least:
                sys.exit(f"{len(self.entries)} panels need a height of {least + 0.05:.1f}in at least")
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


def draw_above(figure, layout, entry):
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


def draw(entries, view, width, height):
    layout = Layout(entries, width, height)
    figure = Figure(figsize=(layout.width, layout.height))
    last = [entry for entry in layout.entries if entry.panel.over_time][-1:]
    for entry in layout.entries:
        bottom = entry.top - entry.above - entry.height
        wide = width - LEFT - RIGHT - (1.35 if entry.panel.name == "kernels" else 0)  # numbers stand at the right of kernels
        axes = figure.add_axes([LEFT / width, bottom / layout.height, wide / width, entry.height / layout.height])
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
    for axes in figure.axes:
        for text in (axes.xaxis.label, axes.yaxis.label):
            text.set_fontsize(6.5)
    return figure


def panels_of(runs, wanted):
    """[(letter, run, class)] of the panels that were asked for, or of all that the runs have."""
    letters = "AB" if len(runs) > 1 else [""]
    found = []
    for name in wanted or PANELS:
        of = [(letter, run, PANELS[name]) for letter, run in zip(letters, runs) if PANELS[name].is_there(run)]
        if not of and wanted:
            there = [name for name, panel in PANELS.items() if any(panel.is_there(run) for run in runs)]
            sys.exit(f"the run has nothing for panel {name}; it has {', '.join(there) or 'no panel at all'}")
        found += of
    if not found:
        sys.exit("the run has nothing to draw: no task, no worker, no message")
    return found


def stretch(runs, arguments):
    whole = max(run.seconds(run.makespan) for run in runs)
    begin = 0 if arguments.begin is None else arguments.begin
    end = whole if arguments.end is None else min(arguments.end, whole)
    if not 0 <= begin < end:
        sys.exit(f"from {begin:g} s to {end:g} s there is nothing to draw: the run takes {whole:.9g} s")
    return begin, end


def draw_page(arguments):
    """Draws what a page holds, into files. Returns the names of the panels."""
    matplotlib.rcParams.update({"pdf.fonttype": 42, "svg.fonttype": "path", "axes.edgecolor": GREY, "xtick.color": GREY,
                                "ytick.color": GREY, "xtick.labelcolor": INK, "ytick.labelcolor": INK, "path.simplify_threshold": 0.05})
    try:
        runs, look = read_page(arguments.page)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    wanted = panels_of(runs, arguments.panel)
    begin, end = stretch(runs, arguments)
    inches = arguments.width - LEFT - RIGHT
    view = View(begin, end, max(int(inches * 300), 1), look, arguments.show)
    entries = [Entry(panel(run, view), letter, inches) for letter, run, panel in wanted]
    figure = draw(entries, view, arguments.width, arguments.height)
    for name in ("pdf", "svg", "png"):
        file = getattr(arguments, name)
        if file is not None:
            try:
                figure.savefig(file, format=name, dpi=300 if name == "png" else FINE)
            except OSError as error:
                sys.exit(f"{file}: cannot be written: {error.strerror}")
    return [entry.panel.name for entry in entries]
