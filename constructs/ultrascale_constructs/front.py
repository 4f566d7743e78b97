"""The front: values of its charts, and the load balancer in front of it."""

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, CfnTag, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

from ultrascale.parts.front.model import LoadBalancerControllerPlan, LoadBalancerPlan, Plan
from ultrascale.plan import names
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.platform import (
    PRIORITY,
    SYSTEM_NODES,
    SYSTEM_TOLERATIONS,
    image_values,
    spread_over,
)
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole

# --- Values of the chart of Envoy Gateway ---------------------------------------------------------
# Sources:
#     https://github.com/envoyproxy/gateway/blob/v1.9.0/charts/gateway-helm/values.tmpl.yaml
#     https://github.com/envoyproxy/gateway/blob/v1.9.0/api/v1alpha1/envoygateway_types.go


def gateway_values(plan: Plan) -> dict[str, object]:
    """Return the values of the chart `gateway-helm`."""
    placed = {"nodeSelector": SYSTEM_NODES, "tolerations": SYSTEM_TOLERATIONS}
    return {
        # By this value the chart also sets the image of the container that drains a proxy.
        "global": {"images": {"envoyGateway": {"image": plan.image}}},
        "deployment": {
            "replicas": plan.controllers,
            # Otherwise no new proxy could start while the controller's pods are preempted.
            "priorityClassName": PRIORITY,
            "envoyGateway": {
                # Large clusters may have no room for another pod, and Helm would wait in vain.
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                },
            },
            "pod": {
                **placed,
                "topologySpreadConstraints": [
                    spread_over(names.HOSTNAME_LABEL, "DoNotSchedule", plan.controller_labels)
                ],
            },
        },
        "podDisruptionBudget": {"minAvailable": 1},
        "certgen": {"job": placed},
        # Off: the webhook would watch the binding of each pod, only to tell proxies their zones.
        "topologyInjector": {"enabled": False},
        "config": {"envoyGateway": controller_configuration(plan)},
    }


def controller_configuration(plan: Plan) -> Mapping[str, object]:
    """Return the controller's configuration; the chart adds its images.

    The chart makes Roles in the watched namespaces instead of a ClusterRole, so that the controller
    reads Secrets of no other namespace.
    """
    return {
        "gateway": {"controllerName": plan.controller_name},
        "provider": {
            "type": "Kubernetes",
            "kubernetes": {
                "watch": {"type": "Namespaces", "namespaces": [*plan.namespaces]},
                # The chart writes this value to a place that the controller does not read.
                "proxyTopologyInjector": {"disabled": True},
            },
        },
        "logging": {"level": {"default": "info"}},
        # A script in the proxies reads the model's name from the body of a request.
        "extensionApis": {"enableLua": True},
    }


# --- The load balancer of the front, which sends requests to the addresses of its proxies ---------
# The load balancer belongs to a stack and is deleted with it. A controller in the cluster only
# maintains the list of proxies, with rights on the cluster's target groups.
#
# Sources:
#     https://docs.aws.amazon.com/elasticloadbalancing/latest/application/introduction.html
#     https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/targetgroupbinding/targetgroupbinding/


# TLS 1.3 and 1.2 with forward secrecy.
# Source: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/describe-ssl-policies.html
_TLS_POLICY = "ELBSecurityPolicy-TLS13-1-2-Res-2021-06"
# EKS Auto Mode changes only target groups with its cluster's tag.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-configure-alb.html
_CLUSTER_TAG = "eks:eks-cluster-name"


