# python/tandem/_compare.py: where the seconds went between two runs.
from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from ._run import Run


def compare(a: Run, b: Run) -> pa.Table:
    """Two runs of one program, side by side.

    Columns: what, name, a_ns, b_ns, difference_ns (b - a), ratio (b / a; null where a is 0). Rows by `what`:

    - makespan: one row.
    - worker: the average time of a worker by what it was spent on. The differences of these rows add up to that of the makespan.
    - bound: area and critical path.
    - codelet: the median duration of a task. A codelet of one run only has a null in the other.
    """
    first, second = a.summary(), b.summary()
    rows: list[tuple[str, str, float | None, float | None]] = [("makespan", "makespan", first.makespan_ns, second.makespan_ns)]
    for name in first.split_ns:
        rows.append(("worker", name, first.split_ns[name] / max(first.workers, 1), second.split_ns[name] / max(second.workers, 1)))
    rows.append(("bound", "area", first.bounds.area_ns, second.bounds.area_ns))
    rows.append(("bound", "critical_path", first.bounds.critical_path_ns, second.bounds.critical_path_ns))
    medians = [dict(zip(run.kernels["codelet"].to_pylist(), run.kernels["median_ns"].to_pylist())) for run in (first, second)]
    for name in dict.fromkeys([*medians[0], *medians[1]]):
        rows.append(("codelet", name, medians[0].get(name), medians[1].get(name)))
    what, names, before, after = zip(*rows)
    both = [(x, y) if x is not None and y is not None else None for x, y in zip(before, after)]
    return pa.table({
        "what": pa.array(what), "name": pa.array(names), "a_ns": pa.array(before, pa.float64()), "b_ns": pa.array(after, pa.float64()),
        "difference_ns": pa.array([pair and pair[1] - pair[0] for pair in both], pa.float64()),
        "ratio": pa.array([pair[1] / pair[0] if pair and pair[0] else None for pair in both], pa.float64())})
