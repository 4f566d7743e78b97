"""`kubernetes.access`: rights of IAM roles in the cluster, and the ARNs of such roles."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from ultrascale.config._base import Model
from ultrascale.config._values import Distinct, DnsLabel, SubdomainName, WrongValueError, matching
from ultrascale.config.identity import ACCOUNT_ID

# Source: https://docs.aws.amazon.com/singlesignon/latest/userguide/referencingpermissionsets.html
_SSO_NAME = "AWSReservedSSO_"
_SSO_PATH = "aws-reserved/sso.amazonaws.com/"


def _can_have_access(arn: str) -> str:
    path = arn.partition(":role/")[2]
    if path.startswith("aws-service-role/"):
        wrong = "a service-linked role, which EKS gives no access entry"
        raise WrongValueError(wrong, "name a role that people assume")
    name = path.rpartition("/")[2]
    if name.startswith(_SSO_NAME) and not path.startswith(_SSO_PATH):
        wrong = "a role of IAM Identity Center without its path"
        todo = f"write it with {_SSO_PATH} before its name, as `aws iam get-role` shows it"
        raise WrongValueError(wrong, todo)
    return arn


# Names of roles and their paths, without double slashes.
# Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_Role.html
RoleArn = Annotated[
    str,
    matching(
        rf"arn:aws[a-z-]*:iam::{ACCOUNT_ID}:role/"
        r"(?=[!-~]{1,576}$)(?:[!-.0-~]+/)*[A-Za-z0-9_+=,.@-]{1,64}",
        "not the ARN of an IAM role",
        "write arn:aws:iam::ACCOUNT:role/NAME",
    ),
    # Source: https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
    AfterValidator(_can_have_access),
]
AccessLevel = Literal["view", "edit", "admin", "cluster-admin"]


class Access(Model):
    """Rights of one IAM role in the cluster. A role may stand in several items."""

    role: RoleArn
    """ARN of the IAM role with its path; not a role of `kubernetes.admins`."""

    policy: AccessLevel
    """`view` reads, but no Secrets; `edit` also sends and cancels jobs and reads Secrets; `admin`
    also binds Roles of the namespace; `cluster-admin` may do everything, everywhere.
    """

    namespaces: Distinct[DnsLabel] = ()
    """Namespaces in which it holds. Default: that of `team`, those of `queue`'s jobs, or the whole
    cluster.
    """

    team: DnsLabel | None = None
    """Team of HyperPod task governance in whose namespace it holds. Default: none."""

    queue: SubdomainName | None = None
    """Queue that alone its jobs may name; with `edit` only. Default: any queue."""
