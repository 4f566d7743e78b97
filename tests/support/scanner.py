"""Scans what every cluster file and a pipeline become by checkov: `make posture`.

Every finding needs a reason in `scanner_exceptions.yaml`, and every reason a finding.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, cast

import yaml

from tests.support.assembly import synthesize
from tests.support.folders import DATA, ROOT
from tests.support.pipelines import synthesize_pipeline, two_accounts

EXCEPTIONS = DATA / "scanner_exceptions.yaml"
Reasons = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, order=True)
class Finding:
    """A finding of the scanner's."""

    check: str  # Id of the check
    resource: str  # Type and logical id, or kind, namespace and name
    title: str  # What the check wants


class ScanError(Exception):
    """The scanner could not judge what it was given."""


def scan(checkov: str, framework: str, files: Sequence[Path]) -> Iterator[Finding]:
    """Yield the findings of one framework of checkov's in ``files``.

    Raises:
        ScanError: It did not run, could not read a file, or judged nothing.
    """
    named = [argument for file in files for argument in ("--file", str(file))]
    answer = subprocess.run(
        # --skip-download: nothing is asked of the vendor's platform.
        [
            *(checkov, "--framework", framework, "--output", "json", "--compact", "--quiet"),
            *("--skip-download", "--soft-fail", *named),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise ScanError(f"{framework}: checkov ended with {answer.returncode}: {answer.stderr}")
    yield from findings(framework, answer.stdout)


def findings(framework: str, text: str) -> Iterator[Finding]:
    """Yield the findings in checkov's answer.

    Raises:
        ScanError: A file could not be read, or nothing was judged.
    """
    report = cast("Mapping[str, Any]", json.loads(text))
    summary = report.get("summary", report)
    if summary.get("parsing_errors") or not summary.get("passed"):
        raise ScanError(f"{framework}: not everything was judged: {summary}")
    for found in report["results"]["failed_checks"]:
        yield Finding(found["check_id"], found["resource"], found["check_name"])


def unexplained(found: Iterable[Finding], reasons: Reasons) -> list[str]:
    """Return the findings without a reason, and the reasons without a finding."""
    everything = sorted({*found})
    used: set[tuple[str, str]] = set()
    lines: list[str] = []
    for finding in everything:
        patterns = [
            each
            for each in reasons.get(finding.check, {}).get("only", ["*"])
            if finding.check in reasons and fnmatch(finding.resource, each)
        ]
        used |= {(finding.check, each) for each in patterns}
        if not patterns:
            lines.append(f"{finding.check} {finding.resource}: {finding.title}")
    for check, reason in reasons.items():
        for pattern in reason.get("only", ["*"]):
            if (check, pattern) not in used:
                lines.append(f"{check} {pattern}: excepted, and nothing needs it")
    return lines


def main(checkov: str) -> None:
    """Scan what every cluster file becomes; print what has no reason, and exit 1 if anything."""
    found: list[Finding] = []
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted((ROOT / "clusters").glob("*.yaml")):
            synthesize(file, Path(folder, file.stem))
            synthesize_pipeline(file, Path(folder, f"{file.stem}-pipeline"))
        repository = Path(folder, "repository")
        repository.mkdir()
        with chdir(repository):
            synthesize_pipeline(two_accounts(repository), Path(folder, "two-accounts"))
        files = {
            "cloudformation": sorted(
                path
                # Those of a pipeline's stages are scanned as what their own files become.
                for pattern in ("*.template.json", "assembly-*/*.template.json")
                for path in Path(folder).glob(f"*/cdk.out/{pattern}")
            ),
            "kubernetes": sorted(Path(folder).glob("*/dist/*.k8s.yaml")),
        }
        for framework, given in files.items():
            found += scan(checkov, framework, given)
    reasons = cast("Reasons", yaml.safe_load(EXCEPTIONS.read_text(encoding="utf-8")))
    lines = unexplained(found, reasons)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{len({*found})} findings of {len({each.check for each in found})} checks")
    print(f"{len(lines)} are not as {EXCEPTIONS.name} has them")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main(sys.argv[1])
