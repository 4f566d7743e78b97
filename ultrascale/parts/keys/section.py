"""`keys`: customer-managed KMS keys that the user's security team owns."""

from pydantic import Field

from ultrascale import config


class Keys(config.Section):
    """Customer-managed KMS keys. They are used, and never made, changed or deleted."""

    volumes: config.KeyArn | None = None
    """ARN of the key of the nodes' EBS volumes, and of volumes of the storage class
    `ultrascale-gp3`.

    Default: the account's default key of EBS.
    """

    secrets: config.KeyArn | None = None
    """ARN of the key of the Kubernetes API's data. It cannot be taken away or changed on a cluster
    that is there.

    Default: a key that the cluster stack makes and keeps.
    """

    storage: config.KeyArn | None = None
    """ARN of the key of file systems, buckets and the backend's database.

    Default: keys that the stacks make and keep.
    """

    registry: config.KeyArn | None = None
    """ARN of the key of the images in ECR repositories, those of `images.pull_through` too.

    Default: a key that the registry stack makes and keeps.
    """

    logs: config.KeyArn | None = None
    """ARN of the key of log groups, of HyperPod's metrics, and of the topic of alarms.

    Default: CloudWatch's own for log groups, else keys that the stacks make and keep.
    """


class FileKeys(config.Section):
    """The keys of the file that belong to this part."""

    keys: Keys = Field(default_factory=Keys)
    """Customer-managed KMS keys. Default: keys that the stacks make, and AWS's own for volumes and
    logs.
    """


@config.rule
def keys_are_of_the_region(keys: Keys, identity: config.Identity) -> config.Mistakes:
    """Refuse keys of other Regions: no service takes them.

    Source: https://docs.aws.amazon.com/kms/latest/developerguide/multi-region-keys-overview.html
    """
    for name, arn in keys.model_dump(exclude_none=True).items():
        for wrong in config.misplaced_key(arn, identity):
            todo = f"use a key of {identity.region}, or the replica there of a multi-Region key"
            yield config.refuse(name, wrong, todo)


@config.rule(severity="warning")
def link_needs_a_key_of_the_account(
    file_system: config.Lustre, storage: config.Storage, keys: Keys, identity: config.Identity
) -> config.Mistakes:
    """Yield links to buckets whose keys are another account's.

    FSx reads them in a service-linked role that it makes with the link: nobody can make a grant
    before, and no policy of the cluster's account gives that role the key.

    Source:
    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying-external-accounts.html
    """
    if file_system.s3 is None or identity.account is None:
        return
    name = file_system.s3.bucket
    existing = storage.existing_buckets.get(name)
    key = keys.storage if existing is None else existing.key
    owner = None if key is None else key.split(":")[4]
    if owner not in (None, identity.account):
        text = (
            f"bucket {name} has a key of account {owner}, whose policy may reach no service-linked "
            "role: FSx would refuse the link; encrypt the bucket with a key of account "
            f"{identity.account}, or leave s3 out and mount the bucket itself"
        )
        yield config.note("s3.bucket", text)
