"""The catalogue of what rules say, `tests/data/messages.txt`: a change of words is read as a diff.

`python -m tests.support.messages` writes it. A sentence is shown as a case of `known_bad` brings it
about; one that no case brings about as its source has it, with the names of what is filled in.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import getsource
from types import ModuleType
from typing import Any

import ultrascale.parts
from tests.support import known_bad
from tests.support.folders import DATA
from ultrascale.errors import Severity, printable

FILE = DATA / "messages.txt"
_HEAD = (
    "# RULE SEVERITY KEY: SENTENCE of each mistake, written by `make messages`.",
    "# {} stands for what is filled in, where no case of known_bad brings the sentence about.",
)
_REGISTRIES = (
    ("ultrascale.config._rules", "rule"),
    ("ultrascale.plan.rules", "rule"),
    ("ultrascale.plan.jobs.rules", "rule"),
    ("ultrascale.plan.jobs.submission", "rule"),
    ("ultrascale.parts.pipeline.plan", "_rule"),
)
# Functions that make a mistake, with the places of the sentence and of the remedy.
_MAKERS: Mapping[str, tuple[int, int | None]] = {
    "refuse": (1, 2),
    "Mistake": (1, 2),
    "note": (1, None),
}
_WORD = r"^[^{]*[a-z]{3}|\}[^{]*[a-z]{3}"
_MOST = 40  # Sentences of one call; an expression has more only by mistake


@cache
def rules() -> Mapping[str, tuple[ModuleType, Severity]]:
    """Return the module and the severity of each registered rule, by its name."""
    importlib.import_module("ultrascale.plan.jobs.judgement")
    # Parts register their rules when something needs them.
    for module in pkgutil.walk_packages(ultrascale.parts.__path__, "ultrascale.parts."):
        importlib.import_module(module.name)
    found: dict[str, tuple[ModuleType, Severity]] = {}
    for place, name in _REGISTRIES:
        registry: Any = getattr(importlib.import_module(place), name)
        for rule in registry._rules:
            module = importlib.import_module(rule.function.__module__)
            found[rule.function.__name__] = module, rule.severity
    return found


def catalogue() -> list[str]:
    """Return the lines of the file."""
    return [*_HEAD, *sorted({*_rendered(), *_templates()})]


def _rendered() -> Iterator[str]:
    """Yield each sentence that the cases bring about, once, as it stands beside the first key."""
    shown: dict[tuple[str, str, str], str] = {}
    for name in known_bad.cases():
        for answer in known_bad.answers_to(name):
            line = f"{answer.code} {answer.severity} {printable(answer.keyed)}"
            place = (answer.code, answer.message, answer.fix)
            shown[place] = min(shown.get(place, line), line)
    yield from shown.values()


def _said() -> Mapping[str, Sequence[str]]:
    """Return the sentences that cases bring about, without their values, by rule."""
    said: dict[str, list[str]] = {}
    for name in known_bad.cases():
        for answer in known_bad.answers_to(name):
            sentence = f"{answer.message}; {answer.fix}" if answer.fix else answer.message
            said.setdefault(answer.code, []).append(sentence)
    return said


def _templates() -> Iterator[str]:
    """Yield the sentences in the source of rules that no case brings about."""
    said = _said()
    everything = [sentence for sentences in said.values() for sentence in sentences]
    for name, (module, severity) in rules().items():
        found = [*_sentences_of(module, name, far=name not in said)]
        found = found or [*_sentences_of_facts(module, name)]
        worded = [template for template in found if re.search(_WORD, template)]
        for template in worded or ([] if name in said else found):
            pattern = re.compile(_pattern(template))
            # Rules that share a function share its sentences.
            if name not in said or not any(map(pattern.fullmatch, everything)):
                yield f"{name} {severity} {template}"


def _pattern(template: str) -> str:
    parts = re.split(r"\{[^{}]*\}", template)
    return ".*".join(re.escape(part) for part in parts)


def _sentences_of(module: ModuleType, rule: str, *, far: bool = True) -> Iterator[str]:
    """Yield the sentences of a rule, and of functions that it calls: ``far``, of any module."""
    ahead, seen = [(module, rule)], set[tuple[ModuleType, str]]()
    while ahead:
        place = ahead.pop()
        function = _functions(place[0]).get(place[1])
        if place in seen or function is None:
            continue
        seen.add(place)
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in _MAKERS:
                yield from _sentences(node, _MAKERS[called], function)
            other = _place_of(node.func, place[0])
            if other is not None and (far or other[0] is module):
                ahead.append(other)


def _sentences_of_facts(module: ModuleType, rule: str) -> Iterator[str]:
    """Yield the sentences of the facts of a rule that hands on what they hold."""
    functions = _functions(module)
    taken = {ast.unparse(part.annotation) for part in functions[rule].args.args if part.annotation}
    for name, function in functions.items():
        if function.returns and ast.unparse(function.returns).removesuffix(" | None") in taken:
            yield from _sentences_of(module, name)


def _place_of(called: ast.expr, module: ModuleType) -> tuple[ModuleType, str] | None:
    """Return the module and the name of a called function of the product."""
    if isinstance(called, ast.Name):
        holder: object = module
        name = called.id
    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        holder = getattr(module, called.value.id, None)
        name = called.attr
    else:
        return None
    function: Any = getattr(holder, name, None)
    home = getattr(function, "__module__", None) or ""
    if not home.startswith("ultrascale.") or home.startswith("ultrascale.catalog"):
        return None
    return importlib.import_module(home), str(getattr(function, "__name__", name))


@cache
def _functions(module: ModuleType) -> Mapping[str, ast.FunctionDef]:
    tree = ast.parse(getsource(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _sentences(
    call: ast.Call, places: tuple[int, int | None], function: ast.FunctionDef
) -> Iterator[str]:
    wrong, todo = places
    named = {keyword.arg: keyword.value for keyword in call.keywords}

    def at(place: int, name: str) -> ast.expr | None:
        return call.args[place] if len(call.args) > place else named.get(name)

    sentence = at(wrong, "wrong")
    remedy = None if todo is None else at(todo, "todo")
    if sentence is None or (isinstance(sentence, ast.Constant) and not sentence.value):
        return
    remedies = (
        [""] if remedy is None else [f"; {each}" for each in _texts(remedy, function, call.lineno)]
    )
    for text in _texts(sentence, function, call.lineno):
        yield from (f"{text}{each}" for each in remedies)


def _texts(node: ast.expr, function: ast.FunctionDef, use: int, deep: int = 0) -> list[str]:
    """Return the texts that an expression may have; what only a run knows is in braces."""
    texts: list[str]
    if isinstance(node, ast.Constant):
        texts = [str(node.value)]
    elif isinstance(node, ast.JoinedStr):
        texts = [""]
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            texts = [
                start + end for start in texts for end in _texts(inner, function, use, deep + 1)
            ]
    elif isinstance(node, ast.IfExp):
        texts = [*_texts(node.body, function, use, deep), *_texts(node.orelse, function, use, deep)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        ends = _texts(node.right, function, use, deep)
        texts = [start + end for start in _texts(node.left, function, use, deep) for end in ends]
    elif isinstance(node, ast.Name) and deep < 3:
        values = _values_of(node.id, function, use)
        texts = [
            text for value in values for text in _texts(value, function, value.lineno, deep + 1)
        ]
        texts = texts or [f"{{{node.id}}}"]
    else:
        texts = ["{" + re.sub(r"[{}]", "", ast.unparse(node)) + "}"]
    return texts[:_MOST]


def _values_of(name: str, function: ast.FunctionDef, use: int) -> list[ast.expr]:
    """Return the texts that a variable may have at line ``use``: of the last sure assignment on."""
    found: list[ast.expr] = []
    for line, node, until in sorted(_assignments(function.body, function.end_lineno or 0))[::-1]:
        if line > use:
            continue
        values = [each for target in node.targets for each in _assigned(name, target, node.value)]
        found += values
        if values and until >= use:
            break
    return [each for each in found if isinstance(each, ast.Constant | ast.JoinedStr | ast.IfExp)]


def _assignments(block: Sequence[ast.stmt], end: int) -> Iterator[tuple[int, ast.Assign, int]]:
    """Yield assignments of a block with their line and the last line of their own block."""
    for node in block:
        if isinstance(node, ast.Assign):
            yield node.lineno, node, end
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner: list[Any] = getattr(node, name, [])
            for part in inner:
                if isinstance(part, ast.ExceptHandler | ast.match_case):
                    yield from _assignments(part.body, part.body[-1].end_lineno or end)
            statements = [part for part in inner if isinstance(part, ast.stmt)]
            if statements:
                yield from _assignments(statements, statements[-1].end_lineno or end)


def _assigned(name: str, target: ast.expr, value: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Name):
        return [value] if target.id == name else []
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=False)
        return [each for inner, part in pairs for each in _assigned(name, inner, part)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.IfExp):
        return [
            *_assigned(name, target, value.body),
            *_assigned(name, target, value.orelse),
        ]
    return []


def main() -> None:
    FILE.write_text("\n".join(catalogue()) + "\n")


if __name__ == "__main__":
    main()
