"""A runtime is one file, and so is a router: each is dropped into a copy of the package, and works without more."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pilotage

HERE = Path(__file__).parent
FILES = {"dummy_runtime.py": "serving/runtimes", "dummy_router.py": "traffic/routers"}


def test_a_dummy_runtime_and_a_dummy_router_work_everywhere_with_one_file_each(tmp_path: Path):
    copy = tmp_path / "pilotage"
    shutil.copytree(Path(pilotage.__file__).parent, copy)  # with times of files, so that nothing is compiled again
    for name, package in FILES.items():
        shutil.copy(HERE / name, copy / package / name)
    assert played(tmp_path, "-c", "import pilotage; print(pilotage.__file__)") == f"{copy / '__init__.py'}\n"
    played(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "in_copy.py"))


def played(path: Path, *words: str) -> str:
    """Run Python with the packages in a folder, and give its output."""
    environment = os.environ | {"PYTHONPATH": str(path)}
    done = subprocess.run(
        [sys.executable, *words], cwd=HERE.parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}"
    return done.stdout
