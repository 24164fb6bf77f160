"""The package's functions, on one rank and on two."""

import re
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs.py")
NAMES = [name for name in re.findall(r"^def (\w+)\(\):", PROGRAMS.read_text(), re.M)]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_program(python, tmp_path, name, ranks):
    assert python(PROGRAMS, name, tmp_path, ranks=ranks).count("done") == ranks


def test_notebook(python, root):
    """Its cells print what is stored in it, except for times."""
    pytest.importorskip("scipy")
    python(Path(__file__).with_name("notebook.py"), root / "examples/first.ipynb")
