"""The change guard: nothing protected is replaced or deleted without a word."""

from typing import Any

import pytest

from tests.support.changes import STACK, Body, between, body, manifest, node_pool, of
from ultrascale.errors import QuestionError

RETAINED: dict[str, Any] = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
# A create-only property of each type, and two values.
CREATE_ONLY: dict[str, tuple[str, Any, Any]] = {
    "AWS::EC2::CapacityReservation": ("InstanceType", "p5.48xlarge", "p5en.48xlarge"),
    "AWS::EC2::Subnet": ("CidrBlock", "10.0.0.0/20", "10.0.16.0/20"),
    "AWS::EC2::VPC": ("CidrBlock", "10.0.0.0/16", "10.1.0.0/16"),
    "AWS::ECR::Repository": ("RepositoryName", "a", "b"),
    "AWS::EKS::Cluster": ("RoleArn", "arn:a", "arn:b"),
    "AWS::FSx::FileSystem": ("SubnetIds", ["subnet-1"], ["subnet-2"]),
    "AWS::RDS::DBCluster": ("StorageEncrypted", False, True),
    "AWS::RDS::DBInstance": ("DBClusterIdentifier", "a", "b"),
    "AWS::S3::Bucket": ("BucketName", "a", "b"),
    "AWS::SageMaker::Cluster": ("VpcConfig", {"Subnets": ["a"]}, {"Subnets": ["b"]}),
}
PROTECTED = ["AWS::KMS::Key", *CREATE_ONLY]


# --- what is protected --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CREATE_ONLY)
def test_a_protected_resource_that_is_replaced_is_refused_with_both_values(kind: str) -> None:
    path, old, new = CREATE_ONLY[kind]

    changes = between({"A": body(kind, {path: old})}, {"A": body(kind, {path: new})})

    change = of(changes, "A")
    assert (change.action, change.protected, changes.is_safe) == ("replaced", True, False)
    assert [each.path for each in change.properties] == [path]
    assert change.properties[0].old != change.properties[0].new
    assert change.lost
    assert change.instead


@pytest.mark.parametrize("kind", PROTECTED)
def test_a_protected_resource_that_is_deleted_is_refused_and_one_that_is_updated_passes(
    kind: str,
) -> None:
    gone = between({"A": body(kind)}, {})
    updated = between({"A": body(kind, {"Tags": []})}, {"A": body(kind, {"Tags": ["x"]})})

    assert (of(gone, "A").action, of(gone, "A").protected, gone.is_safe) == ("deleted", True, False)
    assert (of(updated, "A").action, updated.is_safe) == ("updated", True)


def test_what_is_retained_stays_and_is_told_without_being_refused() -> None:
    for policy in ("Retain", "RetainExceptOnCreate"):
        changes = between({"A": body("AWS::S3::Bucket", DeletionPolicy=policy)}, {})
        assert (of(changes, "A").action, changes.is_safe) == ("kept", True)
    # A snapshot does not pass for retention.
    changes = between({"A": body("AWS::RDS::DBCluster", DeletionPolicy="Snapshot")}, {})
    assert of(changes, "A").protected


def test_a_retained_bucket_whose_name_changes_is_refused_as_another_empty_one_takes_its_place() -> (
    None
):
    old, new = body("AWS::S3::Bucket", **RETAINED), body("AWS::S3::Bucket", **RETAINED)

    changes = between({"DatasetsB73376C8": old}, {"Data12345678": new})

    assert "another, empty one" in of(changes, "DatasetsB73376C8").lost
    assert not changes.is_safe


def test_a_key_that_is_retained_goes_on_to_decrypt_whatever_key_comes() -> None:
    key = body("AWS::KMS::Key", **RETAINED)

    assert between({"Key11111111": key}, {"Key22222222": key}).is_safe


def test_a_replaced_file_system_that_is_retained_is_refused_and_said_to_be_paid_on() -> None:
    path, old, new = CREATE_ONLY["AWS::FSx::FileSystem"]
    kind = "AWS::FSx::FileSystem"

    changes = between(
        {"A": body(kind, {path: old}, **RETAINED)}, {"A": body(kind, {path: new}, **RETAINED)}
    )

    assert "stays outside of the stack, and is paid for" in of(changes, "A").lost


def test_a_bucket_that_its_stack_empties_holds_nothing_to_protect() -> None:
    emptied = body("Custom::S3AutoDeleteObjects", {"BucketName": {"Ref": "A"}})

    assert between({"A": body("AWS::S3::Bucket"), "E": emptied}, {}).is_safe


def test_what_may_be_replaced_is_protected_as_what_is() -> None:
    kind = "AWS::FSx::FileSystem"
    old, new = ({"LustreConfiguration": {"PerUnitStorageThroughput": n}} for n in (250, 500))

    change = of(between({"A": body(kind, old)}, {"A": body(kind, new)}), "A")

    assert (change.action, change.protected) == ("may be replaced", True)
    assert change.properties[0].path == "LustreConfiguration/PerUnitStorageThroughput"


