"""A job in its cluster."""

from collections.abc import Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.config.scheduling import RendezvousBackend
from ultrascale.core.engine import QueueingEngine, engine_of
from ultrascale.core.table import all_parts
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.jobs import namespaces
from ultrascale.plan.jobs import nodes as job_nodes
from ultrascale.plan.jobs import rendezvous as meeting
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.model import (
    ClaimPlan,
    ClusterQueuePlan,
    CopiesPlan,
    ImageBuildPlan,
    MountPlan,
    PoolPlan,
    QueueingPlan,
    TeamPlan,
)
from ultrascale.plan.model.jobs import ProgramPlan
from ultrascale.plan.model.services import ModelPlan
from ultrascale.plan.network.policies import plan_network_policies
from ultrascale.plan.scale import plan_scale
from ultrascale.plan.volumes import mounted_claims


class JobRequest(Frozen):
    """A job in its cluster, ready to be planned."""

    name: str  # Its name
    job: config.Job  # Its keys
    cluster: config.Cluster  # Its cluster
    pools: tuple[PoolPlan, ...]  # Plans of all pools of that cluster
    claims: tuple[ClaimPlan, ...]  # Claims that the cluster file makes
    builds: tuple[ImageBuildPlan, ...]  # Images that are built for the cluster's repositories
    account: str | None  # AWS account of the cluster's registry; None where nothing states it
    teams: tuple[TeamPlan, ...] = ()  # Teams of task governance
    queueing: QueueingPlan | None = None  # Queues with quotas; None where the engine has none
    # Name of its template; None without one.
    template: str | None = None
    # Its chosen tier, of the node types that it prefers; None before the choice.
    tier: str | None = None
    precompile: bool = False  # Whether it runs to have its graphs compiled
    role: str | None = None  # Its role in a job of several; None for a whole job
    # Keys of the whole job of a role; None for a whole job.
    whole: config.TrainingJob | None = None
    leads: bool = True  # Whether its end is the end of the whole job: true of one role alone
    # Whether that role restarts without the others when it loses a pod.
    restarts_alone: bool = False
    # Whether it checks nodes before another job, by a Job of Kubernetes on HyperPod.
    is_check: bool = False
    # Registry of copies of its image; None for the publisher's own registry.
    copies: CopiesPlan | None = None

    @classmethod
    def for_template(
        cls,
        name: str,
        job: config.Job,
        cluster: config.Cluster,
        pools: Sequence[PoolPlan],
        *,
        claims: Sequence[ClaimPlan],
        queueing: QueueingPlan | None,
    ) -> "JobRequest":
        """Return a request for the plan of the cluster alone, which nobody submits.

        Args:
            name: Name of the template.
            job: The template.
            cluster: The cluster file that holds it.
            pools: Plans of all pools.
            claims: Claims that the file makes.
            queueing: Queues with quotas; None where the engine has none.
        """
        return cls(
            name=name,
            job=job,
            cluster=cluster,
            pools=tuple(pools),
            claims=tuple(claims),
            builds=(),
            account=None,
            queueing=queueing,
        )

    @property
    def roles(self) -> tuple["JobRequest", ...]:
        """Each role as a job of its own, first the one whose success ends the job.

        That is the first with a script, or without any the first of the file.
        """
        job = self.job
        if not isinstance(job, config.TrainingJob) or not job.roles:
            return ()
        alone = {name for name, role in job.roles.items() if role.when_lost == "restart-role"}
        parts = {name: config.role_as_job(job, name) for name in job.roles}
        roles = {
            name: replace(
                self,
                job=part,
                role=name,
                whole=job,
                restarts_alone=name in alone,
                precompile=False,
            )
            for name, part in parts.items()
        }
        scripts = {name: role.with_program(role.program()).job for name, role in roles.items()}
        leading = next(
            (name for name, part in scripts.items() if getattr(part, "script", None)),
            next(iter(parts)),
        )
        return tuple(
            replace(roles[name], leads=name == leading) for name in dict.fromkeys((leading, *parts))
        )

    @property
    def called(self) -> str:
        """The name that may name its team: that of its template, or its own."""
        return self.template or self.name

    @property
    def team(self) -> TeamPlan | None:
        """The team in whose queue it waits; None for an ungoverned job."""
        name = namespaces.team_of(self.cluster, self.called, self.job)
        return next((team for team in self.teams if team.name == name), None)

    @property
    def namespace(self) -> str:
        """Kubernetes namespace of its objects."""
        return namespaces.namespace_of(self.cluster, self.called, self.job)

    @property
    def pods(self) -> int:
        """Pods that must start together: of a service those of a replica."""
        if roles := self.roles:
            return sum(role.pods for role in roles)
        return self.job.nodes if isinstance(self.job, config.TrainingJob | config.ServiceJob) else 1

    @property
    def admitted_pods(self) -> int:
        """Pods that a queue of Kueue admits together: of an array those of the same time."""
        array = self.job.array if isinstance(self.job, config.BatchJob) else None
        return self.pods if array is None else min(array.size, array.parallelism or array.size)

    @property
    def nodes(self) -> tuple[PoolPlan, ...]:
        """The pools, or their shards, that it may run on."""
        if roles := self.roles:
            chosen = {pool.name for role in roles for pool in role.nodes}
            return tuple(pool for pool in self.pools if pool.name in chosen)
        pools = self.pools
        if self.team is not None and not namespaces.says_where(self.job):
            pools = tuple(pool for pool in pools if pool.facts.are_shared)
        if (queue := self.cluster_queue) is not None:
            pools = tuple(pool for pool in pools if pool.pool in queue.pools)
        tiers = () if self.tier is None else (self.tier,)
        return job_nodes.nodes_of(self.job, pools, tiers=tiers)

    @property
    def gang(self) -> bool:
        """Whether the cluster's scheduler starts all pods of a job together."""
        return self.engine.gangs

    @property
    def engine(self) -> QueueingEngine:
        """The engine in whose queues jobs wait."""
        return engine_of(self.cluster.scheduling)

    @property
    def quota_queue(self) -> str | None:
        """The queue of quotas that it waits in: the one it names, or of a job the only one."""
        if not self.engine.quotas:
            return None
        if isinstance(self.job, config.ServiceJob):
            return self.job.queue
        if self.is_beside_queues:
            return None
        queues = [queue.name for queue in self.queueing.queues] if self.queueing is not None else []
        return self.job.queue or (queues[0] if len(queues) == 1 else None)

    @property
    def is_beside_queues(self) -> bool:
        """Whether it is a person's pod on nodes that no queue counts."""
        if not self.job.is_personal or self.job.queue is not None:
            return False
        queues = self.queueing.queues if self.queueing is not None else ()
        counted = {pool for queue in queues for pool in queue.pools}
        fitting = job_nodes.nodes_of(self.job, self.pools)
        return all(pool.pool not in counted for pool in fitting)

    @property
    def cluster_queue(self) -> ClusterQueuePlan | None:
        """That queue with its pools and quotas; None where the file has none of that name."""
        queues = self.queueing.queues if self.queueing is not None else ()
        return next((queue for queue in queues if queue.name == self.quota_queue), None)

    @property
    def policies_of_jobs(self) -> bool:
        """Whether network policies of the cluster select the pods of jobs."""
        return plan_network_policies(self.cluster, plan_scale(self.cluster)).of_jobs

    @property
    def backend(self) -> RendezvousBackend:
        """Store through which the nodes of the job meet."""
        server = self.cluster.scheduling.rendezvous.backend
        if not isinstance(self.job, config.TrainingJob):
            return server
        back = self.pods_come_back
        return meeting.backend_of(self.job, server, self.engine, pods_come_back=back)

    @property
    def restarts_together(self) -> bool:
        """Whether a role restarts as a whole while the other roles go on.

        The nodes of a torchrun job meet by fixed ranks then. Only Volcano restarts a part of a job.
        """
        job = self.job
        if not isinstance(job, config.TrainingJob) or not (self.restarts_alone and self.gang):
            return False
        one_by_one = job.rendezvous not in (None, "static") or job.restarts.workers
        return job.script is not None and job.nodes > 1 and not one_by_one

    @property
    def pods_come_back(self) -> bool:
        """Whether a lost pod comes back while the others of its role stay."""
        return self.restarts_alone and not self.restarts_together

    @property
    def queue(self) -> str | None:
        """The queue from which the engine's scheduler takes its pods; None without a scheduler."""
        return None if isinstance(self.job, config.ServiceJob) else self.engine.queue_of_gang(self)

    @property
    def mounts(self) -> tuple[MountPlan, ...]:
        """The volumes that it names, or the claims of its namespace."""
        if self.job.volumes is None:
            return tuple(
                MountPlan(claim=claim.name, mount_path=claim.mount_path, read_only=claim.read_only)
                for claim in self.mounted_claims
            )
        return tuple(
            MountPlan(claim=volume.claim, mount_path=volume.mount_path, read_only=volume.read_only)
            for volume in self.job.volumes
        )

    @property
    def mounted_claims(self) -> tuple[ClaimPlan, ...]:
        """The claims of the cluster file that it mounts."""
        if self.job.volumes is None:
            zones = {zone for pool in self.nodes for zone in pool.zones}
            return mounted_claims(self.claims, namespace=self.namespace, zones=zones)
        named = {volume.claim for volume in self.job.volumes}
        return tuple(
            claim
            for claim in self.claims
            if claim.namespace == self.namespace and claim.name in named
        )

    @property
    def build(self) -> ImageBuildPlan | None:
        """Build of its image; None if the job names another image or another tag."""
        repository, _, tag = (self.job.image or "").partition(":")
        for build in self.builds:
            if build.repository == repository and tag in ("", build.tag):
                return build
        return None

    def program(self, share: NodeShare | None = None) -> ProgramPlan | None:
        """Return the program that a part gives it; without ``share`` its script and image alone."""
        programs = (part.program(self, share) for part in all_parts())
        return next((program for program in programs if program is not None), None)

    def model(self, share: NodeShare) -> ModelPlan | None:
        """Return the model that a part plans for a service; None where it states none."""
        models = (part.model(self, share) for part in all_parts())
        return next((model for model in models if model is not None), None)

    def with_program(self, program: ProgramPlan | None) -> "JobRequest":
        """Return it with a program that a part gives it."""
        if program is None:
            return self
        args = (*program.args, *self.job.args)
        changes = {"script": program.script, "image": program.image, "args": args}
        changes |= {"command": program.command} if program.command else {}
        return replace(self, job=self.job.model_copy(update=changes))

    @property
    def image(self) -> str:
        """The whole reference of its image."""
        image = self.job.image or ""
        if not is_own_image(image):
            return image if self.copies is None else self.copies.reference(image)
        if self.account is None:
            return image
        repository, _, tag = image.partition(":")
        return names.image_uri(
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
