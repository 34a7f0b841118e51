# python/tandem/experiments/command.py: `tandem experiment`.
from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from .comparisons import compare, sentence
from .definition import VARIED, Experiment, Place, WrongExperiment, read
from .page import Report, page, picture, table
from .points import Kept, run_all, shown

# Beside the package, in the sources and where it is installed.
EXPERIMENTS, PLATFORMS = (Path(__file__).resolve().parents[3] / name for name in ("experiments", "platforms"))

LIMIT_S = {"smoke": 120.0, "quick": 60.0, "whole": 7200.0}  # of each experiment; of all together with --smoke


def add_experiments(commands: Any) -> None:
    parser = commands.add_parser("experiment", prog="tandem experiment", help="rebuild published experiments",
                                 description="Rebuilds a published experiment in virtual time, and says how far it is from what was published")
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments (--list names them)")
    parser.add_argument("--all", action="store_true", help="all experiments, and one page of them")
    parser.add_argument("--list", action="store_true", help="say which there are")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", default="whole", help="smaller, in a minute")
    size.add_argument("--smoke", dest="size", action="store_const", const="smoke", help="very small: whether it runs")
    parser.add_argument("--folder", type=Path, default=Path("experiment-results"), help="of results, which the next call goes on with (%(default)s)")
    parser.add_argument("--from", dest="source", type=Path, default=EXPERIMENTS, help="folder of experiments (default: those that come with Tandem)")
    parser.add_argument("--archive", type=Path, metavar="FILE.tar.gz", help="pack the results, and what they were made with")
    parser.add_argument("--minutes", type=float, help="most time (default: 2 for --smoke, 1 for each with --quick, else 120 for each)")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--tandem", required=True, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    folders = {file.parent.name: file.parent for file in sorted(arguments.source.glob("*/experiment.toml"))}
    if arguments.list:
        for experiment in _read(folders.values()):
            print(f"{experiment.name:<24} {experiment.title} ({experiment.source})")
        return
    unknown = [name for name in arguments.names if name not in folders]
    if unknown:
        sys.exit(f"experiment: there is no {', '.join(unknown)} in {arguments.source}; there are: {', '.join(folders) or 'none'}")
    names = list(folders) if arguments.all else arguments.names
    if not names:
        sys.exit("experiment: which one? Name some, or say --all; --list names them")
    experiments = _read(folders[name] for name in names)
    version = _version(arguments.tandem)
    limit = LIMIT_S[arguments.size] if arguments.minutes is None else 60 * arguments.minutes
    deadline = time.monotonic() + limit
    reports = []
    for experiment in experiments:
        if arguments.size != "smoke":
            deadline = time.monotonic() + limit
        reports.append(_one(experiment, arguments, version, deadline))
        if not arguments.json:
            print(table(reports[-1]))
    _write_page(arguments, reports, version)
    if arguments.json:
        everything = {"command": "experiment", "version": version, "size": arguments.size, "experiments": [_as_json(one) for one in reports]}
        print(json.dumps(everything, indent=1))
    missing = [f"{one.experiment.name}: {one.missing}" for one in reports if one.missing]
    if missing:
        sys.exit("experiment: " + "; ".join(missing))


def _version(tandem: str) -> str:
    """Of the command; where its sources had changes, each build is a version."""
    version = subprocess.run([tandem, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{version} {int(Path(tandem).stat().st_mtime)}" if "dirty" in version else version


def _read(folders: Iterable[Path]) -> list[Experiment]:
    try:
        return [read(folder) for folder in folders]
    except WrongExperiment as error:
        sys.exit(f"experiment: {error}")


def _one(experiment: Experiment, arguments: argparse.Namespace, version: str, deadline: float) -> Report:
    folder: Path = arguments.folder / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    kept = Kept(folder / "points.jsonl", version)
    places = list(experiment.places(arguments.size))
    # The direction is looked at with other assumptions in the small grid, since it takes all points once more for each.
    other_places = list(experiment.places("quick")) if arguments.size == "whole" else []
    changes = {f"{name} x {factor:g}": {name: factor} for name in experiment.assumed for factor in VARIED} if other_places else {}
    point = partial(experiment.point, tandem=arguments.tandem)
    points = [point(place, {}) for place in places]
    points += [point(place, factors) for factors in ({}, *changes.values()) for place in other_places]
    missing = run_all(arguments.tandem, points, kept, deadline, shown(experiment.name), experiment.alone) or ""

    def results_of(some: Sequence[Place], factors: Mapping[str, float]) -> list[tuple[Place, float]]:
        found = [(place, kept.values.get(point(place, factors))) for place in some]
        return [(place, value * experiment.scale) for place, value in found if value is not None]

    results = results_of(places, {})
    outcomes = compare(experiment, results)
    usual = compare(experiment, results_of(other_places, {}))
    changed = {what: results_of(other_places, factors) for what, factors in changes.items()}
    unknown = [what for what, found in changed.items() if len(found) < len(other_places)]
    varied = {what: compare(experiment, found) for what, found in changed.items() if what not in unknown}
    report = Report(experiment, arguments.size, results, outcomes, sentence(outcomes, varied, usual, unknown), missing)
    if results:
        report = replace(report, picture=picture(report))
    _write(report, folder)
    return report


def _write(report: Report, folder: Path) -> None:
    (folder / f"{report.size}.txt").write_text(table(report), encoding="utf-8")
    if report.picture:
        (folder / f"{report.size}.svg").write_text(report.picture, encoding="utf-8")
    axes = list(report.experiment.grids[report.size])
    with (folder / f"{report.size}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*axes, report.experiment.unit])
        writer.writerows([*(place[name] for name in axes), f"{value:.9g}"] for place, value in report.results)


def _write_page(arguments: argparse.Namespace, reports: Sequence[Report], version: str) -> None:
    file: Path = arguments.folder / ("index.html" if arguments.all else "page.html")
    about = {"made by": version, "size": arguments.size}
    file.write_text(page(reports, about), encoding="utf-8")
    print(f"page: {file}", file=sys.stderr)
    if arguments.archive is None:
        return
    platforms = {word for report in reports for word in report.experiment.command if (PLATFORMS / f"{word}.toml").is_file()}
    with tarfile.open(arguments.archive, "w:gz") as archive:
        archive.add(file, file.name)
        for name in sorted(platforms):
            archive.add(PLATFORMS / f"{name}.toml", f"platforms/{name}.toml")
        for report in reports:
            name = report.experiment.name
            results = arguments.folder / name  # without points, where the first command failed
            for part in sorted([*results.glob(f"{report.size}.*"), *results.glob("points.jsonl")]):
                archive.add(part, f"{name}/{part.name}")
            for part in sorted(report.experiment.folder.iterdir()):
                if part.is_file():
                    archive.add(part, f"{name}/definition/{part.name}")
    print(f"archive: {arguments.archive}", file=sys.stderr)


def _as_json(report: Report) -> dict[str, Any]:
    return {"name": report.experiment.name, "sentence": report.sentence, "missing": report.missing,
            "points": [{**place, "value": value} for place, value in report.results],
            "comparisons": [{"text": one.text, "here": one.ours, "published": one.published, "agrees": one.agrees, "factor": one.factor}
                            for one in report.outcomes]}
