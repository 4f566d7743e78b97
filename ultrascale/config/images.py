"""`images`: image repositories and registries."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale.catalog import registries
from ultrascale.config._base import Distinct, Section, matching
from ultrascale.config._errors import Mistake, Mistakes, near
from ultrascale.config._rules import rule

RepositoryName = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?=.{2,256}$)[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*",
            "not the name of an ECR repository",
            "use lower-case letters and digits, with single '.', '_', '-' or '/' between them",
        )
    ),
]
Host = Annotated[
    str,
    AfterValidator(
        matching(
            r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])",
            "not the host of a registry",
            "write it without https:// and path, such as ACCOUNT.dkr.ecr.REGION.amazonaws.com",
        )
    ),
]
Dockerfile = Literal["neuron", "nvidia", "cpu", "tensorboard", "backend", "none"]


class Images(Section):
    """Container images.

    Attributes:
        repositories: ECR repositories.
        builds: Folder in ``images`` whose Dockerfile makes the image of a repository, or ``none``;
            for the others it follows from their names and the pools.
        eks_registry: Host of the EKS add-on image registry, for a Region that the catalog lacks.
        pull_through: Public registries that the platform's images come from through a cache in the
            account's own registry; None: by the number of nodes.
    """

    repositories: Distinct[RepositoryName] = ()
    builds: Mapping[str, Dockerfile] = Field(default_factory=dict[str, Dockerfile])
    eks_registry: Host | None = None
    pull_through: tuple[registries.Upstream, ...] | None = None


@rule
def builds_have_a_repository(images: Images) -> Mistakes:
    for name in images.builds:
        if name not in images.repositories:
            todo = near(name, images.repositories)
            yield Mistake(("builds", name), "not one of images.repositories", todo, repr(name))
