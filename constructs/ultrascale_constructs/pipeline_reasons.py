"""Wildcards in the roles that the CDK makes for a pipeline, and why they are accepted."""

from collections.abc import Iterator, Mapping

from aws_cdk import Stack, pipelines
from aws_cdk import aws_codebuild as codebuild
from constructs import Construct

from ultrascale.documents import objects, text
from ultrascale.plan.model import PipelinePlan
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_managed_policies
from ultrascale_constructs.cdk_types import as_construct, logical_id

_FINDING = "AwsSolutions::AwsSolutions-IAM5[{}]"
_GRANTED_ACTIONS = (
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
    "s3:Abort*",
    "s3:DeleteObject*",
    "s3:GetBucket*",
    "s3:GetObject*",
    "s3:List*",
)
_OWN_FILES = "the CDK's grants on the pipeline's own buckets and keys, which hold its runs alone"
_OWN_BUILDS = "logs and reports of the pipeline's own builds"
_BOOTSTRAP_ROLES = "roles of the CDK's bootstrap stack alone: the condition names their tag"
_OWN_APPROVALS = "approvals of pipelines with the check's tag alone: the condition names it"


def accept_findings(scope: Construct, pipeline: pipelines.CodePipeline, plan: PipelinePlan) -> None:
    """Accept the wildcards of the CDK's own pipeline.

    Args:
        scope: Where the pipeline is.
        pipeline: The pipeline, built.
        plan: What it deploys.
    """
    acknowledge(
        scope,
        {_FINDING.format(f"Action::{action}"): _OWN_FILES for action in _GRANTED_ACTIONS}
        | {_FINDING.format(f"Resource::{each}/*"): _OWN_FILES for each in _buckets(pipeline, plan)}
        | {
            _FINDING.format(f"Resource::{each}"): _OWN_BUILDS
            for each in _builds(scope, pipeline, plan)
        },
    )
    every = _FINDING.format("Resource::*")
    acknowledge(
        as_construct(pipeline.node.find_child("UpdatePipeline")),
        {
            _FINDING.format(f"Resource::arn:*:iam::{plan.account}:role/*"): _BOOTSTRAP_ROLES,
            every: "the CDK looks for its bootstrap stack; names of stacks and objects are all "
            "that it reads",
        },
    )
    acknowledge(
        as_construct(pipeline.pipeline.node.find_child("Role")),
        {every: "keys in other Regions have no ARN before they are there; their policies decide"},
    )
    if pipeline.node.try_find_child("Assets") is not None:
        assets = as_construct(pipeline.node.find_child("Assets"))
        acknowledge(assets, {every: "the CDK lets the pipeline start the build by the same role"})
    _accept_check(as_construct(pipeline.node.find_child("PipelinesSecurityCheck")), every)


def _accept_check(check: Construct, every: str) -> None:
    function = as_construct(check.node.find_child("CDKPipelinesAutoApprove"))
    acknowledge_managed_policies(
        function, {"service-role/AWSLambdaBasicExecutionRole": "writes its own log, nothing else"}
    )
    acknowledge(function, {every: _OWN_APPROVALS})
    versions = f"Resource::<{logical_id(function)}.Arn>:*"
    acknowledge(
        as_construct(check.node.find_child("CDKSecurityCheck")),
        {every: _BOOTSTRAP_ROLES, _FINDING.format(versions): "versions of the one function"},
    )


def _buckets(pipeline: pipelines.CodePipeline, plan: PipelinePlan) -> Iterator[str]:
    """Yield what findings call the buckets of the pipeline in its Region and in the others."""
    underlying = pipeline.pipeline
    yield f"<{logical_id(underlying.artifact_bucket)}.Arn>"
    stack = Stack.of(underlying)
    for support in underlying.cross_region_support.values():
        name = str(stack.resolve(support.replication_bucket.bucket_name))
        yield f"arn:{plan.partition}:s3:::{name}"


def _builds(
    scope: Construct, pipeline: pipelines.CodePipeline, plan: PipelinePlan
) -> Iterator[str]:
    """Yield what findings call the logs and reports of each build, and of all those of uploads."""
    place = f"{plan.region}:{plan.account}"
    logs = f"arn:{plan.partition}:logs:{place}:log-group:/aws/codebuild/"
    reports = f"arn:{plan.partition}:codebuild:{place}:report-group/"
    yield from (f"{logs}*", f"{reports}*")
    assets = pipeline.node.try_find_child("Assets")
    uploads = [each.node.path for each in assets.node.find_all()] if assets is not None else []
    for construct in scope.node.find_all():
        if isinstance(construct, codebuild.CfnProject) and construct.node.path not in uploads:
            name = f"<{Stack.of(scope).get_logical_id(construct)}>"
            yield from (f"{logs}{name}:*", f"{reports}{name}-*")


def accept_looking(role: Construct, policy: Mapping[str, object], *others: str) -> None:
    """Accept the wildcards of a role that looks at an account and changes nothing.

    Args:
        role: The role.
        policy: Its policy.
        others: Further resources that it names by a pattern.
    """
    patterns = [text(statement, "Resource") for statement in objects(policy, "Statement")]
    acknowledge(
        role,
        {
            _FINDING.format(f"Resource::{resource}"): (
                "it reads what belongs to no one cluster, or has no name before it is there"
            )
            for resource in (*patterns, *others)
            if "*" in resource
        },
    )
