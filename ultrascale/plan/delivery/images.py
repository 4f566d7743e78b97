"""Container images: their builds, their names in ECR, and a cache of public registries."""

from collections.abc import Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import build_environment, regions, registries
from ultrascale.ejected import Ejected
from ultrascale.plan import names, retention
from ultrascale.plan.delivery.build_context import build_context, content_tag, is_non_root
from ultrascale.plan.model import (
    ImageBuilderPlan,
    ImageBuildPlan,
    ImageCachePlan,
    ImageCacheRule,
    PoolPlan,
    ScalePlan,
)

# They fill the repositories of their names, and run beside the controllers.
_BY_NAME = ("tensorboard", "backend")
# What the bases of the other Dockerfiles are for.
_X86: catalog.Architecture = "amd64"
_DOCKERFILES = {names.NEURON_DEVICE: "neuron", names.NVIDIA_GPU: "nvidia", None: "cpu"}
_NAME_IT = "name its Dockerfile in images.builds"


def plan_image_builds(
    cluster: config.Cluster, pools: Sequence[PoolPlan], ejected: Sequence[Ejected]
) -> tuple[ImageBuildPlan, ...]:
    """Return the images that are built from files of the product, in the order of the file.

    Args:
        cluster: The cluster file.
        pools: Its pools.
        ejected: The user's own copies of such files.

    Raises:
        UltrascaleError: A file of the product is missing.
    """
    return tuple(
        _build(name, found, pools, ejected)
        for name, (found, _) in _dockerfiles(cluster.images, pools).items()
        if found is not None
    )


def plan_image_builder(region: str, ejected: Sequence[Ejected]) -> ImageBuilderPlan:
    """Return the build of the images of a cluster in ``region``, from the user's own copies."""
    # Amazon ECR Public knows no accounts of other partitions; its images are there for all.
    has_account = regions.lookup_region(region).partition == "aws"
    return ImageBuilderPlan(
        build=build_environment.BUILD_ENVIRONMENT,
        public_region=build_environment.PUBLIC_REGION if has_account else None,
        sources=build_context(ejected),
        log_retention_days=retention.LOG_DAYS,
    )


def unbuilt_repositories(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Mapping[str, str]:
    """Return the repositories that nothing is built for, each with the reason."""
    dockerfiles = _dockerfiles(cluster.images, pools)
    return {name: reason for name, (found, reason) in dockerfiles.items() if found is None}


def _build(
    repository: str, dockerfile: str, pools: Sequence[PoolPlan], ejected: Sequence[Ejected]
) -> ImageBuildPlan:
    """Plan an image; TensorBoard's and the backend's for the nodes that stay without any job."""
    controllers = [pool for pool in pools if pool.role == names.SYSTEM_ROLE]
    architecture: catalog.Architecture = (
        _architecture(controllers[0]) if dockerfile in _BY_NAME and controllers else _X86
    )
    return ImageBuildPlan(
        repository=repository,
        dockerfile=dockerfile,
        architecture=architecture,
        tag=content_tag(dockerfile, architecture, ejected=ejected),
        non_root=is_non_root(dockerfile, ejected=ejected),
    )


def _architecture(pool: PoolPlan) -> catalog.Architecture:
    return catalog.lookup(pool.instance_types[0]).architecture


def _dockerfiles(
    images: config.Images, pools: Sequence[PoolPlan]
) -> Mapping[str, tuple[str | None, str]]:
    """Return for each repository its Dockerfile, or None and why there is none."""
    common = _common_dockerfile(pools)
    found: dict[str, tuple[str | None, str]] = {}
    for name in images.repositories:
        stated = images.builds.get(name)
        if stated == "none":
            found[name] = None, "by images.builds"
        elif stated is not None:
            found[name] = stated, ""
        else:
            found[name] = (name, "") if name in _BY_NAME else common
    return found


def _common_dockerfile(pools: Sequence[PoolPlan]) -> tuple[str | None, str]:
    """Return the Dockerfile for the accelerator of the pools, or None and why there is none.

    Nodes without accelerators run the image of those with: data is prepared beside the training.
    """
    workers = [pool for pool in pools if pool.role != names.SYSTEM_ROLE] or [*pools]
    x86 = [pool for pool in workers if _architecture(pool) == _X86]
    if not x86:
        return None, f"no pool has x86-64 nodes, which the Dockerfiles are for; {_NAME_IT}"
    accelerators = {pool.accelerator for pool in x86} - {None} or {None}
    if len(accelerators) > 1:
        return None, f"pools with Neuron devices and with NVIDIA GPUs; {_NAME_IT}"
    return _DOCKERFILES[accelerators.pop()], ""


def plan_image_cache(cluster: config.Cluster, scale: ScalePlan) -> ImageCachePlan | None:
    """Return the cache, if the file or the cluster's size asks for one."""
    secrets = {
        entry.registry: entry.secret
        for entry in cluster.images.pull_through or ()
        if isinstance(entry, config.CachedRegistry)
    }
    rules = tuple(
        ImageCacheRule(
            upstream=upstream,
            url=registries.UPSTREAM_URLS.get(upstream, upstream),
            kind=kind,
            prefix=names.cache_prefix(cluster.name, kind),
            secret=secrets.get(upstream),
        )
        for upstream, kind in registries.PULL_THROUGH.items()
        if upstream in scale.pull_through
    )
    if not rules:
        return None
    registry = registries.ecr_registry(cluster.account or names.ACCOUNT_ID, cluster.region)
    return ImageCachePlan(registry=registry, rules=rules)
