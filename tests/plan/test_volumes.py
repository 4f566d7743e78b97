"""Volumes: what jobs of every namespace find at /data and /checkpoints, and what they do not."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.folders import ROOT
from tests.support.pools import (
    LUSTRE,
    POOL,
    SYSTEM_POOL,
    as_text,
    governed_document,
    loads_own,
    make_cluster,
)
from ultrascale import config, plan
from ultrascale.plan.model import ClaimPlan, ClusterPlan, VolumePlan
from ultrascale.plan.storage import plan_buckets, plan_lustre_access
from ultrascale.plan.volumes import mounted_claims, mounts_buckets, plan_volumes

CLUSTERS = ROOT / "clusters"
NEAR, FAR = "us-west-2b", "us-west-2a"
BUCKETS = ["datasets", "checkpoints"]
TEAMS = [{"name": name, "fair_share_weight": 1} for name in ("research", "production")]


def lustre(name: str = "fast", **changes: Any) -> dict[str, Any]:
    return LUSTRE | {"name": name} | changes


def claim(name: str, path: str, namespace: str = "training") -> dict[str, Any]:
    return {"namespace": namespace, "name": name, "mount_path": path}


def cluster(
    zones: Sequence[str] = (NEAR,),
    types: Sequence[str] = ("g6.xlarge",),
    jobs: dict[str, Any] | None = None,
    **storage: Any,
) -> config.Cluster:
    pool = POOL | {"zones": [*zones], "provisioner": "self-managed", "instance_types": [*types]}
    return make_cluster(
        pools=[SYSTEM_POOL, pool], storage={"default_claims": True, **storage}, jobs=jobs or {}
    )


def found(volumes: Sequence[VolumePlan]) -> dict[str, tuple[str, str]]:
    """Return path and source of each claim, by its name."""
    return {v.claim.name: (v.claim.mount_path, v.component) for v in volumes}


@pytest.fixture(scope="module")
def hybrid() -> ClusterPlan:
    return plan.load(CLUSTERS / "hybrid-hyperpod.yaml")


class TestHybrid:
    """The two claims of the seed's job format, wherever one of its jobs may run."""

    def test_every_job_namespace_has_both(self, hybrid: ClusterPlan) -> None:
        named = {(claim.namespace, claim.name, claim.mount_path) for claim in hybrid.storage.claims}

        for namespace in ("training", "hyperpod-ns-research", "hyperpod-ns-production"):
            assert (namespace, "training-data-pvc", "/data") in named
            assert (namespace, "model-checkpoints-pvc", "/checkpoints") in named

    def test_one_pod_mounts_each_of_its_volumes_and_not_one_of_them_twice(
        self, hybrid: ClusterPlan
    ) -> None:
        volumes = hybrid.storage.volumes
        handles, names = {v.handle for v in volumes}, {v.name for v in volumes}
        assert len(handles) == len(names) == len(volumes)

    def test_all_namespaces_share_one_file_system_and_one_bucket(self, hybrid: ClusterPlan) -> None:
        def shared(claim: str, key: str) -> set[str]:
            volumes = (v for v in hybrid.storage.volumes if v.claim.name == claim)
            return {v.attributes[key] for v in volumes}

        assert shared("training-data-pvc", "dnsname") == {"${FSX_TRAINING_DNS_NAME}"}
        assert shared("model-checkpoints-pvc", "bucketName") == {"${BUCKET_CHECKPOINTS}"}

    def test_spot_nodes_in_the_zone_without_lustre_have_the_datasets_in_s3(
        self, hybrid: ClusterPlan
    ) -> None:
        (stand_in,) = [v for v in hybrid.storage.volumes if v.claim.name == "training-data-pvc-s3"]

        assert stand_in.claim.namespace == "training"
        assert stand_in.claim.mount_path == "/data"
        assert stand_in.attributes == {"bucketName": "${BUCKET_DATASETS}"}
        assert stand_in.claim.read_only

    def test_a_file_system_is_opened_once_and_before_any_team_has_its_namespace(
        self, hybrid: ClusterPlan
    ) -> None:
        assert hybrid.storage.lustre_access is not None
        opened = [(each.namespace, each.name) for each in hybrid.storage.lustre_access.claims]

        assert opened == [("training", "training-data-pvc")]


