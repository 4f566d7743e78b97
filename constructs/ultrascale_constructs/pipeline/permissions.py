"""Permissions of a pipeline's roles beyond the permissions that the CDK grants."""

import json
from collections.abc import Iterator, Mapping

from aws_cdk import Stack, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale.documents import mapping, objects, parse_json, text
from ultrascale.parts.pipeline import facts
from ultrascale.parts.pipeline.model import PipelinePlan
from ultrascale.release import PRODUCT
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_managed_policies
from ultrascale_constructs.cdk_types import as_construct, child, logical_id

# Commands of the permission check in aws-cdk-lib 2.275.0. The check takes the newest release of the
# CLI, and searches a stage in the pipeline's assembly; here a stage's stacks have an assembly of
# their own. By default it makes change sets, and creates missing stacks for them, which it deletes
# again: an interrupted check leaves stacks in REVIEW_IN_PROGRESS, which no action updates. To
# compare permissions, templates are enough.
# Sources:
# https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/pipelines/lib/private/application-security-check.ts
# https://docs.aws.amazon.com/cdk/v2/guide/ref-cli-cmd-diff.html
_REPLACED = {
    "npm install -g aws-cdk": "npm install -g aws-cdk@{version}",
    "cdk diff -a . --security-only --fail $STAGE_PATH/\\\\*": (
        "cdk diff -a cluster-$STAGE_PATH --security-only --fail --method=template"
    ),
}
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
_OWN_WHEEL = "the key of the bucket is not ours to know; the condition names the objects"
_NEXT_WHEEL = "the wheels of this product in one folder: a commit names the next before its update"
_OWN_BUILDS = "logs and reports of the pipeline's own builds"
_BOOTSTRAP_ROLES = "roles of the CDK's bootstrap stack alone: the condition names their tag"
_OWN_APPROVALS = "approvals of pipelines with the check's tag alone: the condition names it"


def allow_connection(pipeline: pipelines.CodePipeline, connection: str) -> None:
    """Let the pipeline read its source over the connection.

    aws-cdk-lib 2.275.0 allows only the action with the former service prefix, but the action needs
    the prefix of the connection's ARN.

    Source: https://docs.aws.amazon.com/dtconsole/latest/userguide/rename.html

    Args:
        pipeline: The pipeline, built.
        connection: ARN of the connection.
    """
    service = connection.split(":")[2]
    for construct in pipeline.pipeline.node.find_child("Source").node.find_all():
        if isinstance(construct, iam.Role):
            construct.add_to_policy(
                iam.PolicyStatement(actions=[f"{service}:UseConnection"], resources=[connection])
            )


def package_statements(plan: PipelinePlan) -> list[iam.PolicyStatement]:
    """Return the permissions of a build to read the wheel that it installs."""
    if plan.builds.bucket_object is None:
        return []
    return _read_statements(plan, _object_arn(plan, plan.builds.bucket_object))


def upgrade_statements(plan: PipelinePlan) -> list[iam.PolicyStatement]:
    """Return the permissions of the first build to read any release in the folder of the wheel.

    The build installs the commit's release before an update of the pipeline could allow that
    release.
    """
    wheels = _wheels_arn(plan)
    return _read_statements(plan, wheels) if wheels else []


def _read_statements(plan: PipelinePlan, objects_arn: str) -> list[iam.PolicyStatement]:
    """Return the permissions to read objects in a bucket that may be encrypted.

    S3 passes KMS the object's ARN, or the bucket's ARN if it has a bucket key.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    """
    bucket_arn = objects_arn.partition("/")[0]
    return [
        iam.PolicyStatement(actions=["s3:GetObject"], resources=[objects_arn]),
        iam.PolicyStatement(
            actions=["kms:Decrypt"],
            resources=[_any_key(plan)],
            conditions={
                "StringLike": {
                    "kms:ViaService": "s3.*",
                    "kms:EncryptionContext:aws:s3:arn": [objects_arn, bucket_arn],
                }
            },
        ),
    ]


def _wheels_arn(plan: PipelinePlan) -> str | None:
    """Return the ARN pattern of wheels in the folder of the installed wheel; None without one.

    ``plan.builds.bucket_object`` is ``BUCKET/FOLDER/NAME.whl``.
    """
    if plan.builds.bucket_object is None:
        return None
    folder, _, _ = plan.builds.bucket_object.rpartition("/")
    return _object_arn(plan, f"{folder}/{PRODUCT}-*.whl")


def _object_arn(plan: PipelinePlan, place: str) -> str:
    return f"arn:{plan.partition}:s3:::{place}"


def _any_key(plan: PipelinePlan) -> str:
    return f"arn:{plan.partition}:kms:*:*:key/*"


