#!/usr/bin/env python3
"""Manual pages from the comments in the sources, in PETSc's format (/*@ ... @*/, /*MC ... M*/, /*S, /*E).

manualwriter.py writes them for Sphinx. docs/manualpages.py, a program by itself, only checks the comments; it needs no more than Python.
"""
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "include/petscspmv.h"
COMMENT = re.compile(r"^/\*(@C?|MC|S|E)\n((?:(?!\*/).)*?)^(@|M|S|E)\*/\n", re.S | re.M)
KINDS = {"@": ("@", "Functions"), "@C": ("@", "Functions"), "MC": ("M", "Types and constants"), "S": ("S", "Structures and enumerations"), "E": ("E", "Structures and enumerations")}
LEVELS = ("beginner", "intermediate", "advanced", "developer")
PARAMETERS = re.compile(r"(Input|Output|Input/Output) Parameters?$")
SECTION = re.compile(r"((?:Input|Output|Input/Output) Parameters?|(?:(?:Intermediate|Advanced) )?Options Database Keys?|Values|Errors|(?:Fortran |Developer )?Notes?|References|Example Usage):$")
OPTION = re.compile(r"-(?:mat_(?:sellp|evchyb|batch|spmv)|ksp_device)\w*")
KEYS = re.compile(r"(?:(Intermediate|Advanced) )?Options Database Keys?$")   # without a level, those for beginners

# Where PETSc's manual pages are (those of 3.26): by the longest beginning of a name that is a word of it. Names without a page of their own are on another's
PETSC_SECTIONS = {"Mat": "Mat", "MAT": "Mat", "Vec": "Vec", "KSP": "KSP", "PC": "PC", "SNES": "SNES", "TS": "TS", "DM": "DM", "DMDA": "DMDA", "IS": "IS", "Petsc": "Sys",
                  "PetscDevice": "Device", "PetscLog": "Log", "PetscSF": "PetscSF", "PetscSection": "PetscSection", "PetscViewer": "Viewer"}
PETSC_PAGES = {r"PETSC_ERR_\w+": "Sys/PetscErrorCode", "PETSC_(COPY_VALUES|OWN_POINTER|USE_POINTER)": "Sys/PetscCopyMode", r"MATORDERING\w+": "Mat/MatOrderingType",
               "MatGetOrdering": "MatGraphOperations/MatGetOrdering"}
OURS = re.compile("(Petsc|Mat)SpMV|Mat(Create)?Batch|MATBATCH|MAT.*(SELLP|EVCHYB)|KSPDEVICE")


class Failure(Exception):
    """A comment that cannot become a page, and why"""


@dataclass
class Page:
    name: str
    kind: str     # "@", "MC", "S" or "E"
    where: str    # file:line
    summary: str = ""
    synopsis: str = ""
    collective: str = ""
    level: str = ""
    sections: list = field(default_factory=list)  # (title, [paragraph or [(term, text), ...] or ("verbatim", text)])
    seealso: list = field(default_factory=list)

    def fail(self, why):
        raise Failure(f"{self.where}: {self.name}: {why}")

    def items(self, title):
        return [item for t, blocks in self.sections if re.match(title, t) for b in blocks if isinstance(b, list) for item in b]


def petsc_url(name):
    """The address of PETSc's manual page, or None if this does not look like a name of PETSc"""
    page = next((page for pattern, page in PETSC_PAGES.items() if re.fullmatch(pattern, name)), None)
    if not page and re.fullmatch("[A-Z][A-Za-z0-9]+", name) and not OURS.match(name):
        prefix = max((p for p in PETSC_SECTIONS if re.match(p + "(?![a-z])", name)), key=len, default=None)
        page = prefix and f"{PETSC_SECTIONS[prefix]}/{name}"
    return page and f"https://petsc.org/release/manualpages/{page}/"


# ---------------------------------------------------------------- reading

