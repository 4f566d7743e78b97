"""The whole cluster file."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from ultrascale.config._base import Model, dns_label
from ultrascale.config._places import AccountId, PolicyName, RegionName
from ultrascale.config.hyperpod import HyperPod
from ultrascale.config.jobs import AnyJob, JobName
from ultrascale.config.kubernetes import Karpenter, Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.operations import AgreedLimits, Backend, Observability
from ultrascale.config.pipeline import Pipeline
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Scheduling
from ultrascale.config.storage import Images, Storage


class Cluster(Model):
    """One EKS cluster: its network, control plane, pools, storage and schedulers.

    Attributes:
        name: Cluster name, and prefix of every stack.
        region: AWS Region.
        account: AWS account id; None keeps the templates free of it.
        permissions_boundary: Name of the IAM policy that bounds every role of the stacks; None:
            nothing does.
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

    # Keys are read in this order: a pool takes its default zones from the network.
    name: Annotated[str, dns_label(40)]
    region: RegionName
    account: AccountId | None = None
    permissions_boundary: PolicyName | None = None
    network: Network
    kubernetes: Kubernetes = Kubernetes()
    karpenter: Karpenter | None = None
    pools: Annotated[tuple[Pool, ...], Field(min_length=1)]
    storage: Storage = Storage()
    images: Images = Images()
    scheduling: Scheduling = Scheduling()
    jobs: Mapping[JobName, AnyJob] = Field(default_factory=dict[str, AnyJob])
    hyperpod: HyperPod = HyperPod()
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
