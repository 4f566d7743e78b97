"""The whole cluster file."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from ultrascale.config.backend import Backend
from ultrascale.config.hyperpod import HyperPod
from ultrascale.config.identity import Identity
from ultrascale.config.images import Images
from ultrascale.config.jobs import AnyJob, JobName, StatedJob
from ultrascale.config.karpenter import Karpenter
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.network import AgreedLimits, Network
from ultrascale.config.observability import Observability
from ultrascale.config.pipeline import Pipeline
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Scheduling
from ultrascale.config.storage import Storage


class Cluster(Identity):
    """One EKS cluster: its network, control plane, pools, storage and schedulers.

    Attributes:
        network: Address ranges and zones.
        kubernetes: The control plane.
        karpenter: Self-managed Karpenter; None leaves it out.
        pools: Sets of nodes.
        storage: File systems and buckets.
        images: Image repositories.
        scheduling: Gang scheduler, queues, priorities, rendezvous.
        jobs: Job templates, by name.
        hyperpod: Settings of HyperPod, for its pools.
        agreed_limits: Limits granted above the published ones; None: the published ones hold.
        backend: The application that submits jobs; None leaves it out.
        observability: What is measured and shown; None leaves it out.
        pipeline: The pipeline that deploys it, and other clusters; None leaves it out.
    """

    network: Network
    kubernetes: Kubernetes = Field(default_factory=Kubernetes)
    karpenter: Karpenter | None = None
    pools: Annotated[tuple[Pool, ...], Field(json_schema_extra={"minItems": 1})]
    storage: Storage = Field(default_factory=Storage)
    images: Images = Field(default_factory=Images)
    scheduling: Scheduling = Field(default_factory=Scheduling)
    jobs: Mapping[JobName, StatedJob] = Field(default_factory=dict[str, AnyJob])
    hyperpod: HyperPod = Field(default_factory=HyperPod)
    agreed_limits: AgreedLimits | None = None
    backend: Backend | None = None
    observability: Observability | None = None
    pipeline: Pipeline | None = None

    def pool(self, name: str) -> Pool:
        """Return the pool called ``name``.

        Raises:
            KeyError: The cluster has no such pool.
        """
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)
