"""Container images: their builds, their names in ECR, and a cache of public registries."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ultrascale import catalog, config
from ultrascale.catalog import build_environment, regions, registries
from ultrascale.ejected import Ejected
from ultrascale.errors import UltrascaleError
from ultrascale.plan import names, retention
from ultrascale.plan.delivery.base_images import mirrored
from ultrascale.plan.delivery.build_context import build_context, content_tag, is_non_root
from ultrascale.plan.delivery.mirror import mirror_login
from ultrascale.plan.model import (
    CodeArtifactPlan,
    ImageBuilderPlan,
    ImageBuildPlan,
    ImageCachePlan,
    ImageCacheRule,
    MirrorPlan,
    PackageIndexPlan,
    PoolPlan,
    ScalePlan,
)

# They fill the repositories of their names, and run beside the controllers.
_BY_NAME = ("tensorboard", "backend")
# What the bases of the other Dockerfiles are for.
_X86: catalog.Architecture = "amd64"
_DOCKERFILES = {names.NEURON_DEVICE: "neuron", names.NVIDIA_GPU: "nvidia", None: "cpu"}
# Folder in the build's sources for Dockerfiles that take their bases from the mirror.
_MIRRORED = "mirrored"
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


def plan_image_builder(
    region: str,
    ejected: Sequence[Ejected],
    *,
    builds: Sequence[ImageBuildPlan],
    mirror: MirrorPlan | None = None,
    packages: config.Packages | None = None,
) -> ImageBuilderPlan:
    """Return the build of the images of a cluster.

    Args:
        region: Region of the cluster.
        ejected: The user's own copies of files of the product.
        builds: The images.
        mirror: Where base images come from instead of their publishers; None: from these.
        packages: Indexes that packages come from instead of the public ones.

    Raises:
        UltrascaleError: A file is missing, or a Dockerfile is no text.
    """
    names_of = sorted({build.dockerfile for build in builds})
    sources = build_context(names_of, ejected)
    texts = _mirrored(names_of, sources, mirror)
    # The backend computes tags of images from their files as they are.
    replaced = texts and "backend" not in names_of
    dropped = {f"images/{name}/Dockerfile" for name in names_of if replaced}
    # Amazon ECR Public knows no accounts of other partitions; its images are there for all.
    has_account = regions.lookup_region(region).partition == "aws" and mirror is None
    return ImageBuilderPlan(
        build=build_environment.BUILD_ENVIRONMENT,
        public_registry=registries.ECR_PUBLIC if has_account else None,
        public_region=build_environment.PUBLIC_REGION if has_account else None,
        sources={path: file for path, file in sources.items() if path not in dropped},
        log_retention_days=retention.LOG_DAYS,
        dockerfiles=_MIRRORED if texts else "images",
        texts=texts,
        mirror=None if mirror is None else mirror_login(mirror),
        pip=None if packages is None else _index(packages.pip),
    )


def _mirrored(
    dockerfiles: Sequence[str], sources: Mapping[str, Path], mirror: MirrorPlan | None
) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    if mirror is None:
        return texts
    for name in dockerfiles:
        file = sources[f"images/{name}/Dockerfile"]
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise UltrascaleError(f"{file}: cannot be read: {error}") from None
        texts[f"{_MIRRORED}/{name}/Dockerfile"] = mirrored(text, mirror)
    return texts


def _index(url: str) -> PackageIndexPlan:
    found = registries.parse_code_artifact(url)
    return PackageIndexPlan(
        url=url,
        repository=None
        if found is None
        else CodeArtifactPlan(
            domain=found["domain"],
            owner=found["owner"],
            region=found["region"],
            name=found["repository"],
        ),
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
