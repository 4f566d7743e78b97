"""A software component of a deployment."""

from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace
from packageurl import PackageURL

from ultrascale.frozen import Frozen

Kind = Literal[
    "container image",
    "own image",
    "Python package",
    "Helm chart",
    "EKS add-on",
    "machine image",
    "Lambda runtime",
    "Lambda layer",
    "service",
    "CDK library",
]


class Component(Frozen):
    """A software component of a deployment."""

    kind: Kind  # Its kind
    name: str  # Its name, without its version
    version: str | None  # Its version; None where AWS chooses it at the deployment
    purl: PackageURL | None = None  # Package URL, where its kind has one
    source: str | None = None  # Page or address that states the version; None without one
    sha256: tuple[str, ...] = ()  # Digests of its files: one image, or a wheel for each platform
    used_by: tuple[str, ...] = ()  # Stacks, objects or images that use it
    parts: tuple["Component", ...] = ()  # Components that it is built from

    @property
    def ref(self) -> str:
        """Reference of the component, the same in every bill of materials."""
        if self.purl is not None:
            return str(self.purl)
        name = f"{self.kind}:{self.name}".replace(" ", "-")
        return name if self.version is None else f"{name}@{self.version}"


def merged(components: Iterable[Component]) -> tuple[Component, ...]:
    """Return each component once, with all of its users, ordered by kind and name."""
    components_by_ref: dict[str, Component] = {}
    for component in components:
        known = components_by_ref.get(component.ref, component)
        users = {*known.used_by, *component.used_by}
        components_by_ref[component.ref] = replace(known, used_by=tuple(sorted(users)))
    return tuple(
        sorted(components_by_ref.values(), key=lambda item: (item.kind, item.name, item.ref))
    )
