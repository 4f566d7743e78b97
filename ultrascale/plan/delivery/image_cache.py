"""A cache of public registries in the account's own one, for what runs on thousands of nodes."""

from ultrascale import config
from ultrascale.catalog import registries
from ultrascale.plan import names
from ultrascale.plan.model import ImageCachePlan, ImageCacheRule, ScalePlan


def plan_image_cache(cluster: config.Cluster, scale: ScalePlan) -> ImageCachePlan | None:
    """Return the cache, if the file or the cluster's size asks for one."""
    rules = tuple(
        ImageCacheRule(upstream=upstream, kind=kind, prefix=names.cache_prefix(cluster.name, kind))
        for upstream, kind in registries.PULL_THROUGH.items()
        if upstream in scale.pull_through
    )
    if not rules:
        return None
    registry = registries.ecr_registry(cluster.account or names.ACCOUNT_ID, cluster.region)
    return ImageCachePlan(registry=registry, rules=rules)
