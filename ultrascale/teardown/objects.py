"""Objects of Kubernetes that hold something in AWS, and how each of them goes.

Each is deleted while the controller runs that gives back what is behind it. No finalizer is ever
removed: what it stands for would run on, and be paid for.

Sources:
    https://karpenter.sh/docs/concepts/disruption/#termination-controller
    https://kubernetes.io/docs/concepts/storage/persistent-volumes/#reclaiming
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ultrascale.cluster_api.kinds import CLAIM, NODE_CLAIM, NODE_POOL, VOLUME, Kind
from ultrascale.cluster_api.objects import Object, label, name
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import look_up, mapping, text
from ultrascale.errors import RefusedError
from ultrascale.teardown.model import State, StoppedError, Thing

NODE_POOL_LABEL = "karpenter.sh/nodepool"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_AGAIN = "then run the command again: it goes on here"
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTarget:
    """Deletes one object of Kubernetes.

    Attributes:
        cluster: The API server.
        kind: Its kind.
        found: The object, as the plan was printed with it.
        note: What is behind it.
    """

    cluster: Cluster
    kind: Kind
    found: Object
    note: str = ""

    @property
    def thing(self) -> Thing:
        """The object."""
        where = text(self.found, "metadata", "namespace")
        id = f"{where}/{name(self.found)}" if where else name(self.found)
        return Thing(kind=self.kind.kind, id=id, note=self.note)

    @property
    def things(self) -> Sequence[Thing]:
        """The object; what it owns goes with it."""
        return (self.thing,)

    def look(self) -> State:
        """Return how far the object is; another one of its name is not it."""
        namespace = text(self.found, "metadata", "namespace")
        now = self.cluster.find(self.kind.path(namespace, name(self.found)))
        if now is None or text(now, "metadata", "uid") != text(self.found, "metadata", "uid"):
            return "gone"
        return "going" if text(now, "metadata", "deletionTimestamp") else "there"

    def remove(self) -> None:
        """Delete exactly this object, and what it owns before it."""
        delete(self.cluster, self.kind, self.found)

    def stuck(self) -> StoppedError:
        """Return what waits for it."""
        namespace = text(self.found, "metadata", "namespace")
        now = self.cluster.find(self.kind.path(namespace, name(self.found)))
        waiting = cast("list[str] | None", look_up(now or {}, "metadata", "finalizers"))
        kept = ", ".join(waiting or ["none"])
        where = f" -n {namespace}" if namespace else ""
        return StoppedError(
            str(self.thing),
            why=f"it is being deleted, and waits for its finalizers: {kept}",
            fix=f"`kubectl describe {self.kind.resource} {name(self.found)}{where}` says why; mend "
            f"that, and remove no finalizer, {_AGAIN}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolTarget:
    """Deletes a NodePool, and waits for each of its nodes: nobody else would terminate them later.

    Attributes:
        cluster: The API server.
        found: The NodePool.
        claims: Its NodeClaims, as the plan was printed with them.
    """

    cluster: Cluster
    found: Object
    claims: tuple[Object, ...]

    @property
    def thing(self) -> Thing:
        """The NodePool."""
        note = f"nodes: {len(self.claims)}, and what it launches until then"
        return Thing(kind=NODE_POOL.kind, id=name(self.found), note=note)

    @property
    def things(self) -> Sequence[Thing]:
        """The NodePool and its NodeClaims."""
        return (self.thing, *(_claim_thing(each) for each in self.claims))

    def look(self) -> State:
        """Return how far they are: it is gone once its last NodeClaim is.

        Raises:
            StoppedError: Another one has its name by now.
        """
        pool = self.cluster.find(NODE_POOL.path(name=name(self.found)))
        if pool is not None:
            if text(pool, "metadata", "uid") != text(self.found, "metadata", "uid"):
                raise self._made_anew(pool)
            if not text(pool, "metadata", "deletionTimestamp"):
                return "there"
        return "going" if pool is not None or self._left() else "gone"

    def remove(self) -> None:
        """Delete the NodePool; Karpenter drains its nodes and terminates them."""
        delete(self.cluster, NODE_POOL, self.found)

    def stuck(self) -> StoppedError:
        """Return the NodeClaims that are still there."""
        left = self._left()
        shown = ", ".join(str(_claim_thing(each)) for each in left[:_SHOWN])
        return StoppedError(
            f"NodePool {name(self.found)}",
            why=f"{len(left)} of its nodes do not go: {shown or 'no NodeClaim says why'}",
            fix="`kubectl describe nodeclaim NAME` says what keeps a node: a PodDisruptionBudget, "
            "a pod that may not be disrupted, or Karpenter not running; mend that, and remove no "
            f"finalizer, or the instance runs on, {_AGAIN}",
        )

    def _made_anew(self, pool: Object) -> StoppedError:
        made = text(pool, "metadata", "creationTimestamp") or "an unknown time"
        return StoppedError(
            f"NodePool {name(self.found)}",
            why=f"somebody made it anew since the plan was printed, at {made}: it launches nodes "
            "again",
            fix=f"stop what applies it, such as Argo CD or Flux, {_AGAIN}",
        )

    def _left(self) -> list[Object]:
        query = {"labelSelector": f"{NODE_POOL_LABEL}={name(self.found)}"}
        return self.cluster.collection(NODE_CLAIM, "", query)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeTarget:
    """Deletes a claim, and waits until its driver has deleted the volume.

    Attributes:
        cluster: The API server.
        volume: The PersistentVolume.
        claim: Its claim; None where that is gone already.
    """

    cluster: Cluster
    volume: Object
    claim: Object | None

    @property
    def thing(self) -> Thing:
        """The volume of EBS."""
        return Thing(kind="AWS::EC2::Volume", id=volume_id(self.volume), note=claim_of(self.volume))

    @property
    def things(self) -> Sequence[Thing]:
        """The claim, the volume of Kubernetes, and that of EBS."""
        claim = Thing(kind=CLAIM.kind, id=claim_of(self.volume))
        return (claim, Thing(kind=VOLUME.kind, id=name(self.volume)), self.thing)

    def look(self) -> State:
        """Return how far they are."""
        if self.cluster.find(VOLUME.path(name=name(self.volume))) is None:
            return "gone"
        if self.claim is None:
            return ObjectTarget(cluster=self.cluster, kind=VOLUME, found=self.volume).look()
        state = ObjectTarget(cluster=self.cluster, kind=CLAIM, found=self.claim).look()
        return "going" if state == "gone" else state

    def remove(self) -> None:
        """Delete the claim, or the volume whose claim is gone."""
        if self.claim is None:
            delete(self.cluster, VOLUME, self.volume)
        else:
            delete(self.cluster, CLAIM, self.claim)

    def stuck(self) -> StoppedError:
        """Return what still uses the claim."""
        return StoppedError(
            str(self.thing),
            why=f"its claim {claim_of(self.volume)} or its driver holds it",
            fix=f"delete the pods that mount it (`kubectl describe pvc` and `kubectl describe pv "
            f"{name(self.volume)}` name them), {_AGAIN}",
        )


def delete(cluster: Cluster, kind: Kind, found: Object) -> None:
    """Delete exactly this object; one that is gone already is no mistake."""
    try:
        cluster.delete(kind, text(found, "metadata", "namespace"), found)
    except RefusedError as error:
        if error.status != NOT_FOUND:
            raise


def _claim_thing(claim: Object) -> Thing:
    return Thing(kind=NODE_CLAIM.kind, id=name(claim), note=instance_of(claim))


def instance_of(claim: Object) -> str:
    """Return the instance behind a NodeClaim, its type and how it is paid."""
    instance = text(claim, "status", "providerID").rpartition("/")[2]
    type = label(claim, "node.kubernetes.io/instance-type")
    return " ".join(filter(None, (instance, type, label(claim, _CAPACITY_TYPE))))


def volume_id(volume: Object) -> str:
    """Return EBS's id of a volume of Kubernetes."""
    return text(volume, "spec", "csi", "volumeHandle")


def claim_of(volume: Object) -> str:
    """Return namespace and name of the claim of a volume."""
    claim = mapping(volume, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}"
