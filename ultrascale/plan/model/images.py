"""Container images."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBuildPlan:
    """An image that is built from this project.

    Attributes:
        repository: The repository it is pushed to, one of ``images.repositories``.
        dockerfile: Folder of its Dockerfile in ``images``.
        tag: Its tag, which follows from what it is built from.
    """

    repository: str
    dockerfile: str
    tag: str
