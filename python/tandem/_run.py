# python/tandem/_run.py: a run: its tables, and the functions of the other modules as methods.
from __future__ import annotations

import os
from functools import cached_property
from typing import Union

import pyarrow as pa

from . import _messages, _native, _parquet, _paths, _plots, _profiles, _starvz, _summary
from ._columns import arrow


def load(folder: Union[str, os.PathLike[str]], clock: str = "auto") -> Run:
    """Reads the trace in `folder`: that of a run, or of one rank of it.

    `clock` says how the clocks of ranks are put on one: "auto", "none", "linear" or "piecewise" (docs/tracing.md). A truncated trace is
    read as far as it goes. Raises `TraceError` when the folder is no trace, or its files are damaged.
    """
    return Run(_native.Run(os.fspath(folder), clock), os.fspath(folder))


class Run:
    """A run that was traced. `load` makes it. One thread at a time may use it.

    Tables are made when they are first asked for, and kept. Their columns are those of `tandem trace export --format parquet`.
    """

    def __init__(self, native: _native.Run, folder: str) -> None:
        self._native = native
        self.folder = folder
        self._places = {name: (place, rows, columns) for place, (name, rows, columns) in enumerate(native.tables())}
        self._tables: dict[str, pa.Table] = {}

    def __repr__(self) -> str:
        return f"<tandem.Run {self.program}: {self.ranks} rank(s), {self._places['tasks'][1]} tasks, {self.duration_ns / 1e9:.6f} s>"

    @property
    def program(self) -> str:
        """The name of the program, without its folder."""
        return os.path.basename(self._native.program)

    @property
    def job(self) -> str:
        return self._native.job

    @property
    def ranks(self) -> int:
        """The number of ranks of the job, also of those that the folder does not hold."""
        return self._native.size

    @property
    def duration_ns(self) -> int:
        """From the first event to the last."""
        return self._native.duration_ns

    @cached_property
    def makespan(self) -> tuple[int, int]:
        """When it begins and ends, in ns: from the first submission of all ranks to the end of the last task."""
        said = self._native.summary()
        return said["begin_ns"], said["begin_ns"] + said["makespan_ns"]

    @property
    def table_names(self) -> list[str]:
        """All tables, as the Parquet export names them; events that the program declared are ``user.TYPE``."""
        return list(self._places)

    def table(self, name: str) -> pa.Table:
        """A table by its name in the Parquet export."""
        if name not in self._tables:
            if name not in self._places:
                raise KeyError(f"there is no table {name}; there are {', '.join(self._places)}")
            place, _, columns = self._places[name]
            arrays = [arrow(self._native.column(place, number), kind) for number, (_, kind) in enumerate(columns)]
            self._tables[name] = pa.Table.from_arrays(arrays, names=[column for column, _ in columns])
        return self._tables[name]

    @property
    def tasks(self) -> pa.Table:
        """A row for each task: names, where it was submitted, worker, status, and when it was submitted, ready, started, ended."""
        return self.table("tasks")

    @property
    def accesses(self) -> pa.Table:
        """What each task reads or writes."""
        return self.table("accesses")

    @property
    def dependencies(self) -> pa.Table:
        """Pairs of tasks of a rank, as they were recorded; `dag` has those between ranks as well."""
        return self.table("dependencies")

    @property
    def states(self) -> pa.Table:
        """Intervals of a worker or another thread: executing, scheduling, polling, sleeping ... Those of a thread do not overlap."""
        return self.table("states")

    @property
    def comms(self) -> pa.Table:
        """A message, or what one recipient of a broadcast got: both ends, all its steps, and the data and tasks that need it."""
        return self.table("communications")

    @property
    def broadcasts(self) -> pa.Table:
        """Each broadcast at its root, and its tree."""
        return self.table("broadcasts")

    @property
    def data(self) -> pa.Table:
        """The pieces of data: name, size in bytes, owner."""
        return self.table("data")

    @property
    def transfers(self) -> pa.Table:
        """Copies between memory nodes."""
        return self.table("transfers")

    @property
    def memory(self) -> pa.Table:
        """Memory that was allocated or, with negative bytes, released; used_bytes on the node from then on."""
        return self.table("memory")

    @property
    def counters(self) -> pa.Table:
        """Numbers that the program recorded; each holds until the next one of its name."""
        return self.table("counters")

    @property
    def marks(self) -> pa.Table:
        """Instants that the program marked."""
        return self.table("marks")

    @property
    def spans(self) -> pa.Table:
        """Parts of the program that it named."""
        return self.table("spans")

    @property
    def waits(self) -> pa.Table:
        """When the program waited for tasks, or was throttled."""
        return self.table("waits")

    @property
    def actors(self) -> pa.Table:
        """The threads that wrote events: workers and others."""
        return self.table("actors")

    @property
    def clocks(self) -> pa.Table:
        """How the clock of each rank was corrected."""
        return self.table("clocks")

    @property
    def events(self) -> dict[str, pa.Table]:
        """Events of types that the program declared, by type."""
        return {name.removeprefix("user."): self.table(name) for name in self._places if name.startswith("user.")}

    @cached_property
    def dag(self) -> pa.Table:
        return _paths.dag(self)

    def write_parquet(self, folder: Union[str, os.PathLike[str]]) -> None:
        """A Parquet file for each table, as `tandem trace export --format parquet` writes them."""
        os.makedirs(folder, exist_ok=True)
        about = {name: getattr(self._native, name) for name in ("program", "job", "size", "events", "duration_ns", "date_ns")}
        _parquet.write_tables(((name, self.table(name)) for name in self.table_names), folder, about)

    def write_starvz(self, folder: Union[str, os.PathLike[str]]) -> None:
        """The tables that the second phase of StarVZ reads, and a config.yaml for it (docs/tracing.md)."""
        _starvz.write_starvz(_starvz.starvz_tables({name: self.table(name) for name in self.table_names}), folder)

    summary = _summary.summary
    flat_profile = _profiles.flat_profile
    time_profile = _profiles.time_profile
    load_imbalance = _profiles.load_imbalance
    idle_time = _profiles.idle_time
    outliers = _profiles.outliers
    comm_matrix = _messages.comm_matrix
    comm_over_time = _messages.comm_over_time
    overlap = _messages.overlap
    critical_path = _paths.critical_path
    realised_path = _paths.realised_path
    plot_gantt = _plots.plot_gantt
    plot_comm_matrix = _plots.plot_comm_matrix
    plot_time_profile = _plots.plot_time_profile


Run.dag.__doc__ = _paths.dag.__doc__
