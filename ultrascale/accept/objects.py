"""Level `objects`: the objects of the manifests, as the API server has them."""

from collections.abc import Iterator

from ultrascale.accept.model import Check
from ultrascale.plan.model import ClusterPlan


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the checks of a cluster's objects."""
    yield from ()
