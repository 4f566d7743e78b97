"""Parts of the product that can be removed, and the syntax trees that lack or report them."""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any, Literal

from tests.support.folders import ROOT
from tools.import_graph import module_of

Kind = Literal["rule", "guard", "renderer"]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Wrap = Callable[[ast.expr], ast.expr]
TABLE = "ultrascale.guard.in_use:_JUDGES"
"""Functions that judge resources in use, by CloudFormation type."""
SOURCE_ROOTS = ("k8s", "constructs", "stacks")


@dataclass(frozen=True)
class Part:
    """A rule, a function of the guard or one of its table, or a place of a renderer."""

    kind: Kind
    module: str
    function: str  # Qualified name; for the table the CloudFormation type behind a slash
    number: int = -1  # Place of a renderer
    change: str = "says nothing"

    @property
    def name(self) -> str:
        """Name by which tests are recorded and chosen."""
        place = "" if self.number < 0 else f"#{self.number}"
        return f"{self.module}:{self.function}{place}"


@dataclass(frozen=True)
class _Place:
    label: str
    node: ast.AST
    number: int = 0  # Of the keyword, the key, or the condition of a comprehension

    def change(self, wrap: Wrap | None = None) -> None:
        """Wrap the value; without ``wrap`` drop the keyword or key, or turn the condition round."""
        turned = wrap or _negated
        match self.node:
            case ast.Call(keywords=keywords) if wrap:
                keywords[self.number].value = wrap(keywords[self.number].value)
            case ast.Call(keywords=keywords):
                del keywords[self.number]
            case ast.Dict(values=values) if wrap:
                values[self.number] = wrap(values[self.number])
            case ast.Dict(keys=keys, values=values):
                del keys[self.number], values[self.number]
            case ast.comprehension(ifs=tests):
                tests[self.number] = turned(tests[self.number])
            case ast.If() | ast.While() | ast.IfExp():
                self.node.test = turned(self.node.test)
            case _:
                raise TypeError(self.node)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def rules() -> Iterator[Part]:
    """Yield the rules of cluster files, plans and jobs."""
    for module, path in modules("ultrascale"):
        for name, function in _functions(parsed(path)):
            if _is_rule(function):
                yield Part("rule", module, name)


def guards() -> Iterator[Part]:
    """Yield the functions of the guard that say something, or nothing, of a change."""
    for module, path in modules("ultrascale"):
        if _is_guard(module):
            for name, function in _functions(parsed(path)):
                if _nothing_of(function) and "." not in name:
                    yield Part("guard", module, name)
    module, _, attribute = TABLE.partition(":")
    for kind in sorted(getattr(importlib.import_module(module), attribute)):
        yield Part("guard", module, f"{attribute}/{kind}")


def renderers(count: int, seed: str) -> Iterator[Part]:
    """Yield a place of each of ``count`` functions that render."""
    functions = {
        f"{module}:{name}": (module, name, function)
        for root in (*SOURCE_ROOTS, "ultrascale")
        for module, path in modules(root)
        for name, function in _functions(parsed(path))
        if _renders(module, function)
    }
    drawn = 0
    for id in sorted(functions, key=lambda id: Random(f"{seed} {id}").random()):
        module, name, function = functions[id]
        random = Random(f"{seed} {id}")
        places = [entry for entry in enumerate(_places(function)) if _may_go(module, entry[1])]
        if places and drawn < count:
            kind = random.choice(sorted({place.label.split()[0] for _, place in places}))
            of_kind = [entry for entry in places if entry[1].label.split()[0] == kind]
            number, place = random.choice(of_kind)
            yield Part("renderer", module, name, number, place.label)
            drawn += 1


def named(name: str) -> Part:
    """Return the part of a name."""
    module, _, place = name.partition(":")
    function, _, number = place.partition("#")
    if "/" in function:
        return Part("guard", module, function)
    node = dict(_functions(parsed(path_of(module))))[function]
    if number:
        change = list(_places(node))[int(number)].label
        return Part("renderer", module, function, int(number), change)
    return Part("rule" if _is_rule(node) else "guard", module, function)


def lacking(part: Part) -> CodeType:
    """Return the code of a module whose function lacks its place, or says nothing."""
    path = path_of(part.module)
    tree = ast.parse(path.read_bytes())
    function = dict(_functions(tree))[part.function]
    if part.number >= 0:
        list(_places(function))[part.number].change()
    else:
        function.body = ast.parse(f"return {_nothing_of(function)}").body
    return _compiled(tree, path)


def code_of(module: CodeType, function: str) -> CodeType:
    """Return the code of a function of a module, by its qualified name."""
    return [code for code in _codes(module) if code.co_qualname == function][-1]


