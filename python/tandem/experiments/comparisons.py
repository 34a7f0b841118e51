# python/tandem/experiments/comparisons.py: results beside what was published, in words.
from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from .definition import Comparison, Experiment, Place, Value

Results = Sequence[tuple[Place, float]]

SAME = 1.03  # ratios below it, and above its inverse, show no effect


@dataclass(frozen=True)
class Outcome:
    """What a comparison gives; `agrees` is None where points are missing."""

    text: str
    ours: str
    published: str
    agrees: Optional[bool]
    factor: Optional[float] = None  # of a ratio: ours / published


def compare(experiment: Experiment, results: Results) -> list[Outcome]:
    values = {_key(place): value for place, value in results}
    return [_OF_KIND[one.kind](experiment, one, results, values) for one in experiment.comparisons]


def _key(place: Place) -> frozenset[tuple[str, Value]]:
    return frozenset(place.items())


def _has(place: Place, part: Place) -> bool:
    return all(place.get(name) == value for name, value in part.items())


def _missing(one: Comparison) -> Outcome:
    return Outcome(one.text, "-", _published(one), None)


def _published(one: Comparison) -> str:
    if one.kind == "order":
        return " > ".join(_name(place) for place in one.places)
    if one.least:
        return f"at least {one.least:g}"
    if one.direction:
        return "above 1" if one.direction > 0 else "below 1"
    return " to ".join(f"{number:g}" for number in dict.fromkeys(one.published))


def _name(place: Place) -> str:
    return " ".join(str(value) for value in place.values())


def _direction(ratio: float) -> int:
    return 0 if 1 / SAME < ratio < SAME else 1 if ratio > 1 else -1


def _ratio(experiment: Experiment, one: Comparison, results: Results, values: Mapping[frozenset[tuple[str, Value]], float]) -> Outcome:
    of, *others = (*one.places, *one.rivals)
    pick = max if experiment.better == "more" else min
    ratios = []
    for place, value in results:
        known = [values.get(_key({**place, **other})) for other in others]
        if _has(place, {**one.at, **of}) and all(known):
            ratios.append(value / pick((number for number in known if number), default=1))
    if not ratios:
        return _missing(one)
    ours = {"median": statistics.median, "least": min, "most": max}[one.over](ratios)
    if one.least:
        return Outcome(one.text, f"{ours:.3g}", _published(one), ours >= one.least)
    if one.direction:
        return Outcome(one.text, f"{ours:.3g}", _published(one), _direction(ours) == one.direction)
    published = one.published[0]
    return Outcome(one.text, f"{ours:.3g}", _published(one), _direction(ours) == _direction(published), ours / published)


def _order(experiment: Experiment, one: Comparison, results: Results, values: Mapping[frozenset[tuple[str, Value]], float]) -> Outcome:
    """By the geometric mean over all places that have a result of each."""
    means: dict[str, float] = {}
    first = one.places[0]
    common = [place for place, _ in results if _has(place, {**one.at, **first}) and all(_key({**place, **other}) in values for other in one.places)]
    if not common:
        return _missing(one)
    for other in one.places:
        means[_name(other)] = statistics.geometric_mean(max(values[_key({**place, **other})], 1e-12) for place in common)
    ours = sorted(means, key=means.__getitem__, reverse=experiment.better == "more")
    return Outcome(one.text, " > ".join(ours), _published(one), ours == [_name(place) for place in one.places])


def _best(experiment: Experiment, one: Comparison, results: Results, values: Mapping[frozenset[tuple[str, Value]], float]) -> Outcome:
    """The median over the other axes of the value that is the best."""
    groups: dict[frozenset[tuple[str, Value]], list[tuple[float, float]]] = {}
    for place, value in results:
        if _has(place, one.at):
            rest = {name: part for name, part in place.items() if name != one.axis}
            groups.setdefault(_key(rest), []).append((value, float(place[one.axis])))
    whole = [points for points in groups.values() if len(points) > 1]
    if not whole:
        return _missing(one)
    pick = max if experiment.better == "more" else min
    best = [pick(points)[1] for points in whole]
    least, greatest = one.published
    typical = statistics.median_low(best)
    return Outcome(one.text, f"{typical:g}", _published(one), least <= typical <= greatest)


_OF_KIND = {"ratio": _ratio, "order": _order, "best": _best}


def sentence(outcomes: Sequence[Outcome], varied: Mapping[str, Sequence[Outcome]], usual: Sequence[Outcome], unknown: Sequence[str]) -> str:
    """Direction, order, how far; and whether that holds where assumed numbers are others. `varied`: by what was changed, beside `usual`.
    `unknown`: changes that lack points."""
    known = [one for one in outcomes if one.agrees is not None]
    if not known:
        return "Nothing to compare yet."
    agree = [one for one in known if one.agrees]
    text = f"{len(agree)} of {len(known)} comparisons agree in direction, order or best value with what was published or expected"
    text += "" if len(agree) == len(known) else ", not: " + "; ".join(one.text for one in known if not one.agrees)
    factors = [one.factor for one in known if one.factor is not None]
    if factors:
        text += f". Ratios are {min(factors):.2g} to {max(factors):.2g} times the published ones" if len(factors) > 1 else \
            f". The ratio is {factors[0]:.2g} times the published one"
    if len(known) < len(outcomes):
        text += f". {len(outcomes) - len(known)} lack points"
    return text + "." + _robust(usual, varied, unknown)


def _robust(usual: Sequence[Outcome], varied: Mapping[str, Sequence[Outcome]], unknown: Sequence[str]) -> str:
    if not varied and not unknown:
        return ""
    changed = [f"{text} ({what})" for what, others in varied.items() for text in _turned(usual, others)]
    if changed:
        return " It is otherwise with assumed numbers changed by 30 %: " + "; ".join(changed) + "."
    if unknown:
        return f" Whether this holds with assumed numbers changed by 30 % is not known yet: points are missing ({', '.join(unknown)})."
    return " This holds with each assumed number 30 % smaller and larger."


def _turned(usual: Sequence[Outcome], others: Sequence[Outcome]) -> list[str]:
    return [one.text for one, other in zip(usual, others) if None not in (one.agrees, other.agrees) and one.agrees != other.agrees]
