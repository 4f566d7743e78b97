"""Contents of a mirror: a closed cluster cannot pull an image that the list lacks."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.assemblies import described, write_assembly
from tests.support.pools import as_text, make_document, pool_document
from ultrascale.catalog import versions
from ultrascale.errors import CatalogError, UltrascaleError
from ultrascale.jobs.preparation import read_cluster
from ultrascale.parts.hyperpod import chart_facts as hyperpod_chart
from ultrascale.parts.mirror.contents import Copy, list_copies
from ultrascale.plan.stacks import planned_stacks
from ultrascale.sbom.images import base_images

MIRROR = "111122223333.dkr.ecr.us-west-2.amazonaws.com/mirror"
ETCD = "quay.io/coreos/etcd:v3.6.14"
DIGEST = "sha256:" + "a" * 64
EKS = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.10"
CHECK = versions.images()["pytorch-neuronx"].reference
KUEUE = "registry.k8s.io/kueue/charts/kueue"


def deployment(*images: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    return {
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "tools"},
        "spec": {"initContainers": containers[:1], "containers": containers},
        **spec,
    }


def chart(location: str) -> dict[str, Any]:
    properties = {
        "Repository": f"oci://{MIRROR}/{location}",
        "Version": "0.19.14",
        "Chart": "kueue",
    }
    return {"Type": "Custom::AWSCDK-EKS-HelmChart", "Properties": properties}


def copies(
    folder: Path, *objects: dict[str, Any], resources: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Copy]:
    """Return the list of a cluster with ``objects`` and ``resources`` of a stack, by source."""
    file = folder / "cluster.yaml"
    file.write_text(as_text(make_document(**{"images": {"mirror": MIRROR}, **changes})))
    if (lock := folder / "mirror.lock").exists():
        lock.unlink()
    lock.write_text(json.dumps({"mirrors": {MIRROR: {ETCD: DIGEST}}}))
    cluster = read_cluster(file)
    stacks = {name: described({"Resources": {}}) for name in planned_stacks(cluster.plan)}
    stacks[next(iter(stacks))] = described({"Resources": resources or {}})
    write_assembly(folder / "cdk.out", stacks)
    manifests = folder / "dist"
    manifests.mkdir(exist_ok=True)
    (manifests / "0000-app.k8s.yaml").write_text("---\n".join(map(as_text, objects)))
    found = list_copies(cluster, assembly=folder / "cdk.out", manifests=manifests)
    assert len({each.source for each in found}) == len(found)
    return {each.source: each for each in found}


def test_images_of_objects_and_of_charts_are_listed_once_with_who_pulls_them(
    tmp_path: Path,
) -> None:
    found = copies(
        tmp_path,
        deployment(f"{MIRROR}/{ETCD}@{DIGEST}", EKS),
        deployment(f"{MIRROR}/{ETCD}@{DIGEST}", kind="DaemonSet"),
        resources={"Chart": chart(KUEUE)},
    )

    assert set(found) == {
        ETCD,
        f"oci://{KUEUE}:0.19.14",
        "registry.k8s.io/kueue/kueue:v0.19.14",
        CHECK,
    }
    assert found[ETCD].target == f"{MIRROR}/{ETCD}"
    assert found[ETCD].used_by == ("DaemonSet tools/app", "Deployment tools/app")
    assert found[f"oci://{KUEUE}:0.19.14"].target == f"oci://{MIRROR}/{KUEUE}:0.19.14"


def test_bases_of_builds_and_images_of_jobs_are_listed(tmp_path: Path) -> None:
    job = {"pool": "train", "nodes": 1, "image": "busybox:1.37", "command": ["true"]}
    own = {**job, "image": "trainer"}
    found = copies(
        tmp_path,
        deployment(EKS),
        account="111122223333",
        images={"mirror": MIRROR, "repositories": ["trainer", "busybox"]},
        jobs={
            "public": {**job, "image": "docker.io/library/busybox:1.37", "durable": False},
            "own": {**own, "durable": False},
        },
    )

    bases = {source for source, copy in found.items() if "build of trainer" in copy.used_by}
    assert found["docker.io/library/busybox:1.37"].used_by == ("job public",)
    assert {base.partition(":")[0] for base in bases} == {
        "public.ecr.aws/docker/library/python",
        "public.ecr.aws/neuron/pytorch-training-neuronx",
    }
    assert set(found) == {"docker.io/library/busybox:1.37", CHECK, *bases}
    assert {"device check of train", "fabric check of train"} <= {*found[CHECK].used_by}


def test_hyperpods_chart_is_listed_with_the_images_of_the_parts_that_are_on(tmp_path: Path) -> None:
    pool = pool_document(
        provisioner="hyperpod", instance_types=["trn1.32xlarge"], nodes={"static": 2}
    )
    found = copies(tmp_path, deployment(EKS), pools=[make_document()["pools"][0], pool])

    artefact = f"oci://{hyperpod_chart.ARTEFACT}:{hyperpod_chart.ARTEFACT_VERSION}"
    assert found[artefact].target == artefact.replace("oci://", f"oci://{MIRROR}/")
    assert f"docker.io/{hyperpod_chart.TRAINING_OPERATOR_IMAGE}" in found
    assert hyperpod_chart.NEURON_IMAGE in found
    assert hyperpod_chart.NVIDIA_IMAGE not in found


def test_a_copy_that_no_list_explains_is_refused(tmp_path: Path) -> None:
    hidden = deployment(EKS, data=f"--sidecar={MIRROR}/docker.io/library/redis:8")

    with pytest.raises(UltrascaleError, match="/redis, which no list"):
        copies(tmp_path, hidden)


def test_a_mirror_without_a_prefix_may_hold_the_images_of_the_cluster(tmp_path: Path) -> None:
    registry = MIRROR.partition("/")[0]
    own = deployment(f"{registry}/research/trainer:1", data=f"{registry}/research/trainer:1")

    assert set(copies(tmp_path, own, images={"mirror": registry})) == {CHECK}


def test_a_chart_whose_images_nobody_has_listed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"of oci://quay\.io/charts/new; .*synth FILE"):
        copies(tmp_path, deployment(EKS), resources={"Chart": chart("quay.io/charts/new")})


def test_a_file_without_a_mirror_has_no_list(tmp_path: Path) -> None:
    with pytest.raises(UltrascaleError, match=r"images\.mirror: missing"):
        copies(tmp_path, deployment(EKS), images=None)


def test_every_image_that_a_dockerfile_names_is_a_base(tmp_path: Path) -> None:
    dockerfile = """# syntax=docker.io/docker/dockerfile:1
FROM --platform=$BUILDPLATFORM quay.io/team/base:1 AS Build
FROM build AS tests
COPY --from=ghcr.io/team/tool:2 /tool /tool
FROM scratch
COPY --from=build /a /a
COPY --chown=1:1 --from=0 /b /b
"""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "Dockerfile").write_text(dockerfile)
    images = {"repositories": ["trainer"], "builds": {"trainer": "./mine"}}
    (tmp_path / "cluster.yaml").write_text(as_text(make_document(images=images)))
    plan = read_cluster(tmp_path / "cluster.yaml").plan

    assert set(base_images(plan.images.builds[0])) == {
        "docker.io/docker/dockerfile:1",
        "quay.io/team/base:1",
        "ghcr.io/team/tool:2",
    }
