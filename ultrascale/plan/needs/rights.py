"""Rows of rights: roles in the cluster and callers of the backend."""

from collections.abc import Iterator

from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.tables import Row

_ALL = {
    "kinds": "everything",
    "templates": "every template",
    "priority": "every priority",
    "sees": "all",
}


def access_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the roles that the file lets into the cluster, and what EKS allows each."""
    for index, entry in enumerate(needs.access):
        for place in range(len(entry.policies)):
            yield Row(f"access.{index}.policies.{place}", {"role": entry.role})


def caller_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the callers of the backend, and what each may submit."""
    if needs.callers is not None:
        for name in needs.callers.admins:
            yield Row("", {"group": name, **_ALL})
        for index, right in enumerate(needs.callers.rights):
            yield Row(f"callers.rights.{index}", {"kinds": " and ".join(right.kinds)})
