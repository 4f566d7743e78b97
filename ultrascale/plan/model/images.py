"""Container images."""

from dataclasses import dataclass

from ultrascale.catalog import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBuildPlan:
    """An image that is built from this project.

    Attributes:
        repository: The repository it is pushed to, one of ``images.repositories``.
        dockerfile: Folder of its Dockerfile in ``images``.
        architecture: Of the nodes that it is built for, in Kubernetes' words.
        tag: Its tag, which follows from what it is built from.
    """

    repository: str
    dockerfile: str
    architecture: Architecture
    tag: str
