"""The change guard: nothing protected is replaced or deleted without a word."""

from typing import Any

import pytest

from tests.changes import REGION, STACK, Body, between, body, export, manifest, of, template
from ultrascale.errors import QuestionError
from ultrascale.guard import compare

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
def test_a_protected_resource_that_is_deleted_is_refused(kind: str) -> None:
    changes = between({"A": body(kind)}, {})

    assert of(changes, "A").action == "deleted"
    assert of(changes, "A").protected
    assert not changes.is_safe


@pytest.mark.parametrize("kind", PROTECTED)
def test_a_protected_resource_that_is_only_updated_passes(kind: str) -> None:
    changes = between({"A": body(kind, {"Tags": []})}, {"A": body(kind, {"Tags": ["x"]})})

    assert of(changes, "A").action == "updated"
    assert changes.is_safe


@pytest.mark.parametrize("policy", ["Retain", "RetainExceptOnCreate"])
def test_what_is_retained_stays_and_is_told_without_being_refused(policy: str) -> None:
    changes = between({"A": body("AWS::S3::Bucket", DeletionPolicy=policy)}, {})

    assert of(changes, "A").action == "kept"
    assert changes.is_safe


def test_a_snapshot_does_not_pass_for_retention() -> None:
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


def test_a_bucket_that_loses_its_retention_is_refused_before_anything_is_lost() -> None:
    changes = between({"A": body("AWS::S3::Bucket", **RETAINED)}, {"A": body("AWS::S3::Bucket")})

    assert of(changes, "A").protected
    assert "retention" in of(changes, "A").lost


def test_a_bucket_that_its_stack_empties_holds_nothing_to_protect() -> None:
    emptied = body("Custom::S3AutoDeleteObjects", {"BucketName": {"Ref": "A"}})

    assert between({"A": body("AWS::S3::Bucket"), "E": emptied}, {}).is_safe


def test_what_may_be_replaced_is_protected_as_what_is() -> None:
    kind = "AWS::FSx::FileSystem"
    old, new = ({"LustreConfiguration": {"PerUnitStorageThroughput": n}} for n in (250, 500))

    change = of(between({"A": body(kind, old)}, {"A": body(kind, new)}), "A")

    assert (change.action, change.protected) == ("may be replaced", True)
    assert change.properties[0].path == "LustreConfiguration/PerUnitStorageThroughput"


def test_a_change_of_a_type_that_nobody_knows_may_replace_it() -> None:
    changes = between({"A": body("AWS::New::Thing", {"X": 1})}, {"A": body("AWS::New::Thing")})

    assert of(changes, "A").action == "may be replaced"


def test_what_the_cdk_notes_of_itself_is_no_change() -> None:
    old, new = (body("AWS::CDK::Metadata", {"Analytics": each}) for each in "ab")

    assert between({"A": old}, {"A": new, "B": new}).resources == ()


@pytest.mark.parametrize(("kind", "protected"), [("reserved", True), ("burst", False)])
def test_node_pools_of_reserved_capacity_alone_are_refused(kind: str, protected: bool) -> None:
    from tests.changes import node_pool

    changes = between({"M": manifest(node_pool(role=kind))}, {})

    (change,) = (each for each in changes.resources if each.type == "Kubernetes::NodePool")
    assert (change.name, change.action, change.protected) == ("train", "deleted", protected)


def test_a_namespace_that_leaves_takes_every_job_in_it_and_is_refused() -> None:
    namespace: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}

    assert not between({"M": manifest(namespace)}, {}).is_safe
    assert between({"M": manifest(namespace)}, {"M": manifest()}).is_safe


def test_an_object_that_moves_is_deleted_by_what_applied_it_before() -> None:
    namespace: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}

    changes = between({"M": manifest(namespace)}, {"N": manifest(namespace)})

    (change,) = (each for each in changes.resources if each.type == "Kubernetes::Namespace")
    assert change.protected
    assert "c-storage/N applies it first" in change.fails


