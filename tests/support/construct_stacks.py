"""Stacks to define a construct in, and what to read out of their templates."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from tests.support.pools import make_cluster, make_pool
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.pools.pool import plan_pool
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_k8s import Charts
from ultrascale_stacks.cluster import ClusterStacks, NetworkStack
from ultrascale_stacks.feature_flags import FLAGS

REGION = "us-west-2"
NO_CHARTS = Charts(system_node_pools=(), platform=(), teams=(), node_pools=(), of_layers={})
_POOL = make_pool()


def make_stack() -> cdk.Stack:
    """Return an empty stack with the product's feature flags, and without CDK's slow validation."""
    app = cdk.App(context=dict(FLAGS), builtin_cloud_formation_validation=False)
    return cdk.Stack(app, "Test", env=cdk.Environment(region=REGION))


def make_vpc(stack: cdk.Stack) -> ec2.IVpc:
    """Return a VPC that lies in another stack."""
    return ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-1", availability_zones=[f"{REGION}a", f"{REGION}b"]
    )


def make_context(stack: cdk.Stack) -> ClusterContext:
    """Return a cluster that lies in other stacks."""
    return _context("research", make_vpc(stack), ["subnet-a", "subnet-b"])


def cluster_of(plan: ClusterPlan, charts: Charts = NO_CHARTS) -> ClusterStacks:
    """Return a cluster that has only a network so far."""
    app = cdk.App(context=dict(FLAGS), builtin_cloud_formation_validation=False)
    cluster = ClusterStacks(app=app, plan=plan, charts=charts)
    network = NetworkStack(cluster, "network").network
    cluster.network = network
    cluster.context = _context(plan.name, network.vpc, network.subnet_ids("private"))
    return cluster


def _context(name: str, vpc: ec2.IVpc, private_subnet_ids: Sequence[str]) -> ClusterContext:
    return ClusterContext(
        name=name,
        endpoint="https://0123.gr7.us-west-2.eks.amazonaws.com",
        certificate_authority="Y2VydGlmaWNhdGU=",
        service_cidr="172.20.0.0/16",
        security_group_id="sg-0123456789abcdef0",
        vpc=vpc,
        private_subnet_ids=tuple(private_subnet_ids),
    )


def make_pool_plan(*instance_types: str, **changes: object) -> PoolPlan:
    """Return the plan of a pool of ``instance_types`` in which ``changes`` replace keys."""
    updates = {"instance_types": instance_types or ("p5.48xlarge",)} | changes
    version = make_cluster().kubernetes.version
    return plan_pool(_POOL.model_copy(update=updates), kubernetes_version=version)


def resources(template: Template, kind: str) -> list[dict[str, Any]]:
    """Return the bodies of the resources of a CloudFormation type."""
    return list(template.find_resources(kind).values())  # pyright: ignore[reportReturnType]


def the(template: Template, kind: str) -> dict[str, Any]:
    """Return the properties of the one resource of a CloudFormation type."""
    (body,) = resources(template, kind)
    return body["Properties"]


def managed_policies(role: Mapping[str, Any]) -> set[str]:
    """Return the names of the AWS managed policies of a role."""
    arns = role.get("ManagedPolicyArns", [])
    return {json.dumps(arn).rpartition(":policy/")[2].rstrip('"]}') for arn in arns}


def logical_id(template: Template, kind: str, **properties: Any) -> str:
    """Return the logical id of the one resource of ``kind`` with ``properties``."""
    (found,) = template.find_resources(kind, {"Properties": properties})
    return found


def flat(value: object, place: str = "") -> dict[str, Any]:
    """Return the leaves of a body by their places, such as ``Rules.0.Status``.

    A reference to another resource is a leaf: the name of its function and its arguments.
    """
    entries: Sequence[tuple[object, object]] = ()
    if isinstance(value, dict):
        entries = [*cast("dict[str, object]", value).items()]
    elif isinstance(value, list):
        entries = [*enumerate(cast("list[object]", value))]
    if not entries or any(str(key).startswith(("Fn::", "Ref")) for key, _ in entries):
        return {place: value}
    return {
        key: leaf
        for part, inner in entries
        for key, leaf in flat(inner, f"{place}.{part}".lstrip(".")).items()
    }
