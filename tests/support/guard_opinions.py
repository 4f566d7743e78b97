"""Verdicts that the change guard has to reach on changes of each key, and those it must not.

`tests/data/guard-opinions.yaml` has a row for each key of the cluster file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, cast, get_args

import yaml

from tests.support.folders import DATA
from tests.support.guard_changes import NOT_DEPLOYED, Kind, known_keys
from ultrascale.guard.model import Verdict

TABLE = DATA / "guard-opinions.yaml"
FILES = DATA / "guard-files.yaml"
_NAME = TABLE.name
_QUIET = frozenset[str]()

Reached: TypeAlias = Mapping[tuple[str, Kind], Mapping[str, str]]
"""Verdicts by key and kind of change, each with a change that reached it."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """Verdicts on changes of one key."""

    # Verdicts that changes of each kind reach, all together; a kind that is not there reaches none
    verdicts: Mapping[Kind, frozenset[str]]
    none: str = ""  # Reason why no change of the key is swept; empty where some are

    def on(self, kind: Kind) -> frozenset[str]:
        """Return the verdicts that changes of a kind reach."""
        return self.verdicts.get(kind, _QUIET)


@cache
def opinions() -> Mapping[str, Opinion]:
    """Return the table, by key."""
    rows: dict[str, dict[str, Any]] = yaml.load(TABLE.read_text(), yaml.CSafeLoader)
    return {
        key: Opinion(
            verdicts={cast("Kind", kind): frozenset(row[kind]) for kind in row if kind != "none"},
            none=row.get("none", ""),
        )
        for key, row in rows.items()
    }


def mistakes() -> Iterator[str]:
    """Yield what is wrong with the table itself, without a change of any file."""
    judged = {key for key in known_keys() if not key.startswith(f"{NOT_DEPLOYED}.")}
    for key in sorted(judged - opinions().keys()):
        yield (
            f"{key}: the change guard's sweep has no opinion on it. Add a row to "
            f"tests/data/{_NAME} with the verdicts on its changes (`added`, `removed`, `up`, "
            "`down`, `on`, `off`, "
            f"`other`; none: `{key}: {{}}`), and a value to tests/data/{FILES.name} where no file "
            "of clusters/ has the key; `python -m tests.support.guard_sweep KEY` tries it alone"
        )
    for key in sorted(opinions().keys() - judged):
        yield f"{key}: no key of the cluster file; take its row out of tests/data/{_NAME}"
    known = {*get_args(Verdict)}
    for key, opinion in opinions().items():
        for kind, verdicts in opinion.verdicts.items():
            if kind not in get_args(Kind) or not verdicts <= known:
                yield f"{key}: {kind}: {sorted(verdicts)} is no kind of change, or no verdict"


_ONE = {"ends running nodes": "ends reserved nodes"}


def surprises(reached: Reached, *, whole: bool) -> Iterator[str]:
    """Yield the verdicts that the table does not expect, and those that it expects in vain.

    Args:
        reached: For each key and kind of change its verdicts, each with a change that reaches it.
        whole: Whether all changes were tried.
    """
    for (key, kind), found in reached.items():
        # The files of the sweep decide which of the two it is.
        verdicts = {_ONE.get(verdict, verdict): change for verdict, change in found.items()}
        expected = opinions()[key].on(kind) if key in opinions() else _QUIET
        for verdict in sorted(verdicts.keys() - expected):
            yield (
                f"{key}: {kind}: the guard says '{verdict}' of {verdicts[verdict]}; mend it, or "
                f"say so in tests/data/{_NAME}"
            )
        for verdict in sorted(expected - verdicts.keys()) if whole else ():
            yield (
                f"{key}: {kind}: the guard never says '{verdict}'; mend it, or take it out of "
                f"tests/data/{_NAME}"
            )
    tried = {key for key, _ in reached}
    for key, opinion in opinions().items() if whole else ():
        if (key in tried) == bool(opinion.none):
            yield (
                f"{key}: no change of it is tried; add a value to tests/data/{FILES.name}, or give "
                f"the reason as `none` in tests/data/{_NAME}"
                if key not in tried
                else f"{key}: changes of it are tried; take `none` out of tests/data/{_NAME}"
            )
