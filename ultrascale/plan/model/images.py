"""Container images."""

from collections.abc import Mapping
from pathlib import Path

from ultrascale.catalog import Architecture, registries
from ultrascale.catalog.build_environment import BuildEnvironment
from ultrascale.catalog.registries import parse_reference
from ultrascale.frozen import Frozen
from ultrascale.own_images import OwnImage


class ImageBuildPlan(Frozen):
    """An image that is built from this project, or from a folder of the user's own."""

    repository: str  # The repository of its pushes, one of ``images.repositories``
    dockerfile: str  # Folder of its Dockerfile in ``images``; ``./FOLDER`` beside the cluster file
    architecture: Architecture  # Architecture of its nodes, in Kubernetes' words
    tag: str  # Its tag, a hash of its sources
    non_root: bool = False  # Whether its Dockerfile ends with a numbered user other than root
    # The folder beside the cluster file; None where it is one of ``images``.
    own: OwnImage | None = None

    @property
    def source(self) -> str:
        """The folder of its Dockerfile, as a user reads it."""
        return self.dockerfile if self.own is not None else f"images/{self.dockerfile}"


class ImageBuilderPlan(Frozen):
    """The build of container images."""

    build: BuildEnvironment  # Machine of the builds
    # Host of Amazon ECR Public for its login; None where it has no account there, or pulls nothing
    # from there.
    public_registry: str | None
    public_region: str | None  # Region of the login; None without one
    # The sources of images, by their paths in the folder of the build.
    sources: Mapping[str, Path]
    log_retention_days: int  # Retention of the builds' logs, in days
    dockerfiles: str  # Subfolder of the build with a folder for each Dockerfile
    # Files that are written for the build, by path, with their content: Dockerfiles that take their
    # base images from a mirror.
    texts: Mapping[str, str]
    # Mirror in Amazon ECR of its base images; None without one, and where the mirror asks for no
    # login of ours.
    login: "BuildLoginPlan | None"
    # Index of Python packages in place of the public one; None: that one.
    pip: "PackageIndexPlan | None"


class BuildLoginPlan(Frozen):
    """A mirror in Amazon ECR, with the builds' login."""

    host: str  # Its registry
    account: str  # Account of the registry
    region: str  # Region of the registry
    prefix: str  # Prefix of its repositories' names, without the slash behind it


class PackageIndexPlan(Frozen):
    """An index of packages."""

    url: str  # Its URL, without credentials
    # Its repository of AWS CodeArtifact; None: it is of another kind, and asks for no credentials.
    repository: "CodeArtifactPlan | None"


class CodeArtifactPlan(Frozen):
    """A repository of AWS CodeArtifact."""

    domain: str  # Its domain
    owner: str  # Account of the domain
    region: str  # Region of the domain
    name: str  # Its name


class ImageCacheRule(Frozen):
    """A pull through cache rule of ECR."""

    upstream: str  # Host of the registry, by its name in images
    url: str  # Host of the registry, by its name in a rule
    kind: str  # Name of that registry in ECR's API
    prefix: str  # Prefix of the cached repositories' names
    secret: str | None  # ARN of the secret with the credentials; None for a public registry


class ImageCachePlan(Frozen):
    """A cache of public registries in the account's own one."""

    registry: str  # Host of the account's registry; a placeholder stands for the account
    rules: tuple[ImageCacheRule, ...]  # Rules, one for each public registry

    def reference(self, image: str) -> str:
        """Return the reference of ``image`` in the cache, or unchanged where no rule has it."""
        repository = self._repository(image)
        return image if repository is None else f"{self.registry}/{repository}"

    def repository(self, image: str) -> str | None:
        """Return the repository that caches ``image``; None where no rule has it."""
        cached = self._repository(image)
        # A digest follows the tag, and neither is part of the name.
        return None if cached is None else cached.partition("@")[0].rpartition(":")[0]

    def _repository(self, image: str) -> str | None:
        host, _, rest = image.partition("/")
        prefixes = {rule.upstream: rule.prefix for rule in self.rules}
        return f"{prefixes[host]}/{rest}" if host in prefixes else None


