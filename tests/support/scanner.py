"""Scans what every cluster file and a pipeline become by checkov: `make posture`.

Every finding needs a reason in `scanner_exceptions.yaml`, and every reason a finding. A scan that
passes is recorded in `posture.txt`, a hash a file: `.ci/run` scans the files of other hashes alone.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import chdir
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import yaml

from tests.support.assembly import synthesize
from tests.support.folders import DATA, ROOT
from tests.support.pipelines import synthesize_pipeline, two_accounts
from tests.support.rendered import masked

EXCEPTIONS = DATA / "scanner_exceptions.yaml"
PASSED = DATA / "posture.txt"
REQUIREMENTS = ROOT / "requirements-posture.txt"
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


def unexplained(found: Iterable[Finding], reasons: Reasons, *, whole: bool = True) -> list[str]:
    """Return the findings without a reason, and the reasons without a finding.

    Args:
        found: The findings.
        reasons: Reasons by check.
        whole: Whether everything was scanned, so that each reason is needed.
    """
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
    for check, reason in reasons.items() if whole else ():
        for pattern in reason.get("only", ["*"]):
            if (check, pattern) not in used:
                lines.append(f"{check} {pattern}: excepted, and nothing needs it")
    return lines


def written(folder: Path) -> Mapping[str, list[Path]]:
    """Return the files of synthesized clusters and pipelines, by the framework that judges them."""
    return {
        "cloudformation": sorted(
            path
            # Those of a pipeline's stages are scanned as what their own files become.
            for pattern in ("*.template.json", "assembly-*/*.template.json")
            for path in folder.glob(f"*/cdk.out/{pattern}")
        ),
        "kubernetes": sorted(folder.glob("*/dist/*.k8s.yaml")),
    }


def fingerprint(text: str) -> str:
    """Return a hash of a file, without what follows from the bytes of our own sources."""
    return sha256(masked(text).encode()).hexdigest()[:16]


def rules() -> str:
    """Return a hash of what judges: the scanner's version and the exceptions."""
    return fingerprint(REQUIREMENTS.read_text() + EXCEPTIONS.read_text())


def changed(files: Sequence[Path], passed: Set[str]) -> list[Path]:
    """Return the files that are not among those that ``passed``, and one that is.

    The scanner says nothing of a file without any resource that it knows: the first one has some.
    """
    new = [file for file in files if fingerprint(file.read_text()) not in passed]
    return [*dict.fromkeys([files[0], *new])] if new else []


def synthesize_pipelines(folder: Path) -> None:
    """Synthesize the pipelines of the cluster files, and one into two accounts."""
    for file in sorted((ROOT / "clusters").glob("*.yaml")):
        synthesize_pipeline(file, folder / f"{file.stem}-pipeline")
    repository = folder / "repository"
    repository.mkdir()
    with chdir(repository):
        synthesize_pipeline(two_accounts(repository), folder / "two-accounts")


def main(checkov: str, folder: Path, *, whole: bool) -> int:
    """Scan synthesized clusters, and pipelines; print what has no reason.

    Args:
        checkov: The scanner.
        folder: Where each cluster was synthesized into a folder of its own.
        whole: Whether everything is scanned and recorded, and not what changed alone.

    Returns:
        The exit status.
    """
    synthesize_pipelines(folder)
    files = written(folder)
    recorded = frozenset(PASSED.read_text().split()) if PASSED.exists() else frozenset[str]()
    whole = whole or rules() not in recorded
    found: list[Finding] = []
    count = 0
    for framework, paths in files.items():
        given = paths if whole else changed(paths, recorded)
        count += len(given)
        found += scan(checkov, framework, given) if given else ()
    reasons = cast("Reasons", yaml.safe_load(EXCEPTIONS.read_text(encoding="utf-8")))
    lines = unexplained(found, reasons, whole=whole)
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"checkov: {count} of {sum(map(len, files.values()))} files scanned")
    print(f"{len({*found})} findings of {len({each.check for each in found})} checks")
    print(f"{len(lines)} are not as {EXCEPTIONS.name} has them")
    if whole and not lines:
        hashes = {fingerprint(path.read_text()) for paths in files.values() for path in paths}
        PASSED.write_text("\n".join(sorted({rules(), *hashes})) + "\n")
    return bool(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for cluster in sorted((ROOT / "clusters").glob("*.yaml")):
            synthesize(cluster, Path(temporary, cluster.stem), validated=False)
        sys.exit(main(sys.argv[1], Path(temporary), whole="--changed" not in sys.argv))
