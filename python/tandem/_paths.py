# python/tandem/_paths.py: the chain of tasks that bounds the makespan, what the last task waited for, and the graph.
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ._columns import NOTHING, arrow, as_numpy, numbers

if TYPE_CHECKING:
    from ._run import Run


def critical_path(run: Run, messages: bool = False) -> pa.Table:
    """The longest chain of tasks, each of which needs the one before, in the order of execution.

    With `messages=True` the time of messages between ranks counts as well, as it was measured. The sum of duration_ns is the bound of
    `run.summary().bounds`, except for the messages. Columns: rank, task, name, codelet, worker, start_ns, end_ns, duration_ns; gap_ns,
    from the end of the task before (negative where tasks of a chain overlapped by the error of clocks).
    """
    tasks = run.tasks.select(["rank", "task", "name", "codelet", "worker", "start_ns", "end_ns", "duration_ns"])
    path = tasks.take(pa.array(run._native.critical_path(messages)))
    gaps = [None] if path.num_rows else []
    if path.num_rows > 1:
        gaps += (as_numpy(path["start_ns"])[1:] - as_numpy(path["end_ns"])[:-1]).tolist()
    return path.append_column("gap_ns", pa.array(gaps, pa.int64()))


def realised_path(run: Run) -> pa.Table:
    """What the last task waited for, what that waited for, and so on, back to the start; the steps cover the makespan without gaps.

    Columns: kind (execution: the next step needed this task; busy: the task held the worker of the next one; overhead: queues and
    wake-ups; message: data was on its way; submission: the task was not submitted yet), rank, task, name, codelet; from, the source of
    a message; start_ns, end_ns, duration_ns.
    """
    steps = run._native.realised_path()
    start, end = steps["start_ns"], steps["end_ns"]
    table = run.tasks.select(["rank", "task", "name", "codelet"]).take(pa.array(steps["task"]))
    table = table.add_column(0, "kind", arrow(steps["kind"]))
    table = table.append_column("from", arrow(steps["from"], "number"))
    for name, values in (("start_ns", start), ("end_ns", end), ("duration_ns", np.subtract(end, start))):
        table = table.append_column(name, pa.array(values))
    return table


def dag(run: Run) -> pa.Table:
    """The measured graph of all ranks: a row for each pair of tasks of which one had to wait for the other.

    Columns: rank, task, name; predecessor_rank, predecessor, predecessor_name; comm, the row in `run.comms` of the message by which the
    predecessor's result came (null: a dependency within a rank). Tasks of a rank that send and receive are tasks as well.
    """
    edges = run._native.graph()
    ends = run.tasks.select(["rank", "task", "name"])
    table = ends.take(pa.array(edges["to"]))
    before = ends.take(pa.array(edges["from"]))
    for name in ("rank", "task", "name"):
        column = "predecessor" if name == "task" else f"predecessor_{name}"
        table = table.append_column(column, before[name])
    return table.append_column("comm", numbers(edges["message"], NOTHING["number"]))
