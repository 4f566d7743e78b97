"""Conversions between types of the CDK that a type checker would refuse.

jsii's interfaces have other parameter names than its classes, and a construct's child has no class:
a type checker accepts neither.
"""

from functools import cache
from typing import TypeVar, cast

from aws_cdk import CfnElement, CfnResource, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct, IConstruct

_Kind = TypeVar("_Kind")
# Lambda ends a function after 15 minutes, and it answers nothing then. CloudFormation waits an hour
# by default, and deletes up to three times. Source:
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
_ANSWER_SECONDS = 16 * 60


def principal(value: iam.PrincipalBase) -> iam.IPrincipal:
    """Return a principal as its interface."""
    return cast("iam.IPrincipal", value)


@cache
def service(name: str) -> iam.IPrincipal:
    """Return an AWS service, such as ``lambda.amazonaws.com``, as a principal."""
    return principal(iam.ServicePrincipal(name))


@cache
def aws_policy(name: str) -> iam.IManagedPolicy:
    """Return an AWS managed policy, such as ``service-role/AWSLambdaBasicExecutionRole``."""
    return iam.ManagedPolicy.from_aws_managed_policy_name(name)


def anyone() -> iam.IPrincipal:
    """Return the principal for everybody."""
    return principal(iam.AnyPrincipal())


def as_role(role: iam.Role) -> iam.IRole:
    """Return a role as its interface."""
    return cast("iam.IRole", role)


def as_log_group(group: logs.LogGroup) -> logs.ILogGroup:
    """Return a log group as its interface."""
    return cast("logs.ILogGroup", group)


def as_bucket(bucket: s3.Bucket) -> s3.IBucket:
    """Return a bucket as its interface."""
    return cast("s3.IBucket", bucket)


def as_key(key: kms.Key) -> kms.IKey:
    """Return a key as its interface."""
    return cast("kms.IKey", key)


def as_topic(topic: sns.Topic) -> sns.ITopic:
    """Return a topic as its interface."""
    return cast("sns.ITopic", topic)


def as_construct(value: IConstruct) -> Construct:
    """Return a construct that the CDK types as an interface."""
    return cast("Construct", value)


def child(construct: IConstruct, kind: type[_Kind], name: str = "") -> _Kind:
    """Return the child called ``name`` of a construct; without a name, the default child.

    For a child whose class the CDK does not publish see `as_construct`.
    """
    node = construct.node
    found = node.find_child(name) if name else node.default_child
    assert isinstance(found, kind)
    return found


def answer_in_time(resource: CfnResource) -> CfnResource:
    """Return a custom resource of the CDK's, given up soon after its function has ended."""
    resource.add_property_override("ServiceTimeout", _ANSWER_SECONDS)
    return resource


def logical_id(construct: IConstruct) -> str:
    """Return the logical id of the resource behind a construct."""
    stack = Stack.of(construct)
    return str(stack.resolve(stack.get_logical_id(child(construct, CfnElement))))
