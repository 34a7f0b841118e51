# python/tests/test_contention.py: models of memory contention say what the command says.
import json
import subprocess

import pytest
from conftest import program

from tandem import contention


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Measured by henri, without noise: as its model says, local and remote."""
    folder = tmp_path_factory.mktemp("campaign")
    henri = contention.load("henri")
    lines = ["kernel,cursor,message_bytes,computation_node,communication_node,cores,step,repetition,computation_mb_s,iterations_per_s,"
             "communication_mb_s,latency_us,cpu_share"]
    table = henri.predict(model="thesis").to_pylist()
    for row in table:
        comp, comm, cores = row["computation_node"], row["communication_node"], row["cores"]
        lines.append(f"memset,1,0,{comp},,{cores},computation,0,{row['computation_alone_mb_s']},1,,,1")
        lines.append(f"none,1,67108864,,{comm},0,communication,0,,,{row['communication_alone_mb_s']},,")
        lines.append(f"memset,1,67108864,{comp},{comm},{cores},both,0,{row['computation_mb_s']},1,{row['communication_mb_s']},,1")
    (folder / "samples.csv").write_text("\n".join(dict.fromkeys(lines)) + "\n")
    return folder / "samples.csv"


def command(*words):
    return json.loads(subprocess.run([program("TEST_TANDEM"), "contention", *map(str, words), "--json"], check=True, capture_output=True).stdout)


def test_the_machines_of_the_thesis_are_known():
    assert len(contention.platforms()) == 9 and "henri" in contention.platforms()


def test_predictions_are_those_of_the_command():
    for model in ("soft", "thesis"):
        ours = contention.load("billy").predict(model=model).to_pylist()
        theirs = command("predict", "billy", "--model", model)["predictions"]
        assert len(ours) == len(theirs) > 10
        for mine, other in zip(ours, theirs):
            assert {key: value for key, value in other.items() if key != "intervals"} == pytest.approx(mine)


def test_a_campaign_is_fitted(campaign):
    models = contention.load(campaign)
    henri = contention.load("henri")
    assert models.cores == henri.cores
    assert models.parameters["thesis"]["local"]["b_comp_seq_mb_s"] == pytest.approx(henri.parameters["thesis"]["local"]["b_comp_seq_mb_s"], rel=0.02)
    assert models.errors["thesis"]["average"] < 2
    low, high = models.intervals["soft"]["local"]["alpha"]
    assert low <= models.parameters["soft"]["local"]["alpha"] <= high
    table = models.predict([1, 4], [(0, 0)])
    assert table.num_rows == 2
    assert table["communication_mb_s_low"][0].as_py() <= table["communication_mb_s"][0].as_py() <= table["communication_mb_s_high"][0].as_py()
    fitted = command("fit", campaign)
    assert models.parameters["soft"]["local"] == pytest.approx({key: fitted["soft"]["local"][key] for key in models.parameters["soft"]["local"]})


def test_models_are_saved_and_read_again(campaign, tmp_path):
    models = contention.load(campaign)
    models.save(tmp_path / "machine.json")
    again = contention.load(tmp_path / "machine.json")
    columns = ["cores", "computation_mb_s", "communication_mb_s"]
    for column in columns:
        assert again.predict()[column].to_pylist() == pytest.approx(models.predict()[column].to_pylist())
    assert again.intervals["soft"] == {}
    assert command("predict", tmp_path / "machine.json")["model"] == "soft"


def test_what_was_measured_is_a_table(campaign):
    table = contention.samples(campaign)
    assert table.num_rows > 50 and "communication_mb_s" in table.column_names
    assert contention.samples(campaign.parent).num_rows == table.num_rows


def test_what_cannot_be_is_said(campaign, tmp_path):
    with pytest.raises(contention.ContentionError, match="neither a file, nor a folder, nor one of the machines"):
        contention.load("no such machine")
    with pytest.raises(contention.ContentionError, match="triad"):
        contention.load(campaign, kernel="triad")
    henri = contention.load("henri")
    with pytest.raises(contention.ContentionError, match="peak of a core"):
        henri.predict(intensity=2)
    with pytest.raises(ValueError, match="'soft' or 'thesis'"):
        henri.predict(model="best")
    with pytest.raises(ValueError, match="from 0 to 1"):
        henri.predict(placements=[(0, 2)])
    with pytest.raises(ValueError, match="soft model"):
        henri.predict(model="thesis", cached=0.5)
