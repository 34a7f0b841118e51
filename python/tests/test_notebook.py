# python/tests/test_notebook.py: docs/analysis.ipynb runs from its first cell to its last. `make python` names the notebook.
import os
import shutil
from pathlib import Path

import pytest


def test_the_notebook_runs(real_folder, tmp_path):
    notebook = os.environ.get("TEST_NOTEBOOK")
    if not notebook:
        pytest.skip("TEST_NOTEBOOK is not set: run `make python`")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    shutil.copytree(real_folder, tmp_path / "run")
    document = nbformat.read(Path(notebook), as_version=4)
    nbclient.NotebookClient(document, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in document.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 3
    assert not any(output.output_type == "error" for output in outputs)
