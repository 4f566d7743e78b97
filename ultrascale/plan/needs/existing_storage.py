"""Tasks of the owners of file systems and buckets that exist, before a deployment."""

from collections.abc import Iterator, Mapping

from ultrascale.plan.model import (
    ClusterIdentity,
    ExistingBucketPlan,
    ExistingLustrePlan,
    NetworkPlan,
    StorageNeed,
    StoragePlan,
)

_GROUPS = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html"
_POLICIES = (
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
    "example-walkthroughs-managing-access-example2.html"
)
UNKNOWN_ACCOUNT = "ACCOUNT"
"""Stands in statements for the account of a cluster whose file names none."""

# Actions of roles by their use of a bucket, as the constructs grant them.
_MOUNTED = {
    "none": (),
    "read": ("s3:ListBucket", "s3:GetObject"),
    "write": (
        "s3:ListBucket",
        "s3:GetObject",
        "s3:PutObject",
        "s3:AbortMultipartUpload",
        "s3:DeleteObject",
    ),
}
_LINKED = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject")
_ON_THE_BUCKET = frozenset({"s3:ListBucket"})


def plan_storage_needs(
    cluster: ClusterIdentity, network: NetworkPlan, storage: StoragePlan
) -> tuple[StorageNeed, ...]:
    """Return the tasks of existing storage's owners before a deployment, in file order."""
    return (
        *(_ports(network, each) for each in storage.existing_lustre),
        *(
            need
            for bucket in storage.existing_buckets
            for need in _rights(cluster, storage, bucket)
        ),
    )


def bucket_actions(storage: StoragePlan, bucket: ExistingBucketPlan) -> tuple[str, ...]:
    """Return the actions of IAM that a cluster takes on a bucket.

    Args:
        storage: File systems and buckets of the cluster.
        bucket: The bucket.
    """
    output = storage.output_access
    writes = output is not None and output.bucket == bucket.name
    linked = any(
        system.repository is not None and system.repository.bucket == bucket.name
        for system in storage.lustre
    )
    actions = (
        *_MOUNTED[bucket.access],
        *(_MOUNTED["write"] if writes else ()),
        *(_LINKED if linked else ()),
    )
    return tuple(dict.fromkeys(actions))


def bucket_statements(
    cluster: ClusterIdentity,
    storage: StoragePlan,
    bucket: ExistingBucketPlan,
    account: str | None,
) -> Iterator[Mapping[str, object]]:
    """Yield the statements that the policy of a bucket of another account needs.

    They let the whole account in, whose own policies say which of its roles use the bucket: names
    of roles are not known before they are made.

    Args:
        cluster: The cluster.
        storage: Its file systems and buckets.
        bucket: The bucket.
        account: Account of the cluster; None where nobody says.
    """
    actions = bucket_actions(storage, bucket)
    root = f"arn:{cluster.partition}:iam::{account or UNKNOWN_ACCOUNT}:root"
    parts = (
        ("List", bucket.arn, [action for action in actions if action in _ON_THE_BUCKET]),
        ("Use", f"{bucket.arn}/*", [action for action in actions if action not in _ON_THE_BUCKET]),
    )
    for sid, resource, some in parts:
        if some:
            yield {
                "Sid": f"{sid}From{''.join(word.capitalize() for word in cluster.name.split('-'))}",
                "Effect": "Allow",
                "Principal": {"AWS": root},
                "Action": some,
                "Resource": resource,
            }


def _ports(network: NetworkPlan, lustre: ExistingLustrePlan) -> StorageNeed:
    kinds = ("private", "accelerated")
    subnets = (str(subnet.cidr) for subnet in network.subnets if subnet.kind in kinds)
    ports = " and ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in lustre.port_ranges
    )
    return StorageNeed(
        name=lustre.name,
        resource=lustre.file_system_id,
        owner=lustre.owner,
        security_group=lustre.security_group,
        need=f"{lustre.security_group} opens TCP {ports}, in and out, to "
        f"{', '.join(dict.fromkeys(subnets))}",
        why="servers and clients of Lustre both open connections; a mount hangs otherwise",
        statements=(),
        source=_GROUPS,
    )


def _rights(
    cluster: ClusterIdentity, storage: StoragePlan, bucket: ExistingBucketPlan
) -> Iterator[StorageNeed]:
    actions = bucket_actions(storage, bucket)
    if not actions or bucket.owner is None:
        return
    yield StorageNeed(
        name=bucket.name,
        resource=bucket.bucket_name,
        owner=bucket.owner,
        security_group=None,
        need=f"its policy lets our account take {', '.join(actions)}",
        why="the rights of a role reach a bucket of another account only where its policy agrees",
        statements=tuple(bucket_statements(cluster, storage, bucket, cluster.account)),
        source=_POLICIES,
    )