def reporting(path: Path) -> CodeType:
    """Return the code of a module whose parts report that they are reached.

    Rules and the guard call `__said__` with what they say, renderers `__seen__` at each place.
    """
    tree = ast.parse(path.read_bytes())
    module = module_of(path.relative_to(ROOT))
    for name, function in reversed([*_functions(tree)]):
        id = f"{module}:{name}"
        if _is_rule(function) or (_is_guard(module) and _nothing_of(function)):
            _report_words(function, id)
        elif _renders(module, function):
            for number, place in enumerate([*_places(function)]):
                place.change(_call("__seen__", f"{id}#{number}"))
    return _compiled(tree, path)


def _compiled(tree: ast.Module, path: Path) -> CodeType:
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


def _report_words(function: Function, id: str) -> None:
    said = _call("__said__", id)
    for node in _own_nodes(function):
        match node:
            case ast.Yield(value=ast.expr() as value) | ast.Return(value=ast.expr() as value):
                node.value = said(value)
            case ast.YieldFrom(value=value):
                node.value = _call("__each__", id)(value)
            case _:
                pass
    seen = ast.Expr(_call("__seen__", id)(ast.Constant(None)))
    handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [seen, ast.Raise()])
    words = 0 if ast.get_docstring(function) is None else 1
    tried = ast.Try(function.body[words:] or [ast.Pass()], [handler], [], [])
    function.body = [*function.body[:words], tried]


def _nothing_of(function: Function) -> str | None:
    """Return what a function returns that has nothing to tell; None where it tells always."""
    result = ast.unparse(function.returns) if function.returns is not None else ""
    if _is_rule(function):
        return "iter(())"
    if result.startswith("Iterator[") and any(kind in result for kind in ("Change", "RolledPool")):
        return "iter(())"
    if "| None" in result and any(kind in result for kind in ("str", "Change", "Harm")):
        return "None"
    return None


def _is_rule(function: Function) -> bool:
    decorators = (
        decorator.func if isinstance(decorator, ast.Call) else decorator
        for decorator in function.decorator_list
    )
    return any(ast.unparse(name).rpartition(".")[2] in ("rule", "_rule") for name in decorators)


def _is_guard(module: str) -> bool:
    return module.startswith("ultrascale.guard.") or module.endswith(".guard")


def _renders(module: str, function: Function) -> bool:
    """Return whether a function renders: all of the source roots do, and those of jobs' objects."""
    if module.startswith("ultrascale_"):
        return True
    result = "" if function.returns is None else ast.unparse(function.returns)
    is_of_jobs = module.startswith(("ultrascale.jobs.", "ultrascale.parts."))
    return is_of_jobs and any(kind in result for kind in ("Json", "Spec"))


def _places(function: Function) -> Iterator[_Place]:
    for node in (node for statement in function.body for node in ast.walk(statement)):
        match node:
            case ast.Call(func=called, keywords=keywords):
                for number, keyword in enumerate(keywords):
                    label = f"keyword {keyword.arg} of {ast.unparse(called)[-40:]} dropped"
                    yield from [_Place(label, node, number)] if keyword.arg else ()
            case ast.Dict(keys=keys):
                for number, key in enumerate(keys):
                    yield from [_Place(f"key {_text(key)} dropped", node, number)] if key else ()
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield _Place(f"condition {_text(test)} turned", node)
            case ast.comprehension(ifs=tests):
                for number, test in enumerate(tests):
                    yield _Place(f"condition {_text(test)} turned", node, number)
            case _:
                pass


def _text(node: ast.expr) -> str:
    return ast.unparse(node)[:60]


def _may_go(module: str, place: _Place) -> bool:
    """Return whether a keyword may be left out, as far as the module's names tell."""
    if not isinstance(place.node, ast.Call):
        return True
    with suppress(Exception):
        value: Any = importlib.import_module(module)
        for name in ast.unparse(place.node.func).split("."):
            value = getattr(value, name)
        keyword = str(place.node.keywords[place.number].arg)
        return inspect.signature(value).parameters[keyword].default is not inspect.Parameter.empty
    return True


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    nodes: list[ast.AST] = [*function.body]
    for node in nodes:
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            nodes += ast.iter_child_nodes(node)
            yield node


def _call(name: str, id: str) -> Wrap:
    return lambda value: ast.Call(ast.Name(name, ast.Load()), [ast.Constant(id), value], [])


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _functions(node: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, Function]]:
    for child in node.body:
        if isinstance(child, Function):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file, which nobody changes."""
    return ast.parse(path.read_bytes())


def modules(root: str) -> Sequence[tuple[str, Path]]:
    """Return the modules of a source root, or of a package."""
    return [
        (module_of(path.relative_to(ROOT)), path) for path in sorted((ROOT / root).rglob("*.py"))
    ]


def path_of(module: str) -> Path:
    """Return the file of a module of the product."""
    parts = module.split(".")
    bases = [ROOT.joinpath(*root, *parts) for root in ((), *((name,) for name in SOURCE_ROOTS))]
    files = [file for base in bases for file in (base.with_suffix(".py"), base / "__init__.py")]
    return next(file for file in files if file.exists())
