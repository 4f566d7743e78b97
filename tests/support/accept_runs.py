"""Runs of an acceptance against a stub API server."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.folders import ROOT
from ultrascale import plan
from ultrascale.accept.model import Run
from ultrascale.cluster_api.server import Cluster

FILE = ROOT / "clusters" / "llm-kueue.yaml"
AT = datetime(2026, 12, 5, 12, tzinfo=UTC)


def make_run(cluster: Cluster, folder: Path, **fields: Any) -> Run:
    """Return the input of checks, with manifests in ``folder``."""
    planned = fields.pop("plan", None) or plan.load(FILE)
    given = {"manifests": folder / "dist", "assembly": folder / "cdk.out"}
    return Run(id="r1", file=FILE, plan=planned, cluster=cluster, at=AT, **given, **fields)
