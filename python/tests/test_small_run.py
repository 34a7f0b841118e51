# python/tests/test_small_run.py: each function on a run of eight tasks, against results computed by hand.
# The run is drawn at the top of tandem/analysis/history/write_small_run.cpp. Its makespan is [100, 1880].
import numpy as np
import pyarrow.compute as pc
import pytest

import tandem


def rows(table, *columns):
    return [tuple(row[column] for column in columns) for row in table.to_pylist()]


def test_makespan_and_bounds(small):
    assert small.makespan == (100, 1880)
    summary = small.summary()
    assert (summary.ranks, summary.workers, summary.tasks, summary.makespan_ns) == (2, 3, 8, 1780)
    assert summary.bounds == tandem.Bounds(area_ns=1600 // 3, critical_path_ns=1400, critical_path_tasks=4,
                                           critical_path_with_messages_ns=1580)
    assert sum(summary.split_ns.values()) == 3 * 1780
    assert summary.split_ns["executing"] == 1600 and summary.split_ns["awaiting_message"] == 480
    assert sum(summary.realised_ns.values()) == 1780
    assert summary.lost_events == 0
    assert summary.worker_kinds == {"cpu": 3}
    assert rows(summary.area_kernels, "codelet", "kind", "tasks", "total_ns", "placed") == [
        ("potrf", "cpu", 1, 200, 1.0), ("gemm", "cpu", 5, 1400, 5.0)]


def test_verdict_and_its_text(small):
    summary = small.summary()
    assert summary.verdict and summary.verdict[0].lost_ns == max(finding.lost_ns for finding in summary.verdict)
    assert "communication" in {finding.key for finding in summary.verdict}
    assert "makespan 0.000002 s" in str(summary) and summary.verdict[0].remedy in str(summary)


def test_flat_profile(small):
    profile = small.flat_profile()
    assert rows(profile, "codelet", "tasks", "total_ns", "exclusive_ns", "median_ns", "max_ns", "outliers", "outlier_excess_ns") == [
        ("gemm", 5, 1400, 1400, 100, 1000, 1, 900), ("potrf", 1, 200, 200, 200, 200, 0, 0)]
    assert profile["share"].to_pylist() == [1400 / 1600, 200 / 1600]
    assert small.summary().kernels.equals(profile)


def test_time_profile(small):
    assert rows(small.time_profile(bins=2), "start_ns", "end_ns", "potrf", "gemm") == [(100, 990, 200, 510), (990, 1880, 0, 890)]
    assert rows(small.time_profile(2, by="rank"), "rank 0", "rank 1") == [(400, 310), (0, 890)]
    by_state = small.time_profile(1, by="state").to_pylist()[0]
    assert by_state["executing"] == 1600
    with pytest.raises(ValueError, match="codelet, state or rank"):
        small.time_profile(by="name")
    with pytest.raises(ValueError, match="bins"):
        small.time_profile(bins=0)


def test_load_imbalance(small):
    by_worker = small.load_imbalance()
    assert rows(by_worker, "codelet", "max_ns", "rank", "worker") == [("gemm", 1200, 1, 0), ("potrf", 200, 0, 0)]
    assert by_worker["imbalance"].to_pylist() == pytest.approx([1200 / (1400 / 3), 3])
    assert rows(small.load_imbalance(by="rank", per_codelet=False), "codelet", "mean_ns", "max_ns", "imbalance", "rank", "worker") == [
        (None, 800, 1200, 1.5, 1, None)]


def test_idle_time(small):
    columns = ("rank", "worker", "idle_ns", "ready_elsewhere_ns", "awaiting_memory_ns", "awaiting_message_ns", "no_ready_task_ns",
               "awaiting_submission_ns", "outside_ns")
    assert rows(small.idle_time(), *columns) == [
        (0, 0, 1480, 120, 0, 0, 20, 0, 1340), (0, 1, 1680, 140, 0, 0, 200, 0, 1340), (1, 0, 580, 80, 0, 480, 0, 0, 20)]
    assert small.idle_time()["share"].to_pylist() == [1480 / 1780, 1680 / 1780, 580 / 1780]


def test_what_tasks_waited_for(small):
    """Task 1 of rank 0 waits for a worker alone; 2 and 3 for task 1; on rank 1 task 2 waits for a message,
    that brought what task 1 of rank 0 made."""
    ran = small.tasks.filter(pc.is_valid(small.tasks["end_ns"])).sort_by([("rank", "ascending"), ("task", "ascending")])
    assert rows(ran, "rank", "task", "waited_for", "last_predecessor", "last_message", "wait_graph_ns", "wait_worker_ns") == [
        (0, 1, "worker", None, None, 0, 100), (0, 2, "predecessors", 1, None, 280, 20), (0, 3, "predecessors", 1, None, 260, 40),
        (1, 2, "message", None, 0, 480, 40), (1, 3, "predecessors", 2, None, 600, 20), (1, 4, "predecessors", 3, None, 700, 20)]
    for column in ("wait_turn_ns", "wait_memory_ns", "wait_copies_ns"):
        assert ran[column].to_pylist() == [0] * 6
    assert "cycles" not in small.tasks.column_names


