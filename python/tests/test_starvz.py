# python/tests/test_starvz.py: the tables for StarVZ's second phase: columns and types that its panels use, and what they hold.
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tandem

NUMBER, FACTOR, TEXT, INTEGER, FLAG = "number", "factor", "text", "integer", "flag"
PLACE = {"ResourceId": FACTOR, "Node": FACTOR, "Resource": FACTOR, "ResourceType": FACTOR}
TIMES = {"Start": NUMBER, "End": NUMBER, "Duration": NUMBER}
# What StarVZ 0.8.4's first phase makes of each column (R/phase1_parse_csv.R), of the tables that its second phase reads.
TABLES = {
    "application": {**PLACE, **TIMES, "Depth": NUMBER, "Value": FACTOR, "Size": INTEGER, "Params": FACTOR, "Footprint": FACTOR, "Tag": FACTOR,
                    "JobId": TEXT, "GFlop": NUMBER, "SubmitOrder": TEXT, "X": INTEGER, "Y": INTEGER, "Iteration": INTEGER,
                    "Subiteration": INTEGER, "NumaNodes": TEXT, "Height": NUMBER, "Position": NUMBER, "Outlier": FLAG},
    "starpu": {**PLACE, **TIMES, "Depth": NUMBER, "Value": FACTOR, "Size": INTEGER, "NumaNodes": TEXT, "Height": NUMBER, "Position": NUMBER},
    "colors": {"Value": FACTOR, "Color": TEXT, "Use": FLAG},
    "link": {"Container": FACTOR, "Type": FACTOR, **TIMES, "Size": INTEGER, "Origin": FACTOR, "Dest": FACTOR, "Key": FACTOR, "Tag": FACTOR,
             "MPIType": FACTOR, "Priority": INTEGER, "Handle": FACTOR},
    "dag": {"JobId": TEXT, "Dependent": FACTOR, "Start": NUMBER, "End": NUMBER, "Cost": NUMBER, "Value": FACTOR},
    "variable": {**PLACE, **TIMES, "Type": TEXT, "Value": NUMBER},
    "comm_state": {**PLACE, **TIMES, "Depth": NUMBER, "Value": FACTOR},
    "memory_state": {**PLACE, **TIMES, "Depth": NUMBER, "Value": FACTOR},
    "events": {"Container": FACTOR, "Type": FACTOR, "Start": NUMBER, "Value": FACTOR},
    "events_memory": {"Container": FACTOR, "Type": FACTOR, "Start": NUMBER, "Value": FACTOR, "Handle": FACTOR, "Info": FACTOR, "Size": INTEGER,
                      "Tid": FACTOR, "Src": FACTOR},
    "tasks": {"Control": TEXT, "JobId": TEXT, "SubmitOrder": INTEGER, "SubmitTime": NUMBER, "MPIRank": INTEGER, "Name": TEXT, "Model": TEXT,
              "Priority": INTEGER, "Tag": TEXT, "WorkerId": INTEGER, "MemoryNode": INTEGER, "StartTime": NUMBER, "EndTime": NUMBER,
              "Footprint": TEXT, "Parameters": TEXT, "DependsOn": TEXT, "Iteration": INTEGER},
    "task_handles": {"JobId": TEXT, "Handles": FACTOR, "Modes": FACTOR, "Sizes": INTEGER},
    "data_handles": {"Handle": FACTOR, "HomeNode": INTEGER, "MPIRank": INTEGER, "Name": FACTOR, "Size": NUMBER, "Description": FACTOR,
                     "Coordinates": TEXT, "MPIOwner": INTEGER, "MPITag": INTEGER},
    "y": {"Parent": TEXT, "Type": TEXT, "Height": NUMBER, "Position": NUMBER},
    "entities": {"Parent": TEXT, "Name": TEXT, "Type": TEXT, "Nature": TEXT},
    "zero": {"value": NUMBER}, "version": {"value": TEXT},
}


