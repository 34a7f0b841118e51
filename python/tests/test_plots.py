# python/tests/test_plots.py: pictures of what the command writes; they need neither the native part nor Arrow.
import json
import subprocess
import sys
import warnings

import pytest
from conftest import program

import tandem

ORIGIN = {"machine": {"processor": "a processor"}, "commit": "abc"}
TIMELINE = "worker,codelet,start_ns,end_ns,task\n0,gemm,100,200,a\n1,trsm,150,400,b\n0,gemm,250,300,c\n"


@pytest.fixture(scope="module")
def plots():
    pytest.importorskip("matplotlib")
    return tandem.plots


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_gantt(plots, tmp_path):
    timeline = tmp_path / "timeline.csv"
    timeline.write_text(TIMELINE)
    figure = plots.gantt(timeline)
    chart, below = figure.axes
    assert [len(bars.get_paths()) for bars in chart.collections] == [1, 2]
    assert legend(below) == ["trsm  41.7 %  (1)", "gemm  25.0 %  (2)", "idle  33.3 %"]
    assert [label.get_text().split("\n")[0] for label in chart.get_yticklabels()] == ["worker 0", "worker 1"]
    lines = tmp_path / "timeline.jsonl"
    lines.write_text('{"worker": 0, "codelet": "gemm", "start_ns": 5, "end_ns": 2, "task": "a"}\n')
    with pytest.raises(ValueError, match="task 1 ends before it starts"):
        plots.gantt(lines)
    lines.write_text("")
    with pytest.raises(ValueError, match="holds no tasks"):
        plots.gantt(lines)


