# python/tests/test_tables.py: tables and summary are those of the command; other libraries read them; faults are reported.
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import program

import tandem


@pytest.fixture(params=["small", "sample", "real"])
def run(request):
    return request.getfixturevalue(request.param)


def test_tables_are_those_of_the_parquet_export(run, tmp_path):
    out = tmp_path / "parquet"
    subprocess.run([program("TEST_TANDEM"), "trace", "export", run.folder, "--format", "parquet", "-o", out,
                    f"--tandem.python={sys.executable}"], check=True, stdout=subprocess.DEVNULL)
    assert {file.stem for file in out.iterdir()} == set(run.table_names)
    for name in run.table_names:
        exported, table = pq.read_table(out / f"{name}.parquet"), run.table(name)
        table.validate(full=True)
        plain = pa.table({field.name: table[field.name].cast(pa.string()) if pa.types.is_dictionary(field.type) else table[field.name]
                          for field in table.schema})
        assert plain.schema.equals(exported.schema.remove_metadata()), name
        assert plain.equals(exported), name


def test_summary_is_that_of_the_command(run):
    said = json.loads(subprocess.run([program("TEST_TANDEM"), "trace", "summary", run.folder, "--json"], check=True,
                                     capture_output=True).stdout)
    summary = run.summary()
    assert summary.makespan_ns == pytest.approx(said["makespan_s"] * 1e9)
    assert {name: ns / 1e9 for name, ns in summary.split_ns.items()} == pytest.approx(said["seconds"])
    assert summary.bounds.area_ns == pytest.approx(said["bounds"]["area_s"] * 1e9)
    assert summary.bounds.critical_path_ns == pytest.approx(said["bounds"]["critical_path_s"] * 1e9)
    assert summary.kernels["codelet"].to_pylist() == [kernel["codelet"] for kernel in said["kernels"]]
    assert summary.kernels["outliers"].to_pylist() == [kernel["outliers"] for kernel in said["kernels"]]


def test_functions_agree_with_each_other(run):
    """What must hold in any run."""
    summary, profile = run.summary(), run.flat_profile()
    assert sum(summary.split_ns.values()) == summary.makespan_ns * summary.workers
    assert sum(summary.realised_ns.values()) == summary.makespan_ns
    assert sum(run.realised_path()["duration_ns"].to_pylist()) == summary.makespan_ns
    assert sum(run.critical_path()["duration_ns"].to_pylist()) == summary.bounds.critical_path_ns
    assert run.outliers().num_rows == sum(profile["outliers"].to_pylist())
    over_time = run.time_profile(bins=7)
    assert sum(sum(over_time[name].to_pylist()) for name in over_time.column_names[2:]) == summary.split_ns["executing"]
    assert sum(profile["exclusive_ns"].to_pylist()) == summary.split_ns["executing"]
    whole = run.comms.filter(pc.and_(pc.is_valid(run.comms["source"]), pc.is_valid(run.comms["destination"])))
    assert run.comm_matrix().sum() == pc.sum(whole["bytes"]).as_py()
    for row in run.overlap().to_pylist():
        assert 0 <= row["overlap_ns"] <= min(row["communicating_ns"], row["computing_ns"])
    for picture in (run.plot_gantt, run.plot_comm_matrix, run.plot_time_profile):
        picture().canvas.draw()


def test_the_sample_has_what_its_program_recorded(sample):
    assert sample.ranks == 2 and sample.program == "app"
    assert sample.tasks.num_rows == 2 * 400 and sample.dependencies.num_rows == 2 * 399
    assert set(sample.counters["name"].to_pylist()) == {"residual"} and sample.counters["value"].to_pylist() == [-0.25, -0.25]
    assert sample.marks["value"].to_pylist() == [1.5, 1.5] and sample.spans["name"].to_pylist() == ['phase "one"'] * 2
    assert sample.data["name"].to_pylist() == ["A[0,0]"] * 2 and sample.waits.num_rows == 2
    (events,) = sample.events.values()
    assert events.num_rows == 6
    with pytest.raises(KeyError, match="there is no table nothing"):
        sample.table("nothing")


def test_pandas_and_polars_read_the_tables(sample):
    frame = sample.tasks.to_pandas()
    assert len(frame) == 800 and frame["codelet"].dtype == "category"
    assert frame.groupby("codelet", observed=True)["duration_ns"].sum().sum() == frame["duration_ns"].sum()
    polars = pytest.importorskip("polars")
    tasks, states = polars.from_arrow(sample.tasks), polars.from_arrow(sample.states)
    assert tasks["duration_ns"].sum() == frame["duration_ns"].sum()
    executed = states.filter(polars.col("state").cast(polars.String) == "executing")
    assert executed.join(tasks, on=["rank", "task"]).height == 800


def test_numbers_are_not_copied(sample):
    column = sample.tasks["start_ns"].chunk(0)
    array = np.frombuffer(column.buffers()[1], np.int64)
    assert not array.flags.owndata and array.tolist()[0] == column[0].as_py()
    assert sample.tasks is sample.tasks


def test_a_folder_that_is_no_trace(tmp_path):
    with pytest.raises(tandem.TraceError, match="there is no such folder"):
        tandem.load(tmp_path / "nowhere")
    with pytest.raises(tandem.TraceError, match="is no trace"):
        tandem.load(tmp_path)
    with pytest.raises(ValueError, match="auto, none, linear or piecewise"):
        tandem.load(tmp_path, clock="wrong")


def test_a_truncated_trace_is_read_as_far_as_it_goes(sample_folder, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(sample_folder, folder)
    stream = max((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    os.truncate(stream, stream.stat().st_size - 100)
    run = tandem.load(folder)
    assert 400 < run.tasks.num_rows < 800
    assert run.summary().makespan_ns > 0


def test_a_damaged_trace_is_an_error_that_names_the_file(sample_folder, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(sample_folder, folder)
    stream = max((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    with stream.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 64)
    with pytest.raises(tandem.TraceError, match=stream.name):
        tandem.load(folder)


def test_a_run_without_tasks(sample_folder, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(sample_folder, folder)
    for stream in [file for file in folder.rglob("*") if file.is_file() and file.stat().st_size > 5000 and "metadata" not in file.name]:
        stream.unlink()
    run = tandem.load(folder)
    assert run.tasks.num_rows == 0 and run.summary().makespan_ns == 0 and "no loss" in str(run.summary())
    for function in (run.flat_profile, run.time_profile, run.load_imbalance, run.idle_time, run.outliers, run.comm_over_time, run.overlap,
                     run.critical_path, run.realised_path, run.plot_gantt, run.plot_time_profile, run.plot_comm_matrix):
        function()
    tandem.compare(run, run)
