# python/tandem/__main__.py: what the command `tandem` and the examples run: pictures and Parquet files of what they wrote.
"""python3 -m tandem NAME ...: draws pictures, or packs tables. `python3 -m tandem NAME --help` says what NAME needs."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Optional

from .experiments.command import add_experiments
from .plots._report.names import NAMES, SHOWN

FORMATS = ("pdf", "svg", "png")
MOST_INCHES = 100

Arguments = argparse.Namespace


def need(*modules: str) -> None:
    """Ends the program where a module is not there, in few milliseconds and with a remedy."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            remedy = "install matplotlib (Debian: python3-matplotlib), run" if "matplotlib" in modules else "run"
            packages = "" if "matplotlib" in modules else ", `pip install pyarrow numpy`"
            sys.exit(f"{sys.executable} has no {name}: {remedy} `scripts/setup --analysis`{packages}, or name another Python by option python")


def save(figure: Any, file: str, **options: Any) -> None:
    try:
        figure.savefig(file, **options)
    except OSError as error:
        sys.exit(f"{file}: cannot be written: {error.strerror}")
    except ValueError as error:
        sys.exit(f"{file}: cannot be drawn: {error}")


def add_picture(commands: Any, name: str, what: str, source: str, draw: Callable[[Arguments], Any], dpi: int = 120,
                several: bool = False) -> argparse.ArgumentParser:
    """A picture of one file, or of several."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=what, description=what)
    parser.add_argument("source", nargs="+" if several else None, help=source)
    parser.add_argument("--output", default=f"{name}.png", help="the picture to write (default: %(default)s)")

    def run(arguments: Arguments) -> None:
        need("numpy", "matplotlib")
        save(draw(arguments), arguments.output, dpi=dpi)

    parser.set_defaults(run=run)
    return parser


def add_pictures(commands: Any) -> None:
    def plot(name: str, *arguments: Any) -> Any:
        from . import plots  # here, since matplotlib takes half a second

        return getattr(plots, name)(*arguments)

    for name in ("flushes", "readers", "ring"):
        add_picture(commands, name, f"draw what `tandem bench {name} --json` printed", "its file",
                    lambda arguments: plot(arguments.command, arguments.source))
    bcast = add_picture(commands, "bcast", "draw what `tandem bench bcast --json` printed", "files of it, of one size and rate",
                        lambda arguments: plot("bcast", arguments.source, arguments.recipients), 140, several=True)
    bcast.add_argument("--recipients", type=int, help="of the picture by rank (default: the most there are)")
    gantt = add_picture(commands, "gantt", "draw a row per worker and a bar per task",
                        "CSV or JSON lines (.jsonl) with worker,codelet,start_ns,end_ns,task",
                        lambda arguments: plot("gantt", arguments.source, arguments.title), 140)
    gantt.add_argument("--title", help="the line above the picture")
    forecast = add_picture(commands, "forecast", "draw a forecast of CO2", "forecast.csv as co2_forecast writes it",
                           lambda arguments: plot("forecast", arguments.source, arguments.summary), 140)
    forecast.add_argument("--summary", help="result.json of the same run; its numbers are written into the picture")
    stats = commands.add_parser("trace-stats", help="draw the events of a trace: three pictures")
    stats.add_argument("stats", help="what `tandem trace stats --json` printed")
    stats.add_argument("--output", default="events", help="prefix of the pictures (default: %(default)s)")

    def draw_stats(arguments: Arguments) -> None:
        need("numpy", "matplotlib")
        for function, end in (("event_types", "types"), ("events_over_time", "time"), ("event_types_over_time", "time-types")):
            save(plot(function, arguments.stats), f"{arguments.output}-{end}.png", dpi=140)

    stats.set_defaults(run=draw_stats)


def length(text: str) -> float:
    """Inches of "7in", "180mm", "18cm"."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?(in|mm|cm)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no length: 180mm, 18cm or 7in, for example")
    inches = float(found[1]) / {"in": 1, "mm": 25.4, "cm": 2.54}[found[2]]
    if not 1 <= inches <= MOST_INCHES:
        raise argparse.ArgumentTypeError(f"'{text}' is not between 1in and {MOST_INCHES}in")
    return inches