class FrontLoadBalancer(Construct):
    """Defines the load balancer, its listener, its target group and the security groups of both."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        front: Plan,
        plan: LoadBalancerPlan,
        cluster: ClusterContext,
        subnet_ids: Sequence[str],
    ) -> None:
        super().__init__(scope, id)
        balancer = elbv2.CfnLoadBalancer(
            self,
            "LoadBalancer",
            type="application",
            scheme=plan.scheme,
            subnets=list(subnet_ids),
            security_groups=[self._group(front, plan, cluster)],
            load_balancer_attributes=[
                _attribute("idle_timeout.timeout_seconds", str(plan.idle_seconds)),
                _attribute("routing.http.drop_invalid_header_fields.enabled", "true"),
                _attribute("deletion_protection.enabled", "false"),
            ],
        )
        acknowledge(
            balancer,
            {
                "AwsSolutions::AwsSolutions-ELB2": (
                    "logs of each request would name models and clients, and cost by the request; "
                    "the proxies count them"
                )
            },
        )
        # ARN of its target group, which has no targets yet
        self.target_group_arn = self._targets(front, plan, cluster)
        elbv2.CfnListener(
            self,
            "Listener",
            load_balancer_arn=balancer.ref,
            port=plan.port,
            protocol="HTTP" if plan.certificate is None else "HTTPS",
            ssl_policy=None if plan.certificate is None else _TLS_POLICY,
            certificates=None
            if plan.certificate is None
            else [elbv2.CfnListener.CertificateProperty(certificate_arn=plan.certificate)],
            default_actions=[
                elbv2.CfnListener.ActionProperty(
                    type="forward", target_group_arn=self.target_group_arn
                )
            ],
        )
        scheme = "http" if plan.certificate is None else "https"
        # URL for clients, with its own host name
        self.url = f"{scheme}://{balancer.attr_dns_name}/v1"

    def _targets(self, front: Plan, plan: LoadBalancerPlan, cluster: ClusterContext) -> str:
        targets = elbv2.CfnTargetGroup(
            self,
            # A target group belongs to one load balancer, and a changed scheme needs a new load
            # balancer: CloudFormation makes both before it deletes the old ones.
            f"Proxies-{plan.scheme}",
            target_type="ip",
            protocol="HTTP",
            port=front.proxy_port,
            vpc_id=cluster.vpc.vpc_id,
            health_check_path=names.FRONT_HEALTH_PATH,
            health_check_interval_seconds=5,
            health_check_timeout_seconds=4,
            healthy_threshold_count=2,
            unhealthy_threshold_count=2,
            target_group_attributes=[
                elbv2.CfnTargetGroup.TargetGroupAttributeProperty(key=key, value=value)
                for key, value in (
                    ("deregistration_delay.timeout_seconds", str(front.drain_seconds)),
                    ("load_balancing.algorithm.type", "least_outstanding_requests"),
                )
            ],
            tags=[CfnTag(key=_CLUSTER_TAG, value=cluster.name)],
        )
        return targets.attr_target_group_arn

    def _group(self, front: Plan, plan: LoadBalancerPlan, cluster: ClusterContext) -> str:
        group = ec2.CfnSecurityGroup(
            self,
            "SecurityGroup",
            group_description="Clients of the front, and its way to the proxies",
            vpc_id=cluster.vpc.vpc_id,
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp",
                    from_port=plan.port,
                    to_port=plan.port,
                    cidr_ip=cidr,
                    description="Clients",
                )
                for cidr in plan.cidrs
            ],
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="tcp",
                    from_port=front.proxy_port,
                    to_port=front.proxy_port,
                    destination_security_group_id=cluster.security_group_id,
                    description="Proxies",
                )
            ],
        )
        if "0.0.0.0/0" in plan.cidrs:
            acknowledge(
                group,
                {"AwsSolutions::AwsSolutions-EC23": "serving.front.allowed_cidrs names everybody"},
            )
        ec2.CfnSecurityGroupIngress(
            self,
            "ToProxies",
            group_id=cluster.security_group_id,
            description="Load balancer of the front",
            ip_protocol="tcp",
            from_port=front.proxy_port,
            to_port=front.proxy_port,
            source_security_group_id=group.attr_group_id,
        )
        return group.attr_group_id


def controller_role(
    scope: Construct, id: str, *, plan: LoadBalancerControllerPlan, cluster_name: str
) -> PodIdentityRole:
    """Return the controller's role, which changes targets in the cluster's target groups.

    While a load balancer replaces another there are two target groups, and the controller removes
    the old group's targets after the role has changed. So the role names groups by a tag.
    """
    groups = Stack.of(scope).format_arn(
        service="elasticloadbalancing",
        resource="targetgroup",
        resource_name="*",
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )
    return PodIdentityRole(
        scope,
        id,
        cluster_name=cluster_name,
        service_account=plan.account,
        permissions=(
            Permission(
                actions=plan.describes,
                resources=("*",),
                why_wildcards="actions that describe, which take no resource",
            ),
            Permission(
                actions=plan.registers,
                resources=(groups,),
                conditions={"StringEquals": {f"aws:ResourceTag/{_CLUSTER_TAG}": cluster_name}},
                why_wildcards="target groups of the front, which a tag names",
            ),
        ),
    )


def controller_values(
    plan: LoadBalancerControllerPlan, *, cluster_name: str, region: str, vpc_id: str
) -> dict[str, object]:
    """Return the values of the chart `aws-load-balancer-controller`.

    Everything that makes load balancers is off: the controller has no rights for it, and would try
    for each Ingress and Service.
    """
    return {
        "clusterName": cluster_name,
        "region": region,
        # Without this value the controller asks the instance's metadata service, which pods cannot
        # reach.
        "vpcId": vpc_id,
        "replicaCount": plan.replicas,
        "image": image_values(plan.image),
        "serviceAccount": {"name": plan.account},
        "watchNamespace": names.FRONT_NAMESPACE,
        "createIngressClassResource": False,
        "ingressClassParams": {"create": False},
        "enableServiceMutatorWebhook": False,
        "webhookConfig": {"disableIngressValidation": True},
        "enableBackendSecurityGroup": False,
        # AWS services that a closed network cannot reach.
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        "controllerConfig": {
            "featureGates": {
                "EnableServiceController": False,
                "NLBGatewayAPI": False,
                "ALBGatewayAPI": False,
                "GlobalAcceleratorController": False,
            }
        },
        # Otherwise the chart would make a new certificate at each upgrade.
        "keepTLSSecret": True,
        "nodeSelector": SYSTEM_NODES,
        "tolerations": SYSTEM_TOLERATIONS,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "podDisruptionBudget": {"maxUnavailable": 1},
        "resources": {
            "requests": {"cpu": "100m", "memory": "200Mi"},
            "limits": {"memory": "400Mi"},
        },
    }


def target_group_binding(
    plan: LoadBalancerPlan, *, target_group_arn: str, vpc_id: str
) -> dict[str, object]:
    """Return the object that makes the controller register the proxies as targets.

    The object has no `networking`: the stack owns the security groups, and no controller changes
    them. Its target group cannot change: each scheme has a binding of its own.
    """
    return {
        "apiVersion": plan.binding,
        "kind": "TargetGroupBinding",
        "metadata": {
            "name": f"{names.FRONT_GATEWAY}-{plan.scheme}",
            "namespace": names.FRONT_NAMESPACE,
        },
        "spec": {
            "serviceRef": {"name": names.FRONT_GATEWAY, "port": names.FRONT_PORT},
            "targetGroupARN": target_group_arn,
            "targetType": "ip",
            "ipAddressType": "ipv4",
            "vpcID": vpc_id,
        },
    }


def _attribute(key: str, value: str) -> elbv2.CfnLoadBalancer.LoadBalancerAttributeProperty:
    return elbv2.CfnLoadBalancer.LoadBalancerAttributeProperty(key=key, value=value)
