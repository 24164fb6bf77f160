"""Runs programs for the tests: PETSc is initialized once in a process, and a crash must not end the tests."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MPIEXEC = shlex.split(os.environ.get("MPIEXEC", str(ROOT / "tools/mpiexec")))
HIDDEN = ("PETSC_OPTIONS", "PYTHONPATH")


class ProgramError(Exception):
    """A program failed, or did not fail where it had to."""


def run_command(command, fails=False, limit=120, env=None):
    """Runs a command in a folder that has no Python packages, and returns what it printed. fails: whether it has to fail."""
    environ = {name: value for name, value in os.environ.items() if name not in HIDDEN} | {"OMPI_MCA_mpi_yield_when_idle": "1"} | (env or {})
    # timeout ends mpiexec by a signal that lets it end its ranks
    command = ["timeout", "-k", "10", str(limit * int(os.environ.get("SLOWER", "1"))), *map(str, command)]
    done = subprocess.run(command, cwd="/", env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 124 or bool(done.returncode) != fails:
        raise ProgramError(f"{shlex.join(command)}\nexit status {done.returncode}\n{done.stdout}")
    return done.stdout


def run_python(*arguments, ranks=1, **options):
    """Runs a Python program on a number of ranks; one rank needs no mpiexec."""
    start = [*MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
    return run_command([*start, sys.executable, *arguments], **options)


@pytest.fixture
def python():
    return run_python


@pytest.fixture
def command():
    return run_command


@pytest.fixture
def root():
    return ROOT
