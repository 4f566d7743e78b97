"""A whole cluster in an account: all that a teardown meets, for tests to bend."""

from datetime import UTC, datetime
from functools import cache
from typing import Any

from tests.support.estate.account import VPC, Estate
from tests.support.estate.doubles import FakeStack
from tests.support.fake_aws import ID
from tests.support.folders import ROOT
from tests.support.jobs import job_cluster
from tests.support.pools import ON_DEMAND, as_text, loads_own, pool_document
from ultrascale.plan import ClusterPlan, load, plan_cluster
from ultrascale.teardown.kept import Asked
from ultrascale.teardown.model import Left, Teardown

FILE_SYSTEM, BUCKET, REPOSITORY = (
    "fs-0123456789abcdef0",
    "research-storage-data-0a1",
    "research/trainer",
)
LOGS = "/aws/eks/research/cluster"
FSX_GROUP, INTERFACE = "sg-0f5", "eni-0a1"
BURST = pool_document(
    name="burst",
    provisioner="karpenter",
    purchase=ON_DEMAND,
    nodes={"max": 8},
    instance_types=["m7i.8xlarge"],
    zones=None,
)
DOCUMENT: dict[str, Any] = job_cluster(
    pool_document(purchase=ON_DEMAND),
    BURST,
    storage={
        "lustre": [
            {
                "name": "scratch",
                "zone": "us-west-2b",
                "capacity_gib": 1200,
                "throughput_mbps_per_tib": 250,
            }
        ],
        "buckets": ["data"],
    },
    images={"repositories": ["trainer"]},
)
# In an order in which a deployment makes them, each with what it imports from.
_STACKS = {
    "network": (),
    "cluster": ("network",),
    "access": (),
    "node-addons": (),
    "scaling": ("cluster",),
    "system": ("scaling", "network"),
    "storage": ("cluster", "network"),
    "addons": (),
    "registry": (),
    "platform": ("cluster", "network", "storage"),
    "karpenter": ("cluster", "network"),
    "node-pools": ("cluster", "network"),
    "train": ("scaling", "network", "cluster"),
}
_HELD = {
    "network": [
        ("AWS::EC2::VPC", "Vpc", VPC, False),
        ("AWS::EC2::NatGateway", "Nat", "nat-0a1", False),
    ],
    "cluster": [
        ("AWS::EKS::Cluster", "ControlPlane", "research", False),
        ("AWS::KMS::Key", "Key", "key-1", True),
        ("AWS::Logs::LogGroup", "Logs", LOGS, True),
    ],
    "storage": [
        ("AWS::FSx::FileSystem", "scratch1CA5CB2F", FILE_SYSTEM, True),
        ("AWS::EC2::SecurityGroup", "scratchSecurityGroup7EDF8F89", FSX_GROUP, True),
        ("AWS::EC2::SecurityGroupIngress", "scratchfrom7EDF8F89", "sgr-1", True),
        ("AWS::S3::Bucket", "BucketsdataB73376C8", BUCKET, True),
    ],
    "registry": [("AWS::ECR::Repository", "trainer0EFE2F61", REPOSITORY, True)],
    "platform": [
        ("Custom::AWSCDK-EKS-KubernetesResource", "Namespaces", "namespaces-1", True),
        ("AWS::SecretsManager::Secret", "Certificate", "secret-1", False),
    ],
    "train": [("AWS::EKS::Nodegroup", "Group", "research/train", False)],
}

# By what a request deletes: an object of Kubernetes is named without its namespace there.
ORDER = [
    "bert",
    "burst",
    "research-node-pools",
    "research-train",
    "web",
    "research-karpenter",
    "research-platform",
    "research-registry",
    "db",
    "research-addons",
    "research-storage",
    "research-system",
    "research-scaling",
    "research-node-addons",
    "research-access",
    "deletion protection",
    "research-cluster",
    LOGS,
    FILE_SYSTEM,
    BUCKET,
    REPOSITORY,
    FSX_GROUP,
    "research-network",
]
ALL = Asked(storage=frozenset({"scratch", "data", "trainer"}), logs=True)
NOTHING = Teardown(cluster="research", region="us-west-2", account=ID, steps=(), kept=())


@cache
def research() -> ClusterPlan:
    """Return the plan of the cluster."""
    return plan_cluster(loads_own(as_text(DOCUMENT)))


def ids(teardown: Teardown) -> set[str]:
    """Return the ids of all that goes."""
    return {thing.id for thing in teardown.things}


def kept(teardown: Teardown) -> dict[str, Left]:
    """Return what stays, by its id."""
    return {each.thing.id: each for each in teardown.kept}


def stack(layer: str, **changes: Any) -> FakeStack:
    """Return a stack of the cluster."""
    fields: dict[str, Any] = {
        "name": f"research-{layer}",
        "resources": list(_HELD.get(layer, [])),
        "imports": tuple(f"research-{each}" for each in _STACKS.get(layer, ())),
    }
    return FakeStack(**(fields | changes))


