"""Container images: their builds, their names in ECR, and a cache of public registries."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ultrascale import catalog, config
from ultrascale.catalog import build_environment, regions, registries
from ultrascale.errors import UltrascaleError
from ultrascale.own_images import DOCKERFILE, OwnImages
from ultrascale.plan import names, retention
from ultrascale.plan.delivery.base_images import with_copied_bases
from ultrascale.plan.delivery.build_context import (
    build_context,
    content_tag,
    is_non_root,
    own_context,
    own_folder,
    own_tag,
)
from ultrascale.plan.model import (
    CodeArtifactPlan,
    CopiesPlan,
    ImageBuilderPlan,
    ImageBuildPlan,
    ImageCachePlan,
    ImageCacheRule,
    ImagesPlan,
    PackageIndexPlan,
    PoolPlan,
    ScalePlan,
)

# They fill the repositories of their names, and run beside the controllers.
_BY_NAME = ("tensorboard", "backend")
# Accelerator of the other Dockerfiles' base images.
_X86: catalog.Architecture = "amd64"
_DOCKERFILES = {names.NEURON_DEVICE: "neuron", names.NVIDIA_GPU: "nvidia", None: "cpu"}
# Folder in the build's sources for Dockerfiles that take their bases from the mirror.
_COPIED_BASES = "mirrored"
_NAME_IT = "name its Dockerfile in images.builds"


def plan_images(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    scale: ScalePlan,
    *,
    own_images: OwnImages,
    copies: CopiesPlan | None,
) -> ImagesPlan:
    """Return the repositories of ``cluster``, and the builds for them.

    Args:
        cluster: The cluster file.
        pools: Its pools.
        scale: Settings of its size.
        own_images: Folders beside the file that images are built from.
        copies: Copies of published images, if there are any.
    """
    builds = plan_image_builds(cluster, pools, own_images)
    builder = plan_image_builder(
        cluster.region, builds=builds, copies=copies, packages=cluster.images.packages
    )
    return ImagesPlan(
        repositories=cluster.images.repositories,
        builds=builds,
        builder=builder if builds else None,
        unbuilt=unbuilt_repositories(cluster, pools),
        cache=None if copies else plan_image_cache(cluster, scale),
        untagged_retention_days=retention.UNTAGGED_IMAGE_DAYS,
    )


def plan_image_builds(
    cluster: config.Cluster, pools: Sequence[PoolPlan], own_images: OwnImages
) -> tuple[ImageBuildPlan, ...]:
    """Return the images that are built, in the order of the file.

    Args:
        cluster: The cluster file.
        pools: Its pools.
        own_images: Folders beside the file that images are built from.

    Raises:
        UltrascaleError: A file of the product is missing, or a folder that the file names.
    """
    return tuple(
        _build(name, dockerfile, pools, own_images)
        for name, (dockerfile, _) in _dockerfiles(cluster.images, pools).items()
        if dockerfile is not None
    )


def plan_image_builder(
    region: str,
    *,
    builds: Sequence[ImageBuildPlan],
    copies: CopiesPlan | None = None,
    packages: config.Packages | None = None,
) -> ImageBuilderPlan:
    """Return the build of the images of a cluster.

    Args:
        region: Region of the cluster.
        builds: The images.
        copies: Copies of base images; None takes their publishers'.
        packages: Indexes of packages in place of the public ones.

    Raises:
        UltrascaleError: A file is missing, or a Dockerfile is no text.
    """
    product = sorted({build.dockerfile for build in builds if build.own is None})
    own = sorted({build.dockerfile for build in builds if build.own is not None})
    sources = {**build_context(product), **own_context(builds)}
    texts = _with_copied_bases(product, own, sources, copies)
    # The backend computes tags of images from their files as they are.
    replaced = texts and "backend" not in product
    dropped = {f"images/{name}/{DOCKERFILE}" for name in product if replaced} | texts.keys()
    # Amazon ECR Public knows no accounts of other partitions; its images are there for all.
    has_account = regions.lookup_region(region).partition == "aws" and copies is None
    return ImageBuilderPlan(
        build=build_environment.BUILD_ENVIRONMENT,
        public_registry=registries.ECR_PUBLIC if has_account else None,
        public_region=build_environment.PUBLIC_REGION if has_account else None,
        sources={path: file for path, file in sources.items() if path not in dropped},
        log_retention_days=retention.LOG_DAYS,
        dockerfiles=_COPIED_BASES if copies is not None else "images",
        texts=texts,
        login=None if copies is None else copies.login,
        pip=None if packages is None else _index(packages.pip),
    )


def _with_copied_bases(
    product: Sequence[str],
    own: Sequence[str],
    sources: Mapping[str, Path],
    copies: CopiesPlan | None,
) -> Mapping[str, str]:
    """Return the Dockerfiles that take their bases from ``copies``, by their paths in the build.

    The user's own take the places of the files.
    """
    if copies is None:
        return {}
    places = {f"{_COPIED_BASES}/{name}": f"images/{name}" for name in product}
    places |= {own_folder(name): own_folder(name) for name in own}
    texts: dict[str, str] = {}
    for place, folder in places.items():
        # The pods of the backend have no folders of the user's own.
        if (file := sources.get(f"{folder}/{DOCKERFILE}")) is not None:
            texts[f"{place}/{DOCKERFILE}"] = with_copied_bases(file.read_text("utf-8"), copies)
    return texts


def _index(url: str) -> PackageIndexPlan:
    index = registries.parse_code_artifact(url)
    return PackageIndexPlan(
        url=url,
        repository=None
        if index is None
        else CodeArtifactPlan(
            domain=index["domain"],
            owner=index["owner"],
            region=index["region"],
            name=index["repository"],
        ),
    )


def unbuilt_repositories(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Mapping[str, str]:
    """Return the repositories without a build, each with the reason."""
    dockerfiles = _dockerfiles(cluster.images, pools)
    return {
        name: reason for name, (dockerfile, reason) in dockerfiles.items() if dockerfile is None
    }


def _build(
    repository: str, dockerfile: str, pools: Sequence[PoolPlan], own_images: OwnImages
) -> ImageBuildPlan:
    """Plan an image; TensorBoard's and the backend's are for nodes that stay without any job."""
    is_own = config.is_own_folder(dockerfile)
    controllers = [pool for pool in pools if pool.role == names.SYSTEM_ROLE]
    runs_there = (repository if is_own else dockerfile) in _BY_NAME and controllers
    architecture: catalog.Architecture = _architecture(controllers[0]) if runs_there else _X86
    if not is_own:
        return ImageBuildPlan(
            repository=repository,
            dockerfile=dockerfile,
            architecture=architecture,
            tag=content_tag(dockerfile, architecture),
            non_root=is_non_root(dockerfile),
        )
    if (own := own_images.get(dockerfile)) is None:
        at = f"images.builds.{repository}"
        todo = "read the cluster file from its path, so that the folder beside it is found"
        raise UltrascaleError(f"{at}: no folder {dockerfile} is known; {todo}")
    return ImageBuildPlan(
        repository=repository,
        dockerfile=dockerfile,
        architecture=architecture,
        tag=own_tag(own, architecture),
        non_root=own.non_root,
        own=own,
    )


def _architecture(pool: PoolPlan) -> catalog.Architecture:
    return pool.specs[0].architecture


def _dockerfiles(
    images: config.Images, pools: Sequence[PoolPlan]
) -> Mapping[str, tuple[str | None, str]]:
    """Return the Dockerfile of each repository, or None and the reason why there is none."""
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

    Nodes without accelerators run the image of those with: they prepare data beside the training.
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
