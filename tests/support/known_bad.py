"""The suite of wrong cluster files in `tests/data/known_bad`, and the answers that `check` gives.

A case changes a base: `base.yaml`, or the one of `bases.yaml` that it names by `over`. Pools are
changed by their names, and null removes a key. `document` replaces the base.
"""

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from tests.support.folders import DATA
from ultrascale import config
from ultrascale.errors import ConfigError, Diagnostic, UltrascaleError
from ultrascale.jobs.checked_file import check_file

FOLDER = DATA / "known_bad"
OTHERS = ("base", "bases", "field_failures")
# These hold a value of the file as a whole.
WHOLE = ("purchase", "nodes")
# A note on every cluster.
SAID_OF_ALL = "standard_support_ends"
Document = dict[str, Any]


@cache
def read(name: str) -> Document:
    return yaml.load((FOLDER / f"{name}.yaml").read_text(), yaml.CSafeLoader)


@cache
def subjects() -> Mapping[str, Mapping[str, Document]]:
    """Return the cases by their names, for each file of cases."""
    names = [path.stem for path in sorted(FOLDER.glob("*.yaml")) if path.stem not in OTHERS]
    return {name: read(name) for name in names}


@cache
def cases() -> Mapping[str, Document]:
    """Return all cases by their names."""
    return {name: case for subject in subjects().values() for name, case in subject.items()}


def base(name: str | None = None) -> Document:
    """Return the document of ``name`` in `bases.yaml`, or that of `base.yaml`."""
    return read("base") if name is None else overlaid(read("base"), read("bases")[name])


def document_of(case: Mapping[str, Any]) -> Document:
    """Return the wrong cluster file of ``case``."""
    if "document" in case:
        return case["document"]
    return overlaid(base(case.get("over")), case["change"])


def overlaid(document: Mapping[str, Any], change: Mapping[str, Any]) -> Document:
    result = dict(document)
    for key, value in change.items():
        if key == "pools" and isinstance(value, dict) and isinstance(result.get(key), list):
            result[key] = _overlaid_pools(result[key], cast("Document", value))
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict) and key not in WHOLE:
            result[key] = overlaid(result[key], cast("Document", value))
        else:
            result[key] = value
    return result


def _overlaid_pools(pools: list[Document], change: Mapping[str, Document | None]) -> list[Document]:
    named = {pool["name"]: pool for pool in pools}
    for name, keys in change.items():
        if keys is None:
            del named[name]
        else:
            named[name] = overlaid(named.get(name, {"name": name}), keys)
    return list(named.values())


def answers(document: object) -> tuple[Diagnostic, ...]:
    """Return the mistakes that `ultrascale check` names, or the warnings and notes without any.

    Mistakes beside a value that nothing builds yet are those of the file alone.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cluster.yaml")
        path.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
        try:
            checked = check_file(path)
        except ConfigError as error:
            if not any("not supported yet" in each.message for each in error.diagnostics):
                return error.diagnostics
        except UltrascaleError as error:
            return (Diagnostic(message=str(error), code="catalog"),)
        else:
            remarks = (*checked.warnings, *checked.notes)
            return tuple(remark for remark in remarks if remark.code != SAID_OF_ALL)
        try:
            config.load(path)
        except ConfigError as error:
            return error.diagnostics
    return ()


@cache
def answers_to(name: str) -> tuple[Diagnostic, ...]:
    """Return the answers to the case ``name``."""
    return answers(document_of(cases()[name]))
