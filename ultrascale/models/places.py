"""Buckets of a cluster file by what S3 calls them, and the paths at which services mount them."""

from ultrascale import config
from ultrascale.account import Account
from ultrascale.errors import UnansweredError, UsageError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.namespaces import serving_namespaces
from ultrascale.plan.stacks import stacks_of

_REMOTE = "s3://"
_ABSENT = "ValidationError"
_LAYER = "storage"


class Place(Frozen):
    """A prefix of a bucket."""

    bucket: str  # The bucket, by its name in the cluster file or S3's own
    prefix: str  # Key prefix; empty for the whole bucket
    s3_name: str  # S3's name of the bucket
    # Path at which a claim of the file shows the bucket; empty without a claim.
    mount_path: str = ""
    namespace: str = ""  # Namespace of that claim; empty without

    def path_of(self, folder: str) -> str:
        """Return the path at which a server finds a folder of the bucket."""
        if self.mount_path:
            return f"{self.mount_path}/{folder}" if folder else self.mount_path
        return f"{_REMOTE}{self.s3_name}/{folder}".rstrip("/")


def buckets_of_services(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the buckets with a claim in a namespace of services, else all buckets with one."""
    claims, services = cluster.storage.bucket_claims, serving_namespaces(cluster)
    served = tuple(name for name, claim in claims.items() if claim.namespace in services)
    return served or tuple(claims)


def place_of(account: Account, cluster: config.Cluster, plan: ClusterPlan, stated: str) -> Place:
    """Return the bucket and prefix that ``stated`` names.

    Args:
        account: The account of the user's credentials.
        cluster: The cluster file.
        plan: Its plan.
        stated: `BUCKET/PREFIX`; BUCKET is one of the file, or S3's own name of one.

    Raises:
        UsageError: A bucket of the file does not exist yet.
        UnansweredError: AWS does not tell its name.
    """
    bucket, _, prefix = stated.removeprefix(_REMOTE).partition("/")
    if stated.startswith(_REMOTE) or bucket not in cluster.storage.bucket_names:
        return Place(bucket=bucket, prefix=prefix, s3_name=bucket)
    claim = cluster.storage.bucket_claims.get(bucket)
    existing = cluster.storage.existing_buckets.get(bucket)
    return Place(
        bucket=bucket,
        prefix=prefix,
        s3_name=_made(account, plan, bucket)
        if existing is None or existing.existing is None
        else existing.existing,
        mount_path="" if claim is None else claim.mount_path,
        namespace="" if claim is None else claim.namespace,
    )


def _made(account: Account, plan: ClusterPlan, bucket: str) -> str:
    """Return S3's name of a bucket that the storage stack makes, from the stack's outputs."""
    (stack,) = stacks_of(plan, _LAYER)
    cloudformation = account.client("cloudformation")
    try:
        answer = account.ask(cloudformation.describe_stacks, StackName=stack)
    except UnansweredError as error:
        if error.code != _ABSENT:
            raise
        outputs = {}
    else:
        outputs = {
            output.get("Description"): output.get("OutputValue", "")
            for found in answer["Stacks"]
            for output in found.get("Outputs", [])
        }
    name = outputs.get(f"Bucket {bucket}")
    if not name:
        raise UsageError(
            [
                f"BUCKET: {bucket} of the file does not exist yet: stack {stack} makes it; "
                "`ultrascale deploy FILE` first, or name another bucket as s3://NAME/PREFIX"
            ]
        )
    return name
