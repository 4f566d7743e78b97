"""The EKS cluster: its state and its deletion protection, and its workloads.

Source: https://docs.aws.amazon.com/eks/latest/userguide/deletion-protection.html
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.cluster_api.objects import (
    CLAIM,
    DEPLOYMENT,
    NODE_CLAIM,
    NODE_POOL,
    SCALED_OBJECT,
    SERVICE,
    VOLUME,
    Kind,
    Object,
    label,
    name,
)
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import look_up, mapping, objects, text
from ultrascale.errors import unless_gone
from ultrascale.frozen import Frozen
from ultrascale.jobs.workloads import workload_kinds
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import PlannedPart
from ultrascale.plan.names import JOB_LABEL
from ultrascale.teardown import ec2, prices
from ultrascale.teardown.model import Found, Scope, State, StoppedError, Thing
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


CLUSTER = "AWS::EKS::Cluster"
_NO_CLUSTER = "ResourceNotFoundException"


def eks_status(account: Account, cluster: str) -> str:
    """Return the state of a cluster as EKS names it; empty if there is no such cluster.

    Raises:
        UnansweredError: AWS did not answer.
    """
    with unless_gone(_NO_CLUSTER):
        answer = account.ask(account.client("eks").describe_cluster, name=cluster)
        return str(answer["cluster"]["status"])
    return ""


def eks_cluster(scope: Scope) -> Iterator[Found]:
    """Yield the EKS cluster with the cluster's name."""
    status = eks_status(scope.account, scope.plan.name)
    if status:
        yield Found(
            thing=Thing(kind=CLUSTER, id=scope.plan.name, note=status),
            why="EKS has a cluster of this name",
            price=prices.of_cluster(scope.plan.control_plane.tier),
        )


class ProtectionTarget(Frozen):
    """Target that turns the deletion protection of an EKS cluster off."""

    account: Account  # The account
    cluster: str  # Name of the cluster

    @property
    def thing(self) -> Thing:
        """The deletion protection."""
        return Thing(kind="deletion protection", id=self.cluster)

    @property
    def things(self) -> Sequence[Thing]:
        """The deletion protection alone: the EKS cluster goes with its stack."""
        return (self.thing,)

    def look(self) -> State:
        """Return `there` while the protection is on and matters: on an active cluster."""
        eks = self.account.client("eks")
        with unless_gone(_NO_CLUSTER):
            cluster = self.account.ask(eks.describe_cluster, name=self.cluster)["cluster"]
            if cluster["status"] == "UPDATING":
                return "going"
            if cluster.get("deletionProtection", False) and cluster["status"] == "ACTIVE":
                return "there"
        return "gone"

    def remove(self) -> None:
        """Turn the deletion protection off."""
        self.account.ask(
            self.account.client("eks").update_cluster_config,
            name=self.cluster,
            deletionProtection=False,
        )

    def stuck(self) -> StoppedError:
        """Return the reason why the protection stays on: the update does not end."""
        return StoppedError(
            f"EKS cluster {self.cluster}",
            why="it is being updated, and its deletion protection is on until that ends",
            fix=f"`aws eks list-updates --name {self.cluster} --region {self.account.region}` "
            "names the update; wait for it, then run the command again: it goes on here",
        )


# --- Workloads of a cluster as its API server lists them: jobs, nodes, load balancers, volumes ----
# Source: https://docs.aws.amazon.com/eks/latest/userguide/delete-cluster.html


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


def submitters(cluster: Cluster, parts: Sequence[PlannedPart]) -> Iterator[ScaledTarget]:
    """Yield the Deployments that submit jobs, found by their service account.

    Args:
        cluster: The API server.
        parts: Parts of the cluster.
    """
    for namespace, account in filter(None, (part.submitter for part in parts)):
        for deployment in cluster.collection(DEPLOYMENT, namespace, {}):
            runs_as = text(deployment, "spec", "template", "spec", "serviceAccountName")
            if runs_as == account and look_up(deployment, "spec", "replicas") != 0:
                yield ScaledTarget(cluster=cluster, found=deployment)