def complete_check(
    pipeline: pipelines.CodePipeline, *, plan: PipelinePlan, group: logs.LogGroup
) -> None:
    """Pin the CDK CLI of the check of permissions, and let it read the stages' stacks.

    Args:
        pipeline: The pipeline, built.
        plan: The pipeline's plan.
        group: Log group of the check.

    Raises:
        LookupError: The library has changed its check.
    """
    check = pipeline.node.find_child("PipelinesSecurityCheck")
    build = child(check, codebuild.Project, "CDKSecurityCheck")
    group.grant_write(build)
    _allow_lookup(build)
    project = child(build, codebuild.CfnProject)
    for construct in check.node.find_all():
        if isinstance(construct, logs.CfnLogGroup):
            construct.retention_in_days = plan.log_retention_days
    source = mapping(Stack.of(check).resolve(project.source))
    commands = {old: new.format(version=plan.cdk_version) for old, new in _REPLACED.items()}
    text = replaced(json.dumps(source["buildSpec"]), commands)
    project.add_property_override("Source.BuildSpec", parse_json(text))
    project.add_property_override("Environment.Image", facts.BUILD_ENVIRONMENT.image)
    project.add_property_override(
        "Environment.EnvironmentVariables",
        [
            {"Name": name, "Type": "PLAINTEXT", "Value": value}
            for name, value in plan.cdk_variables.items()
        ],
    )
    project.add_property_override(
        "LogsConfig.CloudWatchLogs",
        {"Status": "ENABLED", "GroupName": Stack.of(check).resolve(group.log_group_name)},
    )
    key = pipeline.pipeline.artifact_bucket.encryption_key
    assert key is not None
    project.add_property_override("EncryptionKey", Stack.of(check).resolve(key.key_arn))


def _allow_lookup(build: codebuild.Project) -> None:
    """Let the check assume the CDK's lookup role, beside the deployment role.

    In the pipeline's own account, the CDK CLI falls back to the build's own permissions if it
    cannot assume that role. These do not cover stacks, so each run would wait for an approval.

    Source: https://github.com/aws/aws-cdk/issues/32482
    """
    build.add_to_role_policy(
        iam.PolicyStatement(
            actions=["sts:AssumeRole"],
            resources=["*"],
            conditions={"StringEquals": {"iam:ResourceTag/aws-cdk:bootstrap-role": "lookup"}},
        )
    )


def replaced(text: str, replacements: Mapping[str, str]) -> str:
    """Return a JSON document with all ``replacements`` applied to its strings.

    Raises:
        LookupError: A text to replace is absent.
    """
    for old, new in replacements.items():
        known, wanted = json.dumps(old)[1:-1], json.dumps(new)[1:-1]
        if known not in text:
            raise LookupError(f"the check of permissions no longer runs {old!r}")
        text = text.replace(known, wanted)
    return text


def accept_findings(scope: Construct, pipeline: pipelines.CodePipeline, plan: PipelinePlan) -> None:
    """Accept the wildcards of the CDK's own pipeline.

    Args:
        scope: Parent of the pipeline.
        pipeline: The pipeline, built.
        plan: The pipeline's plan.
    """
    wheels = _wheels_arn(plan)
    acknowledge(
        scope,
        {_FINDING.format(f"Action::{action}"): _OWN_FILES for action in _GRANTED_ACTIONS}
        | {
            _FINDING.format(f"Resource::{bucket}/*"): _OWN_FILES
            for bucket in _bucket_findings(pipeline, plan)
        }
        | {
            _FINDING.format(f"Resource::{build}"): _OWN_BUILDS
            for build in _build_findings(scope, pipeline, plan)
        }
        | (
            {
                _FINDING.format(f"Resource::{_any_key(plan)}"): _OWN_WHEEL,
                _FINDING.format(f"Resource::{wheels}"): _NEXT_WHEEL,
            }
            if wheels
            else {}
        ),
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


def _bucket_findings(pipeline: pipelines.CodePipeline, plan: PipelinePlan) -> Iterator[str]:
    """Yield the buckets of the pipeline, in all Regions, as findings show them."""
    underlying = pipeline.pipeline
    yield f"<{logical_id(underlying.artifact_bucket)}.Arn>"
    stack = Stack.of(underlying)
    for support in underlying.cross_region_support.values():
        name = str(stack.resolve(support.replication_bucket.bucket_name))
        yield f"arn:{plan.partition}:s3:::{name}"


def _build_findings(
    scope: Construct, pipeline: pipelines.CodePipeline, plan: PipelinePlan
) -> Iterator[str]:
    """Yield the logs and reports of builds as findings show them."""
    place = f"{plan.region}:{plan.account}"
    logs = f"arn:{plan.partition}:logs:{place}:log-group:/aws/codebuild/"
    reports = f"arn:{plan.partition}:codebuild:{place}:report-group/"
    yield from (f"{logs}*", f"{reports}*")
    assets = pipeline.node.try_find_child("Assets")
    uploads = [upload.node.path for upload in assets.node.find_all()] if assets is not None else []
    for construct in scope.node.find_all():
        if isinstance(construct, codebuild.CfnProject) and construct.node.path not in uploads:
            name = f"<{Stack.of(scope).get_logical_id(construct)}>"
            yield from (f"{logs}{name}:*", f"{reports}{name}-*")


def accept_reading(role: Construct, policy: Mapping[str, object], *others: str) -> None:
    """Accept the wildcards of a role that only reads an account.

    Args:
        role: The role.
        policy: The role's policy.
        others: Further resources that the role reads.
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
