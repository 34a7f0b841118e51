# python/tandem/plots/__init__.py: pictures of what the command `tandem` and the examples write; they need matplotlib and nothing else.
"""Pictures as matplotlib figures.

Of the results of a benchmark, as a file of ``tandem bench NAME --json`` or the object in it: `bcast`, `flushes`, `readers`, `ring`. Of what
``tandem trace stats --json`` prints: `event_types`, `events_over_time`, `event_types_over_time`. Of a page that ``tandem trace report``
wrote: `report`, with the `panels` that it knows. Of what ``tandem contention plot`` prepares: `contention`, `applications`. Of
results of many runs with different settings: `main_effects`, `interactions`, `factor_boxes`. Of a timeline in CSV or JSON lines:
`gantt`. Of the CSV file of ``co2_forecast``: `forecast`.

    tandem.plots.report("run/report.html", panels=["workers", "ready"]).savefig("figure.pdf")

What cannot be drawn raises a ValueError that names the file. The command ``tandem`` draws its pictures by these functions, too.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._applications import applications
    from ._bcast import bcast
    from ._contention import contention
    from ._events import event_types, event_types_over_time, events_over_time
    from ._factors import factor_boxes, interactions, main_effects
    from ._flushes import flushes
    from ._forecast import forecast
    from ._gantt import gantt
    from ._readers import readers
    from ._report.figure import report
    from ._report.names import panels
    from ._ring import ring
else:
    from .._lazy import imports

    __getattr__ = imports(__name__, {
        "_applications": ["applications"], "_bcast": ["bcast"], "_contention": ["contention"],
        "_events": ["event_types", "events_over_time", "event_types_over_time"], "_flushes": ["flushes"],
        "_factors": ["factor_boxes", "interactions", "main_effects"], "_forecast": ["forecast"], "_gantt": ["gantt"],
        "_readers": ["readers"], "_report.figure": ["report"], "_report.names": ["panels"], "_ring": ["ring"]})

__all__ = ["applications", "bcast", "contention", "event_types", "event_types_over_time", "events_over_time", "factor_boxes",
           "flushes", "forecast", "gantt", "interactions", "main_effects", "panels", "readers", "report", "ring"]
