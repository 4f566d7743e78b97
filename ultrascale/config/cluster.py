"""The whole cluster file."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from ultrascale.catalog import regions
from ultrascale.config._base import Model, WrongValueError, dns_label, matching
from ultrascale.config.hyperpod import HyperPod
from ultrascale.config.jobs import AnyJob, JobName
from ultrascale.config.kubernetes import Karpenter, Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.operations import AgreedLimits, Backend, Observability, Pipeline
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Scheduling
from ultrascale.config.storage import Images, Storage
from ultrascale.errors import CatalogError


def _known(value: str) -> str:
    try:
        regions.lookup_region(value)
    except CatalogError as error:
        raise WrongValueError(str(error), complete=True) from error
    return value


_ACCOUNT_ID = r"\d{12}"
AccountId = Annotated[
    str,
    AfterValidator(matching(_ACCOUNT_ID, "not an AWS account id", "write its 12 digits in quotes")),
]


def is_account_id(text: str) -> bool:
    """Return whether ``text`` is the id of an AWS account."""
    return re.fullmatch(_ACCOUNT_ID, text) is not None


class Cluster(Model):
    """One EKS cluster: its network, control plane, pools, storage and schedulers.

    Attributes:
        name: Cluster name, and prefix of every stack.
        region: AWS Region.
        account: AWS account id; None keeps the templates free of it.
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
        pipeline: The pipeline that deploys the cluster; None leaves it out.
    """

    # Keys are read in this order: a pool takes its default zones from the network.
    name: Annotated[str, dns_label(40)]
    region: Annotated[str, AfterValidator(_known)]
    account: AccountId | None = None
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
