"""HyperPod task governance: queues, priorities and quotas of teams."""

from aws_cdk import CfnResource
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ultrascale.parts.hyperpod.model import GovernancePlan
from ultrascale.plan.model import TeamPlan
from ultrascale_constructs.acknowledgment import acknowledge


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
        # SageMaker derives the names of a team's priorities from the scheduler's.
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
