"""`requires` and `pipeline.package`: releases of this product that a file names.

A place names a release, never a version alone: the product's name is not registered on a public
index, and whoever registers it there would run code in our users' builds.

`packaging`, pip's own library, reads ranges and wheels. It is imported where a file names one.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator

from ultrascale.config._document import Document, plain
from ultrascale.config._errors import Mistake
from ultrascale.config._values import WrongValueError
from ultrascale.errors import ConfigError
from ultrascale.frozen import Frozen
from ultrascale.release import PRODUCT, VERSION

REQUIRES, EDITOR_SCHEMA = "requires", "$schema"
_HASH = "#sha256="
_RANGE = "write a range of versions, as '>=0.3,<1'"
# They become words of a command.
_WHEEL_PATH = r"(?!(?:.*/)?\.\.?/)\w[\w.+-]*(?:/[\w.][\w.+-]*)*\.whl"
# Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_OBJECT = r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<key>[\w][\w./+=@-]*\.whl)"
_ADDRESS = r"https://[\w.-]+(?::\d+)?/(?:[\w.+~@%-]+/)*[\w.+-]+\.whl"
_SHA256 = r"[0-9a-f]{64}"
PLACES = f"a wheel as wheels/NAME.whl, s3://BUCKET/KEY.whl, or https://HOST/NAME.whl{_HASH}DIGEST"
"""Places to install a release from, in words."""

Source = Literal["checkout", "wheel", "bucket", "address"]


class Release(Frozen):
    """A release of this product, and the place from which a pipeline installs it."""

    # ``wheel``: a file of the repository. ``bucket``: an object in Amazon S3. ``address``: a file
    # of a server. ``checkout``: the repository is this product's own.
    source: Source
    version: str  # Its version; of a checkout the running one
    place: str = ""  # Path in the repository, or URL of the wheel; empty for a checkout
    sha256: str | None = None  # Digest that the wheel must have, in hexadecimal digits; None: any

    @property
    def is_running(self) -> bool:
        """Whether it is the running release."""
        return may_read(f"=={VERSION}", self.version)

    @property
    def object_name(self) -> str | None:
        """``BUCKET/KEY`` of the object; None for the other sources."""
        return self.place.removeprefix("s3://") if self.source == "bucket" else None


def _range(value: str) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        raise WrongValueError("not a range of versions", _RANGE) from None
    if not value.strip():
        raise WrongValueError("not a range of versions", f"{_RANGE}, or leave it out")
    return value


VersionRange = Annotated[str, AfterValidator(_range)]


def release_of(text: str) -> Release:
    """Return the release that ``text`` names.

    Raises:
        WrongValueError: The text is no path of this product's wheel, no object, and no address.
    """
    if text == ".":
        return Release(source="checkout", version=VERSION)
    place, hashed, digest = text.partition(_HASH)
    if hashed and re.fullmatch(_SHA256, digest) is None:
        raise WrongValueError(
            "not a SHA-256 digest", f"write 64 hexadecimal digits after {_HASH}, as sha256sum does"
        )
    if place.startswith("s3://"):
        if re.fullmatch(_OBJECT, place, re.ASCII) is None:
            raise WrongValueError("not a wheel in a bucket", "write s3://BUCKET/KEY.whl")
        source: Source = "bucket"
    elif place.startswith("https://"):
        if re.fullmatch(_ADDRESS, place, re.ASCII) is None:
            raise WrongValueError("not the address of a wheel", "write https://HOST/PATH/NAME.whl")
        if not hashed:
            todo = f"write {_HASH}DIGEST after it, as sha256sum prints it"
            raise WrongValueError("an address, which may have another wheel tomorrow", todo)
        source = "address"
    elif place.endswith(".whl"):
        if re.fullmatch(_WHEEL_PATH, place, re.ASCII) is None:
            todo = "write it from the repository's folder, as wheels/NAME.whl"
            raise WrongValueError("not the path of a wheel within the repository", todo)
        source = "wheel"
    else:
        wrong = f"no place of a wheel, and the name {PRODUCT} is registered on no public index"
        raise WrongValueError(wrong, f"write {PLACES}")
    version = _wheel_version(place.rsplit("/", 1)[-1])
    return Release(source=source, version=version, place=place, sha256=digest or None)


def _wheel_version(name: str) -> str:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    todo = f"keep the name that it was built with, as {PRODUCT}-0.3.0-py3-none-any.whl"
    try:
        product, version, _, _ = parse_wheel_filename(name)
    except InvalidWheelFilename:
        raise WrongValueError("not the name of a wheel", todo) from None
    if product != PRODUCT:
        raise WrongValueError(f"a wheel of {product}, not of {PRODUCT}", todo)
    return str(version)


def may_read(requires: str, version: str) -> bool:
    """Return whether ``version`` is in the range ``requires``; a pre-release counts as any other.

    Source: https://packaging.python.org/en/latest/specifications/version-specifiers/
    """
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(requires).contains(version, prereleases=True)


def wrong_release(document: Mapping[str, object]) -> Mistake | None:
    """Return the mistake where this release may not read ``document``; None where it may.

    This release would take another release's keys for mistakes, and their reader would correct
    right ones.
    """
    stated = document.get(REQUIRES)
    if not isinstance(stated, str):
        return None
    try:
        requires = _range(stated)
    except WrongValueError:
        return None  # reported with the other mistakes of form
    running = VERSION
    if may_read(requires, running):
        return None
    wrong = f"this is {PRODUCT} {running}, which may not read the file"
    todo = f"install a wheel of {PRODUCT} {''.join(requires.split())}"
    return Mistake((REQUIRES,), wrong, todo, code="wrong_release")


def without_release(document: Document) -> dict[str, object]:
    """Return a job or model file's keys without `requires` and `$schema`.

    Raises:
        ConfigError: Another release of this product has to read it, or its range is none.
    """
    keys = dict(plain(document.value))
    if (other := wrong_release(keys)) is not None:
        raise ConfigError([other.diagnostic(document)])
    stated = keys.pop(REQUIRES, None)
    if isinstance(stated, str):
        try:
            _range(stated)
        except WrongValueError as error:
            raise ConfigError(
                [Mistake((REQUIRES,), error.wrong, error.todo).diagnostic(document)]
            ) from None
    keys.pop(EDITOR_SCHEMA, None)
    return keys
