# python/tests/test_intervals.py: sums over intervals against the plain sum, one nanosecond after the other.
import numpy as np
import pytest

from tandem._intervals import bin_edges, covered_in_bins, overlap_ns, union


@pytest.mark.parametrize("seed", range(30))
def test_random_intervals(seed):
    random = np.random.default_rng(seed)

    def intervals():
        starts = random.integers(0, 200, random.integers(0, 20))
        return starts, starts + random.integers(0, 60, len(starts))

    def at_each_ns(starts, ends):
        return np.array([np.sum((starts <= ns) & (ns < ends)) for ns in range(300)])

    a, b = intervals(), intervals()
    edges = bin_edges(7, 290, int(random.integers(1, 9)))
    count = at_each_ns(*a)
    assert covered_in_bins(edges, *a).tolist() == [count[left:right].sum() for left, right in zip(edges[:-1], edges[1:])]
    joined = union(*a)
    assert ((at_each_ns(*joined) > 0) == (count > 0)).all() and (at_each_ns(*joined) <= 1).all()
    assert overlap_ns(joined, union(*b)) == np.sum((count > 0) & (at_each_ns(*b) > 0))


def test_sums_beyond_64_bits_wrap_and_come_back():
    day_ns = 24 * 3600 * 10**9
    starts = np.full(300_000, 10 * day_ns, np.int64)
    assert covered_in_bins(np.array([10 * day_ns, 10 * day_ns + 500]), starts, starts + 100).tolist() == [300_000 * 100]
