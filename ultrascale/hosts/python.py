"""Constant texts of a Python program, put together as it would."""

import ast
import warnings
from collections.abc import Iterator, Mapping

from ultrascale.hosts import clients
from ultrascale.hosts.names import UNKNOWN

_LONGEST = 100_000
# Behind the name of a variable: its items, joined by what no text has; its text after additions.
_LISTED, _BETWEEN, _GROWN = "[]", "\0", "+="


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
    yield from (text for name, text in values.items() if name.endswith(_GROWN))
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
    """Return the constant texts by name; of a list or a mapping under the names of `_items`."""
    values: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
                values |= _items(name, value, values)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values |= _items(name, value, values)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                values |= _items(name, value, values)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                more = _fold(value, values)
                if more is not None and len(values.get(name, "")) < _LONGEST:
                    values[name] = values[f"{name}{_GROWN}"] = values.get(name, "") + more
            case _:
                pass
    return values


def _items(name: str, value: ast.expr, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts that an assignment to ``name`` makes known."""
    match value:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            texts = [_piece(item, values) for item in items]
            each = {f"{name}[{number}]": text for number, text in enumerate(texts)}
            return {**each, f"{name}{_LISTED}": _BETWEEN.join(texts)}
        case ast.Dict(keys=keys, values=items):
            pairs = zip(keys, items, strict=True)
            return {
                f"{name}[{key.value}]": _piece(item, values)
                for key, item in pairs
                if isinstance(key, ast.Constant)
            }
        case _:
            text = _fold(value, values)
            return {name: text} if text is not None and len(text) < _LONGEST else {}


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
        case ast.Subscript():
            return _part(node, values)
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


def _part(node: ast.Subscript, values: Mapping[str, str]) -> str | None:
    """Return an item of a list or a mapping, or a text backwards."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
            return values.get(f"{name}[{key}]")
        case ast.Subscript(
            value=value,
            slice=ast.Slice(
                lower=None,
                upper=None,
                step=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)),
            ),
        ):
            text = _fold(value, values)
            return None if text is None else text[::-1]
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
        case ast.Name(id=name) if (listed := values.get(f"{name}{_LISTED}")) is not None:
            return by.join(listed.split(_BETWEEN))
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
