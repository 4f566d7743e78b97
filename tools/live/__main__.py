"""`make live`: reads its settings from the environment, and runs or resumes a live run."""

import hashlib
import os
import secrets
import signal
import string
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from tools.live.actions import ACTIONS, HOURS, with_needs
from tools.live.run import LiveError, Run, State, load

ROOT = Path(__file__).parents[2]
_SETTINGS = ("ACCOUNT", "REGION", "BUDGET", "ADMIN", "PROFILE")
_GRACE, _LOOK = 600.0, 0.5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that lead to destroy and inventory."""


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.check_output(("git", *arguments), cwd=ROOT, text=True).strip()


def run_logged(
    words: Sequence[str], folder: Path, stopped: Callable[[], bool] = lambda: False
) -> tuple[int, str]:
    """Run a command with a log of it; return its exit status and its output.

    It has a session of its own, and is asked to end where that is safe. A handler that raises could
    interrupt between the start of a command and our record of it.

    Raises:
        KeyboardInterrupt: A signal has stopped the run.
    """
    if stopped():
        raise KeyboardInterrupt
    with (folder / "log.txt").open("a+") as log:
        print(f"$ {' '.join(words)}", file=log, flush=True)
        begun, ends = log.tell(), 0.0
        process = subprocess.Popen(words, stdout=log, cwd=folder, start_new_session=True)
        while True:
            try:
                process.wait(_LOOK)
                break
            except subprocess.TimeoutExpired:
                if stopped() and not ends:
                    ends = time.monotonic() + _GRACE
                    os.killpg(process.pid, signal.SIGINT)
                elif ends and time.monotonic() > ends:
                    os.killpg(process.pid, signal.SIGKILL)
        log.seek(begun)
        printed = log.read()
        print(f"-> {process.returncode}", file=log)
    if ends:
        raise KeyboardInterrupt
    return process.returncode, printed


def write_variants(names: dict[str, str]) -> None:
    """Write the file with a build that EKS lacks, and the file of the next minor."""
    builds = {"aws-ebs-csi-driver": "v1.999.0-eksbuild.1"}
    for name, section in (("broken", {"addons": builds}), ("upgraded", {"version": "1.36"})):
        document = yaml.safe_load(Path(names["file"]).read_text())
        document["kubernetes"] |= section
        Path(names[name]).write_text(yaml.safe_dump(document, sort_keys=False))


def main() -> int:
    """Run it, and return the exit status."""
    os.umask(0o077)
    own, resumed = os.environ, os.environ.get("RESUME")
    if missing := [name for name in _SETTINGS if not own.get(name)]:
        sys.exit(f"live: set {', '.join(missing)}: docs/live.md says to what")
    known = [action.name for action in ACTIONS]
    chosen = {*own.get("ACTIONS", "").split()} or {*known}
    if own["PROFILE"] not in HOURS or not chosen <= {*known}:
        sys.exit(f"live: PROFILE is of {', '.join(HOURS)}, and ACTIONS of {', '.join(known)}")
    if git("status", "--porcelain"):
        sys.exit("live: the checkout has changes: commit them, so that the run has a commit")
    id = resumed or secrets.token_hex(4)
    folder = ROOT / ".make" / "live" / id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    template = (Path(__file__).parent / f"live-{own['PROFILE']}.yaml").read_text()
    names = {
        **{name.lower(): own[name] for name in _SETTINGS},
        **{name: str(folder / f"{name}.yaml") for name in ("file", "broken", "upgraded")},
        **{"name": f"live-{id}", "folder": str(folder), "prices": str(folder / "prices.csv")},
        "hours": str(HOURS[own["PROFILE"]]),
        "accept_usd": f"{float(own['BUDGET']) / 3:.2f}",
    }
    order = with_needs(chosen)
    identity = {
        **{name.lower(): own[name] for name in _SETTINGS},
        **{"run": id, "commit": git("rev-parse", "HEAD"), "actions": " ".join(order)},
        "file": hashlib.sha256(template.encode()).hexdigest(),
    }
    try:
        state = load(folder / "report.json", identity) if resumed else State(identity)
    except (OSError, LiveError) as error:
        sys.exit(f"live: {error}")
    if not resumed:
        Path(names["file"]).write_text(string.Template(template).substitute(names))

    heard: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _: heard.append(number))

    def shield() -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        heard.clear()

    print(f"live: run {id}: tail -f {folder}/log.txt; after a kill: RESUME={id}", flush=True)
    run = Run(
        state,
        names,
        lambda words: run_logged(words, folder, lambda: bool(heard)),
        lambda state: state.save(folder / "report.json"),
        lambda: write_variants(names),
    )
    ending = run.go(order, shield)
    print(f"live: {ending}{state.failure and f': {state.failure}'}", *state.left, sep="\n")
    return 0 if ending in ("PASSED", "PARTIAL") else 3


if __name__ == "__main__":
    sys.exit(main())
