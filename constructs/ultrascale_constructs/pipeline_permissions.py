"""What the CDK's check of permissions that grow needs here, beside what it has."""

import json
from collections.abc import Mapping

from aws_cdk import Stack, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs

from ultrascale.catalog.build_environment import PIPELINE_BUILD_ENVIRONMENT
from ultrascale.catalog.codepipeline import CDK_CLI_VERSION
from ultrascale.documents import mapping
from ultrascale.plan.model import PipelinePlan
from ultrascale_constructs.cdk_types import child

# Of aws-cdk-lib 2.275.0: it takes whatever release is newest, and looks for a stage in the assembly
# of the pipeline. A stage's stacks have an assembly of their own here. By default it makes change
# sets, and with them stacks that are not there, which it deletes again: broken off, it leaves them
# as REVIEW_IN_PROGRESS, which no action updates. Permissions it tells by templates alone.
# Sources: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/pipelines/lib/private/application-security-check.ts
# https://docs.aws.amazon.com/cdk/v2/guide/ref-cli-cmd-diff.html
_REPLACED = {
    "npm install -g aws-cdk": f"npm install -g aws-cdk@{CDK_CLI_VERSION}",
    "cdk diff -a . --security-only --fail $STAGE_PATH/\\\\*": (
        "cdk diff -a cluster-$STAGE_PATH --security-only --fail --method=template"
    ),
}


def allow_connection(pipeline: pipelines.CodePipeline, connection: str) -> None:
    """Let the source be read over the connection.

    aws-cdk-lib 2.275.0 allows the action of the former service prefix alone, and the prefix has to
    be that of the connection's ARN.

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


def complete_check(
    pipeline: pipelines.CodePipeline, *, plan: PipelinePlan, group: logs.LogGroup
) -> None:
    """Pin the command line of the check of permissions, and let it look at the stages' stacks.

    Args:
        pipeline: The pipeline, built.
        plan: What it deploys.
        group: Where the check logs to.

    Raises:
        LookupError: The library's check is another than the one known here.
    """
    check = pipeline.node.find_child("PipelinesSecurityCheck")
    build = child(check, codebuild.Project, "CDKSecurityCheck")
    group.grant_write(build)
    _let_look(build)
    project = child(build, codebuild.CfnProject)
    for construct in check.node.find_all():
        if isinstance(construct, logs.CfnLogGroup):
            construct.retention_in_days = plan.log_retention_days
    source = mapping(Stack.of(check).resolve(project.source))
    text = replaced(json.dumps(source["buildSpec"]), _REPLACED)
    project.add_property_override("Source.BuildSpec", json.loads(text))
    project.add_property_override("Environment.Image", PIPELINE_BUILD_ENVIRONMENT.image)
    project.add_property_override(
        "LogsConfig.CloudWatchLogs",
        {"Status": "ENABLED", "GroupName": Stack.of(check).resolve(group.log_group_name)},
    )
    key = pipeline.pipeline.artifact_bucket.encryption_key
    assert key is not None
    project.add_property_override("EncryptionKey", Stack.of(check).resolve(key.key_arn))


def _let_look(build: codebuild.Project) -> None:
    """Let the check assume the role that looks, beside the one that deploys.

    In the pipeline's own account the CDK CLI goes on with the build's rights where it cannot assume
    that role first. They let it look at no stack, and each run would wait for an approval.

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
    """Return a document of JSON with each of ``replacements`` made in its strings.

    Raises:
        LookupError: One of them has nothing to replace.
    """
    for old, new in replacements.items():
        known, wanted = json.dumps(old)[1:-1], json.dumps(new)[1:-1]
        if known not in text:
            raise LookupError(f"the check of permissions no longer runs {old!r}")
        text = text.replace(known, wanted)
    return text
