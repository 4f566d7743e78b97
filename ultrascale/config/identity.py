"""`name`, `region`, `account` and `permissions_boundary`: the keys at the top of the file."""

from typing import Annotated

from ultrascale.config._base import Section, dns_label
from ultrascale.config._places import AccountId, PolicyName, RegionName


class Identity(Section):
    """The cluster's name and its place.

    Attributes:
        name: Cluster name, and prefix of every stack.
        region: AWS Region.
        account: AWS account id; None keeps the templates free of it.
        permissions_boundary: Name of the IAM policy that bounds every role of the stacks; None:
            nothing does.
    """

    name: Annotated[str, dns_label(40)]
    region: RegionName
    account: AccountId | None = None
    permissions_boundary: PolicyName | None = None
