"""The change guard tells which rights leave the roles of running nodes, pods and functions."""

from typing import Any

from tests.support.cases import for_each
from tests.support.changes import STACK, Body, between, body, of

CUT, NODES_CUT = {"cuts running pods off"}, {"cuts running nodes off"}
ROLE, POLICY = "AWS::IAM::Role", "AWS::IAM::Policy"
KEY = "arn:aws:kms:us-east-1:444455556666:key/1"
PODS, NODES, FUNCTIONS = "pods.eks.amazonaws.com", "ec2.amazonaws.com", "lambda.amazonaws.com"


def allow(action: Any, resource: Any, **more: Any) -> Body:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def document(*statements: Body) -> Body:
    return {"PolicyDocument": {"Statement": [*statements]}}


def role(*statements: Body, service: str = PODS, **properties: Any) -> Body:
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    own = {"Policies": [document(*statements)]} if statements else {}
    return body(ROLE, {"AssumeRolePolicyDocument": {"Statement": [trust]}, **own, **properties})


def attached(*statements: Body) -> Body:
    return body(POLICY, {**document(*statements), "Roles": [{"Ref": "A"}]})


READS = allow("s3:GetObject", "arn:aws:s3:::b/*")
DECRYPTS = allow(["kms:Decrypt", "kms:GenerateDataKey"], KEY)
# By change: what a role may do before, what after, and the words for what leaves.
LESS: dict[str, tuple[list[Body], list[Body], str]] = {
    "another key": (
        [READS, DECRYPTS],
        [READS, allow(["kms:Decrypt", "kms:GenerateDataKey"], f"{KEY}2")],
        f"kms:Decrypt, kms:GenerateDataKey on {KEY}",
    ),
    "one action": ([DECRYPTS], [allow("kms:Decrypt", KEY)], f"kms:GenerateDataKey on {KEY}"),
    "a narrower resource": (
        [READS],
        [allow("s3:GetObject", "arn:aws:s3:::b/a/*")],
        "s3:GetObject on arn:aws:s3:::b/*",
    ),
    "a condition": (
        [READS],
        [{**READS, "Condition": {"Bool": {"a": "true"}}}],
        "s3:GetObject on arn:aws:s3:::b/*",
    ),
    "a value of a condition": (
        [{**READS, "Condition": {"StringEquals": {"a": ["x", "y"]}}}],
        [{**READS, "Condition": {"StringEquals": {"a": "x"}}}],
        "s3:GetObject on arn:aws:s3:::b/*",
    ),
    "a value that is kept out": (
        [{**READS, "Condition": {"StringNotEquals": {"a": ["x"]}}}],
        [{**READS, "Condition": {"StringNotEquals": {"a": ["x", "y"]}}}],
        "s3:GetObject on arn:aws:s3:::b/*",
    ),
    "a refusal": (
        [READS],
        [READS, {**READS, "Effect": "Deny"}],
        "not to be denied s3:GetObject on arn:aws:s3:::b/*",
    ),
}


@for_each(LESS)
def test_rights_that_leave_a_role_in_use_are_told(
    before: list[Body], after: list[Body], lost: str
) -> None:
    changes = between({"A": role(*before)}, {"A": role(*after)})

    assert changes.verdicts == CUT
    assert of(changes, "A").lost == f"rights of pods that run: {lost}"
    assert changes.permit("A").is_safe


def test_advice_on_keys_is_for_rights_to_keys_alone() -> None:
    lost = [(READS, "end the pods that use it first, then name the role")]
    lost += [(DECRYPTS, "--sse-kms-key-id KEY` does; then name the role")]

    for statement, advice in lost:
        changes = between({"A": role(statement)}, {"A": role()})
        assert of(changes, "A").instead.endswith(advice)


MORE: dict[str, tuple[list[Body], list[Body]]] = {
    "a wildcard": ([DECRYPTS], [allow("kms:*", "*")]),
    "another spelling": ([READS], [allow(["S3:getobject"], ["arn:aws:s3:::b/*"])]),
    "no condition": ([{**READS, "Condition": {"Bool": {"a": "true"}}}], [READS]),
    "a condition in another order": (
        [{**READS, "Condition": {"StringEquals": {"a": "x", "b": ["y", "z"]}}}],
        [{**READS, "Condition": {"StringEquals": {"B": ["z", "y"], "a": ["x"]}}}],
    ),
    "a value more of a condition": (
        [{**READS, "Condition": {"StringLike": {"a": "x"}}}],
        [{**READS, "Condition": {"StringLike": {"a": ["x", "y"]}}}],
    ),
    "the number of the account": (
        [allow("a:B", {"Fn::Sub": "arn:aws:a:r:${AWS::AccountId}:x"})],
        [allow("a:B", "arn:aws:a:r:111122223333:x")],
    ),
}


@for_each(MORE)
def test_rights_that_a_role_keeps_are_not(before: list[Body], after: list[Body]) -> None:
    assert between({"A": role(*before)}, {"A": role(*after)}).is_safe


def test_one_statement_without_a_list_counts_like_a_list_of_one() -> None:
    alone, listed = ({"PolicyDocument": {"Statement": each}} for each in (READS, [READS]))
    worlds = [{"A": role(Policies=[each])} for each in (alone, listed)]

    assert between(worlds[0], worlds[1]).is_safe
    assert between(worlds[0], {"A": role()}).verdicts == CUT


def test_all_policies_of_a_role_count_together() -> None:
    in_itself, apart = {"A": role(READS)}, {"A": role(), "P": attached(READS)}

    assert between(in_itself, apart).is_safe
    assert between(apart, in_itself).is_safe
    assert between(apart, {"A": role()}).verdicts == CUT


def test_a_role_of_nobody_that_runs_may_do_less() -> None:
    old, new = (role(*each, service="scheduler.amazonaws.com") for each in ((READS,), ()))

    assert between({"A": old}, {"A": new}).is_safe


def test_managed_policies_of_pods_count_as_those_of_nodes_do() -> None:
    for service, verdicts in ((PODS, CUT), (NODES, NODES_CUT), (FUNCTIONS, NODES_CUT)):
        old, new = (role(service=service, ManagedPolicyArns=arns) for arns in (["a", "b"], ["a"]))
        changes = between({"A": old}, {"A": new})
        assert changes.verdicts == verdicts, service
        assert "all of the policy on b" in of(changes, "A").lost


def test_a_function_with_other_code_has_the_rights_that_it_asks_for() -> None:
    def world(code: str, *statements: Body) -> dict[str, Body]:
        properties = {"Code": {"S3Key": code}, "Role": {"Fn::GetAtt": ["A", "Arn"]}}
        function = body("AWS::Lambda::Function", properties)
        return {"A": role(*statements, service=FUNCTIONS), "F": function}

    assert between(world("1", READS), world("1")).verdicts == NODES_CUT
    assert between(world("1", READS), world("2")).is_safe


def test_rights_to_what_goes_as_well_go_with_it() -> None:
    queue = body("AWS::SQS::Queue")
    asks = allow("sqs:ReceiveMessage", {"Fn::GetAtt": ["Q", "Arn"]})

    assert between({"A": role(asks), "Q": queue}, {"A": role()}).is_safe
    assert between({"A": role(asks), "Q": queue}, {"A": role(), "Q": queue}).verdicts == CUT


def test_a_role_that_goes_is_told_once() -> None:
    (change,) = between({"A": role(READS), "P": attached(READS)}, {}).protected

    assert change.ids[-1] == f"{STACK}/A"
