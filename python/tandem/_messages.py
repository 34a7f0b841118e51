# python/tandem/_messages.py: who sends to whom, when, and whether tasks run meanwhile.
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ._columns import as_numpy
from ._intervals import bin_edges, covered_in_bins, overlap_ns, union

if TYPE_CHECKING:
    from ._run import Run


def comm_matrix(run: Run, output: str = "bytes") -> npt.NDArray[np.int64]:
    """What each rank sent to each: entry [source, destination], in bytes or, with `output="count"`, in messages.

    A broadcast counts as one message to each of its recipients. Failed messages are left out.
    """
    if output not in ("bytes", "count"):
        raise ValueError("output is bytes or count")
    comms = run.comms
    sent = comms.filter(pc.and_(pc.and_(pc.is_valid(comms["source"]), pc.is_valid(comms["destination"])), pc.invert(comms["failed"])))
    matrix = np.zeros((run.ranks, run.ranks), np.int64)
    values = as_numpy(sent["bytes"]).astype(np.int64) if output == "bytes" else 1
    np.add.at(matrix, (as_numpy(sent["source"]), as_numpy(sent["destination"])), values)
    return matrix


def _whole(run: Run) -> pa.Table:
    """Messages of which both the posting and the arrival were recorded."""
    comms = run.comms
    return comms.filter(pc.and_(pc.and_(pc.is_valid(comms["posted_ns"]), pc.is_valid(comms["arrived_ns"])), pc.invert(comms["failed"])))


def comm_over_time(run: Run, bins: int = 50) -> pa.Table:
    """Messages in each of `bins` equal parts of the makespan.

    Columns: start_ns, end_ns; posted and posted_bytes, of messages whose send was posted in that part; arrived and arrived_bytes;
    in_flight, the average number of messages that were posted and had not arrived.
    """
    begin_ns, end_ns = run.makespan
    edges = bin_edges(begin_ns, end_ns, bins)
    columns: dict[str, Any] = {"start_ns": edges[:-1], "end_ns": edges[1:]}
    for event in ("posted", "arrived"):
        known = run.comms.filter(pc.is_valid(run.comms[f"{event}_ns"]))
        times, sizes = as_numpy(known[f"{event}_ns"]), as_numpy(known["bytes"]).astype(np.int64)
        inside = (times >= begin_ns) & (times <= end_ns)
        at = np.clip(np.searchsorted(edges, times[inside], side="right") - 1, 0, bins - 1)
        count, total = np.zeros(bins, np.int64), np.zeros(bins, np.int64)
        np.add.at(count, at, 1)
        np.add.at(total, at, sizes[inside])
        columns[event], columns[f"{event}_bytes"] = count, total
    whole = _whole(run)
    posted = as_numpy(whole["posted_ns"])
    flying = covered_in_bins(edges, posted, np.maximum(as_numpy(whole["arrived_ns"]), posted))
    columns["in_flight"] = flying / np.maximum(np.diff(edges), 1)
    return pa.table(columns)


def overlap(run: Run) -> pa.Table:
    """Whether communication costs time, by rank: how long tasks ran while messages were under way.

    Columns: rank; communicating_ns, while a message from or to the rank was posted and had not arrived; computing_ns, while a worker of
    the rank executed a task; overlap_ns, both at once; alone_ns, communicating without computing; share, overlap / communicating
    (null where there was no communication).
    """
    whole = _whole(run)
    posted = as_numpy(whole["posted_ns"])
    arrived = np.maximum(as_numpy(whole["arrived_ns"]), posted)
    source, destination = as_numpy(whole["source"]), as_numpy(whole["destination"])
    executing = run.states.filter(pc.equal(run.states["state"].cast(pa.string()), "executing"))
    runs_on, starts, ends = as_numpy(executing["rank"]), as_numpy(executing["start_ns"]), as_numpy(executing["end_ns"])
    rows: dict[str, list[Any]] = {name: [] for name in ("rank", "communicating_ns", "computing_ns", "overlap_ns", "alone_ns", "share")}
    for rank in range(run.ranks):
        of_rank = ((source == rank) | (destination == rank)) & (source != destination)
        communicating = union(posted[of_rank], arrived[of_rank])
        computing = union(starts[runs_on == rank], ends[runs_on == rank])
        total = int(np.sum(communicating[1] - communicating[0]))
        both = overlap_ns(communicating, computing)
        for name, value in (("rank", rank), ("communicating_ns", total), ("computing_ns", int(np.sum(computing[1] - computing[0]))),
                            ("overlap_ns", both), ("alone_ns", total - both), ("share", both / total if total else None)):
            rows[name].append(value)
    return pa.table({"rank": pa.array(rows["rank"], pa.uint32()),
                     **{name: pa.array(rows[name], pa.int64()) for name in list(rows)[1:5]},
                     "share": pa.array(rows["share"], pa.float64())})
