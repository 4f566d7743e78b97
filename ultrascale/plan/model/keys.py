"""Customer-managed KMS keys, and the statements that their policies need."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

KeyUse = Literal["volumes", "secrets", "storage", "registry", "logs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysPlan:
    """ARNs of the user's own keys; None: a key that the stacks make, or AWS's own.

    Attributes:
        volumes: Key of the nodes' EBS volumes.
        secrets: Key of the Kubernetes API's data.
        storage: Key of file systems, buckets and the backend's database.
        registry: Key of ECR repositories.
        logs: Key of log groups, HyperPod's metrics and the topic of alarms.
    """

    volumes: str | None
    secrets: str | None
    storage: str | None
    registry: str | None
    logs: str | None

    @property
    def stated(self) -> Mapping[KeyUse, str]:
        """The keys that the file names, by their use."""
        arns: dict[KeyUse, str | None] = {
            "volumes": self.volumes,
            "secrets": self.secrets,
            "storage": self.storage,
            "registry": self.registry,
            "logs": self.logs,
        }
        return {use: arn for use, arn in arns.items() if arn is not None}
