# python/tandem/experiments/definition.py: what `experiment.toml` says, checked.
from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from .points import Point

Value = Union[int, float, str]
Place = Mapping[str, Value]  # values of some axes

DIRECTIONS = {"above 1": 1, "below 1": -1}
SIZES = ("smoke", "quick", "whole")
_PLACEHOLDER = re.compile(r"\{(\w+)(?:\*(\w+))?\}")  # {n}, {n*3}, or {n*ranks}
VARIED = (0.7, 1.3)  # factors on what is assumed


class WrongExperiment(ValueError):
    """An `experiment.toml` that does not say what it must. Its text names file and cause."""


@dataclass(frozen=True)
class Comparison:
    """Something published: a ratio of two places, an order of several, or the best value of an axis."""

    text: str
    kind: str                                # "ratio", "order" or "best"
    places: tuple[Place, ...] = ()           # ratio: of the first to the second, or to 1; order: the best first
    at: Place = field(default_factory=dict)  # axes that are fixed in all of them
    over: str = "median"                     # of a ratio, over the other axes: median, least or most
    axis: str = ""                           # best
    published: tuple[float, ...] = ()        # ratio: one; best: least and greatest value that were best; else none
    direction: int = 0                       # of a ratio that was published without a number: 1 above 1, -1 below
    least: float = 0                         # of a ratio: what it has to reach, instead of what was published
    rivals: tuple[Place, ...] = ()           # of a ratio, instead of a second place: the best of them


@dataclass(frozen=True)
class Experiment:
    name: str
    folder: Path
    title: str
    source: str
    question: str
    setup: str
    simulated: str
    command: tuple[str, ...]                    # words behind `tandem`, with {AXIS}, {AXIS*3}, {AXIS*AXIS}, {ASSUMED}, {folder}, {tandem}
    unit: str
    result: str                                 # which number of what the command prints (`points.Point`), with {AXIS}
    alone: bool                                 # whether points run one after the other: they measure this machine
    scale: float                                # on that
    better: str                                 # "more" or "less"
    assumed: Mapping[str, float]                # numbers without a source, by the name of their placeholder
    grids: Mapping[str, Mapping[str, tuple[Value, ...]]]  # axes by size of the experiment
    across: str                                 # axis of the picture
    panels: str                                 # another one, with a panel for each value; "": none
    published: tuple[tuple[Place, float], ...]  # points
    comparisons: tuple[Comparison, ...]

    def places(self, size: str) -> Iterator[Place]:
        """All combinations of the grid's values; the last axis changes first."""
        axes = self.grids[size]
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values))

    def point(self, place: Place, factors: Mapping[str, float], tandem: str) -> Point:
        """The command of a place, with factors on some assumed numbers. `tandem`: what {tandem} stands for."""
        values: dict[str, Value] = {name: number * factors.get(name, 1) for name, number in self.assumed.items()}
        values.update(place, folder=str(self.folder), tandem=tandem)
        return Point(tuple(_filled(word, values) for word in self.command), _filled(self.result, values))


def _filled(word: str, values: Place) -> str:
    def text(found: re.Match[str]) -> str:
        value = values[found[1]]
        factor = values.get(found[2] or "1", found[2] or 1)
        if found[2] is not None and not isinstance(value, str):
            value *= int(factor)
        return f"{value:.10g}" if isinstance(value, float) else str(value)

    return _PLACEHOLDER.sub(text, word)


def read(folder: Path) -> Experiment:
    """Reads `experiment.toml` of a folder. Raises `WrongExperiment`, `OSError`."""
    import tomllib  # here, since Python has it from 3.11 on, and pictures need less

    file = folder / "experiment.toml"
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongExperiment(f"{file}: {error}") from error
    return _Reader(file, found).experiment()


