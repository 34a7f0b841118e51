# python/tandem/_starvz.py: a run as the tables that the second phase of StarVZ reads, with StarPU's words.
"""StarVZ (R, schnorr/starvz) turns StarPU's traces into these tables in its first phase, and draws its panels from them in the second.

Times are milliseconds since the first task began. A worker is a resource ``RANK_CPUn``, the progress engine of a rank ``RANK_mpict``, a
memory node ``RANK_MEMMANAGERn``; a task is ``RANK_id``, a message ``mpicom_n``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Array = npt.NDArray[Any]
Tables = dict[str, pa.Table]

# States of a worker and of the progress engine, in StarPU's words.
WORKER_STATES = {"scheduling": "Scheduling", "polling": "Progressing", "sleeping": "Sleeping", "fetching": "FetchingInput",
                 "progressing": "Progressing", "holding": "Idle", "absent": "Idle", "other": "Overhead"}
ENGINE_STATES = {"engine_working": "Processing", "engine_polling": "Polling", "engine_sleeping": "Sleeping"}
MODES = {"read": "R", "write": "W", "read_write": "RW", "commute": "RWC", "reduce": "REDUX", "scratch": "SCRATCH"}
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d31", "#f0e442", "#7f3c8d", "#80ba5a", "#a5aa99",
           "#3969ac"]
STEPS = 200  # parts of the makespan over which panels take means


def _values(column: pa.ChunkedArray, nothing: Any = 0) -> Array:
    """As numpy; a null becomes `nothing`."""
    values: Array = pc.fill_null(column, nothing).to_numpy()
    return values


def _text(column: pa.ChunkedArray) -> pa.Array:
    text = column.cast(pa.string())
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _factor(texts: Any) -> pa.Array:
    """Each text once, which R reads as a factor."""
    encoded = pa.array(texts, pa.string()).dictionary_encode() if not isinstance(texts, (pa.Array, pa.ChunkedArray)) else \
        texts.cast(pa.string()).dictionary_encode()
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def _nulls(rows: int, kind: pa.DataType) -> pa.Array:
    return pa.nulls(rows, kind)


def _joined(rank: Any, separator: str, number: Any) -> pa.Array:
    """"RANK_id" of each row."""
    return pc.binary_join_element_wise(pa.array(rank).cast(pa.string()), pa.array(number).cast(pa.string()), separator)


def _int32(values: Array, known: Array) -> pa.Array:
    fits = known & (values <= np.iinfo(np.int32).max)
    return pa.array(np.where(fits, values, 0).astype(np.int32), mask=~fits)


class _Resources:
    """Where each resource is drawn: rank 0 at the top, below its workers its progress engine."""

    def __init__(self, workers: Array, ranks: Array) -> None:
        self.workers, self.ranks = workers, ranks  # pairs [rank, worker], in order
        self.position: dict[str, float] = {}
        at = 0.0
        for rank in reversed(ranks.tolist()):
            at += 2
            for name in [f"{rank}_mpict"] + [f"{rank}_CPU{worker}" for of, worker in reversed(workers.tolist()) if of == rank]:
                self.position[name] = at
                at += 1

    def columns(self, ranks: Array, resources: pa.Array, positions: bool = True) -> dict[str, pa.Array]:
        """ResourceId and what StarVZ derives from it. `resources`: without the rank."""
        ids = _joined(ranks, "_", resources) if len(ranks) else pa.array([], pa.string())
        columns = {"ResourceId": _factor(ids), "Node": _factor(pa.array(ranks).cast(pa.string())), "Resource": _factor(resources),
                   "ResourceType": _factor(pc.replace_substring_regex(resources, "[0-9_]+", ""))}
        if positions:
            dictionary = columns["ResourceId"].dictionary.to_pylist()
            place = np.array([self.position.get(name, np.nan) for name in dictionary] + [np.nan])
            columns["Height"] = pa.array(np.ones(len(ranks)))
            columns["Position"] = pa.array(place[columns["ResourceId"].indices.to_numpy()] if len(ranks) else np.empty(0))
        return columns


class _Export:
    """Makes the tables of one run."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables
        tasks = tables["tasks"]
        ran = pc.and_(pc.and_(pc.is_valid(tasks["start_ns"]), pc.is_valid(tasks["end_ns"])), pc.is_valid(tasks["worker"]))
        self.tasks, self.ran = tasks, tasks.filter(ran)
        if self.ran.num_rows == 0:
            raise ValueError("no task has run, or none was recorded: StarVZ needs the selection task,worker")
        self.zero_ns = int(pc.min(self.ran["start_ns"]).as_py())
        self.end_ms = float(self.ms(_values(self.ran["end_ns"])).max())
        states = tables["states"]
        pairs = [np.stack([_values(of["rank"]).astype(np.int64), _values(of["worker"]).astype(np.int64)], 1)
                 for of in (self.ran, states.filter(pc.is_valid(states["worker"])))]
        workers = np.unique(np.concatenate(pairs), axis=0)
        self.resources = _Resources(workers, np.unique(_values(tasks["rank"]).astype(np.int64)))
        self.application = self.application_table()

    def ms(self, times_ns: Array) -> Array:
        times: Array = (times_ns - self.zero_ns) / 1e6
        return times

    # --- tasks

    def task_ids(self, table: pa.Table, column: str = "task") -> pa.Array:
        return _joined(table["rank"].combine_chunks(), "_", table[column].combine_chunks())

    def accesses_of(self, tasks: pa.Table) -> tuple[Array, pa.Table]:
        """The accesses of some tasks with the bytes and NUMA nodes of their data, and the row of each one's task in `tasks`."""
        accesses, data = self.tables["accesses"], self.tables["data"]
        place = pc.index_in(self.task_ids(accesses), value_set=self.task_ids(tasks))
        known = pc.is_valid(place)
        accesses, rows = accesses.filter(known), _values(pa.chunked_array([place.filter(known)]))
        order = np.argsort(rows, kind="stable")
        accesses, rows = accesses.take(pa.array(order)), rows[order]
        described = data.take(pc.index_in(self.task_ids(accesses, "data"), value_set=self.task_ids(data, "data")))
        return rows, accesses.append_column("bytes", described["bytes"]).append_column("numa_node", described["numa_node"])

    def footprint(self, rows: Array, sizes: Array, tasks: int) -> tuple[pa.Array, Array]:
        """FNV-1a of the sizes of each task's data, as in `tasks.rec`; and their sum."""
        hashes, total = np.full(tasks, 2166136261, np.uint32), np.zeros(tasks, np.int64)
        np.add.at(total, rows, sizes.astype(np.int64))
        begins = np.searchsorted(rows, np.arange(tasks))
        counts = np.searchsorted(rows, np.arange(tasks), "right") - begins
        for number in range(int(counts.max(initial=0))):
            some = np.flatnonzero(counts > number)
            size = sizes[begins[some] + number].astype(np.uint64)
            for byte in range(8):
                low = (size >> np.uint64(8 * byte) & np.uint64(255)).astype(np.uint32)
                hashes[some] = (hashes[some] ^ low) * np.uint32(16777619)
        used, places = np.unique(hashes, return_inverse=True)
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), pa.array([f"{one:x}" for one in used])), total

    def kernel(self, tasks: pa.Table) -> pa.Array:
        """The codelet of each task, else its name."""
        codelet, name = _text(tasks["codelet"]), _text(tasks["name"])
        text = pc.if_else(pc.equal(codelet, ""), name, codelet)
        return pc.if_else(pc.equal(text, ""), "(no name)", text)

    def application_table(self) -> pa.Table:
        ran, rows = self.ran, self.ran.num_rows
        owner, accesses = self.accesses_of(ran)
        footprint, size = self.footprint(owner, _values(accesses["bytes"]), rows)
        start, end = self.ms(_values(ran["start_ns"])), self.ms(_values(ran["end_ns"]))
        value = _factor(self.kernel(ran))
        flops = _values(ran["flops"])
        iteration = ran["iteration"].cast(pa.int32()).combine_chunks()
        place = self.resources.columns(_values(ran["rank"]), pc.binary_join_element_wise("CPU", ran["worker"].cast(pa.string()).combine_chunks(), ""))
        return pa.table({
            "ResourceId": place["ResourceId"], "Start": start, "End": end, "Duration": end - start, "Depth": np.zeros(rows),
            "Value": value, "Size": _int32(size, np.ones(rows, bool)), "Params": _factor(pc.if_else(
                pc.equal(_text(ran["parameters"]), ""), None, _text(ran["parameters"]))),
            "Footprint": footprint, "Tag": _factor(ran["tag"]), "JobId": self.task_ids(ran),
            "GFlop": pa.array(flops / 1e9, mask=flops == 0), "SubmitOrder": ran["submit_order"].cast(pa.string()),
            "X": _nulls(rows, pa.int32()), "Y": _nulls(rows, pa.int32()), "Iteration": iteration, "Subiteration": iteration,
            "NumaNodes": self.numa_nodes(owner, accesses, rows), **{name: place[name] for name in ("Node", "Resource", "ResourceType")},
            "Height": place["Height"], "Position": place["Position"], "Outlier": self.outliers(value, _values(ran["duration_ns"]))})

    def numa_nodes(self, owner: Array, accesses: pa.Table, rows: int) -> pa.Array:
        """"0 -1": of each datum of a task, -1 where it is not known; null where none is."""
        known = pc.is_valid(accesses["numa_node"]).to_numpy()
        offsets = pa.array(np.searchsorted(owner, np.arange(rows + 1)).astype(np.int32))
        nodes = pc.fill_null(accesses["numa_node"].cast(pa.string()), "-1").combine_chunks()
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, nodes), " ")
        some = np.zeros(rows, bool)
        some[owner[known]] = True
        return pc.if_else(pa.array(some), joined, None)

    @staticmethod
    def outliers(value: pa.DictionaryArray, duration_ns: Array) -> Array:
        """Above the fence of the kernel, as tandem/analysis/tables/quartiles.hpp defines it."""
        codes = value.indices.to_numpy()
        fences = np.zeros(len(value.dictionary))
        for code in range(len(fences)):
            ordered = np.sort(duration_ns[codes == code])
            last = len(ordered) - 1
            first, third = ordered[last // 4], ordered[last - last // 4]
            fences[code] = third + 1.5 * (third - first)
        outlier: Array = duration_ns > fences[codes]
        return outlier

    def colors_table(self) -> pa.Table:
        names = self.application["Value"].combine_chunks().dictionary.to_pylist()
        total = np.bincount(self.application["Value"].combine_chunks().indices.to_numpy(), self.application["Duration"].to_numpy(), len(names))
        order = np.argsort(-total, kind="stable")
        colours = self.tables.get("colours")
        own = dict(zip(_text(colours["codelet"]).to_pylist(), colours["rgb"].to_pylist())) if colours is not None else {}
        shown = [f"#{own[names[place]]:06x}" if names[place] in own else COLOURS[i % len(COLOURS)] for i, place in enumerate(order)]
        return pa.table({"Value": _factor([names[place] for place in order]), "Color": shown,
                         "Use": np.ones(len(order), bool)})

    def tasks_table(self) -> pa.Table:
        tasks, rows = self.tasks, self.tasks.num_rows
        owner, accesses = self.accesses_of(tasks)
        ids = self.task_ids(tasks)
        dependencies = self.tables["dependencies"]
        place = pc.index_in(self.task_ids(dependencies), value_set=ids)
        known = pc.is_valid(place)
        before, of = self.task_ids(dependencies, "predecessor").filter(known), _values(pa.chunked_array([place.filter(known)]))
        order = np.argsort(of, kind="stable")
        offsets = pa.array(np.searchsorted(of[order], np.arange(rows + 1)).astype(np.int32))
        depends = pc.binary_join(pa.ListArray.from_arrays(offsets, before.take(pa.array(order))), " ")

        def time(name: str) -> pa.Array:
            return pa.array(self.ms(_values(tasks[name])), mask=pc.is_null(tasks[name]).to_numpy())

        return pa.table({
            "Control": _nulls(rows, pa.string()), "JobId": ids, "SubmitOrder": tasks["submit_order"].cast(pa.int32()),
            "SubmitTime": time("submit_ns"), "MPIRank": tasks["rank"].cast(pa.int32()), "Name": _text(tasks["name"]),
            "Model": _text(tasks["codelet"]), "Priority": tasks["priority"], "Tag": tasks["tag"].cast(pa.string()),
            "WorkerId": tasks["worker"].cast(pa.int32()), "MemoryNode": pc.if_else(pc.is_valid(tasks["worker"]), pa.scalar(0, pa.int32()), None),
            "StartTime": time("start_ns"), "EndTime": time("end_ns"),
            "Footprint": self.footprint(owner, _values(accesses["bytes"]), rows)[0].cast(pa.string()),
            "Parameters": _text(tasks["parameters"]), "DependsOn": pc.if_else(pc.equal(depends, ""), None, depends),
            "Iteration": tasks["iteration"].cast(pa.int32())})

    def task_handles_table(self) -> pa.Table:
        owner, accesses = self.accesses_of(self.tasks)
        modes = _text(accesses["mode"])
        for ours, theirs in MODES.items():
            modes = pc.if_else(pc.equal(modes, ours), theirs, modes)
        size = _values(accesses["bytes"]).astype(np.int64)
        return pa.table({"JobId": self.task_ids(self.tasks).take(pa.array(owner)), "Handles": self.handles(accesses["data"]),
                         "Modes": _factor(modes), "Sizes": _int32(size, np.ones(len(size), bool))})

    @staticmethod
    def handles(column: pa.ChunkedArray) -> pa.Array:
        """Numbers of data as StarPU writes addresses of handles; null where there is none."""
        numbers = _values(column)
        used, places = np.unique(numbers, return_inverse=True)
        names = pa.array([f"{one:x}" for one in used], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32), mask=pc.is_null(column).to_numpy()), names)

    def data_handles_table(self) -> pa.Table:
        data = self.tables["data"]
        name = _text(data["name"])
        inside = pc.struct_field(pc.extract_regex(name, r"[\[(](?P<at>[0-9, ]+)[\])]$"), "at")
        size = _values(data["bytes"]).astype(np.int64)
        return pa.table({
            "Handle": self.handles(data["data"]), "HomeNode": np.zeros(len(size), np.int32), "MPIRank": data["rank"].cast(pa.int32()),
            "Name": _factor(name), "Size": size.astype(np.float64),
            "Description": _factor(pc.binary_join_element_wise(_text(data["rows"]), _text(data["cols"]), " x ")),
            "Coordinates": pc.replace_substring_regex(inside, "[, ]+", " "), "MPIOwner": data["owner"].cast(pa.int32()),
            "MPITag": _nulls(len(size), pa.int32())})

    # --- states

    def state_table(self, states: pa.Table, words: Mapping[str, str], resources: pa.Array, positions: bool) -> pa.Table:
        start, end = self.ms(_values(states["start_ns"])), self.ms(_values(states["end_ns"]))
        value = _text(states["state"])
        for ours, theirs in words.items():
            value = pc.if_else(pc.equal(value, ours), theirs, value)
        place = self.resources.columns(_values(states["rank"]), resources, positions)
        columns = {"ResourceId": place.pop("ResourceId"), "Start": start, "End": end, "Duration": end - start,
                   "Depth": _values(states["depth"]).astype(np.float64), "Value": _factor(value)}
        if positions:
            columns["Size"], columns["NumaNodes"] = _nulls(len(start), pa.int32()), _nulls(len(start), pa.string())
        return pa.table({**columns, **place})

    def starpu_table(self) -> pa.Table:
        states = self.tables["states"]
        states = states.filter(pc.and_(pc.is_valid(states["worker"]), pc.invert(pc.equal(_text(states["state"]), "executing"))))
        worker = pc.binary_join_element_wise("CPU", states["worker"].cast(pa.string()).combine_chunks(), "")
        return self.state_table(states, WORKER_STATES, worker, True)

    def comm_state_table(self) -> pa.Table:
        states = self.tables["states"]
        states = states.filter(pc.is_in(_text(states["state"]), value_set=pa.array(list(ENGINE_STATES))))
        return self.state_table(states, ENGINE_STATES, pa.array(["mpict"] * states.num_rows, pa.string()), False)

    # --- links

    def link_table(self) -> pa.Table:
        comms = self.tables["communications"]
        whole = pc.and_(pc.and_(pc.is_valid(comms["posted_ns"]), pc.is_valid(comms["arrived_ns"])),
                        pc.and_(pc.is_valid(comms["source"]), pc.is_valid(comms["destination"])))
        comms = comms.filter(pc.and_(whole, pc.invert(comms["failed"])))
        self.comms = comms
        rows, copies = comms.num_rows, self.tables["transfers"]
        copies = copies.filter(pc.and_(pc.is_valid(copies["start_ns"]), pc.is_valid(copies["end_ns"])))

        def part(start: pa.ChunkedArray, end: pa.ChunkedArray, container: pa.Array, kind: str, size: pa.ChunkedArray, origin: pa.Array,
                 destination: pa.Array, key: str, tag: pa.Array, mpi: pa.Array, priority: pa.Array, handle: pa.Array) -> pa.Table:
            begins, ends, length = self.ms(_values(start)), self.ms(_values(end)), len(start)
            return pa.table({
                "Container": container, "Type": pa.array([kind] * length, pa.string()), "Start": begins, "End": ends,
                "Duration": ends - begins, "Size": _int32(_values(size).astype(np.int64), np.ones(length, bool)), "Origin": origin,
                "Dest": destination, "Key": _joined(pa.array([key] * length, pa.string()), "_", np.arange(length)), "Tag": tag,
                "MPIType": mpi, "Priority": priority, "Handle": handle.cast(pa.string())})

        def of_rank(ranks: pa.ChunkedArray, name: Any) -> pa.Array:
            return pc.binary_join_element_wise(ranks.cast(pa.string()).combine_chunks(), name, "_")

        def node(column: pa.ChunkedArray) -> pa.Array:
            return pc.binary_join_element_wise("MEMMANAGER", column.cast(pa.string()).combine_chunks(), "")

        kind = pc.if_else(pc.equal(_text(comms["type"]), "broadcast"), "Collective", "PointToPoint")
        messages = part(comms["posted_ns"], comms["arrived_ns"], pa.array(["root"] * rows, pa.string()), "MPI communication", comms["bytes"],
                        of_rank(comms["source"], "mpict"), of_rank(comms["destination"], "mpict"), "mpicom", _text(comms["tag"]), kind,
                        comms["priority"].combine_chunks(), self.handles(comms["receive_data"]))
        count = copies.num_rows
        fetches = part(copies["start_ns"], copies["end_ns"], of_rank(copies["rank"], "program"), "Intra-node data Fetch", copies["bytes"],
                       of_rank(copies["rank"], node(copies["from"])), of_rank(copies["rank"], node(copies["to"])), "com",
                       _nulls(count, pa.string()), _nulls(count, pa.string()), _nulls(count, pa.int32()), self.handles(copies["data"]))
        links = pa.concat_tables([messages, fetches])
        factors = ("Container", "Type", "Origin", "Dest", "Key", "Tag", "MPIType", "Handle")
        return pa.table({name: _factor(links[name]) if name in factors else links[name] for name in links.column_names})

    def dag_table(self) -> pa.Table:
        """Dependent is the task that comes before JobId. The chain over ranks goes through the message between two of them."""
        dependencies, comms, application = self.tables["dependencies"], self.comms, self.application
        before, after = self.task_ids(dependencies, "predecessor"), self.task_ids(dependencies)
        keys = _joined(pa.array(["mpicom"] * comms.num_rows, pa.string()), "_", np.arange(comms.num_rows))
        both = pc.and_(pc.is_valid(comms["send_task"]), pc.is_valid(comms["receive_task"])).combine_chunks()
        sent = _joined(comms["source"].combine_chunks(), "_", comms["send_task"].combine_chunks()).filter(both)
        received = _joined(comms["destination"].combine_chunks(), "_", comms["receive_task"].combine_chunks()).filter(both)
        job = pa.concat_arrays([after, keys.filter(both), received])
        dependent = pa.concat_arrays([before, sent, keys.filter(both)])
        alone = application["JobId"].combine_chunks()
        alone = alone.filter(pc.invert(pc.is_in(alone, value_set=job)))
        job, dependent = pa.concat_arrays([job, alone]), pa.concat_arrays([dependent, _nulls(len(alone), pa.string())])
        posted, arrived = self.ms(_values(comms["posted_ns"])), self.ms(_values(comms["arrived_ns"]))
        known = pa.table({"JobId": pa.concat_arrays([application["JobId"].combine_chunks(), keys]),
                          "Start": np.concatenate([application["Start"].to_numpy(), posted]),
                          "End": np.concatenate([application["End"].to_numpy(), arrived]),
                          "Value": pa.concat_arrays([_text(application["Value"]), _nulls(len(keys), pa.string())])})
        of = known.take(pc.index_in(job, value_set=known["JobId"].combine_chunks()))
        cost = np.where(pc.is_valid(of["Start"]).to_numpy(), _values(of["Start"], 0.0) - _values(of["End"], 0.0), 0)
        return pa.table({"JobId": job, "Dependent": _factor(dependent), "Start": of["Start"], "End": of["End"], "Cost": cost,
                         "Value": _factor(of["Value"])})

    # --- variables

    def steps(self, ranks: Array, resources: pa.Array, times: Array, values: Array, kind: str, changes: bool = True) -> pa.Table:
        """What a variable of each resource is, from one change to the next. `values` are changes, or what it is from then on."""
        ids = _joined(ranks, "_", resources).dictionary_encode() if len(ranks) else pa.array([], pa.string()).dictionary_encode()
        keys = ids.indices.to_numpy()
        order = np.lexsort((times, keys))
        keys, times, values = keys[order], times[order], values[order].astype(np.float64)
        if changes:
            sums = np.cumsum(values)
            begins = np.searchsorted(keys, np.arange(len(ids.dictionary)))
            values = sums - np.concatenate([[0.0], sums])[begins][keys]
            values[np.abs(values) < 1e-6] = 0
        last = np.ones(len(keys), bool)  # of one time
        last[:-1] = (keys[1:] != keys[:-1]) | (times[1:] != times[:-1])
        order, keys, times, values = order[last], keys[last], times[last], values[last]
        ends = np.append(times[1:], self.end_ms)
        ends[:-1][keys[1:] != keys[:-1]] = self.end_ms
        ends = np.maximum(ends, times)
        place = self.resources.columns(ranks[order], resources.take(pa.array(order)), False)
        return pa.table({"ResourceId": place.pop("ResourceId").cast(pa.string()), "Type": pa.array([kind] * len(times), pa.string()),
                         "Start": times, "End": ends, "Duration": ends - times, "Value": values,
                         **{name: column.cast(pa.string()) for name, column in place.items()}})

    def existing(self, ranks: Any, resource: Any, begin: Array, end: Array, amount: Array, kind: str) -> pa.Table:
        """How much there is of what exists from `begin` to `end`."""
        ranks = np.asarray(ranks)
        resources = pa.array([resource] * len(ranks), pa.string()) if isinstance(resource, str) else resource
        return self.steps(np.concatenate([ranks, ranks]), pa.concat_arrays([resources, resources]), np.concatenate([begin, end]),
                          np.concatenate([amount, -amount]), kind)

    def variable_table(self) -> pa.Table:
        ran, comms, copies, memory = self.ran, self.comms, self.tables["transfers"], self.tables["memory"]
        parts = []
        for name, begin, end in (("Submitted", "submit_ns", "end_ns"), ("Ready", "ready_ns", "start_ns")):
            some = ran.filter(pc.is_valid(ran[begin]))
            begins, ends = self.ms(_values(some[begin])), self.ms(_values(some[end]))
            parts.append(self.existing(_values(some["rank"]), "scheduler", begins, np.maximum(begins, ends), np.ones(len(begins)), name))
        flops = ran.filter(pc.greater(ran["flops"], 0))
        begins, ends = self.ms(_values(flops["start_ns"])), self.ms(_values(flops["end_ns"]))
        rate = _values(flops["flops"]) / np.maximum(ends - begins, 1e-6) / 1e6
        parts.append(self.existing(_values(flops["rank"]), pc.binary_join_element_wise(
            "CPU", flops["worker"].cast(pa.string()).combine_chunks(), ""), begins, ends, rate, "GFlops"))
        copies = copies.filter(pc.and_(pc.is_valid(copies["start_ns"]), pc.is_valid(copies["end_ns"])))
        for table, begin, end, to, source, resource in (
                (comms, "posted_ns", "arrived_ns", "destination", "source", None), (copies, "start_ns", "end_ns", "rank", "rank", "to")):
            begins, ends = self.ms(_values(table[begin])), self.ms(_values(table[end]))
            ends = np.maximum(ends, begins + 1e-6)
            rate = _values(table["bytes"]).astype(np.float64) / (ends - begins) / 1e3  # MB/s
            for side, direction, end_of in ((to, "In", "to"), (source, "Out", "from")):
                at: Any = "mpict" if resource is None else pc.binary_join_element_wise(
                    "MEMMANAGER", table[end_of].cast(pa.string()).combine_chunks(), "")
                parts.append(self.existing(_values(table[side]), at, begins, ends, rate, f"B. {direction} (MB/s)"))
        node = pc.binary_join_element_wise("MEMMANAGER", memory["node"].cast(pa.string()).combine_chunks(), "")
        parts.append(self.steps(_values(memory["rank"]), node, self.ms(_values(memory["time_ns"])),
                                _values(memory["used_bytes"]) / (1 << 20), "Used (MB)", changes=False))
        table = pa.concat_tables(parts)
        return pa.table({name: _factor(table[name]) if name in ("ResourceId", "Node", "Resource", "ResourceType") else table[name]
                         for name in table.column_names})

    # --- events

    def events_table(self) -> pa.Table:
        """Pushes and pops of tasks, flushes of the trace, marks of the program."""
        tasks, marks, tracer = self.tasks, self.tables["marks"], self.tables["tracer"]
        flushes = tracer.filter(pc.equal(_text(tracer["kind"]), "flush"))
        parts = []

        def add(table: pa.Table, time: str, kind: str, value: Any) -> None:
            value = pa.array([value] * table.num_rows, pa.string()) if isinstance(value, str) else value
            parts.append(pa.table({
                "Container": pc.binary_join_element_wise(table["rank"].cast(pa.string()).combine_chunks(), "program", "_"),
                "Type": pa.array([kind] * table.num_rows, pa.string()), "Start": self.ms(_values(table[time])), "Value": value}))

        for column, kind in (("pushed_ns", "Task Push"), ("popped_ns", "Task Pop")):
            some = tasks.filter(pc.is_valid(tasks[column]))
            add(some, column, kind, self.task_ids(some))
        add(flushes, "start_ns", "program event type", "fxt_start_flush")
        add(flushes, "end_ns", "program event type", "fxt_stop_flush")
        add(marks, "time_ns", "user event type", _text(marks["name"]))
        events = pa.concat_tables(parts).sort_by("Start")
        return pa.table({name: events[name] if name == "Start" else _factor(events[name]) for name in events.column_names})

    def events_memory_table(self) -> pa.Table:
        """Allocations and releases, which our trace knows as instants: each begins and ends at once. Copies, from begin to end."""
        memory, copies = self.tables["memory"], self.tables["transfers"]
        copies = copies.filter(pc.and_(pc.is_valid(copies["start_ns"]), pc.is_valid(copies["end_ns"])))
        parts = []

        def add(table: pa.Table, node: str, time: str, kind: Any, size: Array, source: Optional[str] = None) -> None:
            def place(column: str) -> pa.Array:
                number = pc.binary_join_element_wise("MEMMANAGER", table[column].cast(pa.string()).combine_chunks(), "")
                return _joined(table["rank"].combine_chunks(), "_", number)

            rows = table.num_rows
            parts.append(pa.table({
                "Container": place(node), "Type": kind if isinstance(kind, pa.Array) else pa.array([kind] * rows, pa.string()),
                "Start": self.ms(_values(table[time])), "Value": _nulls(rows, pa.string()),
                "Handle": self.handles(table["data"]).cast(pa.string()), "Info": _nulls(rows, pa.string()),
                "Size": _int32(size, np.ones(rows, bool)), "Tid": _nulls(rows, pa.string()),
                "Src": place(source) if source else _nulls(rows, pa.string())}))

        size = _values(memory["bytes"]).astype(np.int64)
        kind = pa.array(np.where(size >= 0, "Allocating", "Free"))
        for end in ("Start", "End"):
            add(memory, "node", "time_ns", pc.binary_join_element_wise(kind, end, " "), np.abs(size))
        for end in ("Start", "End"):
            add(copies, "to", f"{end.lower()}_ns", f"DriverCopy {end}", _values(copies["bytes"]).astype(np.int64), "from")
        events = pa.concat_tables(parts).sort_by("Start")
        return pa.table({name: events[name] if name in ("Start", "Size") else _factor(events[name]) for name in events.column_names})

    def memory_state_table(self) -> pa.Table:
        """Of each memory node to which something was copied: when at least one copy was under way, and when none was."""
        copies = self.tables["transfers"]
        copies = copies.filter(pc.and_(pc.is_valid(copies["start_ns"]), pc.is_valid(copies["end_ns"])))
        begins, ends = self.ms(_values(copies["start_ns"])).tolist(), self.ms(_values(copies["end_ns"])).tolist()
        of_node: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for rank, node, begin, end in zip(copies["rank"].to_pylist(), copies["to"].to_pylist(), begins, ends):
            of_node.setdefault((rank, node), []).append((begin, end))
        rows: list[tuple[int, str, str, float, float]] = []
        for (rank, node), intervals in sorted(of_node.items()):
            at = min(0.0, min(intervals)[0])
            for begin, end in sorted(intervals):
                place = rank, f"MEMMANAGER{node}"
                if begin > at:
                    rows.append((*place, "Nothing", at, begin))
                if end > at and rows and rows[-1][:3] == (*place, "DriverCopy") and begin <= at:
                    rows[-1] = (*rows[-1][:4], end)  # it overlaps the one before
                elif end > at:
                    rows.append((*place, "DriverCopy", max(begin, at), end))
                at = max(at, end)
            if self.end_ms > at:
                rows.append((rank, f"MEMMANAGER{node}", "Nothing", at, self.end_ms))
        ranks, nodes, values, starts, stops = zip(*rows) if rows else ((),) * 5
        columns = self.resources.columns(np.array(ranks, np.int64), pa.array(nodes, pa.string()), False)
        start, stop = np.array(starts, np.float64), np.array(stops, np.float64)
        return pa.table({"ResourceId": columns.pop("ResourceId"), "Start": start, "End": stop, "Duration": stop - start,
                         "Depth": np.zeros(len(rows)), "Value": _factor(values), **columns})

    # --- resources

    def y_table(self) -> pa.Table:
        names = sorted(self.resources.position, key=lambda name: self.resources.position[name])
        kinds = ["Communication Thread State" if name.endswith("mpict") else "Worker State" for name in names]
        return pa.table({"Parent": names, "Type": kinds, "Height": np.ones(len(names)),
                         "Position": [self.resources.position[name] for name in names]})

    def entities_table(self) -> pa.Table:
        rows = [("0", "0", "0", "Container"), ("0", "root", "MPI Program", "Container"),
                ("root", "MPI communication", "MPI communication", "Link")]
        for rank in self.resources.ranks.tolist():
            program = f"{rank}_program"
            rows += [("root", program, "Program", "Container"), (program, f"{rank}_scheduler", "Scheduler State", "Container"),
                     (program, f"{rank}_mpict", "MPI Communication Thread", "Container"),
                     (f"{rank}_mpict", "Communication Thread State", "Communication Thread State", "State")]
            for of, worker in self.resources.workers.tolist():
                if of == rank:
                    rows += [(program, f"{rank}_CPU{worker}", "Worker", "Container"),
                             (f"{rank}_CPU{worker}", "Worker State", "Worker State", "State")]
        return pa.table(dict(zip(("Parent", "Name", "Type", "Nature"), [list(column) for column in zip(*rows)])))

    def all(self) -> Tables:
        links = self.link_table()
        tables = {"application": self.application, "starpu": self.starpu_table(), "colors": self.colors_table(), "link": links,
                  "dag": self.dag_table(), "variable": self.variable_table(), "comm_state": self.comm_state_table(),
                  "memory_state": self.memory_state_table(),
                  "events": self.events_table(), "events_memory": self.events_memory_table(), "tasks": self.tasks_table(),
                  "task_handles": self.task_handles_table(), "data_handles": self.data_handles_table(), "y": self.y_table(),
                  "entities": self.entities_table(), "zero": pa.table({"value": [self.zero_ns / 1e6]}),
                  "version": pa.table({"value": ["0.2.0"]})}
        return {name: table for name, table in tables.items() if table.num_rows > 0}  # StarVZ refuses tables without rows


