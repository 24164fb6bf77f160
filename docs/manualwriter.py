"""Manual pages (manualpages.py) as reStructuredText, for the site and for man(1)"""
import re
import textwrap

import manualpages


def rst(text):
    """Text of a comment as reStructuredText: names in backquotes become literals, to which conf.py adds links"""
    return "".join(f"``{part}``" if k % 2 else re.sub(r"([*|\\]|_(?!\w))", r"\\\1", part) for k, part in enumerate(text.split("`")))


def heading(text, mark):
    return f"{text}\n{mark * len(text)}\n\n"


def definitions(pairs):
    return "".join(f"``{term}``\n   {rst(text)}\n\n" for term, text in pairs)


def code(text, language="c"):
    return f".. code-block:: {language}\n\n{textwrap.indent(text, '   ')}\n\n"


def body(page, mark, seealso, location):
    """All of a page but its title and summary"""
    out = heading("Synopsis", mark) + code(f"#include <petscspmv.h>\n\n{page.synopsis}") + (f"{rst(page.collective)}\n\n" if page.collective else "")
    for title, blocks in page.sections:
        out += heading(title, mark)
        for block in blocks:
            if isinstance(block, list):
                out += "".join(f"{rst(text)}\n\n" for _, text in block) if title == "References" else definitions(block)
            else:
                out += code(block[1]) if isinstance(block, tuple) else rst(block) + "\n\n"
    out += heading("Level", mark) + page.level + "\n\n" + (heading("Location", mark) + page.where.split(":")[0] + "\n\n" if location else "")
    return out + heading("See Also", mark) + ", ".join(dict.fromkeys(seealso)) + "\n\n"


def group(pages, title):
    return [page for _, page in sorted(pages.items()) if manualpages.KINDS[page.kind][1] == title]


def write_site(pages, folder):
    """A page for each comment and for each option, and an index"""
    index, files = heading("Manual pages", "="), []
    for title in dict.fromkeys(title for _, title in manualpages.KINDS.values()):
        index += heading(title, "-") + definitions((page.name, page.summary) for page in group(pages, title))
        for page in group(pages, title):
            (folder / f"{page.name}.rst").write_text(heading(page.name, "=") + rst(page.summary) + "\n\n" + body(page, "-", map("``{}``".format, page.seealso), True))
            files.append(page.name)
    index += heading("Options", "-") + ":doc:`All options, with their level </docs/options>`\n\n"
    for name, uses in sorted(manualpages.options(pages).items()):
        page, level, usage, text = uses[0]
        errors = [e for e in page.items("Errors") if e[0] == "PETSC_ERR_ARG_OUTOFRANGE" and not re.search("<(bool|kernel|type)>", usage)]
        out = heading(name, "=") + rst(text) + "\n\n" + heading("Synopsis", "-") + code(usage, "none")
        out += heading("Errors", "-") + definitions(errors) if errors else ""
        out += heading("Level", "-") + level + "\n\n" + heading("Location", "-") + page.where.split(":")[0] + "\n\n"
        (folder / f"{manualpages.file_of(name)}.rst").write_text(out + heading("See Also", "-") + ", ".join(f"``{use[0].name}``" for use in uses) + "\n")
        files.append(manualpages.file_of(name))
    (folder / "index.rst").write_text(index + ".. toctree::\n   :hidden:\n\n" + "".join(f"   {file}\n" for file in files))


def write_options(pages, file):
    """All options by level, in Markdown: from the manual pages' lists, which no other list repeats"""
    out = "# Options\n\nThe first four are enough to begin with; the defaults of the others are chosen from the matrix. A matrix's or a solver's prefix applies as usual. `-help` lists the options " \
          "of a matrix or a solver once it exists.\n"
    types, ours = {}, manualpages.options(pages)   # the types are options of PETSc
    for page, level, usage, _ in manualpages.keys(pages):
        if match := re.fullmatch(r"(-(?:mat|ksp)_type) (\w+)", usage):
            types.setdefault(match[1], []).append((page, level, match[2], "type of the matrix" if match[1] == "-mat_type" else "type of the solver"))
    rows = [(uses[0][1], f"{name} " + ", ".join(use[2] for use in uses), uses[0][3], uses) for name, uses in sorted(types.items(), reverse=True)]
    rows += [(uses[0][1], uses[0][2], uses[0][3], uses) for _, uses in sorted(ours.items())]
    for level in ("beginner", "intermediate", "advanced"):
        out += f"\n## {level.capitalize()}\n\n| option | meaning | of |\n|---|---|---|\n"
        for _, usage, text, uses in (row for row in rows if row[0] == level):
            out += f"| `{usage}` | {text.replace('|', chr(92) + '|')} | " + ", ".join(f"`{use[0].name}`" for use in uses) + " |\n"
    file.write_text(out)


OVERVIEW = """petscspmv
=========

Synopsis
--------

::

   program -dll_append libpetscspmv.so -mat_type sellp | evchyb | batch [options]

Description
-----------

The library adds matrix types to PETSc whose products with vectors are faster than those of AIJ. PETSc loads it where ``-dll_append`` names it, on the command line, in ``PETSC_OPTIONS`` or in
a .petscrc, with its path unless it is in a folder of LD_LIBRARY_PATH. A program that links it calls ``PetscSpMVInitializePackage()`` instead. ``-help`` lists the options of a type once a
matrix of that type exists. A matrix's prefix applies as usual.

"""


def write_man(pages, folder):
    """A page for each function and structure, section 3, and one for the types and their options, section 7. Returns Sphinx's man_pages"""
    def seealso(page):
        types = [n for n, p in pages.items() if p.kind == "MC"]
        names = [m.removesuffix("()") for m in page.seealso]
        return [f"**{n}**" + ("\\ (3)" if n in pages and n not in types else "") for n in names if n not in types or page.kind == "MC"] + ["**petscspmv**\\ (7)"] * (page.kind != "MC")

    made = [("petscspmv", "petscspmv", "sparse matrix types for PETSc with faster matrix-vector products", [], 7)]
    types = "".join(heading(p.name, "-") + rst(p.summary) + "\n\n" + body(p, "~", seealso(p), False) for p in group(pages, "Types and constants"))
    functions = heading("See Also", "-") + ", ".join(f"**{p.name}**\\ (3)" for p in group(pages, "Functions")) + "\n"
    (folder / "petscspmv.rst").write_text(OVERVIEW + types + functions)
    for page in (p for p in pages.values() if p.kind != "MC"):
        (folder / f"{page.name}.rst").write_text(":orphan:\n\n" + heading(page.name, "=") + body(page, "-", seealso(page), False))
        made.append((page.name, page.name, page.summary.replace("`", ""), [], 3))
    return made