def test_a_manifest_that_cannot_be_read_does_not_pass_for_harmless() -> None:
    odd = body("Custom::AWSCDK-EKS-KubernetesResource", {"Manifest": "[{"})

    changes = between({"M": odd}, {"M": odd})

    assert changes.unread == (f"{STACK}/M",)
    assert not changes.is_safe


@pytest.mark.parametrize("guarded", [True, False])
def test_a_node_group_that_is_replaced_is_refused_where_its_pool_is_guarded(guarded: bool) -> None:
    from tests.changes import guard, launch_template, node_group

    rest = {"Template": launch_template(), "Guard": guard(guarded)}
    changes = between(
        {"Group": node_group(), **rest}, {"Group": node_group(Subnets=["subnet-2"]), **rest}
    )

    assert of(changes, "Group").protected is guarded


# --- replacement goes on ------------------------------------------------------------------------

GROUP = "AWS::EC2::SecurityGroup"
LUSTRE = "AWS::FSx::FileSystem"
REFERENCES: dict[str, Any] = {
    "Ref": {"Ref": "G"},
    "GetAtt": {"Fn::GetAtt": ["G", "GroupId"]},
    "GetAtt in one word": {"Fn::GetAtt": "G.GroupId"},
    "Sub": {"Fn::Sub": "${G.GroupId}"},
    "Sub with names": {"Fn::Sub": ["${it}", {"it": {"Ref": "G"}}]},
    "Join": {"Fn::Join": ["-", ["x", {"Ref": "G"}]]},
    "If": {"Fn::If": ["C", {"Ref": "G"}, "sg-1"]},
    "Select": {"Fn::Select": [0, [{"Ref": "G"}]]},
}


@pytest.mark.parametrize("value", REFERENCES.values(), ids=list(REFERENCES))
def test_what_names_a_replaced_resource_in_a_create_only_property_is_replaced_too(
    value: object,
) -> None:
    lustre = body(LUSTRE, {"SecurityGroupIds": [value]})

    changes = between(
        {"G": body(GROUP, {"GroupDescription": "a"}), "A": lustre},
        {"G": body(GROUP, {"GroupDescription": "b"}), "A": lustre},
        Conditions={"C": {"Fn::Equals": ["a", "b"]}},
    )

    assert (of(changes, "A").action, of(changes, "A").protected) == ("replaced", True)
    assert "G is replaced" in of(changes, "A").properties[0].why


def test_what_names_an_updated_resource_is_left_alone() -> None:
    lustre = body(LUSTRE, {"SecurityGroupIds": [{"Ref": "G"}]})

    changes = between(
        {"G": body(GROUP, {"Tags": []}), "A": lustre},
        {"G": body(GROUP, {"Tags": [1]}), "A": lustre},
    )

    assert [each.logical_id for each in changes.resources] == ["G"]


def test_replacement_goes_on_through_an_export_to_another_stack() -> None:
    lustre = template({"A": body(LUSTRE, {"SecurityGroupIds": [{"Fn::ImportValue": "g"}]})})
    old, new = (
        template({"G": body(GROUP, {"GroupDescription": text})}, **export("g", {"Ref": "G"}))
        for text in ("a", "b")
    )

    changes = compare({"net": old, STACK: lustre}, {"net": new, STACK: lustre}, region=REGION)

    assert of(changes, "A").protected
    assert "c-storage imports what it exports" in of(changes, "G").fails


def test_a_file_system_that_would_go_to_another_subnet_of_another_stack_is_seen() -> None:
    network = template(
        {"S1": body("AWS::EC2::Subnet"), "S2": body("AWS::EC2::Subnet")},
        Outputs={
            name: {"Value": {"Ref": name}, "Export": {"Name": f"n:{name}"}} for name in ("S1", "S2")
        },
    )
    old, new = (
        template({"A": body(LUSTRE, {"SubnetIds": [{"Fn::ImportValue": f"n:{name}"}]})})
        for name in ("S1", "S2")
    )

    changes = compare({"n": network, STACK: old}, {"n": network, STACK: new}, region=REGION)

    (change,) = of(changes, "A").properties
    assert (change.old, change.new) == ("[<n.S1>]", "[<n.S2>]")


