"""A new file system belongs to root: jobs that are somebody else could never write there."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.assembly import Assembly
from tests.support.kubernetes_schemas import findings, pod_spec
from ultrascale.plan.model import ClaimPlan
from ultrascale_k8s import PlatformChart
from ultrascale_k8s.volumes import lustre_access_objects

CLAIM = ClaimPlan(namespace="training", name="fsx-claim", mount_path="/data")


def render(image: str = "registry.example/python:3") -> dict[str, Any]:
    objects = lustre_access_objects(image, [CLAIM])
    (document,) = PlatformChart(name="lustre-access", published=objects).manifests
    return dict(document)


def script(job: dict[str, Any], folder: Path) -> str:
    spec = pod_spec(job)
    assert spec is not None
    (container,) = spec["containers"]
    (mount,) = container["volumeMounts"]
    *_, text = container["command"]
    return text.replace(mount["mountPath"], str(folder))


def run(job: dict[str, Any], folder: Path) -> None:
    subprocess.run(["sh", "-c", script(job, folder)], check=True, capture_output=True)


def test_api_server_takes_the_job_and_another_image_makes_another() -> None:
    known = [("Namespace", "", "training"), ("PersistentVolumeClaim", "training", "fsx-claim")]
    image = "registry.example/python:3"

    assert findings([render(image)], known=known, also_pinned=[image], root=["access"]) == []
    # Its pod cannot change.
    assert len({render(each)["metadata"]["name"] for each in ("a:1", "a:1", "b:2")}) == 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
@pytest.mark.parametrize(
    ("mode", "owner", "after"), [(0o755, 0, 0o1777), (0o750, 0, 0o750), (0o755, 1234, 0o755)]
)
def test_everyone_may_write_to_a_new_file_system_and_what_somebody_has_set_is_left_alone(
    tmp_path: Path, mode: int, owner: int, after: int
) -> None:
    tmp_path.chmod(mode)
    os.chown(tmp_path, owner, owner)

    run(render(), tmp_path)

    # Everyone removes only what is theirs.
    assert stat.S_IMODE(tmp_path.stat().st_mode) == after


def test_it_runs_on_nodes_that_are_there_before_any_job(trainium: Assembly) -> None:
    (job,) = [
        document
        for document in trainium.documents
        if document["kind"] == "Job" and "access" in document["metadata"]["name"]
    ]
    spec = pod_spec(job)
    assert spec is not None
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (rule,) = required["nodeSelectorTerms"][0]["matchExpressions"]

    assert (rule["key"], rule["values"]) == ("ultrascale.dev/role", ["system"])
    assert spec["volumes"][0]["persistentVolumeClaim"]["claimName"] == "fsx-claim"
