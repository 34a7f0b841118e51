"""check_panels.py PAGE: checks what still pictures of a report draw against the page's numbers, read in another way. For the tests."""

import base64
import gzip
import json
import pathlib
import random
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python")]

from read_report import read_column, section  # noqa: E402
from tandem._intervals import mean_in_bins  # noqa: E402
from tandem.plots._report.drawing import View  # noqa: E402
from tandem.plots._report.panels import PANELS, Workers  # noqa: E402
from tandem.plots._report.tables import read_page  # noqa: E402


def check_columns(page, run):
    data = gzip.decompress(base64.b64decode(section(page, "columns-0")))
    for entry in json.loads(section(page, "facts-0"))["columns"]:
        assert run[entry["name"]].tolist() == read_column(data, entry)[0], f"column {entry['name']} is read in two ways"
    assert len(run["no.such"]) == 0


def check_means():
    """Means of random intervals, counted one time after the other."""
    seed = random.randrange(1 << 32)
    numbers = random.Random(seed)
    for _ in range(30):
        starts = [numbers.randrange(60) for _ in range(numbers.randrange(20))]
        ends = [start + numbers.randrange(20) for start in starts]
        weights = [numbers.randrange(1, 4) for _ in starts]
        counts = [sum(w for s, e, w in zip(starts, ends, weights) if s <= time < e) for time in range(80)]
        edges = np.arange(0, 81, 5)
        expected = [sum(counts[i:i + 5]) / 5 for i in range(0, 80, 5)]
        assert np.allclose(mean_in_bins(edges, starts, ends, weights), expected), f"means of seed {seed}"
        # The largest kind of each column.
        best, total = Workers.greatest(edges, np.array(starts), np.array(ends), np.array(weights))
        assert np.allclose(total, mean_in_bins(edges, starts, ends))
        own = {one: [(s, e) for s, e, w in zip(starts, ends, weights) if w == one] for one in set(weights)}
        means = {one: mean_in_bins(edges, *zip(*some)) for one, some in own.items()}
        for i, kind in enumerate(best):
            parts = {one: mean[i] for one, mean in means.items()}
            assert kind == -1 and total[i] == 0 or parts[kind] >= max(parts.values()) - 1e-6, f"kinds of seed {seed}"


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    runs, look = read_page(sys.argv[1])
    run = runs[0]
    check_columns(page, run)
    check_means()
    # The areas below the curves reach beyond the makespan, since tasks are submitted and messages posted before it.
    before = min(run["task.submit"].min(), run["message.posted"].min(initial=0)) - 1
    after = max(run.makespan, (run["message.posted"] + run["message.arrived"]).max(initial=0)) + 1
    view = View(run.seconds(before), run.seconds(after), 1000, look)
    width = (after - before) / view.columns

    def area(name):
        return sum(values.sum() for _, _, values in PANELS[name](run, view).rows) * width

    executing = sum(run["task.duration"][run.ran])
    assert np.isclose(area("occupation"), executing), f"occupation: {area('occupation')} instead of {executing}"
    shares = PANELS["nodes"](run, view).rows(500)[1]
    workers = np.array([sum(worker["rank"] == rank for worker in run.workers) for rank in run.ranks])
    occupied = (shares.sum(axis=(1, 2)) * workers).sum() * (after - before) / 500
    assert np.isclose(occupied, executing), f"occupation of each rank: {occupied} instead of {executing}"
    boxes = PANELS["durations"](run, view).boxes
    kernel = run.summary["kernels"][0]
    longest = max(max(box["most"], *box["outliers"], 0) for _, box in boxes)
    assert abs(longest - kernel["max_s"]) <= run.seconds(1) and min(box["least"] for _, box in boxes) >= kernel["min_s"] - run.seconds(1), "durations"
    assert len(boxes) <= len(run.workers)
    seconds = run.summary["seconds"]["executing"]
    assert abs(run.seconds(executing) - seconds) <= len(run.ran) * run.seconds(1), f"{run.seconds(executing)} s instead of {seconds} s"
    assert np.isclose(area("ready"), run["task.waited"][run.ran].clip(0).sum()), "ready tasks"
    crossing = run["message.source"] != run["message.destination"]
    assert np.isclose(area("messages"), sum(run["message.arrived"][crossing])), "messages under way"
    assert np.isclose(area("rate") * run.seconds(1), sum(run["message.bytes"][crossing]), rtol=1e-3), "data on their way"
    in_flight = sum(run["pass.duration"])
    assert in_flight > 0 and np.isclose(area("flight"), in_flight), f"iterations in flight: {area('flight')} instead of {in_flight}"
    if PANELS["memory"].is_there(run):
        memory = run["memory.used"]
        assert max(values.max() for _, _, values in PANELS["memory"](run, view).rows) == memory.max(), "memory"
    balance, = PANELS["balance"](run, view).rows
    half, column = run.makespan / 200, view.columns // 3
    middle = before + (column + 0.5) * width
    start, end = run["task.start"][run.ran], run.end[run.ran]
    lane = run["task.lane"][run.ran] - 1
    part_of_lane = [worker["rank"] if len(run.ranks) > 1 else row for row, worker in enumerate(run.workers)]
    busy = dict.fromkeys(part_of_lane, 0.0)
    for i, inside in enumerate((np.minimum(end, middle + half) - np.maximum(start, middle - half)).clip(0)):
        busy[part_of_lane[lane[i]]] += inside / part_of_lane.count(part_of_lane[lane[i]])
    expected = 100 * np.mean(list(busy.values())) / max(*busy.values(), 1e-9)
    assert np.isclose(balance[2][column], expected), f"load balance: {balance[2][column]} instead of {expected}"
    if PANELS["tracer"].is_there(run):
        assert np.isclose(area("tracer"), sum(run["tracer.duration"])), "threads that write the trace"
    assert look.kernels[0] == "#0072b2" and set(run.facts["spent"]) <= set(look.texts), "the look of the page"
    print(", ".join(name for name, panel in PANELS.items() if panel.is_there(run)))


main()
