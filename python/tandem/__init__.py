# python/tandem/__init__.py: the package: load a trace, look at its tables, ask where the time went.
"""Traces of the Tandem task runtime as data frames.

    import tandem

    run = tandem.load("trace/")
    print(run.summary())            # where the time went, what limits the run, what to try
    run.tasks.to_pandas()           # a row for each task; polars.from_arrow(run.tasks) works as well
    run.plot_gantt().savefig("gantt.png")

Tables are pyarrow Tables. Times are in nanoseconds since the first event of the run, and columns of times end in ``_ns``. What is not
known is null. `tandem.contention` has models of memory contention. `tandem.plots` draws what the command `tandem` writes: results of
benchmarks, panels of reports.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import contention, plots
    from ._compare import compare
    from ._native import TraceError
    from ._run import Run, load
    from ._summary import Bounds, Finding, Summary

    __version__: str
else:
    from ._lazy import imports

    __getattr__ = imports(__name__, {
        "_compare": ["compare"], "_native": ["TraceError"], "_run": ["Run", "load"], "_summary": ["Bounds", "Finding", "Summary"],
        "_version": ["__version__"], "contention": [], "plots": []})

__all__ = ["Bounds", "Finding", "Run", "Summary", "TraceError", "compare", "contention", "load", "plots"]
