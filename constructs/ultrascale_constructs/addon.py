"""EKS add-ons and the permissions of their pods."""

import json

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale.plan.model import AddonPlan
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.cdk_types import as_role, aws_policy
from ultrascale_constructs.key import allow_volume_key
from ultrascale_constructs.pod_identity import pods_of


class Addon(Construct):
    """Defines one EKS add-on, with a Pod Identity role where it calls AWS."""

    def __init__(self, scope: Construct, id: str, *, plan: AddonPlan, cluster_name: str) -> None:
        super().__init__(scope, id)
        role = self._role(plan, cluster_name)
        addon = eks.CfnAddon(
            self,
            "Resource",
            addon_name=plan.name,
            addon_version=plan.version,
            cluster_name=cluster_name,
            configuration_values=json.dumps(plan.configuration, sort_keys=True)
            if plan.configuration
            else None,
            pod_identity_associations=_associations(plan, role),
            # The file's values take precedence over manual changes and over an installation by
            # Helm.
            resolve_conflicts="OVERWRITE",
        )
        if role is not None and plan.association_namespace is not None:
            association = eks.CfnPodIdentityAssociation(
                self,
                "Association",
                cluster_name=cluster_name,
                namespace=plan.association_namespace,
                service_account=plan.service_account or "",
                role_arn=role.role_arn,
            )
            # A pod that was created before its association has no credentials.
            addon.add_resource_dependency(association)

    def _role(self, plan: AddonPlan, cluster_name: str) -> iam.Role | None:
        if plan.service_account is None:
            return None
        role = iam.Role(
            self,
            "Role",
            assumed_by=pods_of(cluster_name, plan.service_account, plan.association_namespace),
            managed_policies=[aws_policy(plan.managed_policy)] if plan.managed_policy else None,
        )
        if plan.managed_policy is not None:
            acknowledge_managed_policies(
                role,
                {plan.managed_policy: "AWS keeps it in step with what the add-on's pods call"},
            )
        if plan.volume_key is not None:
            allow_volume_key(self, as_role(role), plan.volume_key)
        return role


def _associations(
    plan: AddonPlan, role: iam.Role | None
) -> list[eks.CfnAddon.PodIdentityAssociationProperty] | None:
    if role is None or plan.service_account is None or plan.association_namespace is not None:
        return None
    return [
        eks.CfnAddon.PodIdentityAssociationProperty(
            role_arn=role.role_arn, service_account=plan.service_account
        )
    ]
