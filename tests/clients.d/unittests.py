"""Runs one file of petsc4py's own test suite with a matrix type, and prints one line for each test: its name, what became of it, and whether it
multiplied in the format, so far as the format was set up meanwhile, or had a matrix of the type and did not.

    unittests.py FOLDER FILE WAY TYPE

WAY is `types`: the suite's own AIJ matrices are made of the type, by replacing the names in PETSc.Mat.Type before the file is imported, and the
options -mat_type and -dm_mat_type name it for what reads them; or `seqaij`: nothing of the suite is replaced, and every sequential AIJ matrix,
or block of a parallel one, is of the type by -mat_seqaij_type. The library itself is loaded by PETSC_OPTIONS.
"""

import importlib
import sys
import unittest

import petsc4py

folder, file, way, kind = sys.argv[1:]
plain = kind == "aij"
seqaij = "seqaij" if plain else f"seqaij{kind}"
petsc4py.init(["unittests.py", *(["-mat_type", kind, "-dm_mat_type", kind] if way == "types" else ["-mat_seqaij_type", seqaij])])

from petsc4py import PETSc  # noqa: E402

if way == "types":
    PETSc.Mat.Type.AIJ = kind
    PETSc.Mat.Type.SEQAIJ, PETSc.Mat.Type.MPIAIJ = seqaij, seqaij.replace("seq", "mpi", 1)
# the types of the suite's matrices that are of ours, in whole or in their blocks
OURS = (PETSc.Mat.Type.AIJ, PETSc.Mat.Type.SEQAIJ, PETSc.Mat.Type.MPIAIJ)
PETSc.Log.begin()
event = PETSc.Log.Event("MatSpMVSetUp")


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.before, self.state = event.getPerfInfo()["count"], "passed"

    def addFailure(self, test, err):
        self.state = "failed"
        super().addFailure(test, err)

    def addError(self, test, err):
        self.state = "failed"
        super().addError(test, err)

    def addSkip(self, test, reason):
        self.state = "skipped"

    def stopTest(self, test):
        used = event.getPerfInfo()["count"] > self.before
        if PETSc.COMM_WORLD.rank == 0:
            print(f"TEST {test.id()} {self.state} {'multiplied' if used else 'made' if getattr(test, 'TYPE', None) in OURS else '-'}", flush=True)


sys.path.insert(0, folder)
sys.dont_write_bytecode = True
result = Result()
unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(file)).run(result)
for test, text in result.failures + result.errors:
    print(test, text, file=sys.stderr)
