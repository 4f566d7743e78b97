"""A hundred resources of others in the VPC of a cluster, and in its account."""

from ast import literal_eval
from collections.abc import Iterator
from typing import Any

from tests.support.estate.account import Estate
from tests.support.estate.cluster import DOCUMENT, estate
from tests.support.estate.doubles import FakeStack
from tests.support.existing_vpc import OWNER, VPC, existing_network, subnets
from tests.support.fake_aws import ID
from tests.support.pools import as_text, loads_own
from ultrascale.plan import ClusterPlan, plan_cluster

# Ways in which an interface of somebody else may look like one of ours; CLUSTER is its name.
_INTERFACES: tuple[dict[str, Any], ...] = (
    # Of a plugin that has not said yet of which cluster it is.
    {"Status": "available", "Description": "aws-K8S-i-0f9"},
    {"Status": "available", "TagSet": [("cluster.k8s.amazonaws.com/name", "CLUSTER-two")]},
    # Of a cluster with the name of ours, in another account that the VPC is shared with.
    {
        "Status": "available",
        "TagSet": [("cluster.k8s.amazonaws.com/name", "CLUSTER")],
        "OwnerId": 2,
    },
    {"Status": "available", "TagSet": [("kubernetes.io/cluster/CLUSTER", "shared")]},
    {"Status": "in-use", "Description": "Amazon EKS CLUSTER-two"},
    {"Status": "in-use", "Description": "AWS Lambda VPC ENI-theirs-0f9"},
    {"Status": "in-use", "Description": "Interface for NAT Gateway nat-0f9"},
    {"Status": "in-use", "Description": "VPC Endpoint Interface vpce-0f9"},
    {"Status": "in-use", "Description": "ELB app/theirs/0f9"},
    {"Status": "in-use", "Description": "RDSNetworkInterface"},
    {"Status": "in-use", "Attachment": {"InstanceId": "i-0f90", "InstanceOwnerId": ID}},
    {"Status": "available", "Description": "kept for a failover"},
)
_GROUPS: tuple[dict[str, Any], ...] = (
    {"Tags": [("kubernetes.io/cluster/CLUSTER", "shared")]},
    {"Tags": [("aws:eks:cluster-name", "CLUSTER-two")]},
    {"Tags": [("aws:eks:cluster-name", "CLUSTER")], "OwnerId": 2},
    {"Tags": [("elbv2.k8s.aws/cluster", "CLUSTER-two")]},
    {"Tags": []},
)
_INSTANCES: tuple[tuple[str, str], ...] = (
    ("kubernetes.io/cluster/CLUSTER-two", "owned"),
    ("kubernetes.io/cluster/CLUSTER", "shared"),
    ("Name", "CLUSTER-bastion"),
)


def research_in_existing_vpc() -> ClusterPlan:
    """Return the plan of the cluster of the teardown's tests, in a VPC that exists."""
    network = existing_network(subnets=subnets("us-west-2"))
    zone = {"zones": ["us-west-2a"]}
    pools = [each | zone if each["name"] == "train" else each for each in DOCUMENT["pools"]]
    storage = DOCUMENT["storage"]
    lustre = [each | {"zone": "us-west-2a"} for each in storage["lustre"]]
    document = DOCUMENT | {
        "network": network,
        "pools": pools,
        "storage": storage | {"lustre": lustre},
    }
    return plan_cluster(loads_own(as_text(document)))


def estate_in_existing_vpc(*more: FakeStack) -> Estate:
    """Return an account with the cluster in a VPC of somebody else, and no stack of a network."""
    found = estate(*more)
    del found.stacks["research-network"]
    for each in found.stacks.values():
        each.imports = tuple(name for name in each.imports if name != "research-network")
    for group in found.groups.values():
        group["VpcId"] = VPC
    found.plan = research_in_existing_vpc()
    return found


def settle(found: Estate, *, count: int = 100, cluster: str = "research") -> set[str]:
    """Put ``count`` resources of others into the VPC and the account; return their ids."""
    ids: set[str] = set()
    for number, (kind, stated) in zip(range(count), _foreign(), strict=False):
        fields: dict[str, Any] = literal_eval(repr(stated).replace("CLUSTER", cluster))
        digits = f"f{number:03d}"
        owner = {1: ID, 2: OWNER}[fields.pop("OwnerId", 1)]
        tags = [{"Key": key, "Value": value} for key, value in fields.pop("Tags", [])]
        if kind == "interface":
            id = f"eni-{digits}"
            tags = [{"Key": key, "Value": value} for key, value in fields.pop("TagSet", [])]
            named = {"NetworkInterfaceId": id, "VpcId": VPC, "OwnerId": owner, "TagSet": tags}
            found.interfaces[id] = {"Description": "", **named, **fields}
        elif kind == "group":
            id = f"sg-{digits}"
            found.groups[id] = {
                "GroupId": id,
                "VpcId": VPC,
                "OwnerId": owner,
                "GroupName": id,
                "Tags": tags,
            }
        elif kind == "instance":
            id = f"i-{digits}"
            found.instances[id] = {
                "InstanceId": id,
                "InstanceType": "p5.48xlarge",
                "State": {"Code": 16, "Name": "running"},
                "VpcId": VPC,
                "Stack": "",
                "Tags": tags,
            }
        elif kind == "file system":
            id = f"fs-0123456789abcd{digits}"
            found.file_systems[id] = {
                "FileSystemId": id,
                "Lifecycle": "AVAILABLE",
                "VpcId": VPC,
                "StorageCapacity": 1200,
                "Tags": tags,
            }
        elif kind == "bucket":
            id = f"corp-data-{digits}"
            found.buckets[id] = ["a"]
        elif kind == "log group":
            id = f"/aws/eks/{cluster}-two-{digits}/cluster"
            found.log_groups.add(id)
        else:
            id = f"{cluster}-two/{digits}"
            found.repositories.add(id)
        ids.add(id)
    return ids


def _foreign() -> Iterator[tuple[str, dict[str, Any]]]:
    while True:
        yield from (("interface", dict(fields)) for fields in _INTERFACES)
        yield from (("group", dict(fields)) for fields in _GROUPS)
        yield from (("instance", {"Tags": [tag]}) for tag in _INSTANCES)
        yield "file system", {"Tags": [("aws:cloudformation:stack-name", "theirs-storage")]}
        yield "file system", {"Tags": [("Name", "corpus")]}
        yield "bucket", {}
        yield "log group", {}
        yield "repository", {}