def jobs(
    cluster: Cluster, namespaces: Sequence[str]
) -> tuple[tuple[ObjectTarget, ...], tuple[ObjectTarget, ...]]:
    """Return two waves: objects that start or scale jobs, and the jobs, in ``namespaces``.

    Pods get SIGTERM and their grace period, for a last checkpoint.
    """
    # KEDA still runs and takes its finalizer off; later nothing would.
    schedules = tuple(
        ObjectTarget(cluster=cluster, kind=kind, found=workload)
        for namespace in namespaces
        for kind in (CRON_JOB, SCALED_OBJECT)
        for workload in cluster.collection(kind, namespace, {})
    )
    running = tuple(
        ObjectTarget(cluster=cluster, kind=kind, found=workload, note=label(workload, JOB_LABEL))
        for namespace in namespaces
        for kind in workload_kinds()
        for workload in cluster.collection(kind, namespace, {})
        if not objects(workload, "metadata", "ownerReferences")
        # Other Deployments belong to the platform.
        and (kind != DEPLOYMENT or label(workload, JOB_LABEL))
    )
    return schedules, running


def node_pools(
    cluster: Cluster, plan: ClusterPlan
) -> tuple[tuple[NodePoolTarget | ObjectTarget, ...], tuple[NodePoolTarget, ...]]:
    """Return two waves: NodePools that go first, and NodePools of system nodes, which go last.

    A NodeClaim without a NodePool goes with the first wave.
    """
    claims = cluster.collection(NODE_CLAIM, "", {})
    pools_there = cluster.collection(NODE_POOL, "", {})
    ours = {pool.pool for pool in plan.system_pools}
    system = {pool.name for pool in plan.nodes.node_pools if pool.pool in ours}
    targets = [
        NodePoolTarget(
            cluster=cluster,
            found=pool,
            claims=tuple(claim for claim in claims if label(claim, NODE_POOL_LABEL) == name(pool)),
        )
        for pool in pools_there
        if not plan.control_plane.auto_mode or name(pool) not in _BUILT_IN
    ]
    pools = {name(pool) for pool in pools_there}
    alone = (
        ObjectTarget(cluster=cluster, kind=NODE_CLAIM, found=claim, note=instance_of(claim))
        for claim in claims
        if label(claim, NODE_POOL_LABEL) not in pools
    )
    first = (target for target in targets if name(target.found) not in system)
    return (*first, *alone), tuple(target for target in targets if name(target.found) in system)


def load_balancers(cluster: Cluster) -> tuple[ObjectTarget, ...]:
    """Return the Services, Ingresses and Gateways that load balancers of AWS serve."""
    services = (
        (SERVICE, route)
        for route in cluster.collection(SERVICE, "", {})
        if text(route, "spec", "type") == "LoadBalancer"
    )
    others = ((kind, route) for kind in _ROUTES for route in cluster.collection(kind, "", {}))
    return tuple(
        ObjectTarget(cluster=cluster, kind=kind, found=route, note=", ".join(_addresses(route)))
        for kind, route in (*services, *others)
    )


def volumes(cluster: Cluster) -> tuple[VolumeTarget, ...]:
    """Return the EBS volumes that Kubernetes made and deletes with their claims."""
    claims = {text(claim, "metadata", "uid"): claim for claim in cluster.collection(CLAIM, "", {})}
    return tuple(
        VolumeTarget(
            cluster=cluster,
            volume=volume,
            claim=claims.get(text(volume, "spec", "claimRef", "uid")),
        )
        for volume in _made_volumes(cluster)
        if _is_deleted_with_claim(volume)
    )


def kept_volumes(cluster: Cluster, account: Account) -> Iterator[Found]:
    """Yield the EBS volumes that Kubernetes made and keeps.

    Args:
        cluster: The API server.
        account: The account that pays for them.
    """
    kept = {
        volume_id(volume): volume
        for volume in _made_volumes(cluster)
        if not _is_deleted_with_claim(volume)
    }
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
    for volume in cluster.collection(VOLUME, "", {}):
        made = text(mapping(volume, "metadata", "annotations"), _PROVISIONED_BY)
        if text(volume, "spec", "csi", "driver") in _EBS_DRIVERS and made:
            yield volume


def _is_deleted_with_claim(volume: Object) -> bool:
    return text(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete"


def _addresses(route: Object) -> Iterator[str]:
    for address in objects(route, "status", "loadBalancer", "ingress"):
        yield text(address, "hostname") or text(address, "ip")
    yield from (text(address, "value") for address in objects(route, "status", "addresses"))