def kind(column):
    if pa.types.is_dictionary(column):
        return FACTOR
    return {pa.float64(): NUMBER, pa.string(): TEXT, pa.int32(): INTEGER, pa.bool_(): FLAG}[column]


def exported(run, folder):
    run.write_starvz(folder)
    return {file.stem: pq.read_table(file) for file in folder.glob("*.parquet")}


def rows(table, *columns):
    return [tuple(row[column] for column in columns) for row in table.to_pylist()]


@pytest.fixture(params=["small", "sample", "real"])
def run(request):
    return request.getfixturevalue(request.param)


def test_tables_have_the_columns_that_starvz_reads(run, tmp_path):
    tables = exported(run, tmp_path)
    assert {"application", "colors", "variable", "dag", "y", "zero", "version"} <= set(tables) <= set(TABLES)
    for name, table in tables.items():
        assert {field.name: kind(field.type) for field in table.schema} == TABLES[name], name
        assert table.num_rows > 0, name
        for field in table.schema:  # R refuses factors with equal levels
            if kind(field.type) == FACTOR:
                levels = table[field.name].combine_chunks().dictionary.to_pylist()
                assert len(set(levels)) == len(levels), (name, field.name)


def test_tables_hold_the_run(run, tmp_path):
    tables = exported(run, tmp_path)
    tasks = run.tasks
    ran = tasks.filter(pc.and_(pc.is_valid(tasks["end_ns"]), pc.is_valid(tasks["worker"])))
    application = tables["application"]
    assert application.num_rows == ran.num_rows and min(application["Start"].to_pylist()) == 0
    assert pc.sum(application["Duration"]).as_py() == pytest.approx(pc.sum(ran["duration_ns"]).as_py() / 1e6)
    assert pc.sum(application["Outlier"]).as_py() == run.outliers().num_rows
    assert len(set(application["JobId"].to_pylist())) == application.num_rows
    # A row of the picture for each worker, and none twice.
    positions = dict(zip(tables["y"]["Parent"].to_pylist(), tables["y"]["Position"].to_pylist()))
    assert len(set(positions.values())) == len(positions)
    assert {(row["ResourceId"], row["Position"]) for row in application.to_pylist()} <= set(positions.items())
    assert set(tables["colors"]["Value"].to_pylist()) == set(application["Value"].to_pylist())
    # Each variable: a line of steps without gaps, from nothing to nothing, whose area is that of what it counts.
    variable = tables["variable"]
    for name, begin, end in (("Submitted", "submit_ns", "end_ns"), ("Ready", "ready_ns", "start_ns")):
        own = variable.filter(pc.equal(variable["Type"], name))
        some = ran.filter(pc.is_valid(ran[begin]))
        expected = np.maximum(some[end].to_numpy() - some[begin].to_numpy(), 0).sum() / 1e6
        assert np.dot(own["Duration"].to_numpy(), own["Value"].to_numpy()) == pytest.approx(expected)
        for resource in set(own["ResourceId"].to_pylist()):
            one = own.filter(pc.equal(own["ResourceId"].cast(pa.string()), resource))
            assert one["Start"].to_pylist()[1:] == one["End"].to_pylist()[:-1] and one["Value"].to_pylist()[-1] == 0
            assert re.fullmatch("[0-9]+_scheduler", resource)
    # No task without a place in the graph; an edge for each dependency, two for each message between tasks that are known.
    dag = tables["dag"]
    assert set(application["JobId"].to_pylist()) <= set(dag["JobId"].to_pylist())
    crossing = sum(comm is not None for comm in run.dag["comm"].to_pylist())
    assert dag.num_rows - dag["Dependent"].null_count == run.dependencies.num_rows + 2 * crossing


