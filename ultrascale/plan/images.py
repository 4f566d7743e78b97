"""Container images: what a job's pods pull them by."""

from ultrascale.catalog import registries
from ultrascale.plan import names


def image_uri(*, account: str, region: str, cluster: str, repository: str, tag: str) -> str:
    """Return what a container's ``image`` field takes for an image of the cluster's own.

    Args:
        account: AWS account of the cluster, 12 digits.
        region: Its Region; the registry's domain follows from it, in China ``amazonaws.com.cn``.
        cluster: Its name, which the repositories begin with.
        repository: One of ``images.repositories``.
        tag: Tag of the image. Tags of these repositories never move.

    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/docker-pull-ecr-image.html
    """
    registry = registries.ecr_registry(account, region)
    return f"{registry}/{names.repository(cluster, repository)}:{tag}"
