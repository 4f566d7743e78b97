"""`kubernetes` and `karpenter`: the control plane and what runs in every cluster."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale.catalog import eks
from ultrascale.config._base import DnsLabel, Model, Network4, matching

RoleArn = Annotated[
    str,
    AfterValidator(
        matching(
            r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+",
            "not the ARN of an IAM role",
            "write arn:aws:iam::ACCOUNT:role/NAME",
        )
    ),
]
AddonVersion = Annotated[
    str,
    AfterValidator(
        matching(
            r"v\d+\.\d+\.\d+-eksbuild\.\d+",
            "not the version of an EKS add-on",
            "write it as `aws eks describe-addon-versions` does, such as v1.21.1-eksbuild.1",
        )
    ),
]
Duration = Annotated[
    str, AfterValidator(matching(r"\d{1,4}m", "not a duration in minutes", "write it as 30m"))
]
ChartVersion = Annotated[
    str,
    AfterValidator(
        matching(r"\d+\.\d+\.\d+", "not a chart version", "write MAJOR.MINOR.PATCH, without a v")
    ),
]


class Endpoint(Model):
    """How the Kubernetes API is reached.

    Attributes:
        private: Whether from inside the VPC.
        public_cidrs: Who may reach it from the internet; empty means no public endpoint.
    """

    private: bool = True
    public_cidrs: tuple[Network4, ...] = ()


class Kubernetes(Model):
    """The EKS control plane.

    Attributes:
        version: Kubernetes minor version.
        control_plane_tier: Provisioned control-plane tier.
        endpoint: How the API is reached.
        admins: IAM roles that get cluster admin by access entry.
        service_cidr: Range of Service addresses; cannot change later.
        event_ttl: How long the API server keeps events.
        addons: Versions of EKS add-ons that replace the catalog's, by add-on name.
        instance_id_node_names: Whether Karpenter's nodes are named by their instance ids, so that
            none has to ask EC2 for its private DNS name when it starts; None: by the number of
            nodes. nodeadm's feature gate for it has no word of AWS beyond nodeadm's own pages.
    """

    version: str = eks.DEFAULT_VERSION
    control_plane_tier: Literal["standard", "xl", "2xl", "4xl", "8xl"] = "standard"
    endpoint: Endpoint = Endpoint()
    admins: tuple[RoleArn, ...] = ()
    service_cidr: Network4 = eks.DEFAULT_SERVICE_CIDR
    event_ttl: Duration = eks.DEFAULT_EVENT_TTL
    addons: Mapping[DnsLabel, AddonVersion] = Field(default_factory=dict[str, str])
    instance_id_node_names: bool | None = None


class Karpenter(Model):
    """Self-managed Karpenter.

    Attributes:
        version: Version of its two charts.
        vcpus: CPU that its controller requests; None: by the nodes it may launch.
        memory_gib: Memory that its controller gets, in GiB; None: by the nodes it may launch.
    """

    version: ChartVersion
    vcpus: Annotated[int, Field(ge=1)] | None = None
    memory_gib: Annotated[int, Field(ge=1)] | None = None
