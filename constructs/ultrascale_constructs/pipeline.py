"""The pipeline that builds, checks and deploys the clusters of a repository."""

from collections.abc import Iterator, Mapping

from aws_cdk import Duration, RemovalPolicy, Stage, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultrascale.plan.model import PipelinePlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.cdk_types import as_bucket, as_log_group, as_topic
from ultrascale_constructs.key import Key
from ultrascale_constructs.log_group import define_log_group
from ultrascale_constructs.pipeline_gate import Gate
from ultrascale_constructs.pipeline_order import order_actions
from ultrascale_constructs.pipeline_permissions import (
    accept_findings,
    allow_connection,
    complete_check,
    package_statements,
    upgrade_statements,
)
from ultrascale_constructs.topic import KEY_USE, allow_service, send_event

CHECKS = "Checks"
"""Name of the stage that runs tests and creates the role of each gate."""
_NO_ACCESS_LOG = {
    "AwsSolutions::AwsSolutions-S1": (
        "files of builds, which go after weeks; who read them is for the account's CloudTrail "
        "to record"
    )
}


class DeploymentPipeline(Construct):
    """Defines a pipeline that deploys clusters, one wave after the other.

    Each run builds the assembly, updates the pipeline itself, runs tests, and creates the gate role
    in each stage's account. Before a stage, a build checks its plan, its account and its changes;
    broader permissions wait for an approval, and so does a stage with `approval`.

    The builds lie outside any VPC: functions of the stacks call a private API server.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: PipelinePlan,
        gates: Mapping[str, Stage],
        clusters: Mapping[str, Stage],
    ) -> None:
        """Define the pipeline.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The pipeline's plan.
            gates: The stacks of the gate role of each stage, by its name.
            clusters: The stacks of each stage, by its name.
        """
        super().__init__(scope, id)
        self._plan = plan
        group = define_log_group(self, retention_days=plan.log_retention_days)
        self._source = pipelines.CodePipelineSource.connection(
            plan.repository, plan.branch, connection_arn=plan.connection
        )
        pipeline = self._pipeline(as_log_group(group))
        notices = Notices(self, "Notices", plan=plan, email=plan.email) if plan.email else None
        topic = notices.topic if notices else None
        gate = Gate(self, "Gate", plan=plan, source=self._source, topic=topic)
        checks = pipeline.add_wave(CHECKS, pre=[*self._checks()])
        for stage in plan.stages:
            checks.add_stage(gates[stage.name])
        for wave in plan.waves:
            # In the wave's own stage, which a run locks: no other run deploys between check and
            # stacks.
            # Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/concepts-how-it-works.html
            before = [gate.steps(stage, gates[stage.name]) for stage in wave.stages]
            steps = [step for stage_steps in before for step in stage_steps]
            side_by_side = pipeline.add_wave(wave.name, pre=steps)
            for stage in wave.stages:
                side_by_side.add_stage(clusters[stage.name])
        pipeline.build_pipeline()
        for construct in self.node.find_all():
            if isinstance(construct, codebuild.CfnProject):
                construct.queued_timeout_in_minutes = plan.build.queued_timeout_minutes
        allow_connection(pipeline, plan.connection)
        complete_check(pipeline, plan=plan, group=group)
        keep_replicas(pipeline.pipeline)
        accept_findings(self, pipeline, plan)
        order_actions(pipeline, plan)

    def _pipeline(self, group: logs.ILogGroup) -> pipelines.CodePipeline:
        return pipelines.CodePipeline(
            self,
            "Resource",
            pipeline_name=self._plan.name,
            pipeline_type=codepipeline.PipelineType.V2,
            cross_account_keys=True,
            # A run that is superseded by a newer commit would stop between two stacks.
            execution_mode=codepipeline.ExecutionMode.QUEUED,
            artifact_bucket=artifact_bucket(self, plan=self._plan),
            cli_version=self._plan.cdk_version,
            cdk_assets_cli_version=self._plan.assets_version,
            self_mutation=True,
            # CloudFormation drops the change set of a failed deployment, and CodePipeline
            # tries the failed action alone again: with change sets no stack could be retried.
            # Source: https://github.com/aws/aws-cdk/issues/21677
            use_change_sets=False,
            # One build uploads all files: a build for each would take minutes to begin.
            publish_assets_in_parallel=False,
            synth=pipelines.CodeBuildStep(
                "Synth",
                input=self._source,
                commands=[*self._plan.builds.synth],
                primary_output_directory="cdk.out",
                role_policy_statements=upgrade_statements(self._plan),
            ),
            code_build_defaults=_build_options(self._plan, group),
        )

    def _checks(self) -> Iterator[pipelines.Step]:
        """Yield the steps before any deployment: tests, and rules over templates."""
        builds = self._plan.builds
        if builds.tests:
            yield pipelines.ShellStep("Test", input=self._source, commands=[*builds.tests])
        yield pipelines.CodeBuildStep(
            "Policy",
            input=self._source,
            commands=[*builds.rules],
            role_policy_statements=package_statements(self._plan),
        )


def _build_options(plan: PipelinePlan, group: logs.ILogGroup) -> pipelines.CodeBuildOptions:
    environment = plan.build
    return pipelines.CodeBuildOptions(
        build_environment=codebuild.BuildEnvironment(
            build_image=codebuild.LinuxBuildImage.from_code_build_image_id(environment.image),
            compute_type=codebuild.ComputeType[
                environment.compute_type.removeprefix("BUILD_GENERAL1_")
            ],
            environment_variables={
                name: codebuild.BuildEnvironmentVariable(value=value)
                for name, value in plan.cdk_variables.items()
            },
        ),
        partial_build_spec=codebuild.BuildSpec.from_object(
            {"phases": {"install": {"runtime-versions": dict(plan.runtimes)}}}
        ),
        timeout=Duration.minutes(environment.timeout_minutes),
        logging=codebuild.LoggingOptions(
            cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=group)
        ),
    )


def artifact_bucket(scope: Construct, *, plan: PipelinePlan) -> s3.IBucket:
    """Define the bucket of the pipeline, with a key for the accounts of its stages."""
    bucket = s3.Bucket(
        scope,
        "Artifacts",
        encryption=s3.BucketEncryption.KMS,
        encryption_key=Key(scope, "Key", description=f"Files of {plan.name}").key,
        bucket_key_enabled=True,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        enforce_ssl=True,
        removal_policy=RemovalPolicy.RETAIN,
        lifecycle_rules=[
            s3.LifecycleRule(
                id="runs",
                expiration=Duration.days(plan.artifact_retention_days),
                abort_incomplete_multipart_upload_after=Duration.days(1),
            )
        ],
    )
    acknowledge(bucket, _NO_ACCESS_LOG)
    return as_bucket(bucket)


def keep_replicas(pipeline: codepipeline.Pipeline) -> None:
    """Retain and rotate the keys of the pipeline's buckets in other Regions."""
    for support in pipeline.cross_region_support.values():
        for construct in support.stack.node.find_all():
            if isinstance(construct, kms.CfnKey | s3.CfnBucket):
                construct.apply_removal_policy(RemovalPolicy.RETAIN)
            if isinstance(construct, kms.CfnKey):
                construct.enable_key_rotation = True
        acknowledge(support.stack, _NO_ACCESS_LOG)


class Notices(Construct):
    """Defines the topic of a pipeline with its one subscriber and its events.

    Attributes:
        topic: The topic.
    """

    def __init__(self, scope: Construct, id: str, *, plan: PipelinePlan, email: str) -> None:
        """Define the topic.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The pipeline.
            email: Address of the subscriber.
        """
        super().__init__(scope, id)
        key = Key(self, "Key", description=f"Notices of {plan.name}").key
        topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        sns.CfnSubscription(
            self, "Email", topic_arn=topic.topic_arn, protocol="email", endpoint=email
        )
        # EventBridge sends neither SNS nor KMS its rule or its account: see `Alerts`.
        topic.add_to_resource_policy(allow_service("events", ["sns:Publish"], topic.topic_arn, {}))
        key.add_to_resource_policy(allow_service("events", KEY_USE, "*", {}))
        for event in plan.events:
            send_event(self, event, topic.topic_arn)
        self.topic = as_topic(topic)
