"""HyperPod's observability add-on and its Prometheus workspace."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale.plan.model import AddonPlan
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
        """Define both.

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
