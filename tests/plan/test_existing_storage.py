"""Storage that was there already: mounted, and neither made, counted, paid for nor changed."""

from typing import Any

import pytest

from tests.support.existing_vpc import existing_document
from tests.support.pools import as_text, loads_own
from ultrascale import config
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.needs.network import plan_network_needs
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.stacks import all_layers

FILE_SYSTEM, GROUP = "fs-0a1b2c3d4e5f60001", "sg-0a1b2c3d4e5f60001"
KEY = "arn:aws:kms:us-east-1:444455556666:key/11111111-2222-4333-8444-555555555503"
LUSTRE: dict[str, Any] = {
    "name": "training",
    "zone": "us-east-1a",
    "existing": {"id": FILE_SYSTEM, "mount_name": "abcdefgh", "security_group": GROUP},
    "claim": {"namespace": "training", "name": "training", "mount_path": "/shared"},
}
CORPUS: dict[str, Any] = {
    "name": "corpus",
    "existing": "corp-datasets",
    "key": KEY,
    "read_only": True,
    "claim": {"namespace": "training", "name": "corpus", "mount_path": "/corpus"},
}
CHECKPOINTS = {"name": "checkpoints", "existing": "corp-checkpoints"}


def cluster(**storage: Any) -> config.Cluster:
    return loads_own(as_text(existing_document() | {"storage": storage}))


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    return plan_cluster(
        cluster(lustre=[LUSTRE], buckets=[CORPUS, CHECKPOINTS], default_claims=True)
    )


def test_the_file_system_is_mounted_by_its_own_id_name_and_mount_name(plan: ClusterPlan) -> None:
    (volume,) = (each for each in plan.storage.volumes if each.claim.name == "training")
    dns_name = f"{FILE_SYSTEM}.fsx.us-east-1.amazonaws.com"
    assert volume.handle == FILE_SYSTEM
    assert volume.attributes == {"dnsname": dns_name, "mountname": "abcdefgh"}
    # Default claims mount it beside, under handles of their own.
    handles = [each.handle for each in plan.storage.volumes if each.component == "training"]
    assert len({*handles}) == len(handles) > 1
    assert all(each.startswith(FILE_SYSTEM) for each in handles)


def test_a_bucket_is_mounted_by_its_own_name_and_only_read_where_the_file_says_so(
    plan: ClusterPlan,
) -> None:
    (volume,) = (each for each in plan.storage.volumes if each.component == "corpus")
    assert volume.attributes == {"bucketName": "corp-datasets"}
    assert volume.claim.read_only
    assert "read-only" in volume.mount_options
    assert "allow-delete" not in volume.mount_options
    # Jobs are told its own name.
    assert plan.storage.output_access is not None
    names = {each.config_map: each.bucket_name for each in plan.storage.output_access.bucket_names}
    assert names == {
        "ultrascale-bucket-corpus": "corp-datasets",
        "ultrascale-bucket-checkpoints": "corp-checkpoints",
    }


def test_nothing_is_made_and_nobody_changes_the_root_of_the_file_system(plan: ClusterPlan) -> None:
    storage = plan.storage
    assert (storage.lustre, storage.buckets, storage.lustre_access) == ((), (), None)


def test_it_takes_no_quota_and_costs_nothing_of_ours(plan: ClusterPlan) -> None:
    needs = plan_needs(plan)
    (disk,) = needs.topology.file_systems
    assert not [need.name for need in needs.quotas if "ustre" in need.name]
    names = [item.name for item in needs.money.items]
    assert not [name for name in names if "Lustre" in name or "S3" in name]
    # The picture has it without a size.
    assert (disk.name, disk.existing, disk.capacity_gib) == ("training", FILE_SYSTEM, None)
    assert needs.topology.buckets == ("corpus", "checkpoints")


@pytest.mark.parametrize(
    ("storage", "exists"),
    [
        pytest.param({"lustre": [LUSTRE]}, True, id="rules of the nodes' security group"),
        pytest.param({"buckets": [CORPUS]}, True, id="a role that mounts"),
        pytest.param({"buckets": [CHECKPOINTS]}, True, id="roles that write checkpoints"),
        pytest.param({"buckets": [CHECKPOINTS | {"name": "data"}]}, False, id="nothing"),
    ],
)
def test_there_is_a_storage_stack_only_where_it_holds_something(
    storage: dict[str, Any], exists: bool
) -> None:
    assert all_layers()["storage"].exists(plan_cluster(cluster(**storage))) is exists


def test_an_owner_that_is_the_cluster_s_account_is_no_other() -> None:
    lustre = LUSTRE | {"existing": LUSTRE["existing"] | {"owner": "111122223333"}}
    document = existing_document() | {"account": "111122223333", "storage": {"lustre": [lustre]}}

    (existing,) = plan_cluster(loads_own(as_text(document))).storage.existing_lustre

    assert existing.owner is None


def test_owners_are_told_what_to_open_and_whom_to_let_in() -> None:
    output = CHECKPOINTS | {"owner": "444455556666"}
    plan = plan_cluster(cluster(lustre=[LUSTRE], buckets=[CORPUS, output]))

    ports, rights = plan_needs(plan).storage

    assert (ports.name, ports.resource, ports.owner) == ("training", FILE_SYSTEM, None)
    assert ports.need == (
        f"{GROUP} opens TCP 988 and 1018-1023, in and out, to 10.20.16.0/20, 10.20.32.0/20, "
        "100.64.0.0/18"
    )
    assert (rights.resource, rights.owner) == ("corp-checkpoints", "444455556666")
    assert ports.need in [each.need for each in plan_network_needs(plan).needs]
    listing, objects = rights.statements
    assert listing["Principal"] == {"AWS": "arn:aws:iam::ACCOUNT:root"}
    assert (listing["Action"], listing["Resource"]) == (
        ["s3:ListBucket"],
        "arn:aws:s3:::corp-checkpoints",
    )
    assert "s3:PutObject" in str(objects["Action"])
    assert objects["Resource"] == "arn:aws:s3:::corp-checkpoints/*"


def test_a_bucket_that_no_pod_uses_asks_nothing_of_its_owner() -> None:
    unused = {"name": "data", "existing": "corp", "owner": "444455556666"}

    assert plan_needs(plan_cluster(cluster(buckets=[unused]))).storage == ()
