"""The pipeline that builds, checks and deploys the clusters of a repository."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from aws_cdk import Duration, RemovalPolicy, Stack, Stage, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultrascale.documents import Json, JsonObject, mapping, number, sequence, text
from ultrascale.parts.pipeline import facts
from ultrascale.parts.pipeline.model import PipelinePlan, StagePlan, WavePlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.alarm import KEY_USE, allow_service, send_event
from ultrascale_constructs.cdk_types import as_bucket, as_log_group, as_topic, child
from ultrascale_constructs.key import Key
from ultrascale_constructs.log_group import define_log_group
from ultrascale_constructs.pipeline.gate import (
    LOOK_PREFIX,
    NODES_DUE,
    NODES_VARIABLE,
    Gate,
    look_name,
)
from ultrascale_constructs.pipeline.permissions import (
    accept_findings,
    allow_connection,
    complete_check,
    package_statements,
    upgrade_statements,
)

CHECKS, FACTS = "Checks", "Facts"
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
    broader permissions wait for an approval, and a stage with `approval` always waits.

    The builds run outside any VPC: only functions of the stacks call a private API server.
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
            gates: The stacks of the gate roles, by name of the stage.
            clusters: The stacks of the clusters, by name of the stage.
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
            # Defined in the wave's own stage, which a run locks: no other run deploys between the
            # check and the stacks.
            # Source:
            # https://docs.aws.amazon.com/codepipeline/latest/userguide/concepts-how-it-works.html
            before = [gate.steps(stage, gates[stage.name]) for stage in wave.stages]
            steps = [step for stage_steps in before for step in stage_steps]
            side_by_side = pipeline.add_wave(wave.name, pre=steps)
            for stage in wave.stages:
                side_by_side.add_stage(clusters[stage.name])
        # Last: a release whose facts are old still deploys, and the run tells it.
        pipeline.add_wave(FACTS, pre=[self._build(FACTS, plan.builds.facts)])
        pipeline.build_pipeline()
        for construct in self.node.find_all():
            if isinstance(construct, codebuild.CfnProject):
                construct.queued_timeout_in_minutes = facts.BUILD_ENVIRONMENT.queued_timeout_minutes
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
            cdk_assets_cli_version=facts.CDK_ASSETS_VERSION,
            self_mutation=True,
            # Without change sets: CloudFormation drops the change set of a failed deployment, and
            # CodePipeline repeats only the failed action, so no stack could be retried.
            # Source: https://github.com/aws/aws-cdk/issues/21677
            use_change_sets=False,
            # One build uploads all files: a build for each file would take minutes to begin.
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
        """Yield the steps before all deployments: tests, and rules over templates."""
        builds = self._plan.builds
        if builds.tests:
            yield pipelines.ShellStep("Test", input=self._source, commands=[*builds.tests])
        yield self._build("Policy", builds.rules)

    def _build(self, name: str, commands: Sequence[str]) -> pipelines.CodeBuildStep:
        return pipelines.CodeBuildStep(
            name,
            input=self._source,
            commands=[*commands],
            role_policy_statements=package_statements(self._plan),
        )


def _build_options(plan: PipelinePlan, group: logs.ILogGroup) -> pipelines.CodeBuildOptions:
    environment = facts.BUILD_ENVIRONMENT
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
            {"phases": {"install": {"runtime-versions": facts.RUNTIMES}}}
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
                expiration=Duration.days(facts.ARTIFACT_DAYS),
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
    """Defines the topic of a pipeline with its one subscriber and its events."""

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
        self.topic = as_topic(topic)  # The topic


# --- Order of the actions of a pipeline whose stacks may find no nodes ----------------------------
# CodePipeline ends a stage after the first run order with a failed action, once all actions of that
# run order have ended. The CDK gives each stack the first run order that its dependencies allow, so
# a node group without capacity would stop all stacks after it.
# Sources: https://docs.aws.amazon.com/codepipeline/latest/userguide/concepts-how-it-works.html
# https://docs.aws.amazon.com/codepipeline/latest/userguide/stage-conditions.html


# Suffix of the CDK's names of actions that deploy a stack.
_DEPLOY = ".Deploy"


def order_actions(pipeline: pipelines.CodePipeline, plan: PipelinePlan) -> None:
    """Deploy node groups last, and stacks that need nodes in stages of their own.

    Args:
        pipeline: The pipeline, built.
        plan: The pipeline's plan.
    """
    resource = child(pipeline.pipeline, codepipeline.CfnPipeline)
    resolved = sequence({"stages": Stack.of(pipeline).resolve(resource.stages)}, "stages")
    stages = [mapping(_as_template(stage)) for stage in resolved]
    resource.add_property_override("Stages", ordered(stages, plan))


def ordered(stages: Sequence[JsonObject], plan: PipelinePlan) -> list[JsonObject]:
    """Return the stages of a pipeline in the order of ``plan``, in CloudFormation's form."""
    waves = {wave.name: wave for wave in plan.waves}
    result: list[JsonObject] = []
    later: list[JsonObject] = []
    for stage in stages:
        wave = waves.get(text(stage, "Name"))
        if wave is None:
            result.append(stage)
            continue
        actions = [_with_namespace(mapping(action)) for action in sequence(stage, "Actions")]
        of_nodes = {
            member.name: _actions_of(actions, wave, member, member.on_nodes)
            for member in wave.stages
        }
        apart = {text(action, "Name") for moved in of_nodes.values() for action in moved}
        kept = [action for action in actions if text(action, "Name") not in apart]
        last = {
            text(action, "Name")
            for member in wave.stages
            for action in _actions_of(kept, wave, member, member.may_lack_capacity)
        }
        result.append({**stage, "Actions": _with_last(kept, last)})
        namespaces = {text(action, "Name"): text(action, "Namespace") for action in actions}
        later += [
            _stage_on_nodes(member, of_nodes[member.name], namespaces[look_name(member)])
            for member in wave.stages
            if of_nodes[member.name]
        ]
    facts = [stage for stage in result if text(stage, "Name") == FACTS]
    return [*(stage for stage in result if stage not in facts), *later, *facts]


