# python/tandem/_profiles.py: what the time of workers was spent on: by codelet, over time, by worker; outliers.
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ._columns import arrow, as_numpy, codes
from ._intervals import bin_edges, covered_in_bins

if TYPE_CHECKING:
    from ._run import Run

# What an idle worker waits for: keys of the split of time (tandem/analysis/verdict/time_split.hpp).
IDLE = ["ready_elsewhere", "awaiting_memory", "awaiting_message", "no_ready_task", "awaiting_submission", "outside"]


def flat_profile(run: Run) -> pa.Table:
    """The tasks of each codelet, the greatest total time first.

    Columns: codelet, tasks; total_ns and share (of the time of all tasks); exclusive_ns, without tasks that ran within them; min_ns,
    first_quartile_ns, median_ns, third_quartile_ns, max_ns; outliers and outlier_excess_ns (see `outliers`).
    """
    kernels = run._native.kernels()
    table = pa.table({name: arrow(values) for name, values in kernels.items()})
    total = as_numpy(table["total_ns"])
    executing = run.states.filter(pc.equal(run.states["state"].cast(pa.string()), "executing"))
    rows, names = codes(executing["codelet"])
    exclusive = np.zeros(len(names), np.int64)
    np.add.at(exclusive, rows, as_numpy(executing["duration_ns"]))
    own = dict(zip(names, exclusive.tolist()))
    table = table.add_column(3, "share", pa.array(total / max(int(total.sum()), 1), pa.float64()))
    return table.add_column(4, "exclusive_ns", pa.array([own.get(name, 0) for name in table["codelet"].to_pylist()], pa.int64()))


def time_profile(run: Run, bins: int = 50, by: str = "codelet") -> pa.Table:
    """What all workers together did in each of `bins` equal parts of the makespan.

    Columns: start_ns, end_ns, then one for each codelet (`by="codelet"`), state (`by="state"`) or rank's executing (`by="rank"`): the
    time of all workers in that part, in ns. Divided by end_ns - start_ns it is the average number of workers.
    """
    states = run.states.filter(pc.is_valid(run.states["worker"]))
    if by != "state":
        states = states.filter(pc.equal(states["state"].cast(pa.string()), "executing"))
    if by in ("codelet", "state"):
        rows, names = codes(states[by])
    elif by == "rank":
        rows, names = as_numpy(states["rank"]), [f"rank {rank}" for rank in range(run.ranks)]
    else:
        raise ValueError("by is codelet, state or rank")
    begin_ns, end_ns = run.makespan
    edges = bin_edges(begin_ns, end_ns, bins)
    starts, ends = as_numpy(states["start_ns"]), as_numpy(states["end_ns"])
    order = np.argsort(rows, kind="stable")
    limits = np.searchsorted(rows[order], np.arange(len(names) + 1))
    columns: dict[str, Any] = {"start_ns": edges[:-1], "end_ns": edges[1:]}
    for number, name in enumerate(names):
        here = order[limits[number]:limits[number + 1]]
        if len(here) > 0 or by == "rank":
            columns[name] = covered_in_bins(edges, starts[here], ends[here])
    return pa.table(columns)


def load_imbalance(run: Run, by: str = "worker", per_codelet: bool = True) -> pa.Table:
    """How unevenly execution is divided over workers (`by="worker"`) or ranks (`by="rank"`); those without tasks count.

    Columns: codelet (with `per_codelet=False` there is one row for all, where it is null), mean_ns and max_ns of the time that a worker
    executes; imbalance, max / mean, 1 being even; rank and worker of the maximum (worker is null by rank).
    """
    if by not in ("worker", "rank"):
        raise ValueError("by is worker or rank")
    split = run._native.split()
    ranks, workers = split["rank"].astype(np.int64), split["worker"].astype(np.int64)
    states = run.states.filter(pc.and_(pc.equal(run.states["state"].cast(pa.string()), "executing"), pc.is_valid(run.states["worker"])))
    places = ranks * 65536 + workers if by == "worker" else np.unique(ranks)
    keys = as_numpy(states["rank"]).astype(np.int64)
    if by == "worker":
        keys = keys * 65536 + as_numpy(states["worker"])
    rows, names = codes(states["codelet"])
    if not per_codelet:
        rows, names = np.zeros(len(rows), np.int32), [""]
    order = np.argsort(places)
    at = np.searchsorted(places[order], keys)
    known = at < len(places)
    known[known] = places[order][at[known]] == keys[known]
    times = np.zeros((len(names), len(places)), np.int64)
    np.add.at(times, (rows[known], order[at[known]]), as_numpy(states["duration_ns"])[known])
    some = times.sum(axis=1) > 0
    times = times[some]
    busiest = times.argmax(axis=1) if times.size else np.empty(0, np.int64)
    mean, most = times.mean(axis=1) if times.size else np.empty(0), times.max(axis=1) if times.size else np.empty(0, np.int64)
    codelets = pa.array([name if per_codelet else None for name, there in zip(names, some) if there], pa.string())
    table = pa.table({
        "codelet": codelets, "mean_ns": mean, "max_ns": most, "imbalance": most / mean,
        "rank": pa.array((places[busiest] // 65536 if by == "worker" else places[busiest]).astype(np.uint32)),
        "worker": pa.array((places[busiest] % 65536).astype(np.uint16)) if by == "worker" else pa.nulls(len(busiest), pa.uint16())})
    return table.sort_by([("max_ns", "descending")])


def idle_time(run: Run) -> pa.Table:
    """How long each worker was idle within the makespan, and what it waited for.

    Columns: rank, worker, idle_ns, share (of the makespan), then idle_ns by reason: ready_elsewhere_ns (a task of its rank was ready),
    awaiting_memory_ns (tasks waited for room within a budget of memory), awaiting_message_ns (data of another rank had not come),
    no_ready_task_ns (submitted tasks waited for those that ran), awaiting_submission_ns (the program had not submitted more),
    outside_ns (before its rank's first or after its last task).
    """
    split = run._native.split()
    idle: npt.NDArray[np.int64] = np.sum([split[reason] for reason in IDLE], axis=0, dtype=np.int64)
    begin_ns, end_ns = run.makespan
    columns = {"rank": split["rank"], "worker": split["worker"], "idle_ns": idle, "share": idle / max(end_ns - begin_ns, 1)}
    columns.update({f"{reason}_ns": split[reason] for reason in IDLE})
    return pa.table(columns)


def outliers(run: Run, factor: float = 1.5) -> pa.Table:
    """Tasks that took longer than the third quartile of their codelet plus `factor` times the distance between its quartiles (Tukey).

    On several kinds of worker, the quartiles are those of a task's kind alone.

    Columns: rank, task, name, codelet, worker, start_ns, duration_ns; median_ns of the codelet, limit_ns beyond which a task is one,
    and excess_ns, what it took beyond the median. The greatest excess first.
    """
    found = run._native.outliers(factor)
    table = run.tasks.select(["rank", "task", "name", "codelet", "worker", "start_ns", "duration_ns"]).take(pa.array(found["task"]))
    excess = as_numpy(table["duration_ns"]) - found["median_ns"]
    for name, values in (("median_ns", found["median_ns"]), ("limit_ns", found["limit_ns"]), ("excess_ns", excess)):
        table = table.append_column(name, pa.array(values))
    return table.take(pa.array(np.argsort(-excess, kind="stable")))
