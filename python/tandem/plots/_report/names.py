# python/tandem/plots/_report/names.py: the panels of a report, by name; apart, so that wrong names are found before matplotlib is loaded.
"""Title and hint of each panel, in the order in which they are drawn."""

NAMES = {
    "workers": ("Workers", "each task in the colour of its kernel"),
    "occupation": ("Occupation", "workers that execute each kernel"),
    "use": ("Use of each rank", "share of the workers that execute tasks"),
    "nodes": ("Occupation of each rank", "workers that execute each kernel, by time step; the height of a row is all of its workers"),
    "balance": ("Load balance", "busy time of the mean rank (of one rank: worker) as a share of the busiest one's, over a hundredth of the run"),
    "submitted": ("Submitted tasks", "that have not ended"),
    "ready": ("Ready tasks", "that have not begun: where there are none, workers have nothing to do"),
    "iterations": ("Iterations against time", "tasks by the iteration of the program that they belong to"),
    "flight": ("Iterations in flight", "of which a task has begun and not all have ended"),
    "order": ("Order of submission against time", "a task higher up was submitted later; a wide band: many steps of the program overlap"),
    "rate": ("Data on their way", "from the posting of each message to its arrival"),
    "messages": ("Messages under way", "posted, not arrived"),
    "broadcasts": ("Broadcasts", "from each rank that sends one, or forwards it, to the arrival"),
    "memory": ("Memory", "bytes of data that Tandem has allocated"),
    "tracer": ("Tracing", "threads that write the trace, or wait until it has been written"),
    "times": ("Where the time of the workers went", ""),
    "kernels": ("Durations of kernels", "box: quartiles, line: least to greatest"),
    "durations": ("Durations by worker", "box: quartiles, line: least to greatest that is no outlier, points: outliers"),
    "matrix": ("Messages", "bytes from rank to rank"),
}

SHOWN = ("outliers", "messages", "path")
"""What can be drawn over the workers."""


def panels() -> dict[str, str]:
    """The panels that `report` draws, in their order: of each name what it shows."""
    return {name: title + (": " + hint if hint else "") for name, (title, hint) in NAMES.items()}