def _actions_of(
    actions: Iterable[JsonObject], wave: WavePlan, stage: StagePlan, stacks: Iterable[str]
) -> list[JsonObject]:
    """Return the actions that deploy ``stacks`` of a stage; names of a wave hold the stage."""
    prefix = f"{stage.name}." if len(wave.stages) > 1 else ""
    names = {f"{prefix}{stack}{_DEPLOY}" for stack in stacks}
    return [action for action in actions if text(action, "Name") in names]


def _with_last(actions: Sequence[JsonObject], last: set[str]) -> list[JsonObject]:
    """Return ``actions``, with those named in ``last`` side by side after all others."""
    first = [action for action in actions if text(action, "Name") not in last]
    after = 1 + max((number(action, "RunOrder") for action in first), default=0)
    return [
        {**action, "RunOrder": after} if text(action, "Name") in last else action
        for action in actions
    ]


def _with_namespace(action: JsonObject) -> JsonObject:
    """Return an action; an action that checks a cluster gets a namespace for its variables."""
    name = text(action, "Name")
    if not name.startswith(LOOK_PREFIX) or text(action, "Namespace"):
        return action
    return {**action, "Namespace": name}


def _stage_on_nodes(stage: StagePlan, actions: Sequence[JsonObject], namespace: str) -> JsonObject:
    """Return the pipeline stage for stacks that need nodes, skipped outside the nodes' windows.

    Args:
        stage: The cluster.
        actions: Actions that deploy these stacks.
        namespace: Namespace of the variables of the build that checked the cluster.
    """
    earlier = min(number(action, "RunOrder") for action in actions) - 1
    moved: list[Json] = [
        {**action, "RunOrder": number(action, "RunOrder") - earlier} for action in actions
    ]
    entry: JsonObject = {"Name": stage.nodes_stage, "Actions": moved}
    if not stage.node_windows:
        return entry
    rule: JsonObject = {
        "Name": "Nodes",
        "RuleTypeId": {
            "Category": "Rule",
            "Owner": "AWS",
            "Provider": "VariableCheck",
            "Version": "1",
        },
        "Configuration": {
            "Variable": f"#{{{namespace}.{NODES_VARIABLE}}}",
            "Value": NODES_DUE,
            "Operator": "EQ",
        },
    }
    return {**entry, "BeforeEntry": {"Conditions": [{"Result": "SKIP", "Rules": [rule]}]}}


def _as_template(value: Json) -> Json:
    """Return a CDK value with CloudFormation's key names; an action's configuration stays."""
    if isinstance(value, Mapping):
        return {
            key[:1].upper() + key[1:]: item if key == "configuration" else _as_template(item)
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_template(item) for item in value]
    return value
