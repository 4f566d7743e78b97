"""Templates for the change guard to compare, and what it says of them."""

import json
from collections.abc import Mapping
from typing import Any

from ultrascale.guard import Change, Changes, RolledPool, compare

Body = dict[str, Any]
STACK = "c-storage"
REGION = "us-west-2"


def body(kind: str, properties: Mapping[str, Any] | None = None, **attributes: Any) -> Body:
    """Return a resource of a template."""
    return {"Type": kind, "Properties": dict(properties or {}), **attributes}


def template(resources: Mapping[str, Body], **sections: Any) -> Any:
    """Return a template."""
    return {"Resources": dict(resources), **sections}


def export(name: str, value: object) -> Body:
    """Return the section of a template that exports one value."""
    return {"Outputs": {"Out": {"Value": value, "Export": {"Name": name}}}}


def between(old: Mapping[str, Body], new: Mapping[str, Body], **sections: Any) -> Changes:
    """Return the changes between two sets of resources of one stack."""
    return compare(
        {STACK: template(old, **sections)}, {STACK: template(new, **sections)}, region=REGION
    )


def of(changes: Changes, logical_id: str) -> Change:
    """Return the one change of a resource."""
    (found,) = (each for each in changes.resources if each.logical_id == logical_id)
    return found


def pool_of(changes: Changes, name: str) -> RolledPool:
    """Return the one change of a pool's nodes."""
    (found,) = (each for each in changes.pools if each.pool == name)
    return found


def manifest(*objects: Body, **attributes: Any) -> Body:
    """Return the custom resource that applies objects."""
    properties = {"ServiceToken": "arn:f", "Manifest": json.dumps(objects)}
    return body("Custom::AWSCDK-EKS-KubernetesResource", properties, **attributes)


def node_pool(
    name: str = "train",
    *,
    role: str = "burst",
    budgets: list[Body] | None = None,
    nodes: int = 8,
    instance_types: tuple[str, ...] = ("p5.48xlarge",),
    node_spec: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Body:
    """Return a NodePool."""
    requirement = {
        "key": "node.kubernetes.io/instance-type",
        "operator": "In",
        "values": list(instance_types),
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "limits": {"nodes": str(nodes)},
            "disruption": {"budgets": budgets or [{"nodes": "10%"}]},
            "template": {
                "metadata": {"labels": {"ultrascale.dev/role": role}},
                "spec": {
                    "nodeClassRef": {"name": name},
                    "requirements": [requirement],
                    "expireAfter": "Never",
                    **(node_spec or {}),
                },
            },
            **spec,
        },
    }


def node_class(name: str = "train", **spec: Any) -> Body:
    """Return the EC2NodeClass of a NodePool."""
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def node_group(template_id: str = "Template", **properties: Any) -> Body:
    """Return a managed node group that follows a launch template."""
    return body(
        "AWS::EKS::Nodegroup",
        {
            "ClusterName": "c",
            "Version": "1.35",
            "ReleaseVersion": "1.35.8-20260930",
            "LaunchTemplate": {
                "Id": {"Ref": template_id},
                "Version": {"Fn::GetAtt": [template_id, "LatestVersionNumber"]},
            },
            "Labels": {"ultrascale.dev/pool": "train"},
            "ScalingConfig": {"MinSize": 0, "MaxSize": 16},
            "Subnets": ["subnet-1"],
            "UpdateConfig": {"MaxUnavailable": 2},
            **properties,
        },
    )


def launch_template(instance_type: str = "p5.48xlarge", **data: Any) -> Body:
    """Return a launch template."""
    return body(
        "AWS::EC2::LaunchTemplate", {"LaunchTemplateData": {"InstanceType": instance_type, **data}}
    )


def guard(guarded: bool = True) -> Body:
    """Return what lets no deployment end a pool's nodes while any runs."""
    properties = {"ServiceToken": "arn:f", "Guarded": "true" if guarded else "false"}
    return body("Custom::NodeGroupGuard", properties)
