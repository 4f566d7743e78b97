"""Charts and images of a plan whose copies lie in a registry of the user's own."""

from msgspec.structs import replace

from ultrascale.catalog import registries
from ultrascale.catalog.karpenter import CONTROLLER_IMAGE
from ultrascale.plan.model import (
    BuildLoginPlan,
    ClusterPlan,
    CopiesPlan,
)


def registry_login(copies: CopiesPlan) -> BuildLoginPlan | None:
    """Return how builds log in to copies in Amazon ECR; None for another registry."""
    host, _, prefix = copies.location.partition("/")
    found = registries.parse_ecr_registry(host)
    if found is None:
        return None
    account, region = found
    return BuildLoginPlan(host=host, account=account, region=region, prefix=prefix)


def with_copies(plan: ClusterPlan) -> ClusterPlan:
    """Return ``plan`` with the copies of its charts, whose values name its images.

    Charts come from a registry, as ``oci://``: the function that installs them logs in to a
    private one of Amazon ECR by its own role, through the endpoints that pods have. An archive in
    S3 would have to be at hand while templates are made, which ask nobody.
    """
    copies = plan.copies
    if copies is None:
        return plan
    karpenter = plan.nodes.karpenter
    if karpenter is not None:
        karpenter = replace(
            karpenter,
            crd_chart=copies.chart(karpenter.crd_chart),
            chart=copies.chart(karpenter.chart),
            # The chart names the image by digest, and copies keep digests.
            image=copies.reference(CONTROLLER_IMAGE),
        )
    return replace(
        plan,
        nodes=replace(plan.nodes, karpenter=karpenter),
    )
