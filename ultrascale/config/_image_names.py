"""Names of images in jobs and in settings."""

from typing import Annotated

from pydantic import AfterValidator

from ultrascale.catalog import registries
from ultrascale.config._values import WrongValueError, in_schema


def _image(value: str) -> str:
    reference = registries.parse_reference(value)
    if reference is None:
        raise WrongValueError("not an image", "write REPOSITORY:TAG, or REGISTRY/REPOSITORY:TAG")
    if reference.digest is not None or (reference.tag is None and reference.host is None):
        return value  # a name without either is an image that the cluster file builds
    if reference.tag is None:
        todo = "add :TAG, so that every pod and every restart runs the same image"
        raise WrongValueError("an image without a tag", todo)
    if reference.tag == "latest":
        todo = "name a tag that stays: pods of one job could run two images"
        raise WrongValueError("a tag that moves", todo)
    return value


ImageName = Annotated[str, AfterValidator(_image), in_schema(pattern=registries.PATTERN)]