def test_benchmarks(plots, tmp_path):
    details = {"arrived_ms": [1, 2], "released_ms": [2, 3]}
    bcast = {"benchmark": "bcast", **ORIGIN, "results": [
        {"params": {"tree": "chain", "recipients": n, "bytes": 1000, "rate": "200mbit", "namespaces": True}, "value": n, "peers": {},
         "details": details} for n in (1, 2)]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plots.bcast(bcast)  # of no tree that is drawn by rank
    assert legend(figure.axes[0]) == ["chain"]
    assert [text.get_text().split("\n")[0] for text in figure.axes[1].texts] == ["none of flat, binary, binomial, automatic"]
    file = tmp_path / "bcast.json"
    file.write_text(json.dumps(bcast))
    assert len(plots.bcast([file, file]).axes) == 2
    sizes = {"benchmark": "bcast", **ORIGIN, "results": [
        {"params": {"tree": "ordered", "recipients": 7, "bytes": n, "rate": "200mbit", "namespaces": True}, "value": n,
         "peers": {"openmpi_ibcast": 2 * n}, "details": details} for n in (1000, 8000)]}
    by_size = plots.bcast(sizes).axes[0]
    assert by_size.get_xlabel() == "bytes" and legend(by_size) == ["ordered", "MPI_Ibcast"]
    with pytest.raises(ValueError, match="mix sizes"):
        plots.bcast([bcast, sizes])
    readers = {"benchmark": "readers", **ORIGIN, "results": [
        {"params": {"tree": tree, "bytes": 1000, "recipients": 2, "rate": "1gbit"}, "details": details} for tree in ("chain", "chain wait")]}
    assert legend(plots.readers(readers).axes[0]) == ["may read at arrival", "waits for forwarding"]
    ring = {"benchmark": "ring", **ORIGIN, "results": [
        {"name": name, "value": 2, "params": {"ranks": 2, "transport": "tcp"},
         "details": {"series": [[[0, 2.1, 0.1]], [[0, 2.2, -0.1]]], "error_p01": -0.1, "error_p99": 0.1}}
        for name in ("plain_barrier", "two_barriers")]}
    assert [len(axes.lines) for axes in plots.ring(ring).axes] == [5, 3, 3]
    flushes = {"benchmark": "flushes", **ORIGIN, "results": [
        {"name": "untraced", "value": 1.5, "params": {"n": 1, "nb": 1, "workers": 1, "memory": "16M", "buffer": "64k"},
         "details": {"seconds": [[1, 2], [3]], "median_s": [1.5, 3], "slowest_s": [2, 3]}}]}
    assert "1.500" in plots.flushes(flushes).axes[0].get_title(loc="left")
    for other in (plots.readers, plots.ring, plots.flushes):
        with pytest.raises(ValueError, match="holds the benchmark 'bcast'"):
            other(file)


def test_events(plots):
    stats = {"events": 3, "stream_bytes": 100, "duration_ns": 1000, "types": [
        {"type": "task.started", "category": "task", "events": 3, "share": 1, "bins": [1, 2]}]}
    assert [bar.get_width() for bar in plots.event_types(stats).axes[0].patches] == [3]
    assert [bar.get_height() for bar in plots.events_over_time(stats).axes[0].patches] == [1, 2]
    assert len(plots.event_types_over_time(stats).axes) == 1
    stats["types"][0]["bins"] = [0, 0]
    with pytest.raises(ValueError, match="holds no events"):
        plots.event_types(stats)


RESULTS = [{"sched": sched, "nb": nb, "same": 1, "makespan_s": value} for sched, nb, value in (
    ("lws", 64, 1.0), ("lws", 64, 3.0), ("lws", 128, 4.0), ("lws", 128, 4.0),
    ("prio", 64, 6.0), ("prio", 64, 6.0), ("prio", 128, 1.0), ("prio", 128, 3.0))]


def lines_of(axes):
    return [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() != "--"]


def test_effects_of_settings(plots):
    figure = plots.main_effects(RESULTS)
    assert [axes.get_xlabel() for axes in figure.axes] == ["sched", "nb"]
    assert [lines_of(axes) for axes in figure.axes] == [[[3.0, 4.0]], [[4.0, 3.0]]]
    (axes,) = plots.interactions(RESULTS).axes
    assert lines_of(axes) == [[2.0, 4.0], [6.0, 2.0]] and legend(axes) == ["lws", "prio"]
    boxes = plots.factor_boxes(RESULTS).axes[0]
    assert [label.get_text() for label in boxes.get_xticklabels()] == [
        "sched=lws\nnb=64", "sched=prio\nnb=128", "sched=lws\nnb=128", "sched=prio\nnb=64"]
    assert [label.get_text() for label in plots.factor_boxes(RESULTS, factors=["nb"]).axes[0].get_xticklabels()] == ["nb=128", "nb=64"]
    for draw, results, why in ((plots.main_effects, [], "no results"), (plots.main_effects, [{"makespan_s": 1}], "1 factors"),
                               (plots.interactions, [{"a": 1, "makespan_s": 1}, {"a": 2, "makespan_s": 2}], "2 factors"),
                               (plots.main_effects, [{"a": 1, "makespan_s": 1}, {"a": 2}], "result 2 lacks makespan_s")):
        with pytest.raises(ValueError, match=why):
            draw(results)


def test_report(plots, small, tmp_path):
    page = tmp_path / "report.html"
    subprocess.run([program("TEST_TANDEM"), "trace", "report", small.folder, "-o", page], check=True, stdout=subprocess.DEVNULL)
    figure = plots.report(page, panels=["workers", "matrix"], width=4)
    assert figure.panels == ["workers", "matrix"] and set(figure.panels) < set(plots.panels())
    assert list(figure.get_size_inches())[0] == 4
    figure.savefig(tmp_path / "small.png")
    assert (tmp_path / "small.png").stat().st_size > 1000
    with pytest.raises(ValueError, match="there is no 'worker'"):
        plots.report(page, panels=["worker"])
    with pytest.raises(ValueError, match="is no report of this version"):
        page.write_text("<html></html>")
        plots.report(page)


def test_tags_of_64_bits_are_whole_in_the_page(small, tmp_path):
    pytest.importorskip("matplotlib")
    from tandem.plots._report.tables import read_page

    page = tmp_path / "report.html"
    subprocess.run([program("TEST_TANDEM"), "trace", "report", small.folder, "-o", page], check=True, stdout=subprocess.DEVNULL)
    run = read_page(page)[0][0]
    tags = [int(low) + (int(high) << 32) for low, high in zip(run["task.tag"], run["task.tag_high"])]
    assert sorted(tags) == [0] * 7 + [2**64 - 59] and sorted(small.tasks["tag"].to_pylist()) == sorted(tags)


def test_a_picture_says_what_it_leaves_out(plots, tmp_path, monkeypatch):
    page, command = tmp_path / "report.html", program("TEST_TANDEM")
    subprocess.run([command, "run", "-n", "4", "--report", page, "--", command, "linalg", "potrf", "-n", "512", "--nb", "64", "--workers", "1",
                    "--repetitions", "1"], check=True, stdout=subprocess.DEVNULL, timeout=120)

    def said():
        figure = plots.report(page, panels=["workers", "broadcasts"], show=["messages"])
        return [[text.get_text() for text in axes.texts if "not drawn" in text.get_text()] for axes in figure.axes]

    monkeypatch.setattr("tandem.plots._report.panels.MOST_LINES", 1_000_000)
    assert said() == [[], []]
    monkeypatch.setattr("tandem.plots._report.panels.MOST_LINES", 2)
    (messages,), (edges,) = said()
    assert int(messages.split()[0].replace(",", "")) > 0 and messages.endswith(" smaller messages are not drawn")
    assert int(edges.split()[0].replace(",", "")) > 0 and edges.endswith(" shorter ones are not drawn")


def test_pictures_need_no_native_part_and_no_arrow(tmp_path):
    """What the command runs on a machine without `pip install`."""
    (tmp_path / "timeline.csv").write_text(TIMELINE)
    program = """
import sys
import warnings
for name in ("pyarrow", "tandem._native"):
    sys.modules[name] = None  # importing it fails
from tandem.__main__ import main
main(["gantt", "timeline.csv", "--output", "gantt.png"])
import tandem
try:
    tandem.load("run")
except ImportError:
    print("no native part")
"""
    pytest.importorskip("matplotlib")
    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said == "no native part\n" and (tmp_path / "gantt.png").stat().st_size > 1000


def contention_panel(comp, comm, cores, predicted=True):
    rows = [{"cores": n, "computation_alone": 5000.0 * n, "communication_alone": 11000.0 if n == 1 else None, "computation": 4500.0 * n,
             "communication": 11000.0 - 500 * n} for n in range(1, cores + 1)]
    lines = {"soft": rows, "thesis": rows} if predicted else {}
    return {"computation_node": comp, "communication_node": comm, "sample": comp == comm, "points": rows, **lines}


def test_contention(plots, tmp_path):
    picture = {"picture": "contention", "name": "henri", "kernel": "memset",
               "panels": [contention_panel(comp, comm, 4) for comm in (0, 1) for comp in (0, 1)]}
    figure = plots.contention(picture)
    assert len(figure.axes) == 8  # a second scale in each panel
    lines = {line.get_label(): list(line.get_ydata()) for axes in figure.axes for line in axes.get_lines()}
    assert lines["computation, both at once"] == [4.5, 9, 13.5, 18]
    assert lines["communication alone"] == [11]  # where it was measured
    assert "communication, soft model" in [text.get_text() for text in figure.legends[0].get_texts()]
    stacked = plots.contention(picture, stacked=True)
    assert len(stacked.axes) == 4 and len(stacked.axes[0].collections) == 2
    points = {**picture, "panels": [contention_panel(0, 0, 2, predicted=False)]}
    file = tmp_path / "picture.json"
    file.write_text(json.dumps(points))
    assert "communication, soft model" not in [text.get_text() for text in plots.contention(file).legends[0].get_texts()]
    assert {axes.get_ylabel() for axes in plots.contention(file).axes} == {"communication (GB/s)", "computation (GB/s)"}
    one_core = plots.contention({**picture, "panels": [contention_panel(0, 0, 1, predicted=False)]}, stacked=True)
    assert [bar.get_height() for bar in one_core.axes[0].patches] == [4.5, 10.5]
    with pytest.raises(ValueError, match="no picture"):
        plots.contention({"picture": "contention", "panels": []})


def test_applications(plots, tmp_path):
    def run(application, workers, **values):
        return {"application": application, "workers": workers, "gflop_s": 10.0 * workers, "send_mb_s": None,
                "delivered_mb_s": 1000.0, "stalled": None, **values}

    runs = [run("cg", 1), run("cg", 2, delivered_mb_s=100.0), run("cg", 2, delivered_mb_s=300.0),
            run("gemm", 1, send_mb_s=4000.0), run("gemm", 2, send_mb_s=3000.0)]
    figure = plots.applications({"picture": "applications", "name": "henri", "runs": runs})
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes] == ["bandwidth sent", "bandwidth delivered", "speed"]  # nobody knows of stalls
    sent = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].get_lines()}
    assert sent["gemm: 1 is 4 GB/s"] == [1, 0.75] and not any(label.startswith("cg") for label in sent)
    delivered = {line.get_label(): list(line.get_ydata()) for line in figure.axes[1].get_lines()}
    assert delivered["cg: 1 is 1 GB/s"] == [1, 0.2]  # relative, of medians
    file = tmp_path / "picture.json"
    file.write_text(json.dumps({"picture": "applications", "name": "henri", "runs": [run("cg", 4, stalled=0.5)]}))
    assert [list(axes.get_lines()[0].get_ydata()) for axes in plots.applications(file).axes][1] == [50]
    with pytest.raises(ValueError, match="no picture"):
        plots.applications({"picture": "applications", "runs": []})