def test_a_type_that_nobody_knows_may_be_replaced_and_notes_of_the_cdk_are_no_change() -> None:
    old, new = (body("AWS::CDK::Metadata", {"Analytics": each}) for each in "ab")
    changes = between({"A": body("AWS::New::Thing", {"X": 1})}, {"A": body("AWS::New::Thing")})

    assert of(changes, "A").action == "may be replaced"
    assert between({"A": old}, {"A": new, "B": new}).resources == ()


@pytest.mark.parametrize(("kind", "protected"), [("reserved", True), ("burst", False)])
def test_node_pools_of_reserved_capacity_alone_are_refused(kind: str, protected: bool) -> None:
    changes = between({"M": manifest(node_pool(role=kind))}, {})

    (change,) = (each for each in changes.resources if each.type == "Kubernetes::NodePool")
    assert (change.name, change.action, change.protected) == ("train", "deleted", protected)


def test_a_namespace_that_leaves_or_moves_takes_every_job_in_it_and_is_refused() -> None:
    namespace: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}
    old = {"M": manifest(namespace)}

    assert not between(old, {}).is_safe
    assert between(old, {"M": manifest()}).is_safe
    # What applied it before deletes it.
    moved = between(old, {"N": manifest(namespace)})
    (change,) = (each for each in moved.resources if each.type == "Kubernetes::Namespace")
    assert change.protected
    assert "c-storage/N applies it first" in change.fails


UNREADABLE = {
    "no JSON": manifest() | {"Properties": {"Manifest": "[{"}},
    "no list": manifest() | {"Properties": {"Manifest": "{}"}},
    "no object": manifest() | {"Properties": {"Manifest": "[1]"}},
    "no name": manifest({"kind": "Job", "metadata": {"generateName": "a-"}}),
    "no metadata": manifest({"kind": "List", "items": []}),
}


@pytest.mark.parametrize("odd", UNREADABLE.values(), ids=list(UNREADABLE))
def test_a_manifest_that_cannot_be_read_does_not_pass_for_harmless(odd: Body) -> None:
    changes = between({"M": odd}, {"M": odd})

    assert changes.unread == (f"{STACK}/M",)
    assert not changes.is_safe


@pytest.mark.parametrize(
    "operations",
    [
        "[{",
        '[{"op": "remove", "path": "/spec/weight"}]',
        '[{"op": "add", "path": "/spec/template/spec/taints/0/key", "value": "a"}]',
    ],
    ids=["no JSON", "another operation", "into a list"],
)
def test_a_patch_that_cannot_be_read_does_not_either(operations: str) -> None:
    pool = node_pool(node_spec={"taints": [{"key": "b"}]})
    patch = body(
        "Custom::AWSCDK-EKS-KubernetesPatch",
        {
            "ResourceName": "nodepools.karpenter.sh/train",
            "PatchType": "json",
            "ApplyPatchJson": operations,
        },
    )
    stack = {"M": manifest(pool), "P": patch}

    assert between(stack, stack).unread == (f"{STACK}/P",)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_node_group_that_is_replaced_is_refused_where_its_pool_is_guarded(guarded: bool) -> None:
    from tests.support.changes import guard, launch_template, node_group

    rest = {"Template": launch_template(), "Guard": guard(guarded)}
    changes = between(
        {"Group": node_group(), **rest}, {"Group": node_group(Subnets=["subnet-2"]), **rest}
    )

    assert of(changes, "Group").protected is guarded


# --- what the user names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["datasets", "BucketsdatasetsB73376C8", f"{STACK}/BucketsdatasetsB73376C8"]
)
def test_what_is_named_may_go(name: str) -> None:
    bucket = body(
        "AWS::S3::Bucket", Metadata={"aws:cdk:path": "c-storage/Buckets/datasets/Resource"}
    )
    changes = between({"BucketsdatasetsB73376C8": bucket}, {})

    assert changes.permit(name).is_safe
    assert not changes.is_safe


def test_a_name_that_two_things_have_permits_neither() -> None:
    changes = between(
        {"Key11111111": body("AWS::KMS::Key"), "Key22222222": body("AWS::KMS::Key")}, {}
    )

    with pytest.raises(QuestionError, match=r"Key is the name of several.*c-storage/Key11111111"):
        changes.permit("Key")


def test_a_name_of_nothing_is_answered_with_what_is_stopped() -> None:
    changes = between({"A": body("AWS::S3::Bucket")}, {})

    with pytest.raises(QuestionError, match=f"called B is stopped; what is stopped is {STACK}/A"):
        changes.permit("B")


def test_a_name_permits_nothing_else_that_goes_with_it() -> None:
    old, new = (body("AWS::EC2::VPC", {"CidrBlock": f"10.{each}.0.0/16"}) for each in (0, 1))
    subnet = body("AWS::EC2::Subnet", {"VpcId": {"Ref": "V"}, "CidrBlock": "10.0.0.0/20"})

    changes = between({"V": old, "S": subnet}, {"V": new, "S": subnet}).permit("V")

    assert [each.ids[1] for each in changes.protected] == ["S"]


def test_each_of_several_objects_of_one_manifest_can_be_named() -> None:
    spaces = [{"kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b")]

    changes = between({"M": manifest(*spaces)}, {})

    assert [each.ids[-1] for each in changes.protected] == [f"{STACK}/a", f"{STACK}/b"]
    assert changes.permit(f"{STACK}/a", f"{STACK}/b").is_safe
