"""The plan of the mirror, with the digests of its copies, and its rules."""

from collections.abc import Iterator, Mapping, Set

from ultrascale import config
from ultrascale.parts.mirror.lock import FILE, MirrorLock, lock_text
from ultrascale.plan import rules
from ultrascale.plan.jobs import submission
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan, CopiesPlan, PlannedPart, published


class Plan(PlannedPart):
    """The mirror that the file names."""

    registry: CopiesPlan  # Names of its copies, and their digests
    is_recorded: bool  # Whether a record of copies lies beside the cluster file

    @property
    def copies(self) -> CopiesPlan:
        """Copies of all images and charts."""
        return self.registry

    @property
    def files(self) -> Mapping[str, str]:
        """The record of its own copies, by which jobs name images."""
        if not self.is_recorded:
            return {}
        return {
            FILE: lock_text(MirrorLock(mirrors={self.registry.location: self.registry.digests}))
        }

    def image_warnings(self, images: Set[str]) -> Iterator[str]:
        """Yield that pods name images by tag alone, for want of a digest."""
        copies = self.copies
        without = sorted(
            image for image in images if copies.needs_copy(image) and copies.digest(image) is None
        )
        if without:
            yield (
                f"images.mirror: {FILE} has no digest of {', '.join(without)}, so pods name tags, "
                "which can be moved; run `ultrascale mirror FILE copy`, then synthesize again"
            )


@rules.rule(severity="warning")
def copies_are_recorded(plan: ClusterPlan) -> Iterator[config.Mistake]:
    """Yield copies that only tags name, which can be moved."""
    mirror = plan.part(Plan)
    if mirror is not None and not mirror.is_recorded:
        wrong = f"no copies in {FILE} beside the file, so pods pull by tags, which can move"
        todo = "run `ultrascale mirror FILE copy`, then synthesize again"
        yield config.Mistake(("images", "mirror"), wrong, todo, got="")


@submission.rule
def images_are_copied(request: JobRequest, plan: ClusterPlan) -> Iterator[config.Mistake]:
    """Yield images without a copy in the mirror: their pods would wait for ever.

    Only of a job that is sent: a copy needs a file without other mistakes.
    """
    mirror = plan.part(Plan)
    if mirror is None or not mirror.is_recorded:
        return
    copies = mirror.copies
    for part in request.roles or (request,):
        name = part.image
        if name.startswith(f"{copies.location}/") and copies.published(name) not in copies.digests:
            at = ("roles", part.role, "image") if part.role else ("image",)
            wrong = f"not in {FILE}, so that the mirror may lack it"
            todo = "name it in a job of the cluster file, then run `ultrascale mirror FILE copy`"
            yield config.Mistake(at, wrong, todo, repr(name))


# --- References of images and charts in the mirror ------------------------------------------------


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