def estate(*more: FakeStack, **stacks: FakeStack) -> Estate:
    """Return the account with all of the cluster in it.

    Args:
        more: Stacks besides.
        stacks: Stacks that take the place of those of a layer.
    """
    every = [stacks.get(layer.replace("-", "_"), stack(layer)) for layer in _STACKS]
    found = Estate(research(), *every, *more)
    found.file_systems[FILE_SYSTEM] = {
        "FileSystemId": FILE_SYSTEM,
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 1200,
        "CreationTime": datetime(2026, 8, 1, tzinfo=UTC),
        "LustreConfiguration": {"PerUnitStorageThroughput": 250},
        "Tags": [{"Key": "aws:cloudformation:stack-name", "Value": "research-storage"}],
    }
    found.groups[FSX_GROUP] = {"GroupId": FSX_GROUP, "VpcId": VPC, "GroupName": "lustre"}
    found.buckets[BUCKET] = ["a", "b", "c"]
    found.repositories |= {REPOSITORY, "research-two/other"}
    found.log_groups |= {LOGS, "/aws/eks/research-two/cluster"}
    found.instances["i-0a1"] = instance("i-0a1", "research-train", "p5.48xlarge")
    populate(found)
    return found


def hyperpod_estate() -> Estate:
    """Return an account in which HyperPod of a cluster is left, at work on its nodes."""
    file = ROOT / "clusters" / "hybrid-hyperpod.yaml"
    layers = ("hyperpod-chart", "hyperpod-groups", "governance", "teams", "hyperpod-metrics")
    cluster = Estate(
        load(file),
        *(FakeStack(f"hybrid-hyperpod-{layer}", [], cluster="hybrid-hyperpod") for layer in layers),
    )
    cluster.cluster = None
    cluster.hyperpod = ["Updating", "Updating", "InService"]
    cluster.hyperpod_nodes = [["DeepHealthCheckInProgress"], ["Running"]]
    return cluster


def instance(id: str, stack: str, type: str, **fields: Any) -> dict[str, Any]:
    """Return a node of the cluster, of a stack; of none it is an orphan."""
    return {
        "InstanceId": id,
        "InstanceType": type,
        "State": {"Code": 16, "Name": "running"},
        "Stack": stack,
        "Tags": [{"Key": "kubernetes.io/cluster/research", "Value": "owned"}],
        **fields,
    }


def interface(id: str = INTERFACE, **fields: Any) -> dict[str, Any]:
    """Return a network interface that a node has left."""
    return {
        "NetworkInterfaceId": id,
        "VpcId": VPC,
        "Status": "available",
        "Description": "aws-K8S-i-0a1",
        "TagSet": [],
        **fields,
    }


def populate(found: Estate) -> None:
    """Put a job, a NodePool with a node, a load balancer and a volume into the cluster."""
    api = found.api
    api.put("/apis/batch/v1/namespaces/training/jobs/bert", {"kind": "Job"})
    api.put("/apis/batch/v1/namespaces/other/jobs/not-ours", {"kind": "Job"})
    pool = api.put("/apis/karpenter.sh/v1/nodepools/burst", {"kind": "NodePool"})
    claim(found, "burst-1", owner=pool["metadata"]["uid"])
    service = {"kind": "Service", "spec": {"type": "LoadBalancer"}}
    api.put("/api/v1/namespaces/other/services/web", service)
    held = api.put("/api/v1/namespaces/other/persistentvolumeclaims/db", {"kind": "Claim"})
    volume(found, "pv-1", "vol-1", "Delete", uid=held["metadata"]["uid"])
    volume(found, "pv-2", "vol-2", "Retain")


def claim(found: Estate, name: str, *, owner: str | None = None) -> None:
    """Put a NodeClaim of the pool `burst` into the cluster; one without ``owner`` never goes."""
    labels = {"karpenter.sh/nodepool": "burst", "node.kubernetes.io/instance-type": "m7i.8xlarge"}
    metadata: dict[str, Any] = {"labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [{"uid": owner}]
    status = {"providerID": "aws:///us-west-2a/i-0b2"}
    path = f"/apis/karpenter.sh/v1/nodeclaims/{name}"
    found.api.put(path, {"kind": "NodeClaim", "metadata": metadata, "status": status})


def volume(found: Estate, name: str, id: str, policy: str, *, uid: str = "") -> None:
    """Put a volume that the EBS driver made into the cluster; it goes with the claim ``uid``."""
    metadata: dict[str, Any] = {
        "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}
    }
    if uid:
        metadata["ownerReferences"] = [{"uid": uid}]
    spec = {
        "persistentVolumeReclaimPolicy": policy,
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": id},
        "claimRef": {"namespace": "other", "name": "db", "uid": uid},
    }
    path = f"/api/v1/persistentvolumes/{name}"
    found.api.put(path, {"kind": "PersistentVolume", "metadata": metadata, "spec": spec})