def test_an_attribute_that_a_custom_resource_gives_anew_may_replace_what_has_it() -> None:
    bucket = body("AWS::S3::Bucket", {"BucketName": {"Fn::GetAtt": ["C", "Name"]}})

    changes = between(
        {"C": body("Custom::Name", {"X": 1}), "A": bucket},
        {"C": body("Custom::Name", {"X": 2}), "A": bucket},
    )

    assert of(changes, "A").action == "may be replaced"


def test_what_names_a_resource_that_may_be_replaced_may_be_too() -> None:
    association = body(
        "AWS::FSx::DataRepositoryAssociation", {"FileSystemId": {"Ref": "A"}, "FileSystemPath": "/"}
    )
    old, new = (
        body(LUSTRE, {"LustreConfiguration": {"PerUnitStorageThroughput": each}})
        for each in (250, 500)
    )

    changes = between({"A": old, "D": association}, {"A": new, "D": association})

    assert of(changes, "D").action == "may be replaced"


# --- the same value in other words --------------------------------------------------------------

SAME: dict[str, tuple[Any, Any]] = {
    "numbers": (3, "3"),
    "truth": (True, "true"),
    "joined literals": ({"Fn::Join": ["", ["a", "b"]]}, "ab"),
    "Sub and Join": (
        {"Fn::Sub": "a-${AWS::Region}"},
        {"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}]]},
    ),
    "nested joins": (
        {"Fn::Join": ["", ["a", {"Fn::Join": ["", ["b", {"Ref": "AWS::Region"}]]}]]},
        {"Fn::Join": ["", ["ab", {"Ref": "AWS::Region"}]]},
    ),
    "a literal of Sub": ({"Fn::Sub": "${!a}"}, "${a}"),
    "no value": ({"Ref": "AWS::NoValue"}, None),
    "a mapping": ({"Fn::FindInMap": ["M", "a", "b"]}, "found"),
    "GetAtt in one word": ({"Fn::GetAtt": "B.Arn"}, {"Fn::GetAtt": ["B", "Arn"]}),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=list(SAME))
def test_the_same_value_in_other_words_is_no_change(one: object, other: object) -> None:
    kind = "AWS::S3::Bucket"
    rest = {"B": body("AWS::SQS::Queue")}
    new = {} if other is None else {"BucketName": other}

    changes = between(
        {"A": body(kind, {"BucketName": one}), **rest},
        {"A": body(kind, new), **rest},
        Mappings={"M": {"a": {"b": "found"}}},
    )

    assert changes.resources == ()


def test_a_parameter_whose_default_changes_is_another_value() -> None:
    bucket = {"A": body("AWS::S3::Bucket", {"BucketName": {"Ref": "P"}})}
    old, new = (
        {STACK: template(bucket, Parameters={"P": {"Type": "String", "Default": each}})}
        for each in "ab"
    )

    assert of(compare(old, new, region=REGION), "A").protected


def test_a_condition_that_changes_may_take_what_depends_on_it() -> None:
    bucket = {"A": body("AWS::S3::Bucket", Condition="C")}
    old, new = (
        {STACK: template(bucket, Conditions={"C": {"Fn::Equals": ["a", each]}})} for each in "ab"
    )

    assert of(compare(old, new, region=REGION), "A").protected


# --- what CloudFormation could not do -----------------------------------------------------------


def test_a_replacement_under_the_same_name_is_said_to_fail() -> None:
    old, new = ({"Name": "c", "RoleArn": f"arn:{each}"} for each in "ab")

    change = of(
        between({"A": body("AWS::EKS::Cluster", old)}, {"A": body("AWS::EKS::Cluster", new)}), "A"
    )

    assert "both would be Name c" in change.fails


def test_a_replacement_that_deletes_first_is_not() -> None:
    kind = "AWS::SageMaker::ComputeQuota"
    rest = {"ClusterArn": "arn:h", "Name": "quota"}
    old, new = (rest | {"ComputeQuotaTarget": {"TeamName": each}} for each in "ab")

    assert of(between({"A": body(kind, old)}, {"A": body(kind, new)}), "A").fails == ""


@pytest.mark.parametrize(("policy", "verb"), [("Retain", "stays"), ("Delete", "goes only after")])
def test_another_logical_id_under_the_same_name_is_said_to_fail(policy: str, verb: str) -> None:
    role = body("AWS::IAM::Role", {"RoleName": "node"}, DeletionPolicy=policy)

    changes = between({"A": role}, {"B": role})

    assert verb in of(changes, "B").fails
    assert not changes.is_safe


def test_ranges_that_change_places_are_said_to_fail() -> None:
    kind = "AWS::EC2::Subnet"
    one, other = (body(kind, {"VpcId": "vpc-1", "CidrBlock": f"10.0.{n}.0/24"}) for n in (0, 1))

    changes = between({"A": one, "B": other}, {"A": other, "B": one})

    assert f"{STACK}/B is VpcId vpc-1, CidrBlock 10.0.1.0/24 already" in of(changes, "A").fails


def test_a_name_in_a_stack_that_is_left_behind_is_taken() -> None:
    role = template({"A": body("AWS::IAM::Role", {"RoleName": "node"})})

    changes = compare({"c-karpenter": role}, {"c-nodes": role}, region=REGION)

    assert changes.left_stacks == ("c-karpenter",)
    assert changes.new_stacks == ("c-nodes",)
    assert "c-karpenter/A is RoleName node already, and stays" in changes.resources[0].fails


def test_what_deletion_protection_holds_is_said_to_fail() -> None:
    cluster = body("AWS::EKS::Cluster", {"DeletionProtection": True})

    assert "deletion protection" in of(between({"A": cluster}, {}), "A").fails


def test_another_type_under_the_same_id_is_said_to_fail() -> None:
    changes = between({"A": body("AWS::SQS::Queue")}, {"A": body("AWS::SNS::Topic")})

    assert "another type" in of(changes, "A").fails


@pytest.mark.parametrize("kind", ["Custom::Build", "AWS::CloudFormation::CustomResource"])
def test_another_function_behind_a_custom_resource_is_said_to_fail(kind: str) -> None:
    old, new = (body(kind, {"ServiceToken": f"arn:{each}"}) for each in "ab")

    assert "never lets another function" in of(between({"A": old}, {"A": new}), "A").fails


def test_a_file_system_that_would_shrink_is_said_to_fail() -> None:
    old, new = (body(LUSTRE, {"StorageCapacity": each}) for each in (2400, 1200))

    assert "only grows" in of(between({"A": old}, {"A": new}), "A").fails
    assert between({"A": new}, {"A": old}).is_safe


def test_an_export_that_goes_before_its_user_is_said_to_fail() -> None:
    queue = {"Q": body("AWS::SQS::Queue")}
    user = template({"U": body("AWS::SQS::Queue", {"X": {"Fn::ImportValue": "q"}})})

    changes = compare(
        {"a": template(queue, **export("q", {"Ref": "Q"})), "b": user},
        {"a": template(queue), "b": template({})},
        region=REGION,
    )

    assert "b still imports it" in of(changes, "q").fails


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


def test_what_a_function_answers_goes_on_through_the_next_one() -> None:
    rest = {
        "Next": body("Custom::B", {"ServiceToken": "arn:f", "In": {"Fn::GetAtt": ["First", "O"]}}),
        "Net": body("AWS::EC2::Subnet", {"CidrBlock": {"Fn::GetAtt": ["Next", "O"]}}),
    }

    def first(value: str) -> Body:
        return body("Custom::A", {"ServiceToken": "arn:f", "In": value})

    changes = between({"First": first("a"), **rest}, {"First": first("b"), **rest})

    assert of(changes, "Next").action == "updated"
    assert of(changes, "Net").action == "may be replaced"
    assert not changes.is_safe


def test_each_of_several_objects_of_one_manifest_can_be_named() -> None:
    spaces = [{"kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b")]

    changes = between({"M": manifest(*spaces)}, {})

    assert [each.ids[-1] for each in changes.protected] == [f"{STACK}/a", f"{STACK}/b"]
    assert changes.permit(f"{STACK}/a", f"{STACK}/b").is_safe
