"""Runs the checks that take long: `make verify` all of them, before a release and once a week.

`verified.toml` names for each the commit at which `make verify` passed it. With `--changed`, as in
`.ci/run`, a check runs where its files have changed since, or its commit is unknown to git or 200
commits away; some run a shorter form there. What runs, what does not and why is printed.
"""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERIFIED = Path(__file__).with_name("verified.toml")
_FAR = 200


@dataclass(frozen=True)
class Check:
    """A check that takes long."""

    command: str  # Its command in the shell
    files: tuple[str, ...]  # Files and folders that it is about
    shorter: str = ""  # Command instead of it in `.ci/run` after a change of the files
    # Whether its cases are drawn anew each time: `.ci/run` has the shorter form alone, for a change
    # is not refused for what another one brought.
    drawn: bool = False
    # Command that installs what it needs, where not every machine can
    install: str = ""


_MODEL = ("ultrascale/catalog", "ultrascale/config", "ultrascale/core", "ultrascale/parts")
_TEMPLATES = ("constructs", "stacks", "k8s", "ultrascale/plan", *_MODEL, "clusters")
_LOCKS = ("pyproject.toml", "requirements.txt", "constraints.txt", "pylock.toml")
CHECKS: Mapping[str, Check] = {
    "wheel": Check("make wheel-test", (*_LOCKS, "hatch_build.py", "tests/wheel")),
    "titan": Check(
        "make titan",
        ("training", "tests/titan", "requirements-titan.txt", "ultrascale/parts/recipes"),
    ),
    "posttrain": Check(
        "make posttrain",
        (
            *("training", "tests/posttrain", "requirements-posttrain.txt"),
            *("ultrascale/parts/recipes", "ultrascale/parts/ray"),
        ),
        install="make .make/posttrain/.installed",
    ),
    "serving": Check(
        "make serving",
        (
            *("ultrascale/parts/services", "ultrascale/parts/front", "ultrascale/catalog/vllm.py"),
            *("ultrascale/plan/jobs/vllm.py", "tests/serving", "requirements-serving.txt"),
        ),
        install="make .make/serving/.installed",
    ),
    "docs-site": Check(
        "make docs-site && pytest --quiet --numprocesses 0 tests/docs/test_search.py",
        (
            *("docs", "zensical.toml", "tools/docs_site.py", "tools/site", "requirements-docs.txt"),
            *("tests/docs/test_search.py", "tests/support/browser.mjs"),
        ),
    ),
    "soak": Check(
        # TorchTitan's kill tests belong to its own environment.
        "SOAK=1 make test TESTS=\"$(grep -rlw --include='test_*.py' --exclude-dir=titan "
        "-e soak backend examples tests training | tr '\\n' ' ')\"",
        (
            *("backend/ultrascale_backend", "training/ultrascale_training"),
            *("examples/bert/ultrascale_bert", "ultrascale/teardown"),
        ),
    ),
    "sweep": Check(
        "python -m tests.support.guard_sweep",
        ("ultrascale/guard", *_TEMPLATES),
        shorter="python -m tests.support.guard_sweep --sample",
    ),
    "fuzz": Check(
        "make fuzz",
        ("ultrascale/config", "ultrascale/plan"),
        shorter="make fuzz FUZZ_SECONDS=30 SEED=1",
        drawn=True,
    ),
    "posture": Check("make posture", _TEMPLATES, shorter="make posture SCAN=--changed"),
}


def git(*arguments: str) -> str | None:
    """Return what git prints; None where it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def reason(check: Check, commit: str | None) -> tuple[str, str]:
    """Return the command of a check in `.ci/run` and the reason for it; no command: it need not."""
    count = git("rev-list", "--count", f"{commit}..HEAD") if commit else None
    whole = check.shorter if check.drawn else check.command
    if count is None:
        return whole, "no commit at which it passed is known here"
    if int(count) >= _FAR:
        return whole, f"it passed {count} commits ago"
    changed = (git("diff", "--name-only", str(commit), "--", *check.files) or "").splitlines()
    if not changed:
        return "", f"none of its files has changed since {commit}"
    return check.shorter or check.command, f"{changed[0]} and {len(changed) - 1} more files changed"


def run(name: str, command: str, why: str) -> bool:
    """Run a check; return whether it ran, for where what it needs cannot be installed it does not.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    install = CHECKS[name].install
    if install and subprocess.run(install, shell=True, cwd=ROOT, check=False).returncode:
        print(f"verify: {name}: NOT RUN: `{install}` failed here", flush=True)
        return False
    print(f"verify: {name}: `{command}`: {why}", flush=True)
    subprocess.run(command, shell=True, cwd=ROOT, check=True)
    return True


def record(names: Sequence[str], commits: Mapping[str, str]) -> None:
    """Write the current commit for the checks that passed."""
    head = git("rev-parse", "HEAD")
    if head is None or git("diff", "--quiet", "HEAD") is None:
        print("verify: changes are not committed: nothing is recorded")
        return
    lines = {**commits, **dict.fromkeys(names, head)}
    comment = "# Commits at which `make verify` passed each check.\n"
    VERIFIED.write_text(comment + "".join(f'{name} = "{lines[name]}"\n' for name in sorted(lines)))


def main() -> None:
    """Run the checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changed", action="store_true", help="run what the changes ask for")
    parser.add_argument("names", nargs="*", help="the checks; all by default")
    options = parser.parse_args()
    commits: Mapping[str, str] = tomllib.loads(VERIFIED.read_text()) if VERIFIED.exists() else {}
    passed: list[str] = []
    try:
        for name in options.names or CHECKS:
            command, why = CHECKS[name].command, "asked for"
            if options.changed:
                command, why = reason(CHECKS[name], commits.get(name))
            if not command:
                print(f"verify: {name}: not run: {why}", flush=True)
            elif run(name, command, why):
                passed.append(name)
    finally:
        if not options.changed:
            record(passed, commits)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"verify: failed: {error.cmd}")
