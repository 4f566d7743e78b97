"""Rows of roles in the cluster."""

from collections.abc import Iterator

from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.tables import Row


def access_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the roles that the file lets into the cluster, with their rights."""
    for index, entry in enumerate(needs.access):
        for place in range(len(entry.policies)):
            yield Row(f"access.{index}.policies.{place}", {"role": entry.role})
