"""`images`: image repositories and registries."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from ultrascale.catalog import registries
from ultrascale.config._base import Section
from ultrascale.config._errors import Mistake, Mistakes, near
from ultrascale.config._rules import rule
from ultrascale.config._values import Distinct, matching

RepositoryName = Annotated[
    str,
    matching(
        # The cluster's name and a slash stand before it, and 256 characters are the most.
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
Dockerfile = Literal["neuron", "nvidia", "cpu", "tensorboard", "backend", "none"]


class Images(Section):
    """Container images."""

    repositories: Distinct[RepositoryName] = ()
    """ECR repositories, named `CLUSTER/NAME` in the registry. Default: none."""

    builds: Mapping[str, Dockerfile] = Field(default_factory=dict[str, Dockerfile])
    """Folder of `images/` whose Dockerfile makes the image of a repository.

    Default: by the repository's name, else by the accelerators of the pools.
    """

    eks_registry: Host | None = None
    """Registry host of EKS's own images. Default: the one of the Region, where it is known."""

    pull_through: tuple[registries.Upstream, ...] | None = None
    """Public registries that the platform pulls from through a cache in the account's registry.

    Default: all three above 1,000 nodes, else none; none in GovCloud.
    """


@rule
def builds_have_a_repository(images: Images) -> Mistakes:
    for name in images.builds:
        if name not in images.repositories:
            todo = near(name, images.repositories)
            yield Mistake(("builds", name), "not one of images.repositories", todo, repr(name))