class TestDefaultClaims:
    """Storage behind the claims, and the namespaces that have them."""

    @pytest.mark.parametrize(
        ("storage", "data", "checkpoints"),
        [
            ({"lustre": [lustre()], "buckets": BUCKETS}, "fast", "checkpoints"),
            ({"lustre": [lustre(), lustre("checkpoints")]}, "fast", "checkpoints"),
            ({"lustre": [lustre()]}, "fast", "fast"),
            ({"buckets": BUCKETS}, "datasets", "checkpoints"),
            ({"buckets": ["datasets"]}, "datasets", None),
        ],
    )
    def test_each_is_on_the_best_that_the_file_has_for_it(
        self, storage: dict[str, Any], data: str, checkpoints: str | None
    ) -> None:
        expected = {"training-data-pvc": ("/data", data)}
        if checkpoints is not None:
            expected["model-checkpoints-pvc"] = ("/checkpoints", checkpoints)
        assert found(plan_volumes(cluster(**storage))) == expected

    @pytest.mark.parametrize("name", ["trainium-bert", "mixed-capacity", "auto-mode", "ultra-100k"])
    def test_clusters_without_hyperpod_mount_what_they_did(self, name: str) -> None:
        made = config.load(CLUSTERS / f"{name}.yaml")

        assert [volume.claim.name for volume in plan_volumes(made)] == (
            ["fsx-claim"] if name == "trainium-bert" else []
        )
        assert not mounts_buckets(made)

    def test_the_files_own_claim_keeps_its_name_its_place_and_its_handle(self) -> None:
        own = lustre(claim=claim("my-data", "/data"))
        volumes = plan_volumes(cluster(lustre=[own], buckets=BUCKETS))
        assert found(volumes) == {
            "my-data": ("/data", "fast"),
            "model-checkpoints-pvc": ("/checkpoints", "checkpoints"),
        }
        assert volumes[0].handle == "${FSX_FAST_ID}"


class TestStandIns:
    """S3 instead of Lustre where every byte of Lustre would come from another zone."""

    def test_it_shows_the_same_directory_at_the_same_place(self) -> None:
        s3 = {"bucket": "datasets", "prefix": "imagenet", "path": "/sets"}

        volumes = plan_volumes(cluster(zones=(FAR,), lustre=[lustre(s3=s3)], buckets=BUCKETS))

        (stand_in,) = [v for v in volumes if v.claim.name.endswith("-s3")]
        assert stand_in.claim.mount_path == "/data/sets"
        assert "prefix imagenet/" in stand_in.mount_options
        assert "read-only" in stand_in.mount_options

    @pytest.mark.parametrize(
        ("zones", "s3"),
        [((NEAR,), {"bucket": "datasets"}), ((NEAR, FAR), None)],
        ids=["no other zone", "nothing in S3"],
    )
    def test_there_is_none_without_need(
        self, zones: tuple[str, ...], s3: dict[str, Any] | None
    ) -> None:
        volumes = plan_volumes(cluster(zones=zones, lustre=[lustre(s3=s3)], buckets=BUCKETS))

        assert [*found(volumes)] == ["training-data-pvc", "model-checkpoints-pvc"]

    @pytest.mark.parametrize(
        ("zones", "expected"),
        [((NEAR,), "data"), ((NEAR, FAR), "data"), ((FAR,), "data-s3")],
        ids=["near", "both", "far"],
    )
    def test_a_job_mounts_it_where_none_of_its_nodes_is_near(
        self, zones: tuple[str, ...], expected: str
    ) -> None:
        near = ClaimPlan(namespace="training", name="data", mount_path="/data", zone=NEAR)
        far = replace(near, name="data-s3", source="bucket", read_only=True, zone=None)
        claims = [replace(near, stand_in=far.name), far]

        mounted = mounted_claims(claims, namespace="training", zones=zones)

        assert [claim.name for claim in mounted] == [expected]

    def test_it_takes_no_name_from_a_claim_of_the_file(self) -> None:
        linked = lustre(claim=claim("mine", "/mine"), s3={"bucket": "datasets"})
        other = lustre("other", claim=claim("mine-s3", "/other"))

        volumes = plan_volumes(cluster(zones=(FAR,), lustre=[linked, other], buckets=["datasets"]))

        assert found(volumes)["mine-s3"] == ("/other", "other")
        assert [volume.claim.name for volume in volumes].count("mine-s3") == 1

    def test_a_job_mounts_nothing_of_another_namespace(self) -> None:
        other = ClaimPlan(namespace="research", name="data", mount_path="/data")

        assert mounted_claims([other], namespace="training", zones=[NEAR]) == ()


