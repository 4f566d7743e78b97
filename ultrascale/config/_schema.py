"""The documentation of a type's fields, which editors show by the JSON schema."""

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache

_PRODUCT = f"{__name__.partition('.')[0]}."


def documentation(kind: type) -> Mapping[str, str]:
    """Return the text below each field in the source of ``kind`` and of its base types.

    Pydantic can do it when a type is made, but reads each file anew for each type: a command would
    start a tenth of a second later.
    """
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ == kind.__module__ or base.__module__.startswith(_PRODUCT):
            texts |= _module_texts(base.__module__).get(base.__qualname__, {})
    return texts


@cache
def _module_texts(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the texts below the fields of each class at the top of a module.

    A file is parsed once: `inspect` would parse it again for each of its types.
    """
    source = ast.parse(inspect.getsource(sys.modules[name]))
    return {
        node.name: _below_fields(node) for node in source.body if isinstance(node, ast.ClassDef)
    }


def _below_fields(source: ast.ClassDef) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for field, text in zip(source.body, source.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            texts[field.target.id] = " ".join(text.value.value.split())
    return texts
