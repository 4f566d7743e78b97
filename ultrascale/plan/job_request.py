"""A job, and the cluster that it is to run in."""

from dataclasses import dataclass

from ultrascale import config
from ultrascale.catalog import volcano
from ultrascale.plan import images
from ultrascale.plan.job_command import Backend
from ultrascale.plan.model import ClaimPlan, ImageBuildPlan, MountPlan, PoolPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A job and where it is to run.

    Attributes:
        name: Its name.
        job: What it is.
        cluster: The cluster that it runs in.
        pools: Plans of all pools of that cluster.
        claims: Claims that the cluster file makes.
        builds: Images that are built for the cluster's repositories.
        account: AWS account of the cluster's registry; None where nothing states it.
        precompile: Whether it runs to have its graphs compiled.
    """

    name: str
    job: config.AnyJob
    cluster: config.Cluster
    pools: tuple[PoolPlan, ...]
    claims: tuple[ClaimPlan, ...]
    builds: tuple[ImageBuildPlan, ...]
    account: str | None
    precompile: bool = False

    @property
    def gang(self) -> bool:
        """Whether the cluster's scheduler starts all pods of a job together."""
        return self.cluster.scheduling.gang_scheduler == "volcano"

    @property
    def backend(self) -> Backend:
        """Where the nodes of the job meet."""
        chosen = self.job.rendezvous if isinstance(self.job, config.TrainingJob) else None
        return chosen or self.cluster.scheduling.rendezvous.backend

    @property
    def queue(self) -> str | None:
        """The queue it waits in: the one it names, or the file's only one; None without Volcano."""
        if isinstance(self.job, config.ServiceJob) or not self.gang:
            return None
        queues = self.cluster.scheduling.queues
        only = queues[0].name if len(queues) == 1 else volcano.DEFAULT_QUEUE
        return self.job.queue or only

    @property
    def mounts(self) -> tuple[MountPlan, ...]:
        """The volumes that it names, or the claims of its namespace."""
        if self.job.volumes is None:
            return tuple(
                MountPlan(claim=claim.name, mount_path=claim.mount_path, read_only=False)
                for claim in self.claims
                if claim.namespace == self.job.namespace
            )
        return tuple(
            MountPlan(claim=each.claim, mount_path=each.mount_path, read_only=each.read_only)
            for each in self.job.volumes
        )

    @property
    def build(self) -> ImageBuildPlan | None:
        """What builds its image; None where it names another, or another tag."""
        repository, _, tag = (self.job.image or "").partition(":")
        for build in self.builds:
            if build.repository == repository and tag in ("", build.tag):
                return build
        return None

    @property
    def image(self) -> str:
        """The whole reference of its image."""
        image = self.job.image or ""
        if self.account is None or not is_own_image(image):
            return image
        repository, _, tag = image.partition(":")
        return images.image_uri(
            account=self.account,
            region=self.cluster.region,
            cluster=self.cluster.name,
            repository=repository,
            tag=self.build.tag if self.build is not None else tag,
        )


def is_own_image(image: str) -> bool:
    """Return whether ``image`` is named by one of ``images.repositories``, without a host."""
    host, slash, _ = image.partition("/")
    return not slash or not ("." in host or ":" in host)