class TestBuckets:
    """Any image may write: its user is its own affair."""

    def test_every_user_of_a_pod_reads_and_writes(self) -> None:
        made = cluster(buckets=["checkpoints", "results"])
        (volume,) = plan_volumes(made)
        assert {"allow-other", "file-mode=0666", "dir-mode=0777"} <= {*volume.mount_options}
        assert {"allow-delete", "allow-overwrite"} <= {*volume.mount_options}
        # No metadata service is asked for the Region.
        assert "region us-west-2" in volume.mount_options
        # A bucket that nothing mounts is out of every pod's reach.
        access = {each.name: each.access for each in plan_buckets(made, [volume])}
        assert access == {"checkpoints": "write", "results": "none"}

    def test_a_file_system_and_a_bucket_of_one_name_have_volumes_of_their_own(self) -> None:
        own = lustre("checkpoints", claim=claim("x", "/x"))
        made = cluster(lustre=[own], buckets=["checkpoints"])
        volumes = plan_volumes(made)
        assert len({volume.name for volume in volumes}) == len(volumes) == 3
        (bucket,) = plan_buckets(made, volumes)
        assert bucket.access == "write"

    def test_pods_of_a_namespace_mount_the_bucket_that_has_a_claim_there(self) -> None:
        stated = {"name": "models", "claim": claim("weights", "/models", "serving")}
        made = cluster(buckets=["datasets", stated], default_claims=False)
        volumes = plan_volumes(made)
        (own,) = (each.claim for each in volumes)
        assert (own.namespace, own.name, own.mount_path) == ("serving", "weights", "/models")
        assert own.source == "bucket"
        access = {each.name: each.access for each in plan_buckets(made, volumes)}
        assert access == {"datasets": "none", "models": "write"}

    @pytest.mark.parametrize(
        ("kinds", "stated", "access"),
        [
            (["service"], {}, "read"),
            (["service"], {"read_only": False}, "write"),
            (["service", "dev"], {}, "read"),
            (["service", "batch"], {}, "write"),
        ],
    )
    def test_services_cannot_change_the_models_that_they_serve(
        self, kinds: Sequence[str], stated: dict[str, Any], access: str
    ) -> None:
        models = {"name": "models", "claim": claim("weights", "/models", "serving"), **stated}
        job = {"namespace": "serving", "image": "docker.io/org/server:1", "command": ["serve"]}
        jobs = {f"job-{number}": job | {"kind": kind} for number, kind in enumerate(kinds)}
        made = cluster(jobs=jobs, buckets=[models], default_claims=False)
        (volume,) = plan_volumes(made)
        assert volume.claim.read_only == (access == "read")
        assert ("read-only" in volume.mount_options) == (access == "read")
        assert [each.access for each in plan_buckets(made, [volume])] == [access]

    @pytest.mark.parametrize(
        ("instance_type", "option"),
        [
            ("g6.48xlarge", "maximum-throughput-gbps 100"),
            ("p5.48xlarge", "maximum-throughput-gbps 100"),
            ("g6e.16xlarge", "maximum-throughput-gbps 35"),
        ],
    )
    def test_a_mount_reads_as_fast_as_its_nodes_do(self, instance_type: str, option: str) -> None:
        """Pods do not reach the metadata service by which Mountpoint learns of more than 10."""
        (volume,) = plan_volumes(cluster(types=[instance_type], buckets=["checkpoints"]))

        assert option in volume.mount_options