def parse(text, where, kind):
    """The page of a comment, without what the code after it says"""
    lines = text.splitlines()
    head = []
    while lines and lines[0].strip():
        head.append(lines.pop(0).strip())
    match = re.fullmatch(r'(\w+) - (?:"\w+" - )?(\S.*)', " ".join(head))
    if not match:
        raise Failure(f"{where}: the comment does not begin with 'name - summary'")
    page = Page(match[1], kind, where, match[2])
    blocks = None   # of the section
    while lines:
        raw = lines.pop(0)
        line = raw.strip()
        if not line:
            if blocks and isinstance(blocks[-1], str):
                blocks.append("")   # ends the paragraph
        elif line.startswith(".seealso:"):
            rest = " ".join([line[len(".seealso:"):]] + [x.strip() for x in lines])
            page.seealso = re.findall(r"`([^`]+)`", rest)
            if not page.seealso or re.sub(r"`[^`]+`|[,\s]", "", rest):
                page.fail("see-also names must be in backquotes, with commas between them, at the end of the comment")
            lines = []
        elif line.startswith("Level:"):
            page.level = line[len("Level:"):].strip()
        elif re.match(r"(Not |Logically )?Collective", line) and not page.sections:
            page.collective = line
        elif SECTION.match(line):
            blocks = []
            page.sections.append((line[:-1], blocks))
        elif re.match(r"[A-Z][A-Za-z/]*( [A-Za-z]+)*:$", line) and raw.startswith("   ") and not raw.startswith("    "):
            page.fail(f"no such section: {line}")
        elif blocks is None:
            page.fail(f"not in a section: {line}")
        elif line == ".vb":
            end = next((k for k, x in enumerate(lines) if x.strip() == ".ve"), None)
            if end is None:
                page.fail(".vb without .ve")
            blocks.append(("verbatim", textwrap.dedent("\n".join(lines[:end]))))
            del lines[:end + 1]
        elif raw[0] in "+.-":
            item = re.match(r"[+.-] +(\S.*?) +- +(\S.*)", raw)
            if not item:
                page.fail(f"a list item must be '. name - text': {line}")
            if not blocks or not isinstance(blocks[-1], list):
                blocks.append([])
            blocks[-1].append((item[1].strip("`"), item[2]))
        elif blocks and isinstance(blocks[-1], list) and re.match(" {6}", raw):
            term, words = blocks[-1][-1]
            blocks[-1][-1] = (term, f"{words} {line}")
        elif blocks and isinstance(blocks[-1], str) and blocks[-1]:
            blocks[-1] += " " + line
        else:
            blocks.append(line)
    for _, blocks in page.sections:
        blocks[:] = [b for b in blocks if b != ""]
    return page


def wrap(start, parameters):
    """A prototype in lines of 80 characters; a parameter stays on one line"""
    joined = ", ".join(re.sub(r"\s+", "\0", p.strip()) for p in parameters.split(","))
    return "\n".join(textwrap.wrap(f"{start}({joined})", 80, subsequent_indent=" " * (len(start) + 1 if len(start) < 40 else 4))).replace("\0", " ")


def add_synopsis(page, code, header):
    """From the code that follows the comment; types from their names in the header"""
    if page.kind == "@":
        match = re.match(r"PetscErrorCode (\w+)\(([^)]*)\)\n\{", code)
        declared = re.search(rf"PETSC_EXTERN PetscErrorCode {page.name}\(([^)]*)\);", header)
        if not match or match[1] != page.name:
            page.fail("the function does not follow its comment")
        if not declared:
            page.fail(f"not declared in {HEADER}")
        parameters = [] if match[2] == "void" else [re.sub(r"[\[\]]", "", p).split()[-1].lstrip("*") for p in match[2].split(",")]
        short = re.sub(r"\s+", " ", match[2])
        for name in parameters:
            short = re.sub(rf"\b{name}\b", "", short, count=1)
        if re.sub(r"\s", "", short if parameters else "void") != re.sub(r"\s", "", declared[1]):
            page.fail(f"its parameters are not those of {HEADER}")
        documented = [term for title, _ in page.sections if PARAMETERS.match(title) for term, _ in page.items(re.escape(title) + "$")]
        if sorted(documented) != sorted(parameters):
            page.fail(f"documents the parameters {documented}, not {parameters}")
        page.synopsis = wrap(f"PetscErrorCode {page.name}", match[2])
    elif page.kind == "MC":
        pattern = page.name if page.name.startswith(("MATORDERING", "MATBATCH_", "KSP")) else f"MAT(?:SEQ|MPI)?(?:AIJ)?{page.name[3:]}"
        page.synopsis = re.sub(" +", " ", "\n".join(re.findall(rf"^#define {pattern} .*?(?= *(?:/\*.*)?$)", header, re.M)))
        if not page.synopsis:
            page.fail(f"not defined in {HEADER}")
    else:
        match = re.match(r"typedef (?:struct|enum) \{.*?\} (\w+);", code, re.S)
        if not match or match[1] != page.name:
            page.fail("the type does not follow its comment")
        page.synopsis = match[0]