def test_states_of_memories_are_those_of_their_copies(small):
    """Copies to one memory may overlap: they are one state then; between two there is nothing."""
    from tandem import _starvz

    tables = {name: small.table(name) for name in small.table_names}
    tables["transfers"] = pa.table({
        "rank": pa.array([0, 0, 0, 1], pa.uint32()), "data": pa.array([0, 1, 0, 0], pa.uint32()), "from": pa.array([0, 0, 0, 1], pa.uint16()),
        "to": pa.array([1, 1, 1, 0], pa.uint16()), "bytes": pa.array([8, 8, 8, 8], pa.uint64()),
        "start_ns": pa.array([300, 320, 500, 200], pa.int64()), "end_ns": pa.array([340, 400, 600, 1880], pa.int64())})
    state = _starvz.starvz_tables(tables)["memory_state"]
    ns = [(row["ResourceId"], row["Value"], round(row["Start"] * 1e6), round(row["End"] * 1e6)) for row in state.to_pylist()]
    assert ns == [("0_MEMMANAGER1", "Nothing", 0, 100), ("0_MEMMANAGER1", "DriverCopy", 100, 200), ("0_MEMMANAGER1", "Nothing", 200, 300),
                  ("0_MEMMANAGER1", "DriverCopy", 300, 400), ("0_MEMMANAGER1", "Nothing", 400, 1680), ("1_MEMMANAGER0", "DriverCopy", 0, 1680)]
    assert set(state["ResourceType"].to_pylist()) == {"MEMMANAGER"}


def test_a_codelet_keeps_the_colour_that_the_program_gave(small):
    from tandem import _starvz

    tables = {name: small.table(name) for name in small.table_names}
    assert tables["colours"].num_rows == 0
    tables["colours"] = pa.table({"codelet": pa.array(["gemm"]).dictionary_encode(), "rgb": pa.array([0x0000ff], pa.uint32())})
    colours = dict(rows(_starvz.starvz_tables(tables)["colors"], "Value", "Color"))
    assert colours["gemm"] == "#0000ff" and colours["potrf"] == _starvz.COLOURS[1]


def test_a_run_computed_by_hand(small, tmp_path):
    """It is drawn at the top of tandem/analysis/history/write_small_run.cpp."""
    tables = exported(small, tmp_path)
    assert tables["zero"]["value"].to_pylist() == [200 / 1e6]
    assert rows(tables["link"], "Origin", "Dest", "Key", "Size") == [("0_mpict", "1_mpict", "mpicom_0", 64)]
    edges = set(rows(tables["dag"], "Dependent", "JobId"))
    assert edges == {(None, "0_1"), ("0_1", "0_2"), ("0_1", "0_3"), ("0_1", "0_4"), ("0_4", "mpicom_0"), ("mpicom_0", "1_1"), ("1_1", "1_2"),
                     ("1_2", "1_3"), ("1_3", "1_4")}
    cost = dict(rows(tables["dag"], "JobId", "Cost"))
    assert cost["1_4"] == pytest.approx(-1000 / 1e6) and cost["mpicom_0"] == pytest.approx(-180 / 1e6) and cost["0_4"] == 0
    assert dict(rows(tables["y"], "Parent", "Position")) == {"1_mpict": 2, "1_CPU0": 3, "0_mpict": 6, "0_CPU1": 7, "0_CPU0": 8}
    rate = tables["variable"].filter(pc.equal(tables["variable"]["Type"], "B. Out (MB/s)"))
    assert rows(rate, "ResourceId", "Value")[0] == ("0_mpict", pytest.approx(64 / 180 * 1e3))
    config = (tmp_path / "config.yaml").read_text()
    assert re.search(r"mpiconcurrent:\n    active: TRUE", config) and re.search(r"usedmemory:\n    active: (TRUE|FALSE)", config)


def test_a_run_without_tasks_is_refused(sample_folder, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(sample_folder, folder)
    for stream in [file for file in folder.rglob("*") if file.is_file() and file.stat().st_size > 5000 and "metadata" not in file.name]:
        stream.unlink()
    with pytest.raises(ValueError, match="no task has run"):
        tandem.load(folder).write_starvz(tmp_path / "out")
