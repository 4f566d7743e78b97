"""`network.vpc`, `network.subnets` and `network.endpoints`: an existing VPC."""

from typing import Annotated, Literal

from pydantic import Field

from ultrascale.config._base import Model, Section
from ultrascale.config._values import AtLeastOne, Distinct, Network4, in_schema, matching
from ultrascale.config.identity import AccountId

SubnetUse = Literal["control-plane", "nodes", "accelerated", "public"]
SubnetRoute = Literal["nat-gateway", "transit-gateway", "internet-gateway", "none", "other"]


def _id_of(prefix: str, noun: str) -> object:
    # Resources made before 2018 have ids of 8 digits.
    # Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html
    return matching(
        rf"{prefix}-(?:[0-9a-f]{{8}}|[0-9a-f]{{17}})",
        f"not the id of a {noun}",
        f"write {prefix}- and 17 digits of 0-9 and a-f, as the console shows it",
    )


VpcId = Annotated[str, _id_of("vpc", "VPC")]
SubnetId = Annotated[str, _id_of("subnet", "subnet")]
SecurityGroupId = Annotated[str, _id_of("sg", "security group")]
ServiceName = Annotated[
    str,
    matching(
        r"[a-z0-9]+(?:[.-][a-z0-9]+)*",
        "not the short name of an AWS service's endpoint",
        "write what stands behind com.amazonaws.REGION. in its name, such as ecr.api",
    ),
]


class Vpc(Section):
    """A VPC that exists already, and is not ours."""

    id: VpcId
    """Id of the VPC, such as `vpc-0a1b2c3d4e5f60001`."""

    cidrs: Annotated[Distinct[Network4], in_schema(minItems=1)]
    """Every IPv4 range of the VPC, the primary one first."""

    owner: AccountId | None = None
    """Account that owns the VPC, where its subnets are shared with ours. Default: our account."""


class Subnet(Model):
    """A subnet of a VPC that exists already."""

    id: SubnetId
    """Id of the subnet."""

    zone: str
    """Its zone: all subnets by name (`us-west-2b`) or all by zone id (`usw2-az4`)."""

    cidr: Network4
    """Its IPv4 range."""

    use: AtLeastOne[SubnetUse]
    """Its contents: the control plane's interfaces, nodes without accelerators and everything
    else, nodes with accelerators, load balancers of the internet.
    """

    free_addresses: Annotated[int, Field(ge=0)] | None = None
    """Recorded fact: its free addresses. Default: all but the five that AWS keeps."""

    free_prefixes: Annotated[int, Field(ge=0)] | None = None
    """Recorded fact: its free, aligned blocks of 16 addresses. Default: those of an empty subnet.
    """

    route: SubnetRoute | None = None
    """Recorded fact: where its route table sends 0.0.0.0/0. Default: not recorded."""


class Endpoints(Section):
    """Endpoints of AWS services in the VPC."""

    present: Distinct[ServiceName] = ()
    """Services that have an endpoint in the VPC already, by short name. Default: none."""

    create: Literal["missing", "none"] | Distinct[ServiceName] | None = None
    """Endpoints that we make: `missing`, `none`, or a list of services.

    Default: `missing` in a VPC of ours, `none` in one that exists.
    """

    security_group: SecurityGroupId | None = None
    """Security group of the endpoints that we make. Default: one of ours."""
