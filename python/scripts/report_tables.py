# python/scripts/report_tables.py: the runs in a report's page, as tables of numpy.
"""What the page of `tandem trace report` holds of a run, read as the page's own program reads it."""

import base64
import gzip
import json
import re

import numpy as np


def read_column(data, entry):
    """The values of a column, as tools/report/columns.hpp describes them. `data`: bytes from the column's first to its last."""
    ends = np.flatnonzero(data < 128)
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) > 0 else ends
    lengths = ends - starts + 1
    values = np.zeros(len(ends), np.int64)
    for place in range(int(lengths.max(initial=0))):
        have = lengths > place
        values[have] |= (data[starts[have] + place].astype(np.int64) & 127) << 7 * place
    values = (values >> 1) ^ -(values & 1)
    return np.cumsum(values) if entry["delta"] else values


class Steps:
    """How much of something there is at a time, of things that exist from a start to an end. A weight: how much one of them is."""

    def __init__(self, starts, ends, weights=None):
        self.starts = self.sums(starts, weights)
        self.ends = self.sums(ends, weights)

    @staticmethod
    def sums(times, weights):
        times = np.asarray(times, np.float64)
        order = np.argsort(times, kind="stable")
        times = times[order]
        weights = np.ones(len(times)) if weights is None else np.asarray(weights, np.float64)[order]
        return times, np.concatenate(([0], np.cumsum(weights))), np.concatenate(([0], np.cumsum(weights * times)))

    def until(self, at):
        """The integral up to some times."""
        def part(times, weights, moments):
            place = np.searchsorted(times, at, "right")
            return weights[place] * at - moments[place]

        return part(*self.starts) - part(*self.ends)

    def mean(self, edges):
        """The mean between each two neighbours of `edges`."""
        return np.diff(self.until(edges)) / np.diff(edges)


class Run:
    """Times are in units of `unit_ns`, from the start of the makespan. A missing column is empty."""

    def __init__(self, summary, facts, data):
        self.summary, self.facts, self.data = summary, facts, np.frombuffer(data, np.uint8)
        places = [entry["at"] for entry in facts["columns"]] + [len(data)]
        self.entries = {entry["name"]: (entry, places[i], places[i + 1]) for i, entry in enumerate(facts["columns"])}
        self.columns = {}
        self.unit_ns = facts["unit_ns"]
        self.makespan = max(facts["makespan"], 1)
        self.workers = facts["workers"]
        self.kernels = summary["kernels"]  # the one with the greatest total time first
        self.ranks = sorted({worker["rank"] for worker in self.workers})
        self.colours = list(range(len(self.kernels) + 1))  # of each kernel, its place in the palette

    def __getitem__(self, name):
        if name not in self.columns:
            entry, begin, end = self.entries.get(name, ({"delta": False}, 0, 0))
            self.columns[name] = read_column(self.data[begin:end], entry)
        return self.columns[name]

    def seconds(self, time):
        return time * (self.unit_ns / 1e9)

    @property
    def end(self):
        """Of each task."""
        return self["task.start"] + np.maximum(self["task.duration"], 0)

    @property
    def ran(self):
        """The tasks that workers have run."""
        return np.flatnonzero(self["task.lane"] > 0)

    @property
    def kernel(self):
        """Of each task; the number of kernels where it is none of the summary's."""
        place = {kernel["codelet"]: i for i, kernel in enumerate(self.kernels)}
        of_codelet = np.array([place.get(name, len(self.kernels)) for name in self.facts["names"]] or [0])
        return of_codelet[self["task.codelet"]]

    @property
    def outlier(self):
        """Whether a task took longer than the third quartile of its kernel and 1.5 times the distance between the quartiles."""
        limits = [(kernel["third_quartile_s"] + 1.5 * (kernel["third_quartile_s"] - kernel["first_quartile_s"])) * 1e9 / self.unit_ns + 1
                  for kernel in self.kernels]
        return self["task.duration"] > np.array(limits + [np.inf])[self.kernel]

    @property
    def waited(self):
        """How long each task was ready before it began; -1: not known."""
        start, into = self["task.start"], self["task.into"]
        of = np.repeat(np.arange(len(into)), into)
        before = of - self["task.from"]
        known = self["task.duration"][before] >= 0
        at = self["task.submit"].copy()
        np.maximum.at(at, of[known], self.end[before[known]])
        waited = np.maximum(start - at - self["task.ready"], 0)
        return np.where(self["task.ready"] < 0, -1, waited)

    def name_of(self, task):
        own = self["task.name"][task] or self["task.codelet"][task]
        return self.facts["names"][own] or f"task {self['task.id'][task]}"


class Look:
    """The colours and words of the page, out of its program."""

    def __init__(self, page):
        self.kernels = re.findall("#[0-9a-f]{6}", self.part(page, "kernelColours = [", "]"))
        self.spent = dict(re.findall(r"(\w+): '(#[0-9a-f]{6})'", self.part(page, "spentColours = {", "};")))
        texts = re.findall(r"(\w+): '((?:[^'\\]|\\.)*)'", self.part(page, "spentTexts = {", "};"))
        self.texts = {name: text.replace("\\'", "'") for name, text in texts}

    @staticmethod
    def part(page, begin, end):
        start = page.index(begin) + len(begin)
        return page[start:page.index(end, start)]

    def kernel(self, run, kernel):
        return self.kernels[min(run.colours[kernel], len(self.kernels) - 1)]


def read_page(file):
    """The runs of a page, one or two, and its look. Raises ValueError where the file is no such page."""
    with open(file, encoding="utf-8") as opened:
        page = opened.read()

    def section(name, number):
        found = re.search(rf'id="{name}-{number}">([^<]*)<', page)
        if found is None:
            raise ValueError(f"{file} is no report of this version: it has no part '{name}'")
        return found.group(1)

    runs = []
    while not runs or f'id="summary-{len(runs)}"' in page:
        number = len(runs)
        data = gzip.decompress(base64.b64decode(section("columns", number)))
        runs.append(Run(json.loads(section("summary", number)), json.loads(section("facts", number)), data))
    if len(runs) > 1:  # kernels of one name have one colour
        names = list(dict.fromkeys(kernel["codelet"] for run in runs for kernel in run.kernels))
        for run in runs:
            run.colours = [names.index(kernel["codelet"]) for kernel in run.kernels] + [len(names)]
    return runs, Look(page)
