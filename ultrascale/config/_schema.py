"""The documentation of a type's fields, for the JSON schema that editors read."""

import ast
import inspect
import textwrap
from collections.abc import Mapping


def documentation(kind: type) -> Mapping[str, str]:
    """Return the text below each field in the source of ``kind`` and of the types it derives from.

    Pydantic can do it when a type is made, but reads each file anew for each type: a command would
    start a tenth of a second later.
    """
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ == kind.__module__ or base.__module__.startswith(__package__ or ""):
            texts |= _own_documentation(base)
    return texts


def _own_documentation(kind: type) -> Mapping[str, str]:
    (source,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(source, ast.ClassDef)
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
