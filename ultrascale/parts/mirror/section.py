"""`images.mirror`: a registry of the user's own with a copy of every image and chart."""

from typing import Annotated

from pydantic import AfterValidator

from ultrascale import config
from ultrascale.catalog import registries


def _mirror(value: str) -> str:
    """Return the place of copies of images and charts, if an image can have it."""
    reference = registries.parse_reference(f"{value}/docker.io/library/image:1")
    if reference is None or reference.host is None or "://" in value:
        todo = "write HOST/PREFIX, such as ACCOUNT.dkr.ecr.REGION.amazonaws.com/mirror"
        raise config.WrongValueError("not a registry and a prefix in it", todo)
    return value


MirrorLocation = Annotated[str, AfterValidator(_mirror)]


class FileKeys(config.Section):
    """The keys of the section `images` that belong to this part."""

    mirror: MirrorLocation | None = None
    """Registry and prefix with a copy of every image and chart; see `ultrascale mirror`.
    Default: the publishers' registries.
    """


@config.rule
def copies_come_one_way(own: FileKeys, images: config.Images) -> config.Mistakes:
    """Refuse a cache beside the mirror."""
    if own.mirror is not None and images.pull_through:
        wrong = "a cache beside images.mirror, which holds every image"
        yield config.refuse("pull_through", wrong, "keep mirror or pull_through")


@config.rule
def closed_network_has_a_mirror(network: config.Network, images: FileKeys) -> config.Mistakes:
    """Refuse a network without a way out whose images come from nowhere."""
    if network.egress == "none" and images.mirror is None:
        wrong = "without images.mirror, nodes reach no registry but Amazon ECR's"
        todo = "set images.mirror to a registry and prefix that hold every image and chart"
        yield config.refuse("egress", wrong, todo)


@config.rule
def closed_network_reaches_its_mirror(
    images: FileKeys, network: config.Network, identity: config.Identity
) -> config.Mistakes:
    """Refuse a mirror in another Region: endpoints of ECR lead to the registry of their own.

    An existing network may have a route of its own there, which its needs name.

    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    """
    registry = registries.parse_ecr_registry((images.mirror or "").partition("/")[0])
    if network.egress != "none" or network.vpc is not None or registry is None:
        return
    if registry[1] != identity.region:
        wrong = f"in {registry[1]}, which a network without a way out in {identity.region} does "
        wrong += "not reach: no node would get an image"
        yield config.refuse("mirror", wrong, f"name a registry in {identity.region}")


@config.rule
def closed_network_pulls_no_public_image(
    job: config.Job, images: FileKeys, network: config.Network, identity: config.Identity
) -> config.Mistakes:
    """Refuse an image that a network without a way out does not reach."""
    if job.image is None or network.egress != "none" or images.mirror is not None:
        return
    reference = registries.parse_reference(job.image)
    if reference is None or reference.host is None:
        return
    if not reference.host.endswith(registries.ecr_registry("", identity.region)):
        wrong = f"the network has no way out to {reference.host}"
        todo = "name images.mirror, or push the image to images.repositories"
        yield config.refuse("image", wrong, todo)


@config.rule
def role_pulls_no_public_image(
    job: config.TrainingJob, images: FileKeys, network: config.Network, identity: config.Identity
) -> config.Mistakes:
    """Refuse such an image of a role."""
    yield from config.role_mistakes(
        job, lambda part: closed_network_pulls_no_public_image(part, images, network, identity)
    )
