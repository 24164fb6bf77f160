#!/usr/bin/env python3
"""Tests of docs/manualpages.py and docs/manualwriter.py: each kind of faulty comment is refused, with a message that says where; the pages contain what the comments say."""
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs"))
import manualpages  # noqa: E402
import manualwriter  # noqa: E402

HEADER, VALUES, VIEW, SELLP, EVCHYB, CREATE = (manualpages.HEADER, "src/mat/impls/batch/values.c", "src/mat/impls/spmv/view.c", "src/mat/impls/sellp/sellp.c", "src/mat/impls/evchyb/evchyb.c",
                                       "src/mat/impls/batch/create.c")
# file, what is replaced, by what, what the message must contain
FAULTS = [(VALUES, "   MatBatchGetProblem - Gets", "   MatBatchGetProblem: Gets", "does not begin with 'name - summary'"),
          (VALUES, "   Level: beginner\n", "", "MatBatchSetValues: no level"),
          (VALUES, "   Level: beginner\n", "   Level: easy\n", "its level, 'easy', must be one of"),
          (VALUES, ".  columns    - column indices", ".  columns    column indices", "a list item must be"),
          (VALUES, ".  columns    - column indices", ".  cols       - column indices", "documents the parameters"),
          (VALUES, "   Not Collective\n", "", "MatBatchGetProblem: no line says whether it is collective"),
          (VALUES, "   Logically Collective", "   Locally Collective", "not in a section"),
          (VALUES, "   Errors:\n", "   Failures:\n", "no such section: Failures:"),
          (VALUES, ".seealso: `MATBATCH`, `MATBATCH_ALL`", ".seealso: `MATBATCH`, MATBATCH_ALL", "see-also names must be in backquotes"),
          (VALUES, "`MatBatchGetProblem()`\n@*/", "`MatBatchGetProblems()`\n@*/", "see also MatBatchGetProblems()"),
          (VALUES, "`MatBatchGetProblem()`\n@*/", "`GetProblem()`\n@*/", "see also GetProblem()"),
          (VALUES, "`MatBatchGetProblem()`\n@*/\n", "`MatBatchGetProblem()`\n*/\n", "the end of a manual page's comment is missing"),
          (VALUES, "`MatBatchGetProblem()`\n@*/\n", "`MatBatchGetProblem()`\nM*/\n", "must end with @*/"),
          (VALUES, "@*/\nPetscErrorCode MatBatchSetValues", "@*/\nint i;\nPetscErrorCode MatBatchSetValues", "the function does not follow its comment"),
          (HEADER, "PetscErrorCode MatBatchSetValues(Mat, PetscInt, ", "PetscErrorCode MatBatchSetValues(Mat, PetscInt64, ", "its parameters are not those of"),
          (HEADER, "PetscErrorCode MatBatchSetValues(", "PetscErrorCode MatBatchReplaceValues(", f"not declared in {HEADER}"),
          (HEADER, "PETSC_EXTERN PetscErrorCode MatCreateBatch(", "PETSC_EXTERN PetscErrorCode PetscSpMVNew(Mat);\nPETSC_EXTERN PetscErrorCode MatCreateBatch(",
           "PetscSpMVNew has no manual page"),
          (HEADER, '#define MATBATCH       "batch"', '#define MATBATCH "batch"\n#define MATNEW "new"', "MATNEW has no manual page"),
          (HEADER, "} PetscSpMVInfo;", "} PetscSpMVInformation;", "the type does not follow its comment"),
          (HEADER, "#define MATBATCH_ALL -1", "", "not defined in"),
          (VIEW, "   PetscSpMVGetInfo - ", "   PetscSpMVGetFormat - ", "has another page, in src/mat/impls/spmv/view.c:"),
          (SELLP, "-  -mat_sellp_sigma <rows> ", "-  -mat_sellp_window <rows>", "the option -mat_sellp_sigma has no manual page"),
          (SELLP, "   Intermediate Options", "   Medium Options", "no such section: Medium Options Database Keys:"),
          (EVCHYB, "-mat_spmv_* ", "-mat_spnv_* ", "no page describes an option -mat_spnv_*"),
          (EVCHYB, ".  -mat_evchyb_ell_limit", "+  -mat_spmv_halo <type> - another text\n-  -mat_evchyb_ell_limit",
           "-mat_spmv_halo has another level or text, in "),
          (CREATE, "   Errors:\n", "   Example Usage:\n.vb\n  x\n\n   Errors:\n", ".vb without .ve")]


