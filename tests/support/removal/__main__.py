"""The command: `python -m tests.support.removal RESULTS`."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.removal import __doc__ as description
from tests.support.removal import parts
from tests.support.removal.node import SharedNode
from tests.support.removal.parts import Part
from tests.support.removal.recording import OPTIONS, Recording, SameExamples
from tests.support.removal.trials import Trials
from ultrascale.node import use_node

_TESTS = ("tests", "backend/tests")
_KINDS = ("rule", "guard", "renderer")
_KEPT = 3
_RECORDINGS = ROOT / ".make" / "removal"


def recorded(places: Sequence[str], cache: Path) -> Recording:
    """Return the recording of the tests as they are, made now unless ``cache`` has it."""
    file = cache / f"{_digest(places)}.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in sorted(file.parent.glob("*.json"), key=os.path.getmtime)[:-_KEPT]:
            old.unlink()
        with tempfile.TemporaryDirectory() as folder:
            words = ["-m", "tests.support.removal.recording", str(file), folder, *places]
            subprocess.run([sys.executable, *words], cwd=ROOT, check=False)
    return Recording(file)


def _digest(places: Sequence[str]) -> str:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    digest = hashlib.sha256("\n".join(places).encode())
    for name in sorted(filter(None, names)):
        file = ROOT / name.decode()
        digest.update(name + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()[:16]


def chosen(kinds: Sequence[str], renderers: int, seed: str) -> Iterator[Part]:
    """Yield the parts to remove."""
    if "rule" in kinds:
        yield from parts.rules()
    if "guard" in kinds:
        yield from parts.guards()
    if "renderer" in kinds:
        yield from parts.renderers(renderers, seed)


def main() -> int:
    """Remove one part after another; print the score and what no test misses."""
    options = argparse.ArgumentParser(
        prog="python -m tests.support.removal", description=description
    )
    options.add_argument("results", type=Path, metavar="RESULTS")
    options.add_argument("--kinds", nargs="+", choices=_KINDS, default=_KINDS)
    options.add_argument("--renderers", type=int, default=300, metavar="N")
    options.add_argument("--seed", default="1", help="draws the functions that render")
    options.add_argument("--only", nargs="+", metavar="NAME", help="parts, as RESULTS names them")
    options.add_argument("--seconds", type=float, default=30, help="limit of a part's CPU time")
    options.add_argument("--tests", nargs="+", default=_TESTS, metavar="PLACE")
    options.add_argument("--cache", type=Path, default=_RECORDINGS, metavar="FOLDER")
    given = options.parse_args()
    # A recording and its trials need the same options, wherever they run.
    os.environ.pop("PYTEST_ADDOPTS", None)
    recording = recorded(given.tests, given.cache)
    given.results.write_text("")
    use_node()
    node = SharedNode()
    removed = [parts.named(name) for name in given.only or ()]
    removed = removed or list(chosen(given.kinds, given.renderers, given.seed))
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(removed, recording, given.results, given.seconds, node)
        arguments = [*OPTIONS, f"--basetemp={folder}/basetemp", *given.tests]
        pytest.main(arguments, [SameExamples(), trials])
    lines = [json.loads(line) for line in given.results.read_text().splitlines()]
    for kind in given.kinds:
        outcomes = Counter(line["outcome"] for line in lines if line["kind"] == kind)
        print(f"{kind}: {outcomes['missed']} of {outcomes.total()} missed; {dict(outcomes)}")
    kept = [line for line in lines if line["outcome"] != "missed"]
    for line in kept:
        print("{outcome}: {name}: {change} ({tests} tests, {seconds} s)".format(**line))
    return 1 if kept else 0


if __name__ == "__main__":
    sys.exit(main())
