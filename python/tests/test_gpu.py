"""Runs gpu.py where there is a GPU and a PETSc that uses it."""

import shutil
import subprocess
from pathlib import Path

import pytest

SHOW = "import petscspmv._load as l; print(hasattr(l.get(), 'PetscGetCurrentCUDAStream'))"


def test_gpu(python):
    smi = shutil.which("nvidia-smi")
    if not smi or subprocess.run([smi, "-L"], capture_output=True).returncode or "True" not in python("-c", SHOW):
        pytest.skip("no GPU, or a PETSc without CUDA")
    assert " 0 failed" in python(Path(__file__).with_name("gpu.py"), limit=300)
