# python/tests/conftest.py: traces for the tests, written by programs of the build: scripts/python_package says where they are.
import os
import subprocess

import pytest

import tandem


def program(variable):
    """A program of the build, from the environment; the test is skipped where it is not given."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} is not set: run `make python`")
    return path


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    """The run of tandem/analysis/history/write_small_run.cpp."""
    folder = tmp_path_factory.mktemp("small") / "run"
    subprocess.run([program("TEST_WRITE_SMALL_RUN"), folder], check=True)
    return folder


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory):
    """Two ranks with every kind of record: tandem/trace/read/sample_trace.hpp."""
    folder = tmp_path_factory.mktemp("sample") / "run"
    subprocess.run([program("TEST_WRITE_SAMPLE_TRACE"), folder], check=True)
    return folder


@pytest.fixture(scope="session")
def real_folder(tmp_path_factory):
    """A Cholesky factorisation on two ranks."""
    folder = tmp_path_factory.mktemp("real") / "run"
    command = program("TEST_TANDEM")
    subprocess.run([command, "run", "-n", "2", "-x", "TANDEM_TRACE=all", "-x", f"TANDEM_TRACE_FOLDER={folder}",
                    command, "linalg", "potrf", "-n", "1024", "--nb", "128", "--repetitions", "1"],
                   check=True, stdout=subprocess.DEVNULL, timeout=120)
    return folder


@pytest.fixture(scope="session")
def small(small_folder):
    return tandem.load(small_folder)


@pytest.fixture(scope="session")
def sample(sample_folder):
    return tandem.load(sample_folder)


@pytest.fixture(scope="session")
def real(real_folder):
    return tandem.load(real_folder)
