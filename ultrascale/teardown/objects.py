"""Kubernetes objects that hold resources of AWS, and their deletion.

An object is deleted while the controller runs that gives its resources back. No finalizer is ever
removed: the resource behind it would run on and cost money.

Only objects of the plan are deleted. A job, a NodePool or a Service that is created meanwhile
stops the teardown: it would run on until its nodes or its controller are gone.

Sources:
    https://karpenter.sh/docs/concepts/disruption/#termination-controller
    https://kubernetes.io/docs/concepts/storage/persistent-volumes/#reclaiming
"""

from collections.abc import Callable, Sequence

from ultrascale.cluster_api.objects import (
    CLAIM,
    DEPLOYMENT,
    NODE_CLAIM,
    NODE_POOL,
    VOLUME,
    Kind,
    Object,
    label,
    name,
)
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import look_up, mapping, sequence, text
from ultrascale.errors import RefusedError
from ultrascale.frozen import Frozen
from ultrascale.teardown.model import State, StoppedError, Target, Thing

NODE_POOL_LABEL = "karpenter.sh/nodepool"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_AGAIN = "then run the command again: it goes on here"
_SHOWN = 5


class ObjectTarget(Frozen):
    """Target that deletes one object of Kubernetes."""

    cluster: Cluster  # The API server
    kind: Kind  # Its kind
    found: Object  # The object, as the plan was printed with it
    note: str = ""  # Words for the resource behind it

    @property
    def thing(self) -> Thing:
        """The object."""
        where = text(self.found, "metadata", "namespace")
        id = f"{where}/{name(self.found)}" if where else name(self.found)
        return Thing(kind=self.kind.kind, id=id, note=self.note)

    @property
    def things(self) -> Sequence[Thing]:
        """The object alone; Kubernetes deletes its dependents."""
        return (self.thing,)

    def look(self) -> State:
        """Return the object's state; another object of the same name does not count."""
        namespace = text(self.found, "metadata", "namespace")
        now = self.cluster.find(self.kind.path(namespace, name(self.found)))
        if now is None or text(now, "metadata", "uid") != text(self.found, "metadata", "uid"):
            return "gone"
        return "going" if text(now, "metadata", "deletionTimestamp") else "there"

    def remove(self) -> None:
        """Delete exactly this object, after its dependents."""
        delete(self.cluster, self.kind, self.found)

    def stuck(self) -> StoppedError:
        """Return the finalizers that the object waits for."""
        namespace = text(self.found, "metadata", "namespace")
        now = self.cluster.find(self.kind.path(namespace, name(self.found)))
        kept = ", ".join(map(str, sequence(now, "metadata", "finalizers"))) or "none"
        where = f" -n {namespace}" if namespace else ""
        return StoppedError(
            str(self.thing),
            why=f"it is being deleted, and waits for its finalizers: {kept}",
            fix=f"`kubectl describe {self.kind.resource} {name(self.found)}{where}` says why; mend "
            f"that, and remove no finalizer, {_AGAIN}",
        )


