# python/tandem/plots/_report/tables.py: the runs in a report's page, as tables of numpy.
"""What the page of `tandem trace report` holds of a run, read as the page's own program reads it."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from typing import Any, Union

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def read_column(data: Array, entry: dict[str, Any]) -> Array:
    """The values of a column, as tools/report/columns.hpp describes them. `data`: bytes from the column's first to its last."""
    ends = np.flatnonzero(data < 128)
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) > 0 else ends
    lengths = ends - starts + 1
    values = np.zeros(len(ends), np.int64)
    for place in range(int(lengths.max(initial=0))):
        have = lengths > place
        values[have] |= (data[starts[have] + place].astype(np.int64) & 127) << 7 * place
    values = (values >> 1) ^ -(values & 1)
    column: Array = np.cumsum(values) if entry["delta"] else values
    return column


class Run:
    """Times are in units of `unit_ns`, from the start of the makespan. A missing column is empty."""

    def __init__(self, summary: dict[str, Any], facts: dict[str, Any], data: bytes) -> None:
        self.summary, self.facts, self.data = summary, facts, np.frombuffer(data, np.uint8)
        places = [entry["at"] for entry in facts["columns"]] + [len(data)]
        self.entries = {entry["name"]: (entry, places[i], places[i + 1]) for i, entry in enumerate(facts["columns"])}
        self.columns: dict[str, Array] = {}
        self.unit_ns: float = facts["unit_ns"]
        self.makespan: int = max(facts["makespan"], 1)
        self.workers: list[dict[str, Any]] = facts["workers"]
        self.kernels: list[dict[str, Any]] = summary["kernels"]  # the one with the greatest total time first
        self.ranks: list[int] = sorted({worker["rank"] for worker in self.workers})
        self.colours = list(range(len(self.kernels) + 1))  # of each kernel, its place in the palette

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            entry, begin, end = self.entries.get(name, ({"delta": False}, 0, 0))
            self.columns[name] = read_column(self.data[begin:end], entry)
        return self.columns[name]

    def seconds(self, time: float) -> float:
        return time * (self.unit_ns / 1e9)

    @property
    def row_label(self) -> str:
        """What `row_name` tells of a worker."""
        if self.summary["ranks"] < 2:
            return "worker"
        return "rank.worker" if len(self.workers) > len(self.ranks) else "rank"

    def row_name(self, worker: dict[str, Any]) -> str:
        """Of a worker, as short as it can be."""
        number, rank = str(worker["worker"]), str(worker["rank"])
        return {"worker": number, "rank": rank}.get(self.row_label, f"{rank}.{number}")

    @property
    def order(self) -> Array:
        """Of each task its place among all tasks of its rank, in the order of their submission, from 1."""
        places = np.zeros(len(self["task.rank"]), np.int64)
        for rank in np.unique(self["task.rank"]):
            own = self["task.rank"] == rank
            places[own] = np.arange(1, np.count_nonzero(own) + 1)
        return places

    @property
    def end(self) -> Array:
        """Of each task."""
        end: Array = self["task.start"] + np.maximum(self["task.duration"], 0)
        return end

    @property
    def ran(self) -> Array:
        """The tasks that workers have run."""
        return np.flatnonzero(self["task.lane"] > 0)

    @property
    def kernel(self) -> Array:
        """Of each task; the number of kernels where it is none of the summary's."""
        place = {kernel["codelet"]: i for i, kernel in enumerate(self.kernels)}
        of_codelet = np.array([place.get(name, len(self.kernels)) for name in self.facts["names"]] or [0])
        kernel: Array = of_codelet[self["task.codelet"]]
        return kernel

    @property
    def outlier(self) -> Array:
        """Whether a task took longer than the third quartile of its kernel on its kind of worker and 1.5 times the distance between the quartiles."""
        outlier: Array = self["task.outlier"] > 0
        return outlier

    def name_of(self, task: int) -> str:
        own = self["task.name"][task] or self["task.codelet"][task]
        return self.facts["names"][own] or f"task {self['task.id'][task]}"


class Look:
    """The colours and words of the page, out of its program."""

    def __init__(self, page: str) -> None:
        self.kernels: list[str] = re.findall("#[0-9a-f]{6}", self.part(page, "kernelColours = [", "]"))
        self.spent = dict(re.findall(r"(\w+): '(#[0-9a-f]{6})'", self.part(page, "spentColours = {", "};")))
        texts = re.findall(r"(\w+): '((?:[^'\\]|\\.)*)'", self.part(page, "spentTexts = {", "};"))
        self.texts = {name: text.replace("\\'", "'") for name, text in texts}

    @staticmethod
    def part(page: str, begin: str, end: str) -> str:
        start = page.index(begin) + len(begin)
        return page[start:page.index(end, start)]

    def kernel(self, run: Run, kernel: int) -> str:
        last = len(self.kernels) - 1
        own = run.kernels[kernel].get("colour") if kernel < min(last, len(run.kernels)) else None  # that the program gave
        return str(own or self.kernels[min(run.colours[kernel], last)])


def read_page(file: Union[str, os.PathLike[str]]) -> tuple[list[Run], Look]:
    """The runs of a page, one or two, and its look. Raises ValueError where the file is no such page."""
    with open(file, encoding="utf-8") as opened:
        page = opened.read()

    def section(name: str, number: int) -> str:
        found = re.search(rf'id="{name}-{number}">([^<]*)<', page)
        if found is None:
            raise ValueError(f"{os.fspath(file)}: is no report of this version: it has no part '{name}'")
        return found.group(1)

    runs: list[Run] = []
    while not runs or f'id="summary-{len(runs)}"' in page:
        number = len(runs)
        data = gzip.decompress(base64.b64decode(section("columns", number)))
        runs.append(Run(json.loads(section("summary", number)), json.loads(section("facts", number)), data))
    if len(runs) > 1:  # kernels of one name have one colour
        names = list(dict.fromkeys(kernel["codelet"] for run in runs for kernel in run.kernels))
        for run in runs:
            run.colours = [names.index(kernel["codelet"]) for kernel in run.kernels] + [len(names)]
    return runs, Look(page)
