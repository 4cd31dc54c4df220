"""A package without its compiled module never imports, and says what to do."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src/python"


def error_of_import(folder, name):
    done = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(folder)})
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_sources_alone_do_not_import():
    for name in ["crema", "caffe", "crema.io"]:
        error = error_of_import(SOURCES, name)
        assert error.startswith(f"ImportError: {SOURCES}/crema has no compiled module _crema"), error
        assert "cmake --build build --target crema_python" in error and "pip install ." in error


def test_a_module_for_another_python_is_named(tmp_path):
    shutil.copytree(SOURCES / "crema", tmp_path / "crema")
    (tmp_path / "crema/_crema.cpython-12-x86_64-linux-gnu.so").touch()
    error = error_of_import(tmp_path, "crema")
    assert "_crema.cpython-12-x86_64-linux-gnu.so, but this is Python %d.%d" % sys.version_info[:2] in error, error
    assert f"-DPython3_EXECUTABLE={sys.executable}" in error
