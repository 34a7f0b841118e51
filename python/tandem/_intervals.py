# python/tandem/_intervals.py: how much of many intervals lies in each part of the time; exact, and without a loop over intervals.
from __future__ import annotations

from typing import Any, Optional

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


def covered_until(times: Array, starts: npt.ArrayLike, ends: npt.ArrayLike, weights: Optional[npt.ArrayLike] = None) -> Array:
    """The sum over all intervals of what lies before each of `times`, of whose type it is; each counts `weights` times, by default once.

    The part of [s, e) before t is max(t - s, 0) - max(t - e, 0). With sorted s, the sum of max(t - s, 0) is n t - (s_1 + ... + s_n) for
    the n of them before t. Sums may pass 2^63; they wrap around, and differences are right as long as the result fits.
    """

    def sum_of_positive(unsorted: npt.ArrayLike) -> Array:
        points = np.asarray(unsorted, times.dtype)
        order = np.argsort(points, kind="stable")
        points = points[order]
        sizes = np.ones_like(points) if weights is None else np.asarray(weights, times.dtype)[order]
        before = np.searchsorted(points, times)
        counts, sums = (np.concatenate([np.zeros(1, times.dtype), np.cumsum(values)]) for values in (sizes, sizes * points))
        sums_before: Array = counts[before] * times - sums[before]
        return sums_before

    return sum_of_positive(starts) - sum_of_positive(ends)


def covered_in_bins(edges: Ints, starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> Ints:
    """The time of all intervals in each bin, in ns: `edges` has one entry more than there are bins."""
    return np.diff(covered_until(edges, starts, ends))


def mean_in_bins(edges: Array, starts: npt.ArrayLike, ends: npt.ArrayLike, weights: Optional[npt.ArrayLike] = None) -> Array:
    """How many intervals there are in each bin on average, or how much they weigh."""
    means: Array = np.diff(covered_until(edges, starts, ends, weights)) / np.diff(edges)
    return means


def union(starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Disjoint intervals that cover the same time, in order."""
    if len(starts) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(starts, kind="stable")
    starts, latest = np.asarray(starts, np.int64)[order], np.maximum.accumulate(np.asarray(ends, np.int64)[order])
    first = np.concatenate([[True], starts[1:] > latest[:-1]])
    last = np.concatenate([first[1:], [True]])
    return starts[first], latest[last]


def overlap_ns(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> int:
    """The time in both of two sets of disjoint intervals."""
    return int(np.sum(covered_until(b[1], *a) - covered_until(b[0], *a)))


def bin_edges(begin_ns: int, end_ns: int, bins: int) -> Ints:
    """`bins` bins of equal length, but for rounding to whole ns."""
    if bins < 1:
        raise ValueError("bins must be at least 1")
    return begin_ns + (np.arange(bins + 1, dtype=np.int64) * max(end_ns - begin_ns, 0)) // bins
