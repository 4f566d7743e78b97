"""The plan of the mirror, with the digests of its copies, and its rules."""

from collections.abc import Iterator, Mapping, Set

from ultrascale import config
from ultrascale.parts.mirror.lock import FILE, MirrorLock, lock_text
from ultrascale.plan import rules
from ultrascale.plan.jobs import submission
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan, CopiesPlan, PlannedPart


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
        wrong = f"no copies of it in {FILE} beside the file, so tags name them, which can be moved"
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
