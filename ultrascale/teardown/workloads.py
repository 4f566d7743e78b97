"""Workloads of a cluster: jobs, nodes, load balancers and volumes, as its API server lists them.

Source: https://docs.aws.amazon.com/eks/latest/userguide/delete-cluster.html
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.cluster_api.kinds import (
    CLAIM,
    DEPLOYMENT,
    NODE_CLAIM,
    NODE_POOL,
    SERVICE,
    VOLUME,
    Kind,
)
from ultrascale.cluster_api.objects import Object, label, name
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import look_up, mapping, objects, text
from ultrascale.jobs.workloads import WORKLOADS
from ultrascale.plan import ClusterPlan
from ultrascale.plan.names import BACKEND_ACCOUNT, JOB_LABEL
from ultrascale.teardown import ec2, prices
from ultrascale.teardown.model import Found, Thing
from ultrascale.teardown.objects import (
    NODE_POOL_LABEL,
    NodePoolTarget,
    ObjectTarget,
    ScaledTarget,
    VolumeTarget,
    claim_of,
    instance_of,
    volume_id,
)

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef

# Values of one filter.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Filter.html
_VALUES = 200
CRON_JOB = Kind("batch/v1", "CronJob", "cronjobs")
INGRESS = Kind("networking.k8s.io/v1", "Ingress", "ingresses")
# The AWS Load Balancer Controller and Istio make load balancers for Gateways.
# Source: https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/gateway/gateway/
GATEWAY = Kind("gateway.networking.k8s.io/v1", "Gateway", "gateways")
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_ROUTES = (GATEWAY, INGRESS)
_EBS_DRIVERS = ("ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com")
# NodePools of EKS Auto Mode itself, which nobody can delete.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/set-builtin-node-pools.html
_BUILT_IN = frozenset({"general-purpose", "system"})


def submitters(cluster: Cluster, plan: ClusterPlan) -> Iterator[ScaledTarget]:
    """Yield the Deployments that submit jobs by themselves: they run as the backend's account.

    Args:
        cluster: The API server.
        plan: The cluster.
    """
    if plan.backend is None:
        return
    for each in cluster.collection(DEPLOYMENT, plan.backend.namespace, {}):
        account = text(each, "spec", "template", "spec", "serviceAccountName")
        if account == BACKEND_ACCOUNT and look_up(each, "spec", "replicas") != 0:
            yield ScaledTarget(cluster=cluster, found=each)


def jobs(
    cluster: Cluster, plan: ClusterPlan
) -> tuple[tuple[ObjectTarget, ...], tuple[ObjectTarget, ...]]:
    """Return the CronJobs and the jobs in the namespaces of a cluster.

    Pods get SIGTERM and their grace period, for a last checkpoint.
    """
    namespaces = [each.name for each in (*plan.namespaces, *plan.team_namespaces)]
    schedules = tuple(
        ObjectTarget(cluster=cluster, kind=CRON_JOB, found=each)
        for namespace in namespaces
        for each in cluster.collection(CRON_JOB, namespace, {})
    )
    running = tuple(
        ObjectTarget(cluster=cluster, kind=kind, found=each, note=label(each, JOB_LABEL))
        for namespace in namespaces
        for kind in WORKLOADS
        for each in cluster.collection(kind, namespace, {})
        if not objects(each, "metadata", "ownerReferences")
        # Deployments that are no job are the platform's.
        and (kind != DEPLOYMENT or label(each, JOB_LABEL))
    )
    return schedules, running


def node_pools(
    cluster: Cluster, plan: ClusterPlan
) -> tuple[tuple[NodePoolTarget | ObjectTarget, ...], tuple[NodePoolTarget, ...]]:
    """Return the NodePools that go first, and those of the system nodes, which go last.

    A NodeClaim of no NodePool goes with the first.
    """
    claims = cluster.collection(NODE_CLAIM, "", {})
    found = cluster.collection(NODE_POOL, "", {})
    ours = {each.pool for each in plan.system_pools}
    system = {each.name for each in plan.node_pools if each.pool in ours}
    targets = [
        NodePoolTarget(
            cluster=cluster,
            found=pool,
            claims=tuple(each for each in claims if label(each, NODE_POOL_LABEL) == name(pool)),
        )
        for pool in found
        if not plan.control_plane.auto_mode or name(pool) not in _BUILT_IN
    ]
    pools = {name(pool) for pool in found}
    alone = (
        ObjectTarget(cluster=cluster, kind=NODE_CLAIM, found=each, note=instance_of(each))
        for each in claims
        if label(each, NODE_POOL_LABEL) not in pools
    )
    first = (each for each in targets if name(each.found) not in system)
    return (*first, *alone), tuple(each for each in targets if name(each.found) in system)


def load_balancers(cluster: Cluster) -> tuple[ObjectTarget, ...]:
    """Return the Services, Ingresses and Gateways behind which load balancers of AWS stand."""
    services = (
        (SERVICE, each)
        for each in cluster.collection(SERVICE, "", {})
        if text(each, "spec", "type") == "LoadBalancer"
    )
    others = ((kind, each) for kind in _ROUTES for each in cluster.collection(kind, "", {}))
    return tuple(
        ObjectTarget(cluster=cluster, kind=kind, found=each, note=", ".join(_addresses(each)))
        for kind, each in (*services, *others)
    )


def volumes(cluster: Cluster) -> tuple[VolumeTarget, ...]:
    """Return the EBS volumes that Kubernetes made and deletes with their claims."""
    claims = {text(each, "metadata", "uid"): each for each in cluster.collection(CLAIM, "", {})}
    return tuple(
        VolumeTarget(
            cluster=cluster, volume=each, claim=claims.get(text(each, "spec", "claimRef", "uid"))
        )
        for each in _made_volumes(cluster)
        if _goes(each)
    )


def kept_volumes(cluster: Cluster, account: Account) -> Iterator[Found]:
    """Yield the EBS volumes that Kubernetes made and keeps.

    Args:
        cluster: The API server.
        account: The account that pays for them.
    """
    kept = {volume_id(each): each for each in _made_volumes(cluster) if not _goes(each)}
    ids = sorted(kept)
    for begin in range(0, len(ids), _VALUES):
        wanted: FilterTypeDef = {"Name": "volume-id", "Values": ids[begin : begin + _VALUES]}
        for volume in account.ask_all(
            account.client("ec2").describe_volumes, lambda page: page["Volumes"], Filters=[wanted]
        ):
            id = volume["VolumeId"]
            yield Found(
                thing=Thing(kind=ec2.VOLUME, id=id, note=claim_of(kept[id])),
                why="its PersistentVolume says Retain",
                price=prices.of_volume(volume.get("VolumeType", ""), volume.get("Size", 0)),
            )


def _made_volumes(cluster: Cluster) -> Iterator[Object]:
    for each in cluster.collection(VOLUME, "", {}):
        made = text(mapping(each, "metadata", "annotations"), _PROVISIONED_BY)
        if text(each, "spec", "csi", "driver") in _EBS_DRIVERS and made:
            yield each


def _goes(volume: Object) -> bool:
    return text(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete"


def _addresses(found: Object) -> Iterator[str]:
    for each in objects(found, "status", "loadBalancer", "ingress"):
        yield text(each, "hostname") or text(each, "ip")
    yield from (text(each, "value") for each in objects(found, "status", "addresses"))