def starvz_tables(tables: Mapping[str, pa.Table]) -> Tables:
    """Of the tables of a run, those of StarVZ. Raises ValueError where no task has run."""
    return _Export(tables).all()


def config_of(tables: Tables) -> str:
    """A config.yaml with steps that suit the length of the run, and the panels for which there is something."""
    end_ms = float(tables["application"]["End"].to_numpy().max())
    step = float(f"{max(end_ms / STEPS, 1e-6):.2g}")
    kinds = set(tables["variable"]["Type"].to_pylist()) if "variable" in tables else set()
    messages = any(key.startswith("mpicom") for key in tables["link"]["Key"].combine_chunks().dictionary.to_pylist()) if "link" in tables else False

    def panel(name: str, active: bool, *more: str) -> list[str]:
        return [f"  {name}:", f"    active: {'TRUE' if active else 'FALSE'}", *(f"    {line}" for line in more)]

    iterations = tables["application"]["Iteration"].null_count < tables["application"].num_rows
    lines = ["# Written by tandem trace export --format starvz.", "default:", f"  global_agg_step: {step:g}", "  limits:", "    start: 0"]
    lines += panel("st", True, 'labels: "ALL"', "makespan: TRUE", "outliers: TRUE", "aggregation:", "  active: FALSE",
                   f"  step: {step:g}")
    lines += panel("kiteration", iterations, "subite: FALSE") + panel("starpu", "starpu" in tables)
    for name, kind in (("ready", "Ready"), ("submitted", "Submitted"), ("usedmemory", "Used (MB)"), ("gflops", "GFlops")):
        lines += panel(name, kind in kinds, f"step: {step:g}")
    lines += panel("lackready", "Ready" in kinds and "starpu" in tables, f"aggregation: {step:g}")
    for name in ("imbalance", "utilheatmap"):
        lines += panel(name, True, f"step: {step:g}")
    for name in ("mpibandwidth", "mpiconcurrent", "mpiconcurrentout"):
        lines += panel(name, messages, f"step: {step:g}")
    lines += panel("mpistate", "comm_state" in tables)
    return "\n".join(lines) + "\n"


def write_starvz(tables: Tables, folder: Union[str, os.PathLike[str]]) -> list[tuple[str, int]]:
    """A Parquet file for each table, and config.yaml. Returns names and numbers of rows."""
    os.makedirs(folder, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, os.path.join(folder, f"{name}.parquet"), compression="gzip")
    with open(os.path.join(folder, "config.yaml"), "w", encoding="utf-8") as file:
        file.write(config_of(tables))
    return [(name, table.num_rows) for name, table in tables.items()]
