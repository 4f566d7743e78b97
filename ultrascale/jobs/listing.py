"""Objects of the kinds of jobs, as far as their users may see them."""

from ultrascale.cluster_api.objects import (
    HTTP_ROUTE,
    LEADER_WORKER_SET,
    SCALED_OBJECT,
    Kind,
    Object,
)
from ultrascale.cluster_api.server import FORBIDDEN, Cluster, Query
from ultrascale.errors import RefusedError

# Kinds of widespread programs, which others may have installed. A cluster whose file needs none of
# them gives its users no rights to them, and so has no such object of a job.
_OF_OTHERS = (HTTP_ROUTE, LEADER_WORKER_SET, SCALED_OBJECT)


def visible_objects(cluster: Cluster, kind: Kind, namespace: str, query: Query) -> list[Object]:
    """Return the objects of a kind of jobs that match ``query``.

    Raises:
        RefusedError: The user may not list a kind that every cluster's users have a right to.
    """
    try:
        return cluster.collection(kind, namespace, query)
    except RefusedError as error:
        if kind not in _OF_OTHERS or error.status != FORBIDDEN:
            raise
        return []