class _Reader:
    def __init__(self, file: Path, found: dict[str, Any]) -> None:
        self.file = file
        self.found = found

    def wrong(self, what: str) -> WrongExperiment:
        return WrongExperiment(f"{self.file}: {what}")

    def take(self, table: dict[str, Any], key: str, kind: Any, default: Any = None) -> Any:
        if key not in table and default is not None:
            return default
        value = table.pop(key, None)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.wrong(f"{key} is missing, or is no {getattr(kind, '__name__', 'number')}")
        return value

    def experiment(self) -> Experiment:
        top = dict(self.found)
        texts = {key: self.take(top, key, str) for key in ("title", "source", "question", "setup", "simulated", "unit", "across")}
        better = self.take(top, "better", str, "more")
        if better not in ("more", "less"):
            raise self.wrong(f"better is '{better}', neither more nor less")
        command = tuple(self.take(top, "command", str).split())
        panels = self.take(top, "panels", str, "")
        result = self.take(top, "result", str, "value")
        alone = self.flag(top, "alone")
        scale = float(self.take(top, "scale", (int, float), 1))
        assumed = {name: float(self.take({name: value}, name, (int, float))) for name, value in self.take(top, "assumed", dict, {}).items()}
        grids = {size: self.grid(size, self.take(top, size, dict)) for size in SIZES}
        axes = list(grids["whole"])
        for size in SIZES:
            if list(grids[size]) != axes:
                raise self.wrong(f"{size} has the axes {', '.join(grids[size])}, whole has {', '.join(axes)}")
        named = {name for word in (*command, result) for pair in _PLACEHOLDER.findall(word) for name in pair if name and not name.isdigit()}
        unknown = (named - {"folder", "tandem"}) ^ {*axes, *assumed}
        if unknown:
            raise self.wrong(f"{', '.join(sorted(unknown))}: in the command, and no axis and not assumed; or the other way round")
        for key, axis in (("across", texts["across"]), ("panels", panels or axes[0])):
            if axis not in axes:
                raise self.wrong(f"{key} = '{axis}' is no axis")
        published = tuple(self.point(dict(point), axes) for point in self.take(top, "published", list, []))
        comparisons = tuple(self.comparison(dict(one), grids["whole"]) for one in self.take(top, "comparison", list, []))
        if top:
            raise self.wrong(f"unknown: {', '.join(top)}")
        return Experiment(name=self.file.parent.name, folder=self.file.parent, command=command, result=result, alone=alone, scale=scale,
                          better=better, assumed=assumed, grids=grids, published=published, comparisons=comparisons, panels=panels, **texts)

    def flag(self, table: dict[str, Any], key: str) -> bool:
        value = table.pop(key, False)
        if not isinstance(value, bool):
            raise self.wrong(f"{key} is neither true nor false")
        return value

    def grid(self, size: str, table: dict[str, Any]) -> dict[str, tuple[Value, ...]]:
        for name, values in table.items():
            if not isinstance(values, list) or not values or not all(isinstance(value, (int, float, str)) for value in values):
                raise self.wrong(f"[{size}] {name}: a list of numbers or words")
        return {name: tuple(values) for name, values in table.items()}

    def place(self, what: str, place: Any, axes: Sequence[str]) -> dict[str, Value]:
        if not isinstance(place, dict) or not all(name in axes for name in place):
            raise self.wrong(f"{what}: {place} has other names than the axes {', '.join(axes)}")
        return place

    def point(self, point: dict[str, Any], axes: Sequence[str]) -> tuple[Place, float]:
        value = float(self.take(point, "value", (int, float)))
        return self.place("published", point, axes), value

    def comparison(self, one: dict[str, Any], grid: Mapping[str, tuple[Value, ...]]) -> Comparison:
        text = self.take(one, "text", str)
        axes = list(grid)
        places = tuple(self.place(text, place, axes) for place in self.take(one, "places", list, []))
        rivals = tuple(self.place(text, place, axes) for place in self.take(one, "rivals", list, []))
        least = float(self.take(one, "least", (int, float), 0))
        at = self.place(text, self.take(one, "at", dict, {}), axes)
        over, axis = self.take(one, "over", str, "median"), self.take(one, "axis", str, "")
        published = self.take(one, "published", (int, float, list, str), [])
        direction = DIRECTIONS.get(published, 0) if isinstance(published, str) else 0
        published = [] if isinstance(published, str) else published
        numbers = tuple(float(number) for number in (published if isinstance(published, list) else [published]))
        if axis:
            kind, right = "best", axis in axes and len(numbers) == 2 and not places
        elif numbers or direction or least:
            kind, right = "ratio", len(places) in ((1,) if rivals else (1, 2)) and over in ("median", "least", "most")
            right = right and (direction != 0 or least > 0 or len(numbers) == 1 and numbers[0] > 0)
        else:
            kind, right = "order", len(places) > 1
        right = right and all(value in grid[name] for place in (*places, *rivals, at) for name, value in place.items())
        if not right or one:
            raise self.wrong(f"comparison '{text}': one or two places of the grid [whole], or one and its rivals, and a published ratio "
                             "('above 1', 'below 1') or the least one; or places from the best to the worst; or an axis with the "
                             "least and the greatest value that were the best")
        return Comparison(text, kind, places, at, over, axis, numbers, direction, least, rivals)
