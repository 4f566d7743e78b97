"""References of images and charts in the mirror."""

from ultrascale.plan.model import CopiesPlan, published


class MirrorCopies(CopiesPlan):
    """Copies in the mirror.

    The name of a copy is the publisher's host and repository below the mirror's prefix, so that
    images of two publishers never meet, and that a copy tells where it comes from.
    """

    def copy(self, image: str) -> str:
        """Return the name of the copy of ``image``."""
        host, _, rest = published(image).partition("/")
        # No host has an underscore, and no repository a colon.
        return f"{self.location}/{host.replace(':', '_')}/{rest}"

    def chart(self, repository: str) -> str:
        """Return the copy of a chart, as ``oci://``."""
        return f"oci://{self.location}/{repository.partition('://')[2]}"

    def published(self, image: str) -> str:
        """Return the publisher's reference of a copy; of anything else, the same."""
        if image.startswith("oci://"):
            return f"oci://{self.published(image.removeprefix('oci://'))}"
        path = image.removeprefix(f"{self.location}/")
        if path == image:
            return image
        host, _, rest = path.partition("/")
        if not {".", "_"} & {*host}:
            # A mirror without a prefix shares its registry with the cluster's own images.
            return image
        name = f"{host.replace('_', ':')}/{rest}"
        tagged, _, digest = name.partition("@")
        return tagged if self.digests.get(tagged) == digest else name
