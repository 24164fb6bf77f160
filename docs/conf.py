"""
The documentation as a site and as pages of man(1): `make docs`.

The Markdown files are written for a reader of the repository. They are copied to the source folder that sphinx-build was given, with what they link to, and there README.md becomes index.md
and gets a table of contents. The manual pages come from the comments in the sources (manualpages.py, manualwriter.py).
"""
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from sphinx.errors import SphinxError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
import manualpages  # noqa: E402
import manualwriter  # noqa: E402

project = author = "PetscSpMV"
project_copyright = "the PetscSpMV developers"
version = release = ".".join(re.search(rf"VERSION_{part} +(\d+)", (ROOT / manualpages.HEADER).read_text())[1] for part in ("MAJOR", "MINOR", "SUBMINOR"))
extensions = ["myst_parser"]
nitpicky = True
highlight_language = "none"
MAN = tags.has("man")  # noqa: F821 (it is Sphinx's)
pages = manualpages.read()
names = manualpages.names(pages)

# What is in which part of the site; a part is a page of its own. Documents that are in none are added to the user guide
PARTS = {"guide": ("User guide", "docs/tutorial docs/using docs/troubleshooting docs/profiling docs/options docs/types docs/python docs/install docs/fortran docs/clients docs/examples docs/batch docs/krylov docs/gamg docs/halo docs/glossary"),
         "formats": ("How it works", "docs/formats docs/kernels docs/paper-kernels"),
         "development": ("Development", "CONTRIBUTING docs/testing docs/petsc-issues CHANGELOG SECURITY")}


def contents(documents):
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(documents) + "\n```\n"


def copy(file, source):
    """Copies a Markdown file and what it links to, but not other Markdown files: it returns these"""
    text = file.read_text()
    target = source / file.relative_to(ROOT).with_name(file.name.replace("README", "index"))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(re.sub(r"(\]\((?:[\w.-]+/)*)README\.md", r"\1index.md", text))
    linked = {(file.parent / link).resolve() for link in re.findall(r"\]\(([^()\s:#]+)", text)}
    linked = {other for other in linked if other.is_file() and other.is_relative_to(ROOT)}
    for other in linked:
        if other.suffix != ".md":
            place = source / other.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(other, place)
    return {other for other in linked if other.suffix == ".md"}


def write_sources(source):
    """All sources of the site: the Markdown files of the main folder, of docs and of docs/results, and those that they link to"""
    todo, titles = {*ROOT.glob("*.md"), *HERE.glob("*.md"), *HERE.glob("results/*.md")}, {}
    while todo:
        file = todo.pop()
        name = file.relative_to(ROOT).with_suffix("").as_posix().replace("README", "index")
        titles[name] = re.search("^# (.*)", file.read_text(), re.M)[1]
        todo |= {other for other in copy(file, source) if other.relative_to(ROOT).with_suffix("").as_posix().replace("README", "index") not in titles}
    manualwriter.write_options(pages, source / "docs/options.md")
    titles["docs/options"] = "Options"
    results = sorted(name for name in titles if name.startswith("docs/results/") and name != "docs/results/index")
    listed = {"index", "docs/results/index", *results, *" ".join(documents for _, documents in PARTS.values()).split()}
    for part, (title, documents) in PARTS.items():
        documents = [d for d in documents.split() if d in titles] + (sorted(titles.keys() - listed) if part == "guide" else [])
        (source / f"{part}.md").write_text(f"# {title}\n\n" + "".join(f"- [{titles[d]}]({d}.md)\n" for d in documents) + contents(documents))
    for file, documents in {"docs/results/index.md": [f"/{name}" for name in results],
                            "index.md": ["guide", "formats", "Results <docs/results/index>", "manualpages/index", "development"]}.items():
        with (source / file).open("a") as stream:
            stream.write(contents(documents))
    (source / "manualpages").mkdir()
    manualwriter.write_site(pages, source / "manualpages")


def config_inited(app, config):
    source = Path(app.srcdir)
    if not source.is_relative_to(ROOT / "build"):
        raise SphinxError(f"the source folder, {source}, is made again each time: it must be in {ROOT / 'build'}, see the makefile")
    shutil.rmtree(source)
    source.mkdir()
    if MAN:
        config.man_pages = manualwriter.write_man(pages, source)
        config.root_doc = "petscspmv"
    else:
        write_sources(source)


def url(app, name, docname):
    """Where a name is documented: here, or by PETSc"""
    page = names.get(name)
    if page:
        target = f"manualpages/{page}"
        return None if target == docname or app.builder.format != "html" else app.builder.get_relative_uri(docname, target)
    return manualpages.petsc_url(name)


def is_text(node):
    """Whether a node is text or a literal where a link can be"""
    if not isinstance(node, (nodes.literal, nodes.Text)):
        return False
    while node := node.parent:
        if isinstance(node, (nodes.reference, nodes.title, nodes.literal_block, nodes.literal, nodes.raw)):
            return False
    return True


def link_names(app, tree, docname):
    """
    Makes links of literals that begin with an option of ours, or that are a name of ours, or one of PETSc with parentheses (in the manual pages also without); in text, of functions with
    parentheses, and of Markdown files that the manual pages name
    """
    if MAN:
        return
    for node in list(tree.findall(is_text)):
        text, new, end = node.astext(), [], 0
        if isinstance(node, nodes.literal):
            match = re.fullmatch(r"(\w+)(\(\))?|(-\w+)( .*)?", text)
            name = match and (match[1] or match[3])
            if name in names or (name and (match[2] or docname.startswith("manualpages/"))):
                target = url(app, name, docname)
                new = [nodes.reference("", "", node.deepcopy(), refuri=target, internal=name in names)] if target else []
        else:
            for match in re.finditer(r"\b(\w+)\(\)|\b(docs/[\w/-]+)\.md\b", text):
                target = url(app, match[1], docname) if match[1] else app.builder.get_relative_uri(docname, match[2]) if match[2] in app.env.found_docs else None
                if target:
                    new += [nodes.Text(text[end:match.start()]), nodes.reference("", match[0], refuri=target, internal=match[1] in names)]
                    end = match.end()
            new += [nodes.Text(text[end:])] if new else []
        if new:
            node.parent.replace(node, new)


def setup(app):
    app.connect("config-inited", config_inited)
    app.connect("doctree-resolved", link_names)


# MyST: anchors of headings as on a Git host, so that links to them are checked
myst_heading_anchors = 4

html_theme = "pydata_sphinx_theme"
html_title = f"PetscSpMV {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {"header_links_before_dropdown": 6, "show_prev_next": False, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"],
                      "footer_end": []}
html_sidebars = {"index": []}
man_make_section_directory = True
linkcheck_anchors = False
