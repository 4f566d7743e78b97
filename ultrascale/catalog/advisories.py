"""Known security advisories of packages in images that clusters run, in the words of OSV.

`readings.csv` has the day of `advisories.csv`. `image_contents.csv` names the package's version in
images whose tags do not say it. A vendor may mend an image without a new version.

Source: https://ossf.github.io/osv-schema/
"""

import re
from collections.abc import Collection, Iterator
from datetime import date
from functools import cache

from ultrascale.catalog.registries import ImageReference
from ultrascale.catalog.tables import Row, read_rows

# CVSS calls a score from here on high.
_GRAVE = 7.0
# By package, the repositories whose tags begin with its release.
_NAMED = {
    "vllm": re.compile(r"(?:^|/)(?:vllm|vllm-openai|[\w-]*vllm-neuronx)$"),
    "ray": re.compile(r"(?:^|/)rayproject/ray(?:-\w+)?$"),
}
_RELEASE = re.compile(r"v?(\d+(?:\.\d+){2})")


class Advisory(Row, frozen=True, kw_only=True):
    """An advisory of a package."""

    id: str
    """Its first id, such as ``CVE-2026-27893``."""
    aliases: tuple[str, ...] = ()
    """Its ids in other databases."""
    package: str
    """Name at PyPI."""
    introduced: str = "0"
    """First version with the fault."""
    fixed: str = ""
    """First version without it; empty where none is known."""
    last: str = ""
    """Last version with the fault, where the source states no first without it."""
    severity: float | None = None
    """Base score of CVSS, 0 to 10; None where the source states none."""
    runs_code: bool
    """Whether an attacker's code runs."""
    needs: str = ""
    """Option or variable that the fault needs; empty for none."""
    unless: str = ""
    """Option that keeps requests from it; empty for none."""
    impact: str
    """Harm that it does, in words."""
    published: date | None = None
    """Day of the advisory, where the source states it."""
    source: str
    """Page that states it."""

    @property
    def is_grave(self) -> bool:
        """Whether it is severe, by CVSS's word *high*, or runs an attacker's code."""
        return self.runs_code or (self.severity or 0) >= _GRAVE

    @property
    def end(self) -> str:
        """End of the affected versions, in words."""
        if self.fixed:
            return f"before {self.fixed}"
        return f"to {self.last}" if self.last else "no version is known to be without it"

    @property
    def ids(self) -> frozenset[str]:
        """Return its id and its aliases."""
        return frozenset((self.id, *self.aliases))


class ImageContent(Row, frozen=True, kw_only=True):
    """A package in an image."""

    repository: str
    """End of the image's repository."""
    tag: str
    """The image's tag."""
    package: str
    """Name at PyPI."""
    version: str
    """Version of the package."""
    source: str
    """Page that states it."""
    seen: date
    """Day on which the page was read."""


@cache
def advisories() -> tuple[Advisory, ...]:
    """Return the known advisories."""
    return read_rows("advisories.csv", Advisory)


@cache
def image_contents() -> tuple[ImageContent, ...]:
    """Return the packages in images whose tags do not say them."""
    return read_rows("image_contents.csv", ImageContent)


def release_in(image: ImageReference, package: str) -> str | None:
    """Return the release of a package in an image; None where neither tag nor source says it."""
    for row in image_contents():
        is_named = image.repository.endswith(row.repository) and image.tag == row.tag
        if is_named and row.package == package:
            return row.version
    named = _NAMED[package].search(image.repository)
    release = _RELEASE.match(image.tag or "") if named else None
    return None if release is None else release[1]


def advisories_of(package: str, version: str, stated: Collection[str]) -> Iterator[Advisory]:
    """Yield the advisories of a version of a package that its configuration reaches.

    Args:
        package: Name at PyPI.
        version: The version.
        stated: Options, such as ``--trust-remote-code``, and variables that are set.
    """
    from packaging.version import Version

    release = Version(version)
    for advisory in advisories():
        affected = Version(advisory.introduced) <= release
        affected = affected and (not advisory.fixed or release < Version(advisory.fixed))
        affected = affected and (not advisory.last or release <= Version(advisory.last))
        reached = advisory.needs in ("", *stated) and not {advisory.unless} & {*stated} - {""}
        if advisory.package == package and affected and reached:
            yield advisory
