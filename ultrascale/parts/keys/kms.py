"""Actions on KMS keys that AWS's services and their calling roles need.

A policy that names a missing role is refused, so that statements for roles of the stacks name
everybody, and hold their ARN, account and service in conditions, as the policies of AWS's own
managed keys do.

Sources:
    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying.html
    https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-via-service
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog.tables import Row, read_rows

KeyUser = Literal[
    "auto-scaling",
    "spot",
    "karpenter",
    "auto-mode",
    "ebs-csi",
    "hyperpod",
    "eks",
    "fsx",
    "fsx-links",
    "s3-read",
    "s3-write",
    "rds",
    "rds-secret",
    "secrets-manager",
    "ecr",
    "codebuild",
    "logs",
    "sns-services",
    "sns-roles",
    "prometheus",
]
"""Service or program that uses a key."""


class KeyActions(Row, frozen=True, kw_only=True):
    """Actions on a key."""

    user: KeyUser
    """Service or program that needs them."""
    actions: tuple[str, ...]
    """Actions that AWS's page names."""
    least: tuple[str, ...] = ()
    """Actions without which the user fails, if fewer than all; empty: all of them."""
    source: str
    """Page that names the actions."""


def key_actions(user: str) -> KeyActions:
    """Return the actions on a key that ``user`` needs."""
    return _actions()[user]


@cache
def _actions() -> Mapping[str, KeyActions]:
    return {
        row.user: row for row in read_rows(str(Path(__file__).with_name("kms.csv")), KeyActions)
    }


CREATE_GRANT = "kms:CreateGrant"

GRANT_OPERATIONS = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
)
"""Operations of a grant for a role that launches instances with encrypted volumes.

Source: the page of ``auto-scaling``.
"""

LINKED_ROLES: Mapping[str, str] = MappingProxyType(
    {
        "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
        "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
        "s3.data-source.lustre.fsx.amazonaws.com": "AWSServiceRoleForFSxS3Access_fs-*",
    }
)
"""Names of service-linked roles, by their service; FSx makes one for each linked file system."""
