"""The pipeline: what builds, checks, gates and deploys the clusters of a repository."""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stage, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale.catalog.build_environment import PIPELINE_BUILD_ENVIRONMENT, PIPELINE_RUNTIMES
from ultrascale.catalog.codepipeline import CDK_ASSETS_VERSION, CDK_CLI_VERSION
from ultrascale.plan.model import PipelinePlan
from ultrascale_constructs.cdk_types import as_log_group
from ultrascale_constructs.log_group import define_log_group
from ultrascale_constructs.pipeline_artifacts import artifact_bucket, keep_replicas
from ultrascale_constructs.pipeline_gate import Gate
from ultrascale_constructs.pipeline_notices import Notices
from ultrascale_constructs.pipeline_permissions import allow_connection, complete_check
from ultrascale_constructs.pipeline_reasons import accept_findings

_CHECKS = "Checks"


class DeploymentPipeline(Construct):
    """Defines a pipeline that deploys clusters, one wave after the other.

    Each run builds the assembly, updates the pipeline itself, tests, and gives each stage's account
    the role by which it is looked at. Before a stage, its plan, its account and its changes are
    looked at; permissions that grow, and each stage that asks for it, wait for an approval.

    The builds lie outside any VPC: what reaches a private API server is a function of the stacks.
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
            plan: What it deploys.
            gates: What gives the account of each stage its role, by name of the stage.
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
        checks = pipeline.add_wave(_CHECKS, pre=[*self._checks()])
        for stage in plan.stages:
            checks.add_stage(gates[stage.name])
        for wave in plan.waves:
            # In the wave's own stage, which a run locks: no other deploys between look and stacks.
            # Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/concepts-how-it-works.html
            before = [gate.steps(stage, gates[stage.name]) for stage in wave.stages]
            steps = [step for each in before for step in each]
            side_by_side = pipeline.add_wave(wave.name, pre=steps)
            for stage in wave.stages:
                side_by_side.add_stage(clusters[stage.name])
        pipeline.build_pipeline()
        for construct in self.node.find_all():
            if isinstance(construct, codebuild.CfnProject):
                queued = PIPELINE_BUILD_ENVIRONMENT.queued_timeout_minutes
                construct.queued_timeout_in_minutes = queued
        allow_connection(pipeline, plan.connection)
        complete_check(pipeline, plan=plan, group=group)
        keep_replicas(pipeline.pipeline)
        accept_findings(self, pipeline, plan)

    def _pipeline(self, group: logs.ILogGroup) -> pipelines.CodePipeline:
        return pipelines.CodePipeline(
            self,
            "Resource",
            pipeline_name=self._plan.name,
            pipeline_type=codepipeline.PipelineType.V2,
            cross_account_keys=True,
            # A run that a newer commit overtakes would stop between two stacks.
            execution_mode=codepipeline.ExecutionMode.QUEUED,
            artifact_bucket=artifact_bucket(self, plan=self._plan),
            cli_version=CDK_CLI_VERSION,
            cdk_assets_cli_version=CDK_ASSETS_VERSION,
            self_mutation=True,
            # CloudFormation drops the change set of a deployment that failed, and CodePipeline
            # tries the failed action alone again: with change sets no stack could be retried.
            # Source: https://github.com/aws/aws-cdk/issues/21677
            use_change_sets=False,
            # One build uploads all files: each of its own would take minutes to begin.
            publish_assets_in_parallel=False,
            synth=pipelines.ShellStep(
                "Synth",
                input=self._source,
                commands=[f"make pipeline CLUSTER={self._plan.file}"],
                primary_output_directory="cdk.out",
            ),
            code_build_defaults=_build_options(group),
        )

    def _checks(self) -> Sequence[pipelines.Step]:
        """Return what has to pass before anything is deployed: tests, and rules over templates."""
        rules = [
            command
            for stage in self._plan.stages
            for command in (
                f"make synth CLUSTER={stage.file}",
                f"make lint-templates CLUSTER={stage.file}",
            )
        ]
        return (
            pipelines.ShellStep("Test", input=self._source, commands=["make test"]),
            pipelines.ShellStep("Policy", input=self._source, commands=rules),
        )


def _build_options(group: logs.ILogGroup) -> pipelines.CodeBuildOptions:
    environment = PIPELINE_BUILD_ENVIRONMENT
    return pipelines.CodeBuildOptions(
        build_environment=codebuild.BuildEnvironment(
            build_image=codebuild.LinuxBuildImage.from_code_build_image_id(environment.image),
            compute_type=codebuild.ComputeType[
                environment.compute_type.removeprefix("BUILD_GENERAL1_")
            ],
        ),
        partial_build_spec=codebuild.BuildSpec.from_object(
            {"phases": {"install": {"runtime-versions": dict(PIPELINE_RUNTIMES)}}}
        ),
        timeout=Duration.minutes(environment.timeout_minutes),
        logging=codebuild.LoggingOptions(
            cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=group)
        ),
    )
