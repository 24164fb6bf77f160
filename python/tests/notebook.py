#!/usr/bin/env python3
"""Runs the cells of a notebook one after the other, without Jupyter: notebook.py [-write] FILE

What cells print must be what the notebook has, except for numbers with a point, such as times. -write writes it into the notebook.
"""

import ast
import contextlib
import io
import json
import re
import sys


def run(source, names):
    """Runs a cell; returns what it prints, and its last expression as Jupyter shows it"""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(last, "cell", "eval"), names) if last else None
        if value is not None:
            print(repr(value))
    return printed.getvalue()


def masked(text):
    return re.sub(r" *\d+\.\d+(e[-+]\d+)?", " #", text)  # in columns, longer numbers have fewer spaces before them


def main():
    path = sys.argv[-1]
    with open(path) as f:
        notebook = json.load(f)
    names, wrong = {"__name__": "__main__"}, 0
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        text = run("".join(cell["source"]), names)
        before = "".join(line for output in cell["outputs"] for line in output["text"])
        if "-write" in sys.argv:
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []
        elif masked(text) != masked(before):
            wrong += 1
            print(f"cell {number} prints\n{text}instead of\n{before}")
    if "-write" in sys.argv:
        with open(path, "w") as f:
            json.dump(notebook, f, indent=1, ensure_ascii=False)
            f.write("\n")
    print(f"{path}: {len(cells)} cells, {wrong} with other outputs")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