def read(root=ROOT):
    """All pages, by name"""
    header = (root / HEADER).read_text()
    pages = {}
    for file in [root / HEADER, *sorted((root / "src").rglob("*.c"))]:
        text = file.read_text()
        for match in COMMENT.finditer(text):
            where = f"{file.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
            if KINDS[match[1]][0] != match[3]:
                raise Failure(f"{where}: a comment /*{match[1]} must end with {KINDS[match[1]][0]}*/")
            page = parse(match[2], where, match[1][0] if match[1] == "@C" else match[1])
            if page.name in pages:
                page.fail(f"has another page, in {pages[page.name].where}")
            add_synopsis(page, text[match.end():], header)
            pages[page.name] = page
        if len(re.findall(r"^/\*(?:@C?|MC|S|E|J)$", text, re.M)) != len(COMMENT.findall(text)):
            raise Failure(f"{file.relative_to(root)}: the end of a manual page's comment is missing")
    check(pages, header, root)
    return pages


def names(pages):
    """What backquotes refer to: name of a function, type, enumerator or option -> page"""
    where = {name: name for name in pages}
    for page in pages.values():
        if page.kind in ("MC", "E"):
            where |= {name: page.name for name in re.findall(r"\b(MAT[A-Z_]+)\b", page.synopsis) if name not in where}
    return where | {name: file_of(name) for name in options(pages)}


def file_of(name):
    return name.lstrip("-")


def keys(pages):
    """(page, level, usage, text) of each option, those of PETSc included"""
    for page in pages.values():
        for title, blocks in page.sections:
            match = KEYS.match(title)
            for usage, text in (item for block in blocks if match and isinstance(block, list) for item in block):
                yield page, (match[1] or "beginner").lower(), usage, text


def options(pages):
    """option -> [(page, level, usage, text)]: the types that have it. A name that ends in * means all options of other pages with this beginning"""
    found = {}
    for page, level, usage, text in keys(pages):
        if OPTION.match(usage) and not usage.endswith("*"):
            found.setdefault(usage.split()[0], []).append((page, level, usage, text))
    for page, _, usage, _ in keys(pages):
        if usage.endswith("*"):
            begin = usage[:-1].removesuffix("_")
            also = [uses for name, uses in found.items() if f"{name}_".startswith(f"{begin}_")]
            if not also:
                page.fail(f"no page describes an option {usage}")
            for uses in also:
                uses.append((page, *uses[0][1:]))
    for name, uses in found.items():
        for page, *rest in uses:
            if rest != list(uses[0][1:]):
                page.fail(f"{name} has another level or text, in {uses[0][0].where}")
    return found


def check(pages, header, root):
    known = names(pages)
    public = re.findall(r"PETSC_EXTERN \w+ (\w+)\(", header) + re.findall(r"^\} (\w+);|^typedef.*\} (\w+);|^#define ((?:MAT|KSP)\w+)", header, re.M)
    for name in (n for p in public for n in ([p] if isinstance(p, str) else p) if n and n not in known):
        raise Failure(f"{HEADER}: {name} has no manual page")
    for page in pages.values():
        if page.level not in LEVELS:
            page.fail(f"its level, '{page.level}', must be one of {', '.join(LEVELS)}" if page.level else "no level")
        if page.kind == "@" and not page.collective:
            page.fail("no line says whether it is collective")
        for name in page.seealso:
            if name.removesuffix("()") not in known and not petsc_url(name.removesuffix("()")):
                page.fail(f"see also {name}: neither a name of ours nor like one of PETSc")
    for file in sorted((root / "src").rglob("*.c")):
        for name in OPTION.findall(" ".join(re.findall(r'"(-(?:mat|ksp)_\w+)"', file.read_text()))):
            if name not in known:
                raise Failure(f"{file.relative_to(root)}: the option {name} has no manual page: no Options Database Keys has it")


if __name__ == "__main__":
    try:
        print(f"{len(read(Path(sys.argv[1]) if sys.argv[1:] else ROOT))} manual pages")
    except Failure as failure:
        sys.exit(str(failure))
