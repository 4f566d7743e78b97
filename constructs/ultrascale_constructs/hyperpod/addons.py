"""HyperPod's add-on of metrics, and task governance: queues, priorities and quotas of teams."""

from aws_cdk import CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ultrascale.parts.hyperpod.model import GovernancePlan
from ultrascale.plan.model import AddonPlan, TeamPlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.key import key_of
from ultrascale_constructs.pod_identity import pods_of


class HyperPodObservability(Construct):
    """Defines a workspace of Amazon Managed Service for Prometheus and the add-on that fills it.

    The add-on needs a HyperPod node: define it after the HyperPod cluster. The workspace and its
    key outlive the stack: they hold the metrics of the past 150 days.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-observability-addon-setup.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: AddonPlan,
        cluster_name: str,
        key_arn: str | None,
    ) -> None:
        """Define the workspace and the add-on.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The add-on.
            cluster_name: Name of the cluster.
            key_arn: ARN of the user's own key of the metrics; None defines a key.
        """
        super().__init__(scope, id)
        assert plan.service_account is not None
        key = key_of(self, description=f"Prometheus metrics of {cluster_name}", arn=key_arn)
        workspace = aps.CfnWorkspace(self, "Workspace", alias=cluster_name, kms_key_arn=key.key_arn)
        workspace.apply_removal_policy(RemovalPolicy.RETAIN)
        role = iam.Role(
            self,
            "Role",
            assumed_by=pods_of(cluster_name, plan.service_account),
            inline_policies={
                "Write": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            actions=["aps:RemoteWrite"], resources=[workspace.attr_arn]
                        )
                    ]
                )
            },
        )
        target = {
            "ampWorkspace": {
                "arn": workspace.attr_arn,
                "prometheusEndpoint": workspace.attr_prometheus_endpoint,
            }
        }
        eks.CfnAddon(
            self,
            "Addon",
            addon_name=plan.name,
            addon_version=plan.version,
            cluster_name=cluster_name,
            configuration_values=Stack.of(self).to_json_string({**plan.configuration, **target}),
            pod_identity_associations=[
                eks.CfnAddon.PodIdentityAssociationProperty(
                    role_arn=role.role_arn, service_account=plan.service_account
                )
            ],
            resolve_conflicts="OVERWRITE",
        )


class TaskGovernance(Construct):
    """Defines the scheduler configuration of a HyperPod cluster and a quota for each team.

    SageMaker creates the namespaces, queues and priority classes of the teams from them, and
    overwrites manual changes.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance.html
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: GovernancePlan, hyperpod_cluster_arn: str
    ) -> None:
        super().__init__(scope, id)
        scheduler = sagemaker.CfnClusterSchedulerConfig(
            self,
            "Scheduler",
            name=plan.name,
            cluster_arn=hyperpod_cluster_arn,
            scheduler_config=sagemaker.CfnClusterSchedulerConfig.SchedulerConfigProperty(
                fair_share="Enabled",
                idle_resource_sharing="Enabled",
                priority_classes=[
                    sagemaker.CfnClusterSchedulerConfig.PriorityClassProperty(
                        name=name, weight=weight
                    )
                    for name, weight in plan.weights.items()
                ],
            ),
        )
        # SageMaker derives the names of a team's priority classes from the scheduler's priority
        # classes.
        quotas = Construct(self, "Quotas")
        acknowledge(
            quotas,
            {
                "CloudFormation-Validate::F3006": (
                    "the CDK's schemas lack it; cfn-lint 1.58 knows it, and checks it"
                )
            },
        )
        for team in plan.teams:
            _quota(quotas, team, hyperpod_cluster_arn).add_resource_dependency(scheduler)


def _quota(scope: Construct, plan: TeamPlan, hyperpod_cluster_arn: str) -> CfnResource:
    sharing: dict[str, object] = {"Strategy": plan.sharing}
    if plan.borrow_limit_percent is not None:
        sharing["BorrowLimit"] = plan.borrow_limit_percent
    return CfnResource(
        scope,
        plan.name,
        # The CDK has no construct for this resource.
        type="AWS::SageMaker::ComputeQuota",
        properties={
            "Name": plan.quota,
            "ClusterArn": hyperpod_cluster_arn,
            "ActivationState": "Enabled",
            "ComputeQuotaTarget": {
                "TeamName": plan.name,
                "FairShareWeight": plan.fair_share_weight,
            },
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [
                    {"InstanceType": name, "Count": nodes} for name, nodes in plan.nodes.items()
                ],
                "PreemptTeamTasks": "LowerPriority",
                "ResourceSharingConfig": sharing,
            },
        },
    )