def names(known: Sequence[str], what: str) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        some = text.split(",")
        for name in some:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {what} '{name}'; there are {', '.join(known)}")
        return some

    return parse


def add_report(commands: Any) -> None:
    parser = commands.add_parser("report", prog="tandem trace report", usage=argparse.SUPPRESS, help="draw panels of a report's page")
    parser.add_argument("page", nargs="?", help="what `tandem trace report` wrote; none: only the other arguments are looked at")
    for name in FORMATS:
        parser.add_argument("--" + name)
    parser.add_argument("--panel", type=names(list(NAMES), "panel"))
    parser.add_argument("--list", action="store_true", help="say which panels there are")
    parser.add_argument("--show", type=names(SHOWN, "thing to show"), default=[])
    parser.add_argument("--from", dest="begin", type=float, default=0)
    parser.add_argument("--to", dest="end", type=float)
    parser.add_argument("--width", type=length, default=7.0)
    parser.add_argument("--height", type=length)
    parser.set_defaults(run=draw_report)


def draw_report(arguments: Arguments) -> None:
    if arguments.list:
        for name, (title, hint) in NAMES.items():
            print(f"{name:<12} {title.lower()}{': ' + hint if hint else ''}")
        return
    need("numpy", "matplotlib")
    if arguments.page is None:
        return
    from .plots._report.figure import report

    figure = report(arguments.page, arguments.panel, arguments.show, arguments.begin, arguments.end, arguments.width, arguments.height)
    for name in FORMATS:
        if getattr(arguments, name) is not None:
            save(figure, getattr(arguments, name), format=name)
    print(", ".join(figure.panels))


def add_contention(commands: Any) -> None:
    for picture, what in (("contention", "draw memory contention"), ("applications", "draw applications by number of workers")):
        parser = commands.add_parser(picture, prog="tandem contention plot", usage=argparse.SUPPRESS, help=what)
        parser.add_argument("source", help="what `tandem contention plot` prepared")
        for name in FORMATS:
            parser.add_argument("--" + name)
        if picture == "contention":
            parser.add_argument("--stacked", action="store_true", help="communication on top of computation")
        parser.set_defaults(run=draw_contention)


def draw_contention(arguments: Arguments) -> None:
    need("numpy", "matplotlib")
    from .plots import applications, contention

    figure = applications(arguments.source) if arguments.command == "applications" else contention(arguments.source, arguments.stacked)
    for name in FORMATS:
        if getattr(arguments, name) is not None:
            save(figure, getattr(arguments, name), format=name)


def add_tables(commands: Any) -> None:
    for name, what in (("parquet", "pack the columns of `tandem trace export --format parquet`"),
                       ("starvz", "pack the columns of `tandem trace export --format starvz`")):
        parser = commands.add_parser(name, help=what)
        parser.add_argument("folder", help="with schema.json and the columns")
        parser.add_argument("output", help="folder of the Parquet files")
        parser.set_defaults(run=pack)


def pack(arguments: Arguments) -> None:
    need("numpy", "pyarrow")
    from ._parquet import read_columns, write_tables

    about, tables = read_columns(arguments.folder)
    if arguments.command == "starvz":
        from ._starvz import starvz_tables, write_starvz

        for name, rows in write_starvz(starvz_tables(dict(tables)), arguments.output):
            print(name, rows)
    else:
        write_tables(tables, arguments.output, about)


def main(words: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(prog="python3 -m tandem", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="NAME", required=True)
    add_pictures(commands)
    add_report(commands)
    add_contention(commands)
    add_tables(commands)
    add_experiments(commands)
    arguments = parser.parse_args(words)
    try:
        arguments.run(arguments)
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
