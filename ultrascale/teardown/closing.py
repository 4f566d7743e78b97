"""What keeps a cluster from filling again while it is taken down.

What the plan did not print is never deleted, so that a job, a NodePool or a Service that comes
meanwhile would run on until its nodes or its controller are gone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ultrascale.cluster_api.kinds import DEPLOYMENT
from ultrascale.cluster_api.objects import Object, name
from ultrascale.cluster_api.server import NOT_FOUND, Cluster
from ultrascale.documents import look_up, text
from ultrascale.errors import RefusedError
from ultrascale.plan import ClusterPlan
from ultrascale.plan.names import BACKEND_ACCOUNT
from ultrascale.teardown.model import State, StoppedError, Target, Thing

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledTarget:
    """Scales a Deployment to zero: it is deleted later, with its stack.

    Attributes:
        cluster: The API server.
        found: The Deployment, as the plan was printed with it.
    """

    cluster: Cluster
    found: Object

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
        now = self.cluster.find(self._path)
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
                self._path,
                [
                    {"op": "test", "path": "/metadata/uid", "value": uid},
                    {"op": "replace", "path": "/spec/replicas", "value": 0},
                ],
            )
        except RefusedError as error:
            if error.status != NOT_FOUND:
                raise

    def stuck(self) -> StoppedError:
        """Return that something scales it up again, or that its pods do not end."""
        return StoppedError(
            str(self.thing),
            why="its pods still run",
            fix="something scales it up again (an autoscaler, Argo CD, Flux), or a pod does not "
            "end: stop that, then run the command again: it goes on here",
        )

    @property
    def _path(self) -> str:
        return DEPLOYMENT.path(text(self.found, "metadata", "namespace"), name(self.found))


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingNew:
    """Lets the next step begin only where nothing has come since the plan was printed.

    Attributes:
        what: What may have come.
        listed: Lists what there is of it now.
    """

    what: str
    listed: Callable[[], Sequence[Target]]

    @property
    def thing(self) -> Thing:
        """What is looked for."""
        return Thing(kind="look for", id=self.what, note="that the plan does not print")

    @property
    def things(self) -> Sequence[Thing]:
        """Nothing: it is looked at."""
        return ()

    def look(self) -> State:
        """Return `gone` where there is nothing, `going` where all that there is goes already."""
        states = {each.look() for each in self.listed()}
        return "there" if "there" in states else "going" if "going" in states else "gone"

    def remove(self) -> None:
        """Stop: what the plan did not print is never deleted."""
        raise self.stuck()

    def stuck(self) -> StoppedError:
        """Return what has come."""
        new = [str(each.thing) for each in self.listed()]
        more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
        return StoppedError(
            self.what,
            why=f"since the plan was printed came {', '.join(new[:_SHOWN]) or 'nothing'}{more}",
            fix="stop what makes them (a user, a controller, Argo CD, Flux), then run the command "
            "again: the new plan prints and deletes them",
        )


def submitters(cluster: Cluster, plan: ClusterPlan) -> Iterator[ScaledTarget]:
    """Yield what submits jobs by itself: the Deployments that run as the backend's account.

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
