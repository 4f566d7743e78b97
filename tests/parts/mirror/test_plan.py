"""A mirror: what pods pull instead of a publisher's image, and what a digest of the record does."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pools import as_text, make_cluster, make_document
from ultrascale import plan
from ultrascale.errors import ConfigError
from ultrascale.jobs.preparation import prepare
from ultrascale.parts import backend as backend_part
from ultrascale.parts.mirror.lock import FILE, MirrorLock
from ultrascale.parts.mirror.plan import Plan
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import CopiesPlan
from ultrascale.sbom.images import container_images

MIRROR = "111122223333.dkr.ecr.us-west-2.amazonaws.com/mirror"
DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
FAR = MIRROR.replace("us-west-2", "eu-west-1")
VOLCANO = "docker.io/volcanosh/vc-scheduler:v1.15.1"


def record(digests: dict[str, str]) -> dict[str, Any]:
    return {"mirrors": {MIRROR: digests}}


def planned(digests: dict[str, str] | None = None, **changes: Any) -> Plan:
    cluster = make_cluster(**{"images": {"mirror": MIRROR}, **changes})
    found = assemble(cluster, records=(MirrorLock(mirrors={MIRROR: digests or {}}),)).part(Plan)
    assert found is not None
    return found


def the_mirror(digests: dict[str, str] | None = None, **changes: Any) -> CopiesPlan:
    return planned(digests, **changes).copies


@pytest.mark.parametrize(
    ("published", "pulled"),
    [
        (VOLCANO, f"{MIRROR}/{VOLCANO}@{DIGEST}"),
        ("quay.io/coreos/etcd:v3.6.14", f"{MIRROR}/quay.io/coreos/etcd:v3.6.14"),
        (f"nvcr.io/nvidia/dcgm:4@{OTHER}", f"{MIRROR}/nvcr.io/nvidia/dcgm:4@{OTHER}"),
        ("busybox:1.37", f"{MIRROR}/docker.io/library/busybox:1.37"),
        ("bitnami/kubectl:1", f"{MIRROR}/docker.io/bitnami/kubectl:1"),
        ("registry.corp:5000/team/app:1", f"{MIRROR}/registry.corp_5000/team/app:1"),
        (
            "444455556666.dkr.ecr.eu-west-1.amazonaws.com/app:1",
            f"{MIRROR}/444455556666.dkr.ecr.eu-west-1.amazonaws.com/app:1",
        ),
    ],
)
def test_an_image_comes_from_the_mirror_by_its_recorded_digest(published: str, pulled: str) -> None:
    assert the_mirror({VOLCANO: DIGEST}).reference(published) == pulled


def test_an_image_that_an_endpoint_leads_to_stays_where_it_is() -> None:
    mirror = the_mirror()
    for image in (
        "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.10",
        "${AWS_ACCOUNT_ID}.dkr.ecr.us-west-2.amazonaws.com/research/trainer:1",
        f"{MIRROR}/docker.io/library/busybox:1",
    ):
        assert mirror.reference(image) == image


def test_a_name_in_the_mirror_tells_where_the_copy_comes_from() -> None:
    mirror = the_mirror({VOLCANO: DIGEST})
    for image in (VOLCANO, f"nvcr.io/nvidia/dcgm:4@{OTHER}", "registry.corp:5000/a/b:1"):
        assert mirror.published(mirror.reference(image)) == image
    # Images of ours in the registry of a mirror are no copies.
    registry = MIRROR.partition("/")[0]
    mirror = the_mirror(images={"mirror": registry})
    assert mirror.published(f"{registry}/research/trainer:1") == f"{registry}/research/trainer:1"
    assert mirror.published(mirror.reference(VOLCANO)) == VOLCANO


def test_a_large_cluster_with_a_mirror_has_no_cache_of_its_own() -> None:
    pools = [
        make_document()["pools"][0],
        make_document()["pools"][1] | {"nodes": {"max": 375}, "shards": 4},
    ]
    network = {"vpc_cidr": "10.0.0.0/16", "pod_cidrs": {"count": 2, "from": "100.64.0.0/10"}}
    network |= {"zones": ["us-west-2a", "us-west-2b"]}

    assert assemble(make_cluster(pools=pools, network=network)).images.cache is not None
    mirrored = make_cluster(pools=pools, network=network, images={"mirror": MIRROR})
    assert assemble(mirrored).images.cache is None


def test_a_mirror_has_the_copies_that_were_made_into_it() -> None:
    """Files of several Regions lie in one folder, each with a mirror of its own."""
    lock = MirrorLock().with_copies(FAR, {VOLCANO: DIGEST, "quay.io/a/b:1": OTHER})
    cluster = make_cluster(images={"mirror": MIRROR})

    empty = assemble(cluster, records=(lock,)).part(Plan)
    filled = assemble(cluster, records=(lock.with_copies(MIRROR, {VOLCANO: OTHER}),)).part(Plan)

    assert empty is not None
    assert filled is not None
    assert (empty.is_recorded, empty.copies.digests) == (False, {})
    assert (filled.is_recorded, filled.copies.digests) == (True, {VOLCANO: OTHER})
    # What one mirror has, the next one gets too.
    assert lock.known_to(MIRROR) == lock.mirrors[FAR]


def test_images_without_a_digest_are_told() -> None:
    mirror = planned({VOLCANO: DIGEST})
    regional = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.10"

    assert [*mirror.image_warnings({VOLCANO, regional, f"quay.io/a/b:1@{OTHER}"})] == []
    (line,) = mirror.image_warnings({VOLCANO, "quay.io/coreos/etcd:v3.6.14"})
    assert "no digest of quay.io/coreos/etcd:v3.6.14, so" in line


def test_the_backend_names_the_images_of_its_jobs_by_the_same_digests() -> None:
    lock = MirrorLock(mirrors={MIRROR: {VOLCANO: DIGEST}, FAR: {VOLCANO: OTHER}})
    cluster = make_cluster(
        images={"mirror": MIRROR},
        backend={
            "image": "111122223333.dkr.ecr.us-west-2.amazonaws.com/backend:1",
            "submits_to": ["train"],
            "database": {"version": "17"},
        },
        jobs={"train": {"pool": "train", "durable": False}},
    )
    backend = assemble(cluster, records=(lock,)).part(backend_part.Plan)

    assert backend is not None
    assert backend.application is not None
    assert json.loads(backend.application.files[FILE]) == record({VOLCANO: DIGEST})


def load(folder: Path, lock: str | None) -> Plan:
    file = folder / "cluster.yaml"
    file.write_text(as_text(make_document(images={"mirror": MIRROR})))
    if lock is not None:
        (folder / FILE).write_text(lock)
    mirror = plan.load(file).part(Plan)
    assert mirror is not None
    return mirror


def test_a_record_is_read_from_beside_the_cluster_file(tmp_path: Path) -> None:
    mirror = load(tmp_path, None)
    assert not mirror.is_recorded
    assert mirror.copies.reference(VOLCANO) == f"{MIRROR}/{VOLCANO}"
    mirror = load(tmp_path, json.dumps(record({VOLCANO: DIGEST})))
    assert mirror.is_recorded
    assert mirror.copies.reference(VOLCANO).endswith(f"@{DIGEST}")
    for lock, said in (
        ("{", "cannot be read: no JSON"),
        ("[]", "not a record of ultrascale mirror"),
        (json.dumps(record({VOLCANO: "latest"})), f"{VOLCANO}: no digest, got 'latest'"),
    ):
        with pytest.raises(ConfigError, match=FILE) as caught:
            load(tmp_path, lock)
        assert said in str(caught.value)
        assert "ultrascale mirror FILE copy" in str(caught.value)


def test_a_job_pulls_its_image_and_the_check_before_it_from_the_mirror(tmp_path: Path) -> None:
    job = {
        "pool": "train",
        "nodes": 2,
        "image": "docker.io/library/busybox:1.37",
        "command": ["true"],
        "preflight": ["device"],
        "durable": False,
    }
    gpus = make_document()["pools"][1] | {
        "instance_types": ["p5.48xlarge"],
        "nodes": {"static": 16},
    }
    document = make_document(
        images={"mirror": MIRROR}, jobs={"try": job}, pools=[make_document()["pools"][0], gpus]
    )
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(document))

    prepared = prepare(file, "try")
    (tmp_path / FILE).write_text(json.dumps(record({VOLCANO: DIGEST})))
    for image in ("docker.io/library/busybox:1.37", f"nvcr.io/a/b:1@{OTHER}"):
        with pytest.raises(ConfigError, match=r"image: not in mirror.lock.*mirror FILE copy"):
            prepare(file, "try", image=image)
    sent = [prepared.objects, *(check.job.objects for check in prepared.checks)]

    pulled = {image for objects in sent for image in container_images(objects)}
    assert {image.partition(MIRROR)[2].split("/")[1] for image in pulled} == {
        "docker.io",
        "nvcr.io",
    }
