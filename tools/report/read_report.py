"""read_report.py FILE: checks the tables of a report against its summary, and says what is in them. For the tests."""

import base64
import gzip
import json
import re
import sys


def section(page, name):
    """The text of a script element."""
    found = re.search(rf'id="{name}">([^<]*)<', page)
    if found is None:
        sys.exit(f"the page has no part '{name}'")
    return found.group(1)


def read_column(data, entry):
    """The values of a column, as columns.cpp has written them."""
    at, last, values = entry["at"], 0, []
    for _ in range(entry["count"]):
        shift = value = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        value = value >> 1 if value % 2 == 0 else -((value + 1) >> 1)
        if entry["delta"]:
            last = value = value + last
        values.append(value)
    return values, at


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    summary, facts = json.loads(section(page, "summary-0")), json.loads(section(page, "facts-0"))
    data = gzip.decompress(base64.b64decode(section(page, "columns-0"), validate=True))
    columns, end = {}, 0
    for entry in facts["columns"]:
        assert entry["at"] == end, f"{entry['name']} begins at {entry['at']} instead of {end}"
        columns[entry["name"]], end = read_column(data, entry)
    assert end == len(data), f"{len(data) - end} bytes are left"

    unit, tasks = facts["unit_ns"], len(columns["task.lane"])
    for table in ("task", "idle", "message", "memory", "path", "access", "broadcast", "edge", "pass", "copy"):
        counts = {len(values) for name, values in columns.items() if name.startswith(table + ".") and name != "task.from"}
        assert len(counts) <= 1, f"columns of {table} have {counts} rows"
    assert tasks == summary["tasks"], f"{tasks} tasks instead of {summary['tasks']}"
    assert sum(columns["task.into"]) == len(columns["task.from"])

    durations = dict.fromkeys((kernel["codelet"] for kernel in summary["kernels"]), 0)
    for lane, duration, codelet in zip(columns["task.lane"], columns["task.duration"], columns["task.codelet"]):
        if lane > 0:
            durations[facts["names"][codelet]] += duration * unit
    for kernel in summary["kernels"]:
        ours, theirs = durations[kernel["codelet"]] / 1e9, kernel["total_s"]
        assert abs(ours - theirs) <= kernel["tasks"] * unit * 1e-9 + 1e-12, f"{kernel['codelet']}: {ours} s instead of {theirs} s"

    assert sum(columns["task.outlier"]) == sum(kernel["outliers"] for kernel in summary["kernels"])

    ends = columns["path.end"]
    assert ends == sorted(ends) and (ends or [0])[-1] == facts["makespan"], f"the realised path ends at {ends[-1:]} instead of {facts['makespan']}"

    # A task's predecessors come before it, and its waits together are no longer than the whole.
    messages = columns.get("task.message", [0] * tasks)
    for task, back in enumerate(columns["task.last"]):
        if back != 0 and messages[task] == 0:
            other = task - back
            assert columns["task.rank"][other] == columns["task.rank"][task], "the last predecessor is of another rank"
            assert columns["task.start"][other] + columns["task.duration"][other] <= columns["task.start"][task] + 1
    for message, task in zip(columns.get("access.message", []), columns.get("access.task", [])):
        if message > 0:
            assert columns["message.destination"][message - 1] == columns["task.rank"][task], "a message brought data of another rank's task"
            came = columns["message.posted"][message - 1] + columns["message.arrived"][message - 1]
            assert came <= columns["task.start"][task] + 1, "data came after its task had begun"
    # Passes through iterations: those of one number together reach as far as its tasks.
    def reach(numbers, starts, ends):
        found = {}
        for number, start, end in zip(numbers, starts, ends):
            least, most = found.get(number, (start, end))
            found[number] = (min(least, start), max(most, end))
        return found

    iterations = columns.get("task.iteration", [-1] * tasks)
    ran = [task for task in range(tasks) if columns["task.lane"][task] > 0 and iterations[task] >= 0]
    of_tasks = reach([iterations[task] for task in ran], [columns["task.start"][task] for task in ran],
                     [columns["task.start"][task] + columns["task.duration"][task] for task in ran])
    starts = columns.get("pass.start", [])
    of_passes = reach(columns.get("pass.iteration", []), starts, [start + took for start, took in zip(starts, columns.get("pass.duration", []))])
    assert of_tasks == of_passes, f"iterations last {of_passes} instead of {of_tasks}"

    reached = set()
    for message, start, end, late in zip(*(columns.get("edge." + name, []) for name in ("message", "start", "end", "late"))):
        broadcast = columns["message.broadcast"][message] - 1
        assert columns["broadcast.root"][broadcast] == columns["message.source"][message]
        assert start <= end, "a rank had a broadcast before it was sent"
        reached.add((message, late))
    assert sum(late for _, late in reached) == summary["broadcasts"]["late"]
    arrived = sum(broadcast > 0 for broadcast in columns["message.broadcast"])
    assert len(reached) == arrived, f"{arrived} recipients have broadcasts, {len(reached)} have a place in a tree"

    executing = facts["spent"].index("executing")
    assert executing not in columns["idle.spent"]
    places = list(zip(columns["idle.worker"], columns["idle.start"]))
    assert places == sorted(places), "idle times are not in order"
    print(f"{tasks} tasks, {len(columns['message.source'])} messages, {len(columns.get('access.task', []))} accesses, "
          f"{len(reached)} arrivals of broadcasts, {len(columns['idle.spent'])} idle times, "
          f"{len(columns['memory.time'])} changes of memory, {len(columns['path.kind'])} steps")


if __name__ == "__main__":
    main()
