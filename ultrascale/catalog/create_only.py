"""Properties whose change replaces a CloudFormation resource, and properties that form its name.

`python -m tests.support.create_only_schemas` generates `create_only.csv` from the schemas of the
resource types and the "Update requires" of their pages, which the CDK's command line includes.

Sources:
    https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
    https://github.com/cdklabs/awscdk-service-spec
"""

from collections.abc import Mapping
from functools import cache

import msgspec

from ultrascale.catalog.tables import Row, read_document, read_rows

CUSTOM = ("Custom::", "AWS::CloudFormation::CustomResource")
"""Prefixes of the types of custom resources."""


class UpdateBehavior(Row, frozen=True, kw_only=True):
    """Updates that replace resources of a type; paths have `/`, and `*` for items of lists."""

    type: str
    create_only: tuple[str, ...] = ()
    """Properties whose change replaces the resource."""
    conditional: tuple[str, ...] = ()
    """Properties whose change replaces the resource if the service so decides."""
    documented: tuple[str, ...] = ()
    """Properties whose change replaces the resource by its type's page, but not by the schema."""
    name: tuple[str, ...] = msgspec.field(name="identifier", default=())
    """Properties that together form the resource's unique name; empty if AWS makes the name."""
    deletes_first: bool
    """Whether the old resource is deleted before the new one is created."""


class UpdateRules(Row, frozen=True, kw_only=True):
    """Rules by which services accept, refuse or interrupt updates, by resource type."""

    names: dict[str, tuple[str, ...]]
    """Properties that name a resource whose identifier in the schema is AWS's own.

    The API refuses a second resource with the same values: a range of a VPC, a route of a
    table, an address of a NAT gateway.

    Source:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
    """

    documented_too: dict[str, tuple[str, ...]]
    """Properties whose change replaces, although no page says so: FSx cannot change them.

    Source:
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreConfiguration.html
    """

    only_grows: dict[str, tuple[str, ...]]
    """Numbers that the service refuses to lower.

    Sources:
        https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.ModifyingExisting.html
        https://docs.aws.amazon.com/ebs/latest/userguide/modify-volume-requirements.html
        https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreMetadataConfiguration.html
        https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html
    """

    only_newer: dict[str, dict[str, str]]
    """Versions that the service refuses to lower, with the rule.

    EKS's own rollback of a control plane, for some days after an upgrade, is no update of the
    version.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
        https://docs.aws.amazon.com/eks/latest/userguide/update-managed-node-group.html
        https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.Upgrading.html
    """

    one_minor_at_once: dict[str, str]
    """Versions that the service raises by only one minor at a time.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    """

    one_way: dict[str, dict[str, tuple[str, ...]]]
    """Settings whose value the service changes only in this order.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/setting-up-access-entries.html
    """

    major_only_if: dict[str, tuple[str, str]]
    """A version whose major part the service raises only if another property is true.

    For Aurora's clusters CloudFormation sets that property itself.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
    """

    interrupting: dict[str, tuple[str, ...]]
    """Properties whose update interrupts the service, outside any maintenance window.

    CloudFormation applies changes immediately, as "Some interruptions" on the types' pages says.

    Sources:
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbcluster.html
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
    """

    changing_attributes: dict[str, tuple[str, ...]]
    """Attributes whose value changes although the resource stays."""


@cache
def update_rules() -> UpdateRules:
    """Return the rules of the services for updates."""
    return read_document("update_rules.json", UpdateRules)


def lookup_update_behavior(resource_type: str) -> UpdateBehavior | None:
    """Return the update behavior of a resource type; None where the table lacks it."""
    return _behaviors().get(resource_type)


@cache
def _behaviors() -> Mapping[str, UpdateBehavior]:
    rules = update_rules()
    return {
        row.type: msgspec.structs.replace(
            row,
            documented=(*row.documented, *rules.documented_too.get(row.type, ())),
            name=row.name or rules.names.get(row.type, ()),
        )
        for row in read_rows("create_only.csv", UpdateBehavior)
    }