def refusals():
    """The faults that are not refused as they should be"""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("include", "src"):
            shutil.copytree(ROOT / name, root / name)
        manualpages.read(root)
        for file, old, new, message in FAULTS:
            text = (ROOT / file).read_text()
            if old not in text:
                yield f"{file} has no longer: {old}"
                continue
            (root / file).write_text(text.replace(old, new, 1))
            try:
                manualpages.read(root)
                yield f"{file}: not refused: {new}"
            except manualpages.Failure as failure:
                if message not in str(failure) or not str(failure).startswith(("src/", "include/")):
                    yield f"{file}: {new}: the message is: {failure}"
            (root / file).write_text(text)


def contents():
    """What is missing of the pages"""
    pages = manualpages.read()
    with tempfile.TemporaryDirectory() as site, tempfile.TemporaryDirectory() as man:
        manualwriter.write_site(pages, Path(site))
        made = manualwriter.write_man(pages, Path(man))
        manualwriter.write_options(pages, Path(site) / "options.md")
        rows = [part.count("\n| `-") for part in (Path(site) / "options.md").read_text().split("## ")[1:]]
        listed = len(manualpages.options(pages)) + 2   # -mat_type and -ksp_type
        if rows[0] != 4 or sum(rows) != listed:
            yield f"the page of options has {rows} rows, the first for beginners, for {listed} options"
        for file, parts in {"MatBatchGetProblem.rst": ["Gets the pattern and the values of one problem of a ``MATBATCH`` matrix", "PetscErrorCode MatBatchGetProblem(Mat A, PetscInt problem,",
                                                       "Not Collective", "``rowoffsets``\n   n + 1 offsets of its rows in ``columns``", "Errors\n------", "Level\n-----\n\nintermediate",
                                                       "Location\n--------\n\nsrc/mat/impls/batch/values.c", "``MatBatchSetValues()``"],
                            "MATSELLP.rst": ['#define MATSELLP "sellp"', '#define MATMPIAIJSELLP "mpiaijsellp"', "``-mat_sellp_sigma <rows>``\n   rows are sorted"],
                            "MatBatchSharing.rst": ["typedef enum { MATBATCH_SHARE_NONE", "``MATBATCH_SHARE_PATTERN``\n   size and pattern"],
                            "mat_spmv_halo.rst": ["-mat_spmv_halo <type>", "``MATSELLP``, ``MATBATCH``, ``MATEVCHYB``"],
                            "mat_sellp_sigma.rst": ["``PETSC_ERR_ARG_OUTOFRANGE``", "intermediate"],
                            "mat_spmv_halo_rows.rst": ["Level\n-----\n\nadvanced", "``MATSELLP``, ``MATBATCH``, ``MATEVCHYB``"],
                            "index.rst": ["``PetscSpMVGetInfo``", "</docs/options>", "   mat_sellp_sigma\n"]}.items():
            text = (Path(site) / file).read_text()
            yield from (f"{file} lacks: {part}" for part in parts if part not in text)
        yield from (f"no man page of {name}" for name, page in pages.items() if page.kind != "MC" and (name, 3) not in [(m[1], m[4]) for m in made])
        text = (Path(man) / "petscspmv.rst").read_text()
        yield from (f"petscspmv.7 lacks {name}" for name in ["MATSELLP\n---", "MATBATCH\n---", *manualpages.options(pages)] if name not in text)
    for name, page in {"MatMult": "Mat/MatMult", "DMDACreate3d": "DMDA/DMDACreate3d", "DMSetMatType": "DM/DMSetMatType", "PETSC_ERR_SUP": "Sys/PetscErrorCode", "PCLU": "PC/PCLU"}.items():
        if manualpages.petsc_url(name) != f"https://petsc.org/release/manualpages/{page}/":
            yield f"the address of {name} is {manualpages.petsc_url(name)}"
    yield from (f"{name} looks like a name of PETSc" for name in ("NULL", "formatted", "MatBatchNone", "PetscSpMVNone", "Matrix", "MatMult_SeqAIJ") if manualpages.petsc_url(name))


failures = [*refusals(), *contents()]
print("\n".join(f"FAILED: {failure}" for failure in failures) or f"{len(FAULTS)} faults refused")
sys.exit(bool(failures))