class NodePoolTarget(Frozen):
    """Target that deletes a NodePool and waits for its nodes: nobody else would end them."""

    cluster: Cluster  # The API server
    found: Object  # The NodePool
    claims: tuple[Object, ...]  # Its NodeClaims, as the plan was printed with them

    @property
    def thing(self) -> Thing:
        """The NodePool."""
        note = f"nodes: {len(self.claims)}, and what it launches until then"
        return Thing(kind=NODE_POOL.kind, id=name(self.found), note=note)

    @property
    def things(self) -> Sequence[Thing]:
        """The NodePool and its NodeClaims."""
        return (self.thing, *(_claim_thing(claim) for claim in self.claims))

    def look(self) -> State:
        """Return the state: the NodePool is gone once its last NodeClaim is gone.

        Raises:
            StoppedError: Another NodePool has the name now.
        """
        pool = self.cluster.find(NODE_POOL.path(name=name(self.found)))
        if pool is not None:
            if text(pool, "metadata", "uid") != text(self.found, "metadata", "uid"):
                raise self._is_another_pool(pool)
            if not text(pool, "metadata", "deletionTimestamp"):
                return "there"
        return "going" if pool is not None or self._remaining_claims() else "gone"

    def remove(self) -> None:
        """Delete the NodePool; Karpenter drains its nodes and terminates them."""
        delete(self.cluster, NODE_POOL, self.found)

    def stuck(self) -> StoppedError:
        """Return the NodeClaims that are still there."""
        left = self._remaining_claims()
        shown = ", ".join(str(_claim_thing(each)) for each in left[:_SHOWN])
        return StoppedError(
            f"NodePool {name(self.found)}",
            why=f"{len(left)} of its nodes do not go: {shown or 'no NodeClaim says why'}",
            fix="`kubectl describe nodeclaim NAME` says what keeps a node: a PodDisruptionBudget, "
            "a pod that may not be disrupted, or Karpenter not running; mend that, and remove no "
            f"finalizer, or the instance runs on, {_AGAIN}",
        )

    def _is_another_pool(self, pool: Object) -> StoppedError:
        made = text(pool, "metadata", "creationTimestamp") or "an unknown time"
        return StoppedError(
            f"NodePool {name(self.found)}",
            why=f"somebody made it anew since the plan was printed, at {made}: it launches nodes "
            "again",
            fix=f"stop what applies it, such as Argo CD or Flux, {_AGAIN}",
        )

    def _remaining_claims(self) -> list[Object]:
        query = {"labelSelector": f"{NODE_POOL_LABEL}={name(self.found)}"}
        return self.cluster.collection(NODE_CLAIM, "", query)


class VolumeTarget(Frozen):
    """Target that deletes a claim, and waits until the driver has deleted the volume."""

    cluster: Cluster  # The API server
    volume: Object  # The PersistentVolume
    claim: Object | None  # Its claim; None where that is gone already

    @property
    def thing(self) -> Thing:
        """The EBS volume."""
        return Thing(kind="AWS::EC2::Volume", id=volume_id(self.volume), note=claim_of(self.volume))

    @property
    def things(self) -> Sequence[Thing]:
        """The claim, the PersistentVolume, and the EBS volume."""
        claim = Thing(kind=CLAIM.kind, id=claim_of(self.volume))
        return (claim, Thing(kind=VOLUME.kind, id=name(self.volume)), self.thing)

    def look(self) -> State:
        """Return the state of the claim, and once that is gone the state of the volume."""
        if self.cluster.find(VOLUME.path(name=name(self.volume))) is None:
            return "gone"
        if self.claim is None:
            return ObjectTarget(cluster=self.cluster, kind=VOLUME, found=self.volume).look()
        state = ObjectTarget(cluster=self.cluster, kind=CLAIM, found=self.claim).look()
        return "going" if state == "gone" else state

    def remove(self) -> None:
        """Delete the claim; if it is already gone, delete the volume."""
        if self.claim is None:
            delete(self.cluster, VOLUME, self.volume)
        else:
            delete(self.cluster, CLAIM, self.claim)

    def stuck(self) -> StoppedError:
        """Return the reason: a pod still uses the claim."""
        return StoppedError(
            str(self.thing),
            why=f"its claim {claim_of(self.volume)} or its driver holds it",
            fix=f"delete the pods that mount it (`kubectl describe pvc` and `kubectl describe pv "
            f"{name(self.volume)}` name them), {_AGAIN}",
        )


