"""Write the advisories of served packages anew: `python tools/advisories.py DUMP [--read DAY]`.

DUMP is a folder or a zip of OSV's records as JSON, such as
https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip; nothing asks the network. Rows that
are there keep what a person judged: the option that a fault needs, the option that keeps requests
from it, its harm, and whether code runs. Advisories that the dump lacks stay, and are named. DAY is
the day of the dump, by default today.

Sources:
    https://ossf.github.io/osv-schema/
    https://www.first.org/cvss/v3-1/specification-document (section 7.1)
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from zipfile import ZipFile

from packaging.utils import canonicalize_name

from ultrascale.catalog.tables import FOLDER, read_table
from ultrascale.documents import JsonObject, mapping, objects, text

PACKAGES = ("vllm",)
COLUMNS = (
    *("id", "aliases", "package", "introduced", "fixed", "last", "severity"),
    *("runs_code", "needs", "unless", "impact", "published", "source"),
)
_JUDGED = ("runs_code", "needs", "unless", "impact")
# Weaknesses by which an attacker's code runs: injection of commands or code, unsafe objects.
_RUNS_CODE = frozenset({"CWE-77", "CWE-78", "CWE-94", "CWE-95", "CWE-502"})
_FIRST = ("CVE-", "GHSA-", "PYSEC-")
_WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
    "AC": {"L": 0.77, "H": 0.44},
    "PR": {"N": 0.85, "L": 0.62, "H": 0.27},
    "UI": {"N": 0.85, "R": 0.62},
    **{key: {"H": 0.56, "L": 0.22, "N": 0.0} for key in "CIA"},
}

Row = dict[str, str]


def records(dump: Path) -> Iterator[JsonObject]:
    """Yield the records of a folder or a zip."""
    if dump.is_dir():
        for file in sorted(dump.glob("**/*.json")):
            yield mapping(json.loads(file.read_bytes()))
        return
    with ZipFile(dump) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".json"):
                yield mapping(json.loads(archive.read(name)))


def rows(found: Iterable[JsonObject], old: Sequence[Mapping[str, str]]) -> list[Row]:
    """Return the table's rows: of each advisory one for each range of versions.

    Args:
        found: Records of OSV.
        old: Rows of the table as it is.
    """
    made: list[Row] = []
    covered: set[str] = set()
    for ids, group in _advisories(found):
        covered |= ids
        known = [row for row in old if ids & _ids(row)]
        made += _rows_of(ids, group, known[0] if known else {})
    made += [dict(row) for row in old if not covered & _ids(row)]
    return sorted(made, key=lambda row: (row["package"], row["published"], row["id"]))


def base_score(vector: str) -> float | None:
    """Return the base score of a vector of CVSS 3; None for another version."""
    parts = dict(part.split(":", 1) for part in vector.split("/") if ":" in part)
    if not parts.get("CVSS", "").startswith("3"):
        return None
    changed = parts["S"] == "C"
    weigh = {name: levels[parts[name]] for name, levels in _WEIGHTS.items()}
    if changed:
        weigh["PR"] = {"N": 0.85, "L": 0.68, "H": 0.5}[parts["PR"]]
    lost = 1 - (1 - weigh["C"]) * (1 - weigh["I"]) * (1 - weigh["A"])
    impact = 6.42 * lost
    if changed:
        impact = 7.52 * (lost - 0.029) - 3.25 * (lost - 0.02) ** 15
    if impact <= 0:
        return 0.0
    reach = 8.22 * weigh["AV"] * weigh["AC"] * weigh["PR"] * weigh["UI"]
    whole = round(min((1.08 if changed else 1) * (impact + reach), 10) * 100_000)
    return (whole // 10_000 + (whole % 10_000 > 0)) / 10


def _advisories(found: Iterable[JsonObject]) -> list[tuple[set[str], list[JsonObject]]]:
    """Return the records of each advisory with all of its ids: databases repeat each other's."""
    groups: list[tuple[set[str], list[JsonObject]]] = []
    for record in found:
        if record.get("withdrawn") or not [*_affected(record)]:
            continue
        ids, members = _record_ids(record), [record]
        joined = [group for group in groups if group[0] & ids]
        for other_ids, other_members in joined:
            ids |= other_ids
            members = [*other_members, *members]
        groups = [*(group for group in groups if group not in joined), (ids, members)]
    return groups