@pytest.mark.parametrize(
    ("bucket", "read_only"),
    [("checkpoints", True), ({"name": "checkpoints", "read_only": False}, False)],
    ids=["by default", "stated otherwise"],
)
def test_services_cannot_delete_checkpoints_by_the_claims_of_every_namespace(
    bucket: object, *, read_only: bool
) -> None:
    """A server that clients reach must not be a way to the files of training."""
    service = {"kind": "service", "namespace": "serving", "pool": POOL["name"]}
    models = {"name": "models", "claim": claim("models", "/models", "serving")}
    made = cluster(jobs={"chat": service}, buckets=["datasets", bucket, models])
    volumes = {
        each.claim.namespace: each
        for each in plan_volumes(made)
        if each.claim.name == "model-checkpoints-pvc"
    }

    served, trained = volumes["serving"], volumes["training"]

    assert served.claim.read_only == read_only
    assert ("allow-delete" in served.mount_options) != read_only
    assert "allow-delete" in trained.mount_options
    # Kubernetes takes no other access mode of a claim that is there.
    assert served.claim.access_mode == trained.claim.access_mode == "ReadWriteMany"


def test_a_service_changes_nothing_of_a_claim_that_kubernetes_never_changes() -> None:
    """It makes reads alone of the mount; another access mode would fail the next deployment."""
    buckets = [{"name": "models", "claim": claim("models", "/models", "serving")}]
    service = {"kind": "service", "namespace": "serving", "pool": POOL["name"]}
    without, served = (
        plan_volumes(cluster(default_claims=None, buckets=buckets, jobs=jobs))
        for jobs in ({}, {"chat": service})
    )
    (before,), (after,) = (
        [each for each in volumes if each.claim.name == "models"] for volumes in (without, served)
    )

    assert (before.claim.read_only, after.claim.read_only) == (False, True)
    assert "read-only" in after.mount_options
    assert before.claim.access_mode == after.claim.access_mode == "ReadWriteMany"


def test_a_file_system_that_only_a_team_claims_is_opened_in_the_teams_namespace() -> None:
    own = lustre(zone="us-east-1b", claim=claim("data", "/data", "hyperpod-ns-research"))
    document = governed_document(*TEAMS, storage={"lustre": [own], "default_claims": False})
    made = loads_own(as_text(document))

    access = plan_lustre_access(made, plan_volumes(made))

    assert access is not None
    assert [each.namespace for each in access.claims] == ["hyperpod-ns-research"]


@settings(max_examples=60, deadline=None)
@given(
    own=st.lists(
        st.tuples(
            st.sampled_from(["training", "research"]),
            st.sampled_from(["training-data-pvc", "model-checkpoints-pvc", "mine"]),
            st.sampled_from(["/data", "/checkpoints", "/mine"]),
        ),
        max_size=3,
        unique_by=(lambda each: each[:2], lambda each: each[0::2]),
    ),
    buckets=st.lists(st.sampled_from(BUCKETS), unique=True),
    linked=st.booleans(),
    zones=st.sampled_from([(NEAR,), (FAR,), (NEAR, FAR)]),
)
def test_no_two_claims_of_a_namespace_have_one_name_or_are_mounted_at_one_path(
    own: list[tuple[str, str, str]], buckets: list[str], linked: bool, zones: tuple[str, ...]
) -> None:
    s3 = {"bucket": "datasets"} if linked and "datasets" in buckets else None
    file_systems = [
        lustre(f"fs{number}", claim=claim(name, path, namespace), s3=s3 if not number else None)
        for number, (namespace, name, path) in enumerate(own)
    ]
    made = cluster(zones=zones, lustre=[*file_systems, lustre("last")], buckets=buckets)

    claims = [volume.claim for volume in plan_volumes(made)]

    assert len({(each.namespace, each.name) for each in claims}) == len(claims)
    for namespace in {each.namespace for each in claims}:
        mounted = mounted_claims(claims, namespace=namespace, zones=zones)
        paths = {each.mount_path for each in mounted}
        assert len(paths) == len(mounted)
        names = {each.name for each in claims if each.namespace == namespace}
        assert "training-data-pvc" in names or "/data" in paths
        assert "model-checkpoints-pvc" in names or "/checkpoints" in paths
