"""Replacements that follow from others, and differences that mean the same."""

from typing import Any

import pytest

from tests.support.changes import REGION, STACK, Body, between, body, export, of, template
from ultrascale.guard import compare

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


def test_a_parameter_or_condition_that_changes_may_take_what_depends_on_it() -> None:
    named = {"A": body("AWS::S3::Bucket", {"BucketName": {"Ref": "P"}})}
    there = {"A": body("AWS::S3::Bucket", Condition="C")}

    for bucket, sections in (
        (named, [{"Parameters": {"P": {"Type": "String", "Default": each}}} for each in "ab"]),
        (there, [{"Conditions": {"C": {"Fn::Equals": ["a", each]}}} for each in "ab"]),
    ):
        old, new = ({STACK: template(bucket, **each)} for each in sections)
        assert of(compare(old, new, region=REGION), "A").protected
