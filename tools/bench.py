"""Speed that users feel: `make bench`.

Every figure compares two programs within one run: ours, and the least that does a job of the kind.
They run in turns, so that a busy machine slows both; the fastest run of each counts. CPU time is
that of the whole process tree (Node.js works beside Python), wall time the user's wait.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

_ROOT = Path(__file__).parent.parent
_TRAINIUM = _ROOT / "clusters" / "trainium-bert.yaml"
_MANY_POOLS = 100

# The imports of any reader of a typed file: `import pydantic` alone imports nothing of it.
_READER = """
from pydantic import BaseModel
import yaml
yaml.load(open({file!r}), yaml.CSafeLoader)
"""
_OURS = """
import sys
sys.argv = ["ultrascale", *{arguments!r}]
from ultrascale.__main__ import run
run()
"""
_EMPTY = """
from ultrascale.node import use_node
use_node()
import aws_cdk as cdk
app = cdk.App()
cdk.Stack(app, "Empty")
app.synth()
"""
_CLUSTER = """
from ultrascale_stacks.app import main
main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program, and its context from `cdk synth`; whether templates are checked."""

    code: str
    context: Mapping[str, object] | None = None
    validated: bool = True


@dataclass(slots=True)
class Time:
    """The least time of several runs, in seconds."""

    wall: float = float("inf")
    cpu: float = float("inf")

    def run(self, program: Program) -> None:
        """Run a program in a Python of its own, and keep its time where it is less."""
        # As on a user's machine: without it Python compiles every module each time.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["CDK_CONTEXT_JSON"] = json.dumps(program.context or {})
        environment["CDK_VALIDATION"] = json.dumps(program.validated)
        with tempfile.TemporaryDirectory() as folder:
            environment["CDK_OUTDIR"] = str(Path(folder, "cdk.out"))
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", program.code],
                check=True,
                cwd=folder,
                env=environment,
                capture_output=True,
            )
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.wall, self.cpu = min(self.wall, wall), min(self.cpu, cpu)


def times(programs: Mapping[str, Program], *, runs: int) -> dict[str, Time]:
    """Return the least time of each program over ``runs`` rounds."""
    fastest = {name: Time() for name in programs}
    # One more round first: it writes bytecode and warms the machine's caches.
    for _ in range(runs + 1):
        for name, program in programs.items():
            fastest[name].run(program)
    return fastest


def print_ratio(label: str, base: Program, ours: Program, *, wanted: float, runs: int) -> None:
    """Print the times of two programs, and their ratios beside the wanted one."""
    fastest = times({"base": base, "ours": ours}, runs=runs)
    theirs, own = fastest["base"], fastest["ours"]
    print(
        f"{label:52}{theirs.wall:7.2f} s {own.wall:7.2f} s {own.wall / theirs.wall:6.2f}x"
        f"{own.cpu / theirs.cpu:8.2f}x{wanted:8.1f}x",
        flush=True,
    )


def with_pools(count: int, folder: Path) -> Path:
    """Write a cluster file with ``count`` Trainium node groups; EKS manages no more than 30."""
    document = yaml.safe_load(_TRAINIUM.read_text())
    system, pool = document["pools"]
    pools = [
        pool | {"name": f"trn1-{index}", "nodes": {"static": 1}, "provisioner": "self-managed"}
        for index in range(count)
    ]
    file = folder / f"{count}.yaml"
    file.write_text(yaml.safe_dump(document | {"pools": [system, *pools]}))
    return file


def _cluster(file: Path, *, validated: bool) -> Program:
    return Program(code=_CLUSTER, context={"cluster": str(file)}, validated=validated)


def measure_command_line(runs: int) -> None:
    """Print the times of the command line."""
    print_ratio(
        "ultrascale --help : import typer",
        Program(code="import typer"),
        Program(code=_OURS.format(arguments=["--help"])),
        wanted=1.2,
        runs=runs,
    )
    print_ratio(
        "ultrascale check : pydantic, yaml, the file parsed",
        Program(code=_READER.format(file=str(_TRAINIUM))),
        Program(code=_OURS.format(arguments=["check", str(_TRAINIUM)])),
        wanted=2.5,
        runs=runs,
    )


def measure_synthesis(runs: int) -> None:
    """Print the times of synthesis, and of each further node group."""
    for validated, label, wanted in (
        (True, "synth, validated : empty CDK app", 2.5),
        (False, "synth, not validated : empty CDK app", 4.0),
    ):
        print_ratio(
            label,
            Program(code=_EMPTY, validated=validated),
            _cluster(_TRAINIUM, validated=validated),
            wanted=wanted,
            runs=runs,
        )
    with tempfile.TemporaryDirectory() as folder:
        counts = (1, _MANY_POOLS)
        programs = {
            str(count): _cluster(with_pools(count, Path(folder)), validated=False)
            for count in counts
        }
        one, many = times(programs, runs=runs).values()
    wall, cpu = (
        1000 * further / (_MANY_POOLS - 1) for further in (many.wall - one.wall, many.cpu - one.cpu)
    )
    print(f"each further node group: {wall:.0f} ms, CPU {cpu:.0f} ms; wanted 22 ms")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each program")
    parser.add_argument("--only", choices=["cli", "synth"], help="one part alone")
    arguments = parser.parse_args()
    print(f"{'ours : what it is compared with':52}{'that':>9} {'ours':>9} {'wall':>7}", end="")
    print(f"{'CPU':>9}{'wanted':>9}")
    if arguments.only != "synth":
        measure_command_line(3 * arguments.runs)
    if arguments.only != "cli":
        measure_synthesis(arguments.runs)


if __name__ == "__main__":
    main()