def test_outliers(small):
    assert rows(small.outliers(), "rank", "task", "codelet", "worker", "start_ns", "duration_ns", "median_ns", "limit_ns", "excess_ns") == [
        (1, 4, "gemm", 0, 880, 1000, 100, 100.0, 900)]


def test_messages(small):
    assert small.comm_matrix().tolist() == [[0, 64], [0, 0]]
    assert small.comm_matrix(output="count").tolist() == [[0, 1], [0, 0]]
    over_time = small.comm_over_time(bins=2)
    assert rows(over_time, "posted", "posted_bytes", "arrived", "arrived_bytes") == [(1, 64, 1, 64), (0, 0, 0, 0)]
    assert over_time["in_flight"].to_pylist() == [180 / 890, 0]
    with pytest.raises(ValueError, match="bytes or count"):
        small.comm_matrix("size")


def test_overlap(small):
    assert rows(small.overlap(), "rank", "communicating_ns", "computing_ns", "overlap_ns", "alone_ns", "share") == [
        (0, 180, 320, 120, 60, 120 / 180), (1, 180, 1200, 0, 180, 0)]


def test_paths(small):
    path = small.critical_path()
    assert rows(path, "rank", "task", "codelet", "duration_ns", "gap_ns") == [
        (0, 1, "potrf", 200, None), (1, 2, "gemm", 100, 240), (1, 3, "gemm", 100, 20), (1, 4, "gemm", 1000, 20)]
    assert small.critical_path(messages=True).equals(path)
    steps = rows(small.realised_path(), "kind", "rank", "task", "from", "start_ns", "end_ns")
    assert steps == [("overhead", 0, 1, None, 100, 200), ("execution", 0, 1, None, 200, 400), ("message", 1, 2, 0, 400, 600),
                     ("overhead", 1, 2, None, 600, 640), ("execution", 1, 2, None, 640, 740), ("overhead", 1, 3, None, 740, 760),
                     ("execution", 1, 3, None, 760, 860), ("overhead", 1, 4, None, 860, 880), ("execution", 1, 4, None, 880, 1880)]


def test_dag(small):
    edges = set(rows(small.dag, "predecessor_rank", "predecessor", "rank", "task", "comm"))
    assert edges == {(0, 1, 0, 2, None), (0, 1, 0, 3, None), (0, 1, 0, 4, None), (0, 4, 1, 1, 0), (1, 1, 1, 2, None), (1, 2, 1, 3, None),
                     (1, 3, 1, 4, None)}


def test_unknown_values_are_null(small):
    never_ran = [row for row in small.tasks.to_pylist() if row["start_ns"] is None]
    assert {(row["rank"], row["task"], row["worker"], row["duration_ns"]) for row in never_ran} == {(0, 4, None, None), (1, 1, None, None)}
    assert all((row["task"] is None) == (row["state"] != "executing") for row in small.states.to_pylist())


def test_compare(small, sample):
    same = tandem.compare(small, small)
    assert same.to_pylist()[0] == {"what": "makespan", "name": "makespan", "a_ns": 1780, "b_ns": 1780, "difference_ns": 0, "ratio": 1}
    assert not any(same["difference_ns"].to_pylist())
    table = tandem.compare(small, sample).to_pylist()
    makespan = table[0]["difference_ns"]
    assert sum(row["difference_ns"] for row in table if row["what"] == "worker") == pytest.approx(makespan)
    gemm = next(row for row in table if row["name"] == "gemm")
    assert (gemm["a_ns"], gemm["b_ns"], gemm["ratio"]) == (100, None, None)


def test_pictures_show_the_tasks(small):
    matplotlib = pytest.importorskip("matplotlib")
    gantt = small.plot_gantt().axes[0]
    assert sum(len(bars.get_paths()) for bars in gantt.collections) == 6
    assert [label.get_text() for label in gantt.get_yticklabels()] == ["rank 0, worker 0", "rank 0, worker 1", "rank 1, worker 0"]
    assert np.asarray(small.plot_comm_matrix("count").axes[0].images[0].get_array()).tolist() == [[0, 1], [0, 0]]
    profile = small.plot_time_profile(bins=2)
    assert isinstance(profile, matplotlib.figure.Figure)
    # Cut to the long task at the end.
    assert sum(len(bars.get_paths()) for bars in small.plot_gantt(900, 1880).axes[0].collections) == 1


def test_a_picture_of_many_tasks_is_an_image(small, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("tandem.plots._gantt.MOST_BARS", 0)
    axes = small.plot_gantt().axes[0]
    pixels = np.asarray(axes.images[0].get_array())
    idle = pixels[0, -1]  # worker 0 of rank 0 has nothing to do at the end; that of rank 1 has
    assert (pixels[1, -1] == idle).all() and not (pixels[2, -1] == idle).all()
    assert abs(np.mean((pixels[2] != idle).any(axis=1)) - 1200 / 1780) < 0.01
