"""Runs of an acceptance against a stub API server that has the objects of a small assembly."""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.folders import ROOT
from tests.support.stub_api_objects import owned
from tests.support.stub_api_server import Object, StubApiServer
from ultrascale import plan
from ultrascale.accept.compare import LAST_APPLIED
from ultrascale.accept.model import Run
from ultrascale.cluster_api.objects import Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.guard.objects import MANIFEST

FILE = ROOT / "clusters" / "llm-kueue.yaml"
AT = datetime(2026, 12, 5, 12, tzinfo=UTC)
STACK = "llm-platform"


def make_run(cluster: Cluster, folder: Path, **fields: Any) -> Run:
    """Return the input of checks, with manifests in ``folder``."""
    planned = fields.pop("plan", None) or plan.load(FILE)
    given = {"manifests": folder / "dist", "assembly": folder / "cdk.out"}
    return Run(id="r1", file=FILE, plan=planned, cluster=cluster, at=AT, **given, **fields)


def write_assembly(
    folder: Path, objects: Sequence[Object], others: Mapping[str, Any] | None = None
) -> None:
    """Write an assembly with a stack that applies objects; references are `Fn::GetAtt`."""
    pieces: list[Any] = []
    for piece in json.dumps(objects).split("@"):
        pieces += [piece, {"Fn::GetAtt": ["FileSystem", "DNSName"]}]
    manifest = {"Manifest": {"Fn::Join": ["", pieces[:-1]]}}
    resources = {
        "FileSystem": {"Type": "AWS::FSx::FileSystem"},
        "Manifests": {"Type": MANIFEST, "Properties": manifest},
        **(others or {}),
    }
    (folder / "cdk.out").mkdir()
    (folder / "cdk.out" / "t.json").write_text(json.dumps({"Resources": resources}))
    artifact = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://unknown-account/us-west-2",
        "properties": {"templateFile": "t.json"},
    }
    index = {"version": "50.0.0", "artifacts": {STACK: artifact}}
    (folder / "cdk.out" / "manifest.json").write_text(json.dumps(index))


def serve_kinds(stub: StubApiServer, *kinds: Kind) -> None:
    """Let the stub serve kinds."""
    for kind in kinds:
        stub.groups.add(kind.group_path)
        row = {"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced}
        stub.resources.setdefault(kind.group_path, []).append(row)


def apply(stub: StubApiServer, path: str, manifest: Object, dns: str = "fs-1.example") -> None:
    """Store an object as the CDK's `kubectl apply` leaves it, with defaults of the server."""
    live: Object = json.loads(json.dumps(manifest).replace("@", dns))
    fields = {key: value for key, value in live.items() if key not in ("apiVersion", "kind")}
    entry = {"manager": "kubectl-client-side-apply", "fieldsV1": owned(fields)}
    applied = deepcopy(live)
    live["metadata"] |= {"managedFields": [entry]}
    live["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(applied)
    stub.put(path, live)


def release(name: str, version: str, values: Object, manifest: str = "") -> Object:
    """Return Helm's Secret of a release."""
    document = {
        "config": values,
        "chart": {"metadata": {"version": version}},
        "manifest": manifest,
    }
    packed = base64.b64encode(gzip.compress(json.dumps(document).encode()))
    labels = {"owner": "helm", "name": name, "status": "deployed", "version": "1"}
    data = {"release": base64.b64encode(packed).decode()}
    return {"kind": "Secret", "metadata": {"labels": labels}, "data": data}
