"""Plan of the rendezvous server."""

from collections.abc import Mapping
from typing import ClassVar

from ultrascale.plan.model import PlannedPart


class Plan(PlannedPart):
    """The etcd that TorchElastic workers meet at."""

    renderer: ClassVar[str] = "etcd"
    is_applied_early: ClassVar[bool] = True

    image: str  # Image reference, pinned
    # Where it runs: the training namespace, so that the tutorial's short host name ``etcd-server``
    # resolves from a job's pods.
    namespace: str
    replicas: int  # 1 or 3 members
    # Whether the v2 HTTP API is on, which torch's own etcd backends need. The v3 API, which ours
    # speaks, always is.
    v2_api: bool
    volume_gib: int  # Size of each member's gp3 volume, in GiB
    volume_provisioner: str  # Driver that makes the volumes on the nodes it runs on
    volume_key: str | None = None  # ARN of their KMS key; None: the account's default key of EBS
    # Ranges of addresses of pods, where policies cannot name those of jobs.
    job_ranges: tuple[str, ...] = ()

    @property
    def pods(self) -> Mapping[str, int]:
        """Its members."""
        return {"etcd": self.replicas}

    @property
    def untied(self) -> Mapping[str, str]:
        """Its image."""
        return {"etcd for rendezvous": self.image}
