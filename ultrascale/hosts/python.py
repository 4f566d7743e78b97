"""Constant texts of a Python program, put together as it would."""

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence

from ultrascale.hosts import clients
from ultrascale.hosts.names import UNKNOWN

_LONGEST = 100_000


def constants(source: str) -> Iterator[str] | None:
    """Return the texts of a program, without its comments and docstrings.

    A sum, a format or a join of constants is one text; what only the run knows is `names.UNKNOWN`.

    Returns:
        None where it is no Python.
    """
    try:
        with warnings.catch_warnings():
            # Of escapes that are none, which the program that is read may have.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return _texts(tree)


def _texts(tree: ast.Module) -> Iterator[str]:
    docstrings = {id(node) for node in _docstrings(tree)}
    values = _assigned(tree)
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if id(node) in docstrings:
            continue
        if isinstance(node, ast.expr):
            found = _fold(node, values)
            if found is not None and not isinstance(node, ast.Name):
                yield found
            if isinstance(node, ast.Call) and (endpoint := _endpoint(node, values)):
                yield endpoint
            if isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr) and found is not None:
                continue
        waiting += ast.iter_child_nodes(node)


def _endpoint(node: ast.Call, values: Mapping[str, str]) -> str | None:
    """Return the endpoint of a client of the AWS SDK whose service and Region are constant."""
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", None))
    if name not in ("client", "resource", "create_client") or not node.args:
        return None
    calls = [node]
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
        # A session, made for this client alone.
        calls.append(function.value)
    regions = [
        *node.args[1:2],
        *(each.value for call in calls for each in call.keywords if each.arg == "region_name"),
    ]
    if not regions:
        return None
    service, region = _fold(node.args[0], values), _fold(regions[0], values)
    host = clients.endpoint(service, region) if service and region else None
    return host and f"https://{host}"


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        # A text that is a statement of its own has no effect.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _assigned(tree: ast.AST) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for node in ast.walk(tree):
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            targets = (node.target,)
        value = getattr(node, "value", None)
        if not targets or not isinstance(value, ast.expr):
            continue
        found = _fold(value, values)
        for target in targets:
            if isinstance(target, ast.Name) and found is not None and len(found) < _LONGEST:
                values[target.id] = found
    return values


def _fold(node: ast.expr, values: Mapping[str, str]) -> str | None:
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.Constant(value=bytes(value)):
            return value.decode("utf-8", "replace")
        case ast.Name(id=name):
            return values.get(name)
        case ast.JoinedStr(values=pieces):
            return "".join(_piece(piece, values) for piece in pieces)
        case ast.FormattedValue(value=value):
            return _fold(value, values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(left, right, values)
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return _percent(left, right, values)
        case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None, step=step)):
            return _reversed(value, step, values)
        case ast.Call():
            return _call(node, values)
        case _:
            return None


def _piece(node: ast.expr, values: Mapping[str, str]) -> str:
    found = _fold(node, values)
    return UNKNOWN if found is None else found


def _sum(left: ast.expr, right: ast.expr, values: Mapping[str, str]) -> str | None:
    pieces = [_fold(left, values), _fold(right, values)]
    if pieces == [None, None]:
        return None
    return "".join(UNKNOWN if piece is None else piece for piece in pieces)


def _percent(left: ast.expr, right: ast.expr, values: Mapping[str, str]) -> str | None:
    text = _fold(left, values)
    if text is None:
        return None
    pieces = right.elts if isinstance(right, ast.Tuple) else [right]
    for piece in pieces:
        text = text.replace("%s", _piece(piece, values), 1)
    return text


def _reversed(value: ast.expr, step: ast.expr | None, values: Mapping[str, str]) -> str | None:
    text = _fold(value, values)
    match step:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)) if text is not None:
            return text[::-1]
        case _:
            return None


def _call(node: ast.Call, values: Mapping[str, str]) -> str | None:
    match node.func:
        case ast.Attribute(value=value, attr="join") if len(node.args) == 1:
            return _join(_fold(value, values), node.args[0], values)
        case ast.Attribute(value=value, attr="format"):
            return _format(_fold(value, values), node, values)
        case ast.Attribute(value=value, attr="replace") if len(node.args) == 2:
            text, *pair = (_fold(part, values) for part in (value, *node.args))
            return text.replace(*pair) if text is not None and None not in pair else None  # type: ignore[arg-type]
        case ast.Attribute(value=value, attr="decode" | "encode" | "strip" | "lower"):
            return _fold(value, values)
        case ast.Name(id="chr") if len(node.args) == 1:
            match node.args[0]:
                case ast.Constant(value=int(code)) if 0 <= code < 0x110000:
                    return chr(code)
                case _:
                    return None
        case ast.Name(id="bytes" | "bytearray") if len(node.args) == 1:
            return _codes(node.args[0])
        case _:
            return None


def _codes(node: ast.expr) -> str | None:
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    codes = [item.value for item in node.elts if isinstance(item, ast.Constant)]
    if len(codes) != len(node.elts) or not all(
        isinstance(code, int) and 0 <= code < 256 for code in codes
    ):
        return None
    return bytes(code for code in codes if isinstance(code, int)).decode("utf-8", "replace")


def _join(by: str | None, node: ast.expr, values: Mapping[str, str]) -> str | None:
    if by is None:
        return None
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return by.join(_piece(item, values) for item in items)
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id="chr"), codes]):
            return _codes(codes)
        case (
            ast.GeneratorExp(
                elt=ast.Call(func=ast.Name(id="chr")), generators=[ast.comprehension(iter=codes)]
            )
            | ast.ListComp(
                elt=ast.Call(func=ast.Name(id="chr")), generators=[ast.comprehension(iter=codes)]
            )
        ):
            return _codes(codes)
        case ast.Call(func=ast.Name(id="reversed"), args=[ast.List(elts=items)]):
            return by.join(_piece(item, values) for item in reversed(items))
        case _:
            text = _fold(node, values)
            return None if text is None else by.join(text)


def _format(text: str | None, node: ast.Call, values: Mapping[str, str]) -> str | None:
    if text is None:
        return None
    for number, item in enumerate(node.args):
        value = _piece(item, values)
        text = text.replace("{}", value, 1).replace(f"{{{number}}}", value)
    for keyword in node.keywords:
        text = text.replace(f"{{{keyword.arg}}}", _piece(keyword.value, values))
    return text
