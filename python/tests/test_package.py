# python/tests/test_package.py: what is installed: versions, types, and the libraries that the extension needs.
import subprocess
from pathlib import Path

import tandem
from tandem import _native


def test_the_package_is_typed_and_has_a_version():
    assert tandem.__version__.count(".") == 2
    folder = Path(tandem.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()


def test_the_extension_needs_the_cpp_runtime_only():
    needed = {line.split()[0].split("/")[-1].split(".so")[0] for line in
              subprocess.run(["ldd", _native.__file__], check=True, capture_output=True, text=True).stdout.splitlines()}
    assert needed <= {"linux-vdso", "libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}, needed


def test_all_that_is_public_is_documented():
    for name in tandem.__all__:
        assert getattr(tandem, name).__doc__, name
    for name, member in vars(tandem.Run).items():
        assert name.startswith("_") or name in ("job",) or member.__doc__, name
