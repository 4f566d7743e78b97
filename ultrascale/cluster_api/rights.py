"""Rights of the user in a cluster, checked before work that needs them all.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from collections.abc import Sequence

from ultrascale.cluster_api.kinds import Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import look_up

_REVIEW = Kind(
    "authorization.k8s.io/v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    namespaced=False,
)


def missing_rights(cluster: Cluster, rights: Sequence[tuple[str, Kind]]) -> Sequence[str]:
    """Return the rights that the user lacks, such as `patch nodes`.

    Args:
        cluster: The API server.
        rights: Pairs of a verb and a kind without namespace.

    Raises:
        ClusterError: The server cannot be reached.
    """
    return [f"{verb} {kind.resource}" for verb, kind in rights if not _allowed(cluster, verb, kind)]


def _allowed(cluster: Cluster, verb: str, kind: Kind) -> bool:
    group = kind.api_version.rpartition("/")[0]
    review = {
        "apiVersion": _REVIEW.api_version,
        "kind": _REVIEW.kind,
        "spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": kind.plural}},
    }
    return look_up(cluster.create(_REVIEW, "", review, dry_run=False), "status", "allowed") is True
