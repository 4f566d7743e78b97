"""`name`, `region`, `account` and `permissions_boundary`: the keys at the top of the file."""

from typing import Annotated

from ultrascale.config._base import Section, dns_label
from ultrascale.config._places import AccountId, PolicyName, RegionName


class Identity(Section):
    """The cluster's name and its place."""

    name: Annotated[str, dns_label(40)]
    """Cluster name and prefix of the stack names: a DNS label of at most 40 characters."""

    region: RegionName
    """AWS Region. Regions of China are not supported yet."""

    account: AccountId | None = None
    """AWS account id, 12 digits in quotes. Default: the templates name no account."""

    permissions_boundary: PolicyName | None = None
    """Name of the IAM policy that bounds every role of the stacks. It must exist in the account,
    and in that of the pipeline.

    Default: none.
    """
