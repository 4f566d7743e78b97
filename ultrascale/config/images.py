"""`images`: image repositories and registries."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, Field, Tag

from ultrascale.catalog import registries
from ultrascale.config._base import Model, Section, chosen_by_form
from ultrascale.config._errors import Mistake, Mistakes, near, refuse
from ultrascale.config._rules import rule
from ultrascale.config._values import Distinct, InSchema, WrongValueError, matching
from ultrascale.config.identity import Identity

RepositoryName = Annotated[
    str,
    matching(
        # The cluster's name and a slash stand before it; the whole has at most 256 characters.
        r"(?=.{2,215}$)[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*",
        "not the name of an ECR repository",
        "use lower-case letters and digits, with single '.', '_', '-' or '/' between them",
    ),
]
Host = Annotated[
    str,
    matching(
        r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
        r"(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+",
        "not the host of a registry",
        "write it without https:// and path, such as ACCOUNT.dkr.ecr.REGION.amazonaws.com",
    ),
]
DOCKERFILES = ("neuron", "nvidia", "posttrain", "cpu", "tensorboard", "backend", "none")
# Colons and blanks separate the builds in a variable of CodeBuild.
_OWN_FOLDER = r"\.(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)+"


def is_own_folder(build: str) -> bool:
    """Return whether an image is built from a folder beside the cluster file."""
    return re.fullmatch(_OWN_FOLDER, build) is not None


def _build(value: str) -> str:
    if value not in DOCKERFILES and not is_own_folder(value):
        if value.startswith((".", "/", "~")):
            wrong = "not the path of a folder below that of the cluster file"
            raise WrongValueError(wrong, "write ./FOLDER, of letters, digits, '.', '_' and '-'")
        match = get_close_matches(value, DOCKERFILES, n=1)
        known = f"write {', '.join(DOCKERFILES)}, or ./FOLDER of your own"
        raise WrongValueError("unknown value", f"did you mean {match[0]}?" if match else known)
    return value


Build = Annotated[
    str,
    AfterValidator(_build),
    InSchema(lambda: {"anyOf": [{"enum": [*DOCKERFILES]}, {"pattern": f"^(?:{_OWN_FOLDER})$"}]}),
]


SecretArn = Annotated[
    str,
    matching(
        r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:"
        rf"{registries.SECRET_PREFIX}[\w+=,.@/-]+-[A-Za-z0-9]{{6}}",
        "not the ARN of a secret that ECR may use",
        f"name it {registries.SECRET_PREFIX}NAME in Secrets Manager, and write its whole ARN",
    ),
]


class CachedRegistry(Model):
    """A registry that ECR caches with credentials of yours."""

    registry: registries.CredentialedUpstream
    """Host of the registry."""

    secret: SecretArn
    """ARN of the secret with `username` and `accessToken`, in the cluster's account and Region.
    Its name begins with `ecr-pullthroughcache/`.
    """

    def __str__(self) -> str:
        return self.registry


Cached = Annotated[
    Annotated[registries.Upstream, Tag("plain")] | Annotated[CachedRegistry, Tag("mapping")],
    chosen_by_form(CachedRegistry),
]


IndexUrl = Annotated[
    str,
    matching(
        r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~%/+-]*)?",
        "not the https URL of a package index",
        "use https and no credentials, such as https://packages.example.com/pypi/simple/",
    ),
]


class Packages(Section):
    """Mirrors of package indexes, for builds of images."""

    pip: IndexUrl
    """Simple index of Python packages, as pip's `--index-url` takes it. Builds log in to one of AWS
    CodeArtifact; any other they read without credentials, from outside the VPC.
    """


class Images(Section):
    """Container images."""

    repositories: Distinct[RepositoryName] = ()
    """ECR repositories, named `CLUSTER/NAME` in the registry. Default: none."""

    builds: Mapping[str, Build] = Field(default_factory=dict[str, Build])
    """Folder whose Dockerfile makes the image of a repository: one of `images/`, such as `nvidia`,
    or `./FOLDER` of your own beside the cluster file. `none`: nothing is built.

    Default: by the repository's name, else by the accelerators of the pools.
    """

    eks_registry: Host | None = None
    """Registry host of EKS's own images. Default: the one of the Region, where it is known."""

    pull_through: tuple[Cached, ...] | None = None
    """Registries that the platform pulls from through a cache in the account's registry:
    `public.ecr.aws`, `registry.k8s.io`, `quay.io`, and `{registry: docker.io, secret: ARN}`.

    Default: the three that need no secret above 1,000 nodes, else none; none in GovCloud, or with
    `mirror`.
    """

    packages: Packages | None = None
    """Mirrors of package indexes, for builds of images. Default: the public ones."""


@rule
def builds_have_a_repository(images: Images) -> Mistakes:
    for name in images.builds:
        if name not in images.repositories:
            todo = near(name, images.repositories)
            yield Mistake(("builds", name), "not one of images.repositories", todo, repr(name))


@rule
def code_artifact_is_whole(packages: Packages) -> Mistakes:
    is_there = registries.CODE_ARTIFACT_HOST.match(packages.pip)
    if is_there and registries.parse_code_artifact(packages.pip) is None:
        todo = "write https://DOMAIN-OWNER.d.codeartifact.REGION.amazonaws.com/pypi/NAME/simple/"
        yield refuse("pip", "not the whole URL of a repository of AWS CodeArtifact", todo)


@rule
def cached_registries_differ(images: Images) -> Mistakes:
    seen: set[str] = set()
    for number, entry in enumerate(images.pull_through or ()):
        if str(entry) in seen:
            yield refuse(f"pull_through.{number}", f"{entry} a second time", "keep one")
        seen.add(str(entry))


@rule
def secrets_are_of_the_region(images: Images, identity: Identity) -> Mistakes:
    # Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/pull-through-cache-creating-secret.html
    for number, entry in enumerate(images.pull_through or ()):
        if not isinstance(entry, CachedRegistry):
            continue
        _, _, _, region, account, *_ = entry.secret.split(":")
        at = f"pull_through.{number}.secret"
        if region != identity.region:
            yield refuse(
                at,
                f"a secret of {region}",
                f"name a secret of {identity.region}: ECR reads no other",
            )
        if identity.account is not None and account != identity.account:
            yield refuse(
                at,
                f"a secret of account {account}",
                f"name a secret of {identity.account}: ECR reads no other",
            )
