"""The gate before each stage of a pipeline: its checks, approval and role."""

from collections.abc import Mapping

from aws_cdk import Stage, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from ultrascale.parts.pipeline import facts
from ultrascale.parts.pipeline.model import APPROVAL_PREFIX, PipelinePlan, StagePlan
from ultrascale_constructs.cdk_types import as_role, principal
from ultrascale_constructs.pipeline.permissions import accept_reading, package_statements

_PROFILE = "gate"
_CHANGES = "changes.txt"
LOOK_PREFIX = "Look-"
"""Prefix of the names of the builds that check a cluster."""
NODES_VARIABLE, NODES_DUE = "NODES", "due"
"""Variable that such a build sets, and its value if the nodes that some stacks need may exist."""
_TOLD = "What it needs, replaces, opens and rolls: "


class Gate(Construct):
    """Defines the steps before each stage, and the role of its builds."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: PipelinePlan,
        source: pipelines.IFileSetProducer,
        topic: sns.ITopic | None,
    ) -> None:
        """Define the role.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The pipeline.
            source: The repository.
            topic: Topic for requests to approve broader permissions; None without one.
        """
        super().__init__(scope, id)
        self._source = source
        self._topic = topic
        self._plan = plan
        self._role = iam.Role(
            self,
            "Role",
            role_name=plan.role,
            description=f"Looks at the accounts that {plan.name} deploys into",
            assumed_by=principal(_builds_of(plan)),
        )
        self._role.add_to_policy(
            iam.PolicyStatement(
                actions=["sts:AssumeRole"],
                resources=[stage.gate_role_arn for stage in plan.stages],
            )
        )
        for statement in package_statements(plan):
            self._role.add_to_policy(statement)

    def steps(self, stage: StagePlan, gate: Stage) -> list[pipelines.Step]:
        """Return the steps before ``stage``, in their order.

        Args:
            stage: The stage.
            gate: The stack of its gate role.
        """
        look = pipelines.CodeBuildStep(
            look_name(stage),
            input=self._source,
            role=as_role(self._role),
            commands=gate_commands(stage, self._plan),
            # The CDK exports only variables that its own steps use.
            partial_build_spec=codebuild.BuildSpec.from_object(
                {"env": {"exported-variables": [NODES_VARIABLE]}}
            )
            if stage.node_windows
            else None,
        )
        confirm = pipelines.ConfirmPermissionsBroadening(
            f"Permissions-{stage.name}", stage=gate, notification_topic=self._topic
        )
        confirm.add_step_dependency(look)
        if not stage.approval:
            return [look, confirm]
        approve = pipelines.ManualApprovalStep(
            f"{APPROVAL_PREFIX}{stage.name}",
            comment=f"{_TOLD}{look.exported_variable('LOG')} {look.exported_variable('CHANGES')}",
        )
        approve.add_step_dependency(confirm)
        return [look, confirm, approve]


def look_name(stage: StagePlan) -> str:
    """Return the name of the build that checks the cluster of ``stage``."""
    return f"{LOOK_PREFIX}{stage.name}"


def _builds_of(plan: PipelinePlan) -> iam.ServicePrincipal:
    """Return the principal for builds of the pipeline's account; projects have no fixed names.

    Source: https://docs.aws.amazon.com/codebuild/latest/userguide/setting-up-service-role.html
    """
    place = f"{plan.partition}:codebuild:{plan.region}:{plan.account}"
    return iam.ServicePrincipal(
        "codebuild.amazonaws.com",
        conditions={"ArnLike": {"aws:SourceArn": f"arn:{place}:project/*"}},
    )


def gate_commands(stage: StagePlan, plan: PipelinePlan) -> list[str]:
    """Return the commands that check ``stage``; the first failing command stops the pipeline.

    Args:
        stage: The stage.
        plan: The pipeline.
    """
    # The limit also covers the build's address and a space.
    room = facts.APPROVAL_COMMENT_LENGTH - len(_TOLD) - 1
    ultrascale = f"{plan.builds.program} {{}} {stage.file}"
    replace = "".join(f" --replace {name}" for name in stage.replace)
    diff = f"{ultrascale.format('diff')} --assembly cdk.out --profile {_PROFILE}{replace}"
    settings = {
        "role_arn": stage.gate_role_arn,
        # A build gets its role's credentials like an ECS task.
        # Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-assume-role-credentials.html
        "credential_source": "EcsContainer",
        "region": stage.cluster.region,
    }
    return [
        *_nodes_commands(stage),
        *plan.builds.looks[stage.name],
        *(f"aws configure set profile.{_PROFILE}.{key} {value}" for key, value in settings.items()),
        ultrascale.format("plan"),
        f"{ultrascale.format('preflight')} --profile {_PROFILE}",
        f"bash -o pipefail -c '{diff} | tee {_CHANGES}'",
        'export LOG="$CODEBUILD_BUILD_URL"',
        # A comment has one line, and must not be cut within a character.
        f"export CHANGES=\"$(LC_ALL=C tr -cd '[:print:][:space:]' < {_CHANGES} "
        f"| tr -s '[:space:]' ' ' | head -c $(({room} - ${{#LOG}})))\"",
    ]


def _nodes_commands(stage: StagePlan) -> list[str]:
    """Return the commands that set whether the nodes that some stacks need may exist by now.

    A template does not know the time, so the build uses its clock.
    """
    if not stage.node_windows:
        return []
    within = " || ".join(
        f"test $NOW -ge {window.starts.timestamp():.0f} -a $NOW -lt "
        f"{window.reclaimed_from.timestamp():.0f}"
        for window in stage.node_windows
    )
    spans = ", ".join(
        f"{window.starts:%Y-%m-%dT%H:%MZ} to {window.reclaimed_from:%Y-%m-%dT%H:%MZ}"
        for window in stage.node_windows
    )
    left_out = f"left out, as no node of theirs runs outside {spans}: {', '.join(stage.on_nodes)}"
    return [
        "NOW=$(date -u +%s)",
        f"if {within}; then export {NODES_VARIABLE}={NODES_DUE}; "
        f"else export {NODES_VARIABLE}=later; echo '{left_out}'; fi",
    ]


class GateRole(Construct):
    """Defines the gate role, with which a pipeline reads a cluster's account before it deploys.

    The role changes nothing: it has the policy of `ultrascale preflight --policy`, and reads
    templates.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        stage: StagePlan,
        pipeline: PipelinePlan,
        policy: Mapping[str, object],
    ) -> None:
        """Define the role.

        Args:
            scope: Parent.
            id: Construct id.
            stage: The stage.
            pipeline: The pipeline whose builds take the role.
            policy: The IAM policy of the role.
        """
        super().__init__(scope, id)
        cluster = stage.cluster
        place = f"{cluster.partition}:cloudformation:{cluster.region}:{stage.account}"
        stacks = f"arn:{place}:stack/{cluster.name}-*"
        # Limited by the role's name, not by a principal: IAM refuses a principal that does not
        # exist yet.
        trusted = iam.AccountPrincipal(pipeline.account).with_conditions(
            {"ArnEquals": {"aws:PrincipalArn": pipeline.role_arn}}
        )
        role = iam.Role(
            self,
            "Resource",
            role_name=stage.gate_role,
            description=f"Lets {pipeline.name} look at {stage.cluster.name}",
            assumed_by=principal(trusted),
            inline_policies={"preflight": iam.PolicyDocument.from_json(policy)},
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["cloudformation:GetTemplate"],
                resources=[stacks],
            )
        )
        accept_reading(role, policy, stacks)
