"""Programs of this package for pods, which run by an image's Python and without the package."""

import ast
from functools import cache
from importlib.resources import files


@cache
def program(module: str) -> str:
    """Return the text of a module of this folder, without its comments and docstrings."""
    tree = ast.parse((files("ultrascale.plan.jobs") / f"{module}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.unparse(tree)
