"""Measures synth wall time: `make bench`.

Every figure is the fastest of a few whole Python processes, taken in one run: this cluster against
an empty Python CDK app, with and without CDK's built-in validation, and one pool against a hundred.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from tests.support.folders import ROOT

_RUNS = 3
_MANY_POOLS = 100
_EMPTY = """
from ultrascale.node import use_bundled_node
use_bundled_node()
import aws_cdk as cdk
app = cdk.App(outdir={out!r}, builtin_cloud_formation_validation={validate})
cdk.Stack(app, "Empty")
app.synth()
"""
_CLUSTER = """
import json
from pathlib import Path
from ultrascale_stacks import app as entry
import aws_cdk as cdk
from ultrascale import plan
context = json.loads(Path({root!r}, "cdk.json").read_text())["context"]
app = cdk.App(outdir={out!r}, context=context, builtin_cloud_formation_validation={validate})
cluster = plan.load(Path({file!r}))
entry.synthesize(app, cluster, manifests=Path({out!r}, "dist"))
"""


def seconds(program: str, **values: object) -> float:
    """Return the fastest wall time, in seconds, of running ``program`` in a fresh Python."""
    times: list[float] = []
    # As on a user's machine: without it Python compiles every module each time.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(_RUNS):
        with tempfile.TemporaryDirectory() as out:
            code = program.format(out=out, root=str(ROOT), **values)
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", code],
                check=True,
                cwd=ROOT,
                env=environment,
                capture_output=True,
            )
            times.append(time.perf_counter() - start)
    return min(times)


def with_pools(count: int, folder: Path) -> Path:
    """Write a cluster file with ``count`` Trainium node groups; EKS manages no more than 30."""
    document = yaml.safe_load((ROOT / "clusters" / "trainium-bert.yaml").read_text())
    system, pool = document["pools"]
    pools = [
        pool | {"name": f"trn1-{index}", "nodes": {"static": 1}, "provisioner": "self-managed"}
        for index in range(count)
    ]
    file = folder / f"{count}.yaml"
    file.write_text(yaml.safe_dump(document | {"pools": [system, *pools]}))
    return file


def main() -> None:
    """Print the figures."""
    print(f"{'':34}{'empty app':>10}{'cluster':>10}{'ratio':>8}")
    for validate, label in ((True, "built-in validation on"), (False, "built-in validation off")):
        empty = seconds(_EMPTY, validate=validate)
        file = str(ROOT / "clusters" / "trainium-bert.yaml")
        ours = seconds(_CLUSTER, validate=validate, file=file)
        print(f"{label:34}{empty:>9.2f}s{ours:>9.2f}s{ours / empty:>7.2f}x")
    with tempfile.TemporaryDirectory() as folder:
        one, many = (
            seconds(_CLUSTER, validate=False, file=str(with_pools(count, Path(folder))))
            for count in (1, _MANY_POOLS)
        )
    each = 1000 * (many - one) / (_MANY_POOLS - 1)
    print(f"1 pool {one:.2f}s, {_MANY_POOLS} pools {many:.2f}s: {each:.0f} ms for each node group")


if __name__ == "__main__":
    main()
