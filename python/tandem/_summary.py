# python/tandem/_summary.py: where the time of a run went, its bounds, and the verdict, as the C++ analysis finds them.
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from ._profiles import flat_profile

if TYPE_CHECKING:
    from ._run import Run


@dataclass(frozen=True)
class Finding:
    """Something that cost time, and what to try."""

    key: str
    """A word for programs, such as ``slow_submission``."""
    lost_ns: int
    """By how much the makespan would be shorter, if all workers had executed tasks instead."""
    what: str
    remedy: str


@dataclass(frozen=True)
class Bounds:
    """No schedule with the measured durations is shorter than any of these, except the last."""

    area_ns: int
    """The time of all kernels, divided by the number of workers; with several kinds of worker, the optimum of a linear program."""
    critical_path_ns: int
    """The longest chain of tasks that need each other."""
    critical_path_tasks: int
    critical_path_with_messages_ns: int
    """The longest chain when messages take as long as they did in this run."""
    area_exact: bool = True
    """False: `area_ns` is a weaker bound, since this package was built without lp_solve."""


@dataclass(frozen=True)
class Summary:
    """What `tandem trace summary` prints. `print(run.summary())` gives a short text."""

    program: str
    ranks: int
    workers: int
    tasks: int
    lost_events: int
    """Events that were not recorded for lack of memory: if it is not 0, all below is a part of the run."""
    makespan_ns: int
    """From the first submission of all ranks to the end of the last task."""
    split_ns: dict[str, int]
    """The time of all workers together by what it was spent on; adds up to makespan times workers."""
    bounds: Bounds
    worker_kinds: dict[str, int]
    """How many workers there are of each kind, such as ``cpu``."""
    area_kernels: pa.Table = field(repr=False)
    """codelet, kind (of worker), tasks, total_ns; placed: how many of the codelet's tasks a distribution with the makespan `area_ns` has there."""
    realised_ns: dict[str, int]
    """What the last task waited for, what that waited for, and so on, back to the start: the makespan by kind of step."""
    kernels: pa.Table = field(repr=False)
    """`Run.flat_profile`."""
    verdict: tuple[Finding, ...]
    """The greatest loss first; empty: no loss takes 2 % of the makespan."""

    def __str__(self) -> str:
        def share(part_ns: float, whole_ns: float) -> str:
            return f"{part_ns / 1e9:12.6f} s {100 * part_ns / whole_ns if whole_ns else 0:6.1f} %"

        lines = [f"{self.program}: {self.ranks} rank(s), {self.workers} worker(s), {self.tasks} tasks, "
                 f"makespan {self.makespan_ns / 1e9:.6f} s"]
        if self.lost_events:
            lines.append(f"note: {self.lost_events} events were lost: all below is a part of the run")
        lines.append("time of all workers")
        lines += [f"  {name:<30}{share(ns, self.makespan_ns * self.workers)}" for name, ns in self.split_ns.items() if ns]
        lines.append("bounds of the makespan")
        lines.append(f"  {'area':<30}{share(self.bounds.area_ns, self.makespan_ns)}")
        lines.append(f"  {'critical path':<30}{share(self.bounds.critical_path_ns, self.makespan_ns)}")
        lines.append(f"  {'critical path with messages':<30}{share(self.bounds.critical_path_with_messages_ns, self.makespan_ns)}")
        lines.append("what limits this run" if self.verdict else "no loss takes 2 % of the makespan")
        for number, finding in enumerate(self.verdict, 1):
            lines.append(f"  {number}. {finding.lost_ns / 1e9:.6f} s: {finding.what}")
            lines.append(f"     Try: {finding.remedy}.")
        return "\n".join(lines)


_AREA = (("codelet", pa.string()), ("kind", pa.string()), ("tasks", pa.int64()), ("total_ns", pa.int64()), ("placed", pa.float64()))


def summary(run: Run) -> Summary:
    """Where the time went, bounds of the makespan, and what limits the run. All by the C++ analysis, once per run."""
    said = run._native.summary()
    bounds = Bounds(said["area_ns"], said["critical_path_ns"], said["critical_path_tasks"],
                    said["critical_path_with_messages_ns"], said["area_exact"])
    columns = zip(*said["area_kernels"]) if said["area_kernels"] else [()] * len(_AREA)
    area_kernels = pa.table([pa.array(column, kind) for column, (_, kind) in zip(columns, _AREA)], [name for name, _ in _AREA])
    return Summary(
        program=run.program, ranks=run.ranks, workers=said["workers"], tasks=run.tasks.num_rows,
        lost_events=said["lost_events"], makespan_ns=said["makespan_ns"], split_ns=said["split_ns"],
        bounds=bounds, worker_kinds=said["worker_kinds"], area_kernels=area_kernels, realised_ns=said["realised_ns"], kernels=flat_profile(run),
        verdict=tuple(Finding(*finding) for finding in said["findings"]))
