"""Container images: images that are pulled, and images that are built from this project."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packageurl import PackageURL
from packaging.utils import canonicalize_name

from ultrascale.catalog import registries, versions
from ultrascale.documents import Json, sequence, text
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.delivery.base_images import base_images as base_images_of
from ultrascale.plan.model import (
    ClusterIdentity,
    CopiesPlan,
    ImageBuildPlan,
    ImagesPlan,
)
from ultrascale.resources import resource
from ultrascale.sbom.model import Component

_DOCKER_HUB = "docker.io"
_IMAGE_PARAMETER = re.compile(r"(amazon-eks-node-[a-z0-9_.-]+)-(v\d{8})/image_id")
_FROM = re.compile(r"^FROM\s+(?:--\S+\s+)*(\S+)", re.MULTILINE)
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(.*)$", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Publishers(Frozen):
    """The publishers of images and charts, whose copies a cluster may pull."""

    cluster: str  # Its name
    kubernetes: str  # Minor version of its control plane
    images: ImagesPlan  # Its own images, and its cache
    copies: CopiesPlan | None  # Its copies of all images and charts

    def image(self, reference: str, *, used_by: str) -> Component:
        """Return the image of a container.

        A copy in the cluster's cache or in a mirror is listed by its publisher's name.

        Args:
            reference: The container's ``image``.
            used_by: The object whose container it is.
        """
        reference = self._published(reference)
        name, _, digest = reference.partition("@")
        repository, tag = _repository_and_tag(name)
        return Component(
            kind="container image",
            name=repository,
            version=tag or digest or None,
            purl=_purl(repository, tag, digest),
            source=self._source(reference),
            sha256=(digest.removeprefix("sha256:"),) if digest else (),
            used_by=(used_by,),
        )

    def is_own(self, reference: str) -> bool:
        """Return whether an image is built from this project."""
        repository, _ = _repository_and_tag(reference.partition("@")[0])
        return any(
            repository.endswith(f"/{names.repository(self.cluster, build.repository)}")
            for build in self.images.builds
        )

    def machine_images(self, parameter: str) -> Iterator[Component]:
        """Yield the image of a public parameter of Systems Manager; nothing for other parameters.

        Args:
            parameter: Name of the parameter, of a template or plan.
        """
        source = versions.ami_release(self.kubernetes).source
        for name, release in _IMAGE_PARAMETER.findall(parameter):
            yield Component(kind="machine image", name=name, version=release, source=source)

    def _published(self, reference: str) -> str:
        if self.copies is not None:
            return self.copies.published(reference)
        cache = self.images.cache
        for rule in () if cache is None else cache.rules:
            _, found, rest = reference.partition(f"/{rule.prefix}/")
            if found:
                return f"{rule.upstream}/{rest}"
        return reference

    def _source(self, reference: str) -> str | None:
        scheduler = versions.kube_scheduler(self.kubernetes)
        sources: Mapping[str, str] = {
            image.reference: image.source for image in (*versions.images().values(), scheduler)
        }
        # EKS's own images have another registry account in each Region, so pins leave it out.
        regional = reference.partition("/")[2]
        return sources.get(reference) or sources.get(regional)


def publishers_of(plan: ClusterPlan) -> Publishers:
    """Return the publishers of the images and charts of a cluster."""
    return Publishers(
        cluster=plan.name,
        kubernetes=plan.control_plane.version,
        images=plan.images,
        copies=plan.copies,
    )


def container_images(value: Json) -> Iterator[str]:
    """Yield the images of all containers in an object, at any depth."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in ("containers", "initContainers"):
                yield from filter(None, (text(container, "image") for container in sequence(item)))
            else:
                yield from container_images(item)
    elif not isinstance(value, str) and isinstance(value, Sequence):
        for item in value:
            yield from container_images(item)