class ScaledTarget(Frozen):
    """Target that scales a Deployment to zero; its stack deletes it later."""

    cluster: Cluster  # The API server
    found: Object  # The Deployment, as the plan was printed with it

    @property
    def thing(self) -> Thing:
        """The Deployment."""
        id = f"{text(self.found, 'metadata', 'namespace')}/{name(self.found)}"
        return Thing(kind=DEPLOYMENT.kind, id=id, note="scaled to 0: it submits no more jobs")

    @property
    def things(self) -> Sequence[Thing]:
        """The Deployment alone."""
        return (self.thing,)

    def look(self) -> State:
        """Return `gone` once none of its pods run."""
        now = self.cluster.find(self._api_path)
        if now is None or text(now, "metadata", "uid") != text(self.found, "metadata", "uid"):
            return "gone"
        if look_up(now, "spec", "replicas") != 0:
            return "there"
        return "going" if look_up(now, "status", "replicas") else "gone"

    def remove(self) -> None:
        """Scale exactly this Deployment to zero."""
        uid = text(self.found, "metadata", "uid")
        try:
            self.cluster.patch(
                self._api_path,
                [
                    {"op": "test", "path": "/metadata/uid", "value": uid},
                    {"op": "replace", "path": "/spec/replicas", "value": 0},
                ],
            )
        except RefusedError as error:
            if error.status != NOT_FOUND:
                raise

    def stuck(self) -> StoppedError:
        """Return the reason: something scales the Deployment up, or its pods do not end."""
        return StoppedError(
            str(self.thing),
            why="its pods still run",
            fix="something scales it up again (an autoscaler, Argo CD, Flux), or a pod does not "
            "end: stop that, then run the command again: it goes on here",
        )

    @property
    def _api_path(self) -> str:
        return DEPLOYMENT.path(text(self.found, "metadata", "namespace"), name(self.found))


class NothingNew(Frozen):
    """Gate that opens only if no object was created since the plan was printed."""

    subject: str  # Objects that may have come, in words
    listed: Callable[[], Sequence[Target]]  # Lists the objects that are there now

    @property
    def thing(self) -> Thing:
        """The objects that the gate looks for."""
        return Thing(kind="look for", id=self.subject, note="that the plan does not print")

    @property
    def things(self) -> Sequence[Thing]:
        """Nothing: the gate only looks."""
        return ()

    def look(self) -> State:
        """Return `gone` without such objects, `going` if all of them are being deleted."""
        states = {target.look() for target in self.listed()}
        return "there" if "there" in states else "going" if "going" in states else "gone"

    def remove(self) -> None:
        """Stop the teardown: objects that the plan did not print are never deleted."""
        raise self.stuck()

    def stuck(self) -> StoppedError:
        """Return the objects created since the plan was printed."""
        new = [str(target.thing) for target in self.listed()]
        more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
        return StoppedError(
            self.subject,
            why=f"since the plan was printed came {', '.join(new[:_SHOWN]) or 'nothing'}{more}",
            fix="stop what makes them (a user, a controller, Argo CD, Flux), then run the command "
            "again: the new plan prints and deletes them",
        )


def delete(cluster: Cluster, kind: Kind, found: Object) -> None:
    """Delete exactly this object; an object that is already gone is no error."""
    try:
        cluster.delete(kind, text(found, "metadata", "namespace"), found)
    except RefusedError as error:
        if error.status != NOT_FOUND:
            raise


def _claim_thing(claim: Object) -> Thing:
    return Thing(kind=NODE_CLAIM.kind, id=name(claim), note=instance_of(claim))


def instance_of(claim: Object) -> str:
    """Return the type and purchase option of the instance behind a NodeClaim."""
    instance = text(claim, "status", "providerID").rpartition("/")[2]
    type = label(claim, "node.kubernetes.io/instance-type")
    return " ".join(filter(None, (instance, type, label(claim, _CAPACITY_TYPE))))


def volume_id(volume: Object) -> str:
    """Return the id of the EBS volume behind a Kubernetes volume."""
    return text(volume, "spec", "csi", "volumeHandle")


def claim_of(volume: Object) -> str:
    """Return the namespace and name of a volume's claim."""
    claim = mapping(volume, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}"