def _rows_of(ids: set[str], group: Sequence[JsonObject], known: Mapping[str, str]) -> Iterator[Row]:
    first, *others = sorted(ids, key=lambda id_: (not id_.startswith(_FIRST), *_rank(id_)))
    scores = [
        score
        for record in group
        for severity in objects(record, "severity")
        if (score := base_score(text(severity, "score"))) is not None
    ]
    weak = {str(cwe) for record in group for cwe in _weaknesses(record)}
    days = [day[:10] for record in group if (day := text(record, "published"))]
    said = next((line for record in group if (line := text(record, "summary"))), "not stated")
    judged = {
        "runs_code": "yes" if weak & _RUNS_CODE else "no",
        "impact": said,
        **{name: known[name] for name in _JUDGED if known.get(name)},
    }
    seen: set[tuple[str, str, str, str]] = set()
    for record in group:
        for package, ranges in _affected(record):
            for introduced, fixed, last in ranges:
                if (place := (package, introduced, fixed, last)) in seen:
                    continue
                seen.add(place)
                row = dict.fromkeys(COLUMNS, "")
                row |= {"id": first, "aliases": " ".join(others), "package": package}
                row |= {"introduced": introduced, "fixed": fixed, "last": last, **judged}
                row["severity"] = str(max(scores)) if scores else known.get("severity", "")
                row["published"] = min(days, default="")
                row["source"] = f"https://osv.dev/vulnerability/{text(record, 'id')}"
                yield row


def _affected(record: JsonObject) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the packages of ours that a record names, with their ranges of versions."""
    for affected in objects(record, "affected"):
        package = canonicalize_name(text(affected, "package", "name"))
        if text(affected, "package", "ecosystem") != "PyPI" or package not in PACKAGES:
            continue
        ranges: list[tuple[str, str, str]] = []
        for limits in objects(affected, "ranges"):
            if text(limits, "type") == "ECOSYSTEM":
                ranges += _intervals(objects(limits, "events"))
        # Without ranges a record lists the affected versions themselves.
        listed = affected.get("versions")
        if not ranges and isinstance(listed, list):
            ranges = [(str(version), "", str(version)) for version in listed]
        yield package, ranges


def _intervals(events: Iterable[JsonObject]) -> Iterator[tuple[str, str, str]]:
    """Yield the first version with a fault, the first without it, and the last with it."""
    introduced = ""
    for event in events:
        if begins := text(event, "introduced"):
            if introduced:
                yield introduced, "", ""
            introduced = begins
        elif introduced and (text(event, "fixed") or text(event, "last_affected")):
            yield introduced, text(event, "fixed"), text(event, "last_affected")
            introduced = ""
    if introduced:
        yield introduced, "", ""


def _record_ids(record: JsonObject) -> set[str]:
    aliases = record.get("aliases")
    return {text(record, "id"), *(map(str, aliases) if isinstance(aliases, list) else ())}


def _weaknesses(record: JsonObject) -> Sequence[object]:
    named = mapping(record.get("database_specific")).get("cwe_ids")
    return named if isinstance(named, list) else ()


def _ids(row: Mapping[str, str]) -> set[str]:
    return {row["id"], *row["aliases"].split()}


def _rank(id_: str) -> tuple[int, str]:
    return next((n for n, prefix in enumerate(_FIRST) if id_.startswith(prefix)), 9), id_


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> None:
    """Write `advisories.csv`, and the day of its reading."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("dump", type=Path)
    parser.add_argument("--read", type=date.fromisoformat, default=datetime.now(UTC).date())
    given = parser.parse_args(arguments)
    old = read_table("advisories.csv", folder)
    made = rows(records(given.dump), old)
    _write(folder / "advisories.csv", made)
    readings = [dict(row) for row in read_table("readings.csv", folder)]
    for row in readings:
        if row["kind"] == "advisories":
            row["seen"] = str(given.read)
    _write(folder / "readings.csv", readings)
    before = {row["id"] for row in old}
    for id_, impact in {row["id"]: row["impact"] for row in made}.items():
        if id_ not in before:
            print(f"new: {id_}, {impact}: judge needs, unless and runs_code")


def _write(file: Path, content: Sequence[Row]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, [*content[0]], lineterminator="\n")
        table.writeheader()
        table.writerows(content)


if __name__ == "__main__":
    sys.exit(main())
