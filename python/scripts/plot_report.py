#!/usr/bin/env python3
# python/scripts/plot_report.py: still pictures of panels of a report, for papers; `tandem trace report --pdf` runs it.
"""Draw panels of a report's page below each other, over the same time."""

import argparse
import importlib.util
import re
import sys

from report_names import NAMES

FORMATS = ("pdf", "svg", "png")
SHOWN = ("outliers", "messages", "path")
MOST = 100  # inches of a picture


def length(text):
    """Inches of "7in", "180mm", "18cm"."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?(in|mm|cm)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no length: 180mm, 18cm or 7in, for example")
    inches = float(found[1]) / {"in": 1, "mm": 25.4, "cm": 2.54}[found[2]]
    if not 1 <= inches <= MOST:
        raise argparse.ArgumentTypeError(f"'{text}' is not between 1in and {MOST}in")
    return inches


def names(known, what):
    def parse(text):
        some = text.split(",")
        for name in some:
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {what} '{name}'; there are {', '.join(known)}")
        return some

    return parse


def read_arguments():
    parser = argparse.ArgumentParser(prog="tandem trace report", usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("page", nargs="?", help="what `tandem trace report` wrote; none: only the other arguments are looked at")
    for name in FORMATS:
        parser.add_argument("--" + name)
    parser.add_argument("--panel", type=names(NAMES, "panel"))
    parser.add_argument("--list", action="store_true", help="say which panels there are")
    parser.add_argument("--show", type=names(SHOWN, "thing to show"), default=[])
    parser.add_argument("--from", dest="begin", type=float)
    parser.add_argument("--to", dest="end", type=float)
    parser.add_argument("--width", type=length, default=7.0)
    parser.add_argument("--height", type=length)
    return parser.parse_args()


def check_modules():
    for name in ("numpy", "matplotlib"):
        if importlib.util.find_spec(name) is None:
            sys.exit(f"{sys.executable} has no {name}: install matplotlib (Debian: python3-matplotlib), run `scripts/setup --analysis`, or "
                     "name another Python by option python")


def main():
    arguments = read_arguments()
    if arguments.list:
        for name, (title, hint) in NAMES.items():
            print(f"{name:<12} {title.lower()}{': ' + hint if hint else ''}")
        return
    check_modules()
    if arguments.page is None:
        return
    from report_figure import draw_page  # with matplotlib, which takes half a second

    print(", ".join(draw_page(arguments)))


if __name__ == "__main__":
    main()