def own_images(cluster: ClusterIdentity, publishers: Publishers) -> Iterator[Component]:
    """Yield images built from the product's or the user's Dockerfiles, with their base images.

    Raises:
        UltrascaleError: A Dockerfile is missing, cannot be read or names no image to build on.
    """
    for build in publishers.images.builds:
        yield _own_image(build, cluster, publishers)


def base_images(build: ImageBuildPlan) -> Iterator[str]:
    """Yield the images that a Dockerfile builds on or copies from, in every stage.

    Raises:
        UltrascaleError: The Dockerfile is missing or cannot be read.
    """
    yield from base_images_of(_dockerfile_text(_dockerfile_folder(build) / "Dockerfile"))


def _own_image(
    build: ImageBuildPlan, cluster: ClusterIdentity, publishers: Publishers
) -> Component:
    folder = _dockerfile_folder(build)
    dockerfile = _dockerfile_text(folder / "Dockerfile")
    listed = folder / "requirements.txt"
    # The packages of a user's own image may come from other indexes.
    requirements = _dockerfile_text(listed) if build.own is None or listed.exists() else ""
    name = names.repository(cluster.name, build.repository)
    if not (stages := _FROM.findall(dockerfile)):
        raise UltrascaleError(f"{folder / 'Dockerfile'}: no FROM; name the image to build on")
    # Only the last stage runs; earlier stages fetch and build.
    base = publishers.image(stages[-1], used_by=name)
    return Component(
        kind="own image",
        name=name,
        version=build.tag,
        purl=_own_purl(name, build, cluster.region, cluster.account),
        used_by=(cluster.name,),
        parts=(base, *_packages(requirements, used_by=name)),
    )


def _dockerfile_folder(build: ImageBuildPlan) -> Path:
    """Return the folder of an image's Dockerfile, of the product or of the user."""
    own = None if build.own is None else build.own.location
    return resource(build.source) if own is None else own


def _dockerfile_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise UltrascaleError(f"{file}: cannot be read: {error}") from None


def _own_purl(
    name: str, build: ImageBuildPlan, region: str, account: str | None
) -> PackageURL | None:
    """Return the package URL of our image, with its registry: Docker Hub is the default.

    None if the file names no account: then the registry is unknown.
    """
    if account is None:
        return None
    host = registries.ecr_registry(account, region)
    folder, _, last = name.rpartition("/")
    registry = {"arch": build.architecture, "repository_url": host}
    return PackageURL("docker", folder, last, build.tag, registry)


def _packages(requirements: str, *, used_by: str) -> Iterator[Component]:
    for name, version, rest in _REQUIREMENT.findall(requirements):
        yield Component(
            kind="Python package",
            name=name,
            version=version,
            purl=python_package(name, version),
            source=f"https://pypi.org/project/{name}/{version}/",
            sha256=tuple(_HASH.findall(rest)),
            used_by=(used_by,),
        )


def python_package(name: str, version: str) -> PackageURL:
    """Return the package URL of a Python package; the index normalizes its name."""
    return PackageURL("pypi", None, canonicalize_name(name), version)


def _repository_and_tag(name: str) -> tuple[str, str]:
    """Return the repository and tag of an image; the port of a registry is no tag."""
    head, slash, last = name.rpartition("/")
    repository, _, tag = last.partition(":")
    return f"{head}{slash}{repository}", tag


def _purl(repository: str, tag: str, digest: str) -> PackageURL:
    """Return the package URL of an image, by its pinned digest, or else by its tag.

    Source: https://github.com/package-url/purl-spec/tree/main/types-doc
    """
    folder, _, last = repository.rpartition("/")
    if digest:
        registry = {"repository_url": repository} | ({"tag": tag} if tag else {})
        return PackageURL("oci", None, last, digest, registry)
    host, _, path = folder.partition("/")
    if not {".", ":"} & {*host}:
        # A name without a registry belongs to Docker Hub, a name without a folder to its `library`.
        host, path = _DOCKER_HUB, folder or "library"
    registry = {} if host == _DOCKER_HUB else {"repository_url": host}
    return PackageURL("docker", path, last, tag, registry)