class ImagesPlan(Frozen):
    """Repositories of the cluster, and builds of images for them."""

    repositories: tuple[str, ...]  # Names of the ECR repositories
    builds: tuple[ImageBuildPlan, ...]  # Images that are built from this project
    builder: ImageBuilderPlan | None  # The build of these images; None without any
    # Repositories without a build, each with the reason.
    unbuilt: Mapping[str, str]
    # Cache of public registries' images; None: nodes pull them from there.
    cache: ImageCachePlan | None
    untagged_retention_days: int  # Retention of images without a tag, in days


class CopiesPlan(Frozen):
    """A registry that holds a copy of every image and chart that the cluster pulls.

    The part that has the registry names the copies.
    """

    location: str  # Registry and prefix
    # Ending of the hosts of Amazon ECR in the Region, which need no copy: endpoints lead there.
    regional: str
    digests: Mapping[str, str]  # Digest of each reference that has been copied
    key: str  # Key of the cluster file that names it

    @property
    def login(self) -> BuildLoginPlan | None:
        """Login of builds to copies in Amazon ECR; None for another registry."""
        host, _, prefix = self.location.partition("/")
        if (registry := registries.parse_ecr_registry(host)) is None:
            return None
        account, region = registry
        return BuildLoginPlan(host=host, account=account, region=region, prefix=prefix)

    def reference(self, image: str) -> str:
        """Return the reference that a pod pulls for ``image``, by digest where it is known.

        Args:
            image: A whole reference, as its publisher has it.
        """
        if not self.needs_copy(image):
            return image
        name = self.copy(image)
        digest = self.digest(image)
        return name if digest is None or "@" in name else f"{name}@{digest}"

    def copy(self, image: str) -> str:
        """Return the name of the copy of ``image``, with a digest only where ``image`` has one."""
        raise NotImplementedError

    def chart(self, repository: str) -> str:
        """Return the location of the copies of ``repository``, a URL of charts."""
        raise NotImplementedError

    def digest(self, image: str) -> str | None:
        """Return the digest of ``image``: its own, or the recorded one; None where neither is."""
        return image.partition("@")[2] or self.digests.get(published(image))

    def needs_copy(self, image: str) -> bool:
        """Return whether ``image`` comes from a registry that a closed network does not reach."""
        host = image.partition("/")[0]
        return not (host.endswith(self.regional) or image.startswith(f"{self.location}/"))

    def published(self, image: str) -> str:
        """Return the publisher's reference of an image that a pod pulls, without our digest.

        Args:
            image: A reference of a pod, or ``oci://`` and that of a chart; one that is no copy is
                returned as it is.
        """
        raise NotImplementedError


def published(image: str) -> str:
    """Return ``image`` with the host that container runtimes add where it names none.

    Other text, such as a chart's, is returned as it is.

    Source: https://github.com/distribution/reference/blob/v0.6.0/normalize.go
    """
    reference = parse_reference(image)
    if reference is None or reference.host is not None:
        return image
    folder = "" if "/" in reference.repository else "library/"
    return f"docker.io/{folder}{image}"


class RemoteChartPlan(Frozen):
    """A chart that another takes from a chart repository."""

    name: str  # Its name
    version: str  # Its version
    sha256: str | None  # Digest of its archive; None: any archive of that version


class ChartCopyPlan(Frozen):
    """A chart with its dependencies in a mirror, from which it is installed."""

    repository: str  # Location, ``oci://HOST/PATH``
    version: str  # Version of the copy, which names the commit
    digest: str | None  # Digest of the copy; None where none is recorded
    images: Mapping[str, str]  # Images of its pods, by its own names, each with its copy
    # Other repositories that it names, each with its replacement: the Region's, or that of a copy
    # that no pod asks for.
    renamed: Mapping[str, str]
    # Patterns of its images' prefixes after that, before a slash; the build installs no other.
    registries: tuple[str, ...]
    # Login of the build at the mirror; None where it asks for no login.
    login: BuildLoginPlan | None


class GitChartPlan(Frozen):
    """The release of a chart in a folder of a Git repository, outside all registries."""

    repository: str  # URL of the Git repository
    commit: str  # Full id of the commit
    folder: str  # The chart's folder in the repository
    # Digest of the sums of its files; None: the commit's id alone pins them.
    folder_sha256: str | None
    remote_charts: tuple[RemoteChartPlan, ...]  # Every dependency that the repository does not hold
    release: str  # Name of the release
    copy: ChartCopyPlan | None = None  # The chart in a mirror; None: it comes from its publishers
