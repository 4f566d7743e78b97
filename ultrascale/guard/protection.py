"""Protected resources hold data or run jobs: the user must permit their loss by name.

A change that only switches a safeguard off needs permission too, though it loses nothing yet.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-updatereplacepolicy.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale.documents import Json, JsonObject, Resource, mapping, sequence
from ultrascale.frozen import Frozen
from ultrascale.guard.model import Action, Change, Harm, Verdict
from ultrascale.guard.objects import NAMESPACE, RESERVED, KubernetesObject, Objects, is_reserved
from ultrascale.guard.replacement import Worlds, value_at
from ultrascale.guard.templates import Key, World, count, shown
from ultrascale.plan import names

GUARD = "Custom::NodeGroupGuard"
_KEY = "AWS::KMS::Key"
_EMPTIED = "Custom::S3AutoDeleteObjects"
_RETAINING = ("Retain", "RetainExceptOnCreate")


class _Protection(Frozen):
    """Protection of a type of resource."""

    lost: str  # Data or work lost with a resource
    instead: str  # Advice for what to do instead


_LEAVE = "put the property back"
_KEEP = f"{_LEAVE}; what is to go, `ultrascale destroy` takes down by itself"
_TYPES: Mapping[str, _Protection] = {
    "AWS::EKS::Cluster": _Protection(
        lost="the cluster, with every node, job and object in it",
        instead=f"{_LEAVE}, or make a second cluster of another name beside it and move there",
    ),
    "AWS::FSx::FileSystem": _Protection(
        lost="the file system and all files on it; jobs would find an empty one",
        instead=f"{_LEAVE}, or add a second file system of another name and copy the files",
    ),
    "AWS::S3::Bucket": _Protection(
        lost="the bucket and its objects; jobs would find an empty one",
        instead=f"{_LEAVE}, or add a second bucket of another name and copy the objects",
    ),
    _KEY: _Protection(
        lost="the key; what it encrypts can never be read again",
        instead="keep it: nothing that it encrypts is decrypted by another key",
    ),
    "AWS::RDS::DBCluster": _Protection(
        lost="the database cluster and its data",
        instead=f"{_LEAVE}, or restore a snapshot of it beside it first",
    ),
    "AWS::RDS::DBInstance": _Protection(
        lost="the database instance, and the database where it is the only one",
        instead=f"{_LEAVE}, or take a snapshot first",
    ),
    "AWS::SageMaker::Cluster": _Protection(
        lost="the HyperPod cluster, with every node and its disks",
        instead=f"{_LEAVE}, or change it after the training plan has ended",
    ),
    "AWS::ECR::Repository": _Protection(
        lost="the repository and its images, which running jobs pull again when they restart",
        instead=f"{_LEAVE}, or add a second repository and push the images there",
    ),
    "AWS::EC2::VPC": _Protection(
        lost="the network of everything that runs",
        instead=f"{_LEAVE}: a VPC keeps its range; add pod_cidrs at the end for more addresses",
    ),
    "AWS::EC2::Subnet": _Protection(
        lost="the subnet, with the addresses of all that runs in it",
        instead="leave ranges and zones as they are and add pod_cidrs at the end; `ultrascale "
        "check` warns where subnets move",
    ),
    "AWS::EC2::CapacityReservation": _Protection(
        lost="the reservation; EC2 may not give the capacity again",
        instead=_LEAVE,
    ),
}
PROTECTED_TYPES = frozenset(_TYPES)
"""Types whose resources hold data, or are needed by all others."""

_RESERVED_POOL = _Protection(
    lost="the pool's nodes, with the jobs on them; a reservation of theirs is paid on",
    instead="let its jobs end, scale a node group to 0 as well, and name it; or change it once no "
    "reservation holds it",
)
_FEWER = _Protection(
    lost="the nodes above the new size, with the jobs on them; a reservation of theirs is paid on",
    instead="put the size back; or let the jobs end first, and name it",
)
# Nodes of EFA that no reservation holds: a deployment leaves them alone for the jobs on them.
_RUNNING_POOL = _Protection(
    lost="the pool's nodes, with the jobs on them",
    instead="let its jobs end, scale the pool to 0 as well, and name it",
)
_VERDICTS: Mapping[_Protection, Verdict] = {
    _RESERVED_POOL: "ends reserved nodes",
    _RUNNING_POOL: "ends running nodes",
}
_EARLIER = _Protection(
    lost="its nodes from then on, or at once where that is over, with the jobs on them; the block "
    "is paid to its end",
    instead="write purchase.ends as the block has it: `aws ec2 describe-capacity-reservations`",
)
_GROUPS = ("AWS::EKS::Nodegroup", "AWS::AutoScaling::AutoScalingGroup")
_NAMESPACE = _Protection(
    lost="the namespace and every object in it: its jobs, their pods and claims",
    instead="keep what makes it, or let its jobs end first",
)
_DEFINITION = _Protection(
    lost="the definition and every object of that kind",
    instead="keep what makes it, or remove its objects first",
)


# Rank of each policy: it keeps the resource, a copy, or nothing.
_KEEPS = {"Retain": 2, "RetainExceptOnCreate": 2, "Snapshot": 1}
_POLICIES = {
    "DeletionPolicy": "its retention when it leaves its stack",
    "UpdateReplacePolicy": "its retention when it is replaced",
}
# Without a policy these types leave a copy.
_COPIED = {
    ("AWS::RDS::DBCluster", "DeletionPolicy"): "Snapshot",
    ("AWS::RDS::DBInstance", "DeletionPolicy"): "Snapshot",
}
# For each type a property, its protecting value, its default, and its words.
_SWITCHES: Mapping[str, Sequence[tuple[str, str, str, str]]] = {
    "AWS::ECR::Repository": (
        ("EmptyOnDelete", "false", "false", "its refusal to go with images in it"),
    ),
    "AWS::EKS::Cluster": (("DeletionProtection", "true", "false", "its deletion protection"),),
    "AWS::KMS::Key": (("Enabled", "true", "true", "its use: disabled, it decrypts nothing"),),
    "AWS::RDS::DBCluster": (
        ("DeletionProtection", "true", "false", "its deletion protection"),
        ("DeleteAutomatedBackups", "false", "true", "its backups once it is deleted"),
    ),
    "AWS::RDS::DBInstance": (
        ("DeletionProtection", "true", "false", "its deletion protection"),
        ("DeleteAutomatedBackups", "false", "true", "its backups once it is deleted"),
    ),
    "AWS::S3::Bucket": (
        ("VersioningConfiguration/Status", "Enabled", "Suspended", "versions of its objects"),
    ),
}
# For each type a property, its default, and the words for the loss when its number falls.
_NUMBERS: Mapping[str, Sequence[tuple[str, int, str]]] = {
    "AWS::EC2::CapacityReservation": (
        ("InstanceCount", 1, "reserved instances, which EC2 may not give again"),
    ),
    "AWS::FSx::FileSystem": (
        ("LustreConfiguration/AutomaticBackupRetentionDays", 0, "days that backups are kept"),
    ),
    "AWS::KMS::Key": (("PendingWindowInDays", 30, "days to cancel its deletion in"),),
    "AWS::RDS::DBCluster": (("BackupRetentionPeriod", 1, "days that backups are kept"),),
    "AWS::RDS::DBInstance": (("BackupRetentionPeriod", 1, "days that backups are kept"),),
}
# Paths of the ages at which a rule deletes objects, or their older versions.
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-s3-bucket-rule.html
_EXPIRY: Mapping[str, Sequence[str]] = {
    "objects": ("ExpirationDate", "ExpirationInDays"),
    "old versions of objects": (
        "NoncurrentVersionExpiration/NoncurrentDays",
        "NoncurrentVersionExpirationInDays",
    ),
}
# Keys that limit a rule to some of the objects.
_LIMITS = ("ObjectSizeGreaterThan", "ObjectSizeLessThan", "Prefix", "TagFilters")


def is_retained(body: Resource) -> bool:
    """Return whether a resource stays after it leaves its stack."""
    return body.get("DeletionPolicy") in _RETAINING


def leaves_cluster(applied: KubernetesObject, new: Objects, worlds: Worlds) -> bool:
    """Return whether an object is deleted, and no other resource applies it.

    An object that leaves a manifest stays if the manifest has no label to prune by. An object of a
    stack that left the file stays too.
    """
    stack, logical_id = applied.holder
    if stack not in worlds.new.templates or applied.id in new.by_id:
        return False
    holder = worlds.old.resources(stack)[logical_id]
    return logical_id not in worlds.new.resources(stack) and not is_retained(holder)


def with_protection(changes: Iterable[Change], worlds: Worlds) -> Iterator[Change]:
    """Yield ``changes``, each with its loss and with advice."""
    all_changes = list(changes)
    added = {change.type for change in all_changes if change.action == "added"}
    for change in all_changes:
        protection = _protection(change, worlds.old)
        lost = "" if protection is None else _loss_text(change, protection, added, worlds)
        if protection is None:
            yield change
        elif lost:
            verdict = _VERDICTS.get(protection, "loses data")
            yield replace(change, lost=lost, verdict=verdict, instead=protection.instead)
        else:
            yield _with_lost_safeguards(change, protection, worlds)


def object_protection(applied: KubernetesObject) -> Harm | None:
    """Return the data lost by deleting an object in the cluster; None where it holds none."""
    if applied.kind == NAMESPACE:
        return _harm(_NAMESPACE)
    if applied.kind == "CustomResourceDefinition":
        return _harm(_DEFINITION)
    if is_reserved(applied):
        return _harm(_RESERVED_POOL, "ends reserved nodes")
    return None


def _harm(protection: _Protection, verdict: Verdict = "loses data") -> Harm:
    return Harm(verdict=verdict, lost=protection.lost, instead=protection.instead)


def running_protection() -> tuple[str, str]:
    """Return the loss when nodes that no reservation holds are replaced, and what to do instead."""
    return _RUNNING_POOL.lost, _RUNNING_POOL.instead


def reserved_protection() -> tuple[str, str]:
    """Return the loss when the nodes of a reserved pool are replaced, and what to do instead."""
    return _RESERVED_POOL.lost, _RESERVED_POOL.instead


def fewer_protection() -> tuple[str, str]:
    """Return the loss when a reserved pool gets fewer nodes, and what to do instead."""
    return _FEWER.lost, _FEWER.instead


def shorter_protection() -> tuple[str, str]:
    """Return the loss when a Capacity Block's pool ends earlier, and what to do instead."""
    return _EARLIER.lost, _EARLIER.instead


def is_guarded_stack(world: World, stack: str) -> bool:
    """Return whether a stack's pool has nodes that must be left alone while they run."""
    return any(
        world.properties((stack, logical_id)).get("Guarded") == "true"
        for logical_id, body in world.resources(stack).items()
        if body["Type"] == GUARD
    )


def is_reserved_stack(world: World, stack: str) -> bool:
    """Return whether a stack's group is of a pool with reserved capacity, by its nodes' labels.

    A group outside of EKS states its labels in its nodes' user data: it counts as reserved.
    """
    groups = [body for body in world.resources(stack).values() if body["Type"] == _GROUPS[0]]
    labels = [mapping(body, "Properties", "Labels") for body in groups]
    return not groups or any(
        label.get(names.ROLE_LABEL) == "reserved" or label.get(names.CAPACITY_LABEL) in RESERVED
        for label in labels
    )


def _protection(change: Change, old: World) -> _Protection | None:
    if change.action == "added" or change.stack not in old.templates:
        return None
    if change.type in _GROUPS:
        if not is_guarded_stack(old, change.stack):
            return None
        return _RESERVED_POOL if is_reserved_stack(old, change.stack) else _RUNNING_POOL
    if change.type == "AWS::S3::Bucket" and _is_emptied((change.stack, change.logical_id), old):
        return None
    return _TYPES.get(change.type)


def _is_emptied(key: Key, world: World) -> bool:
    """Return whether the template empties a bucket on deletion: it then holds no user data."""
    stack, logical_id = key
    return any(
        body["Type"] == _EMPTIED
        and mapping(body, "Properties", "BucketName") == {"Ref": logical_id}
        for body in world.resources(stack).values()
    )


_PARTED = (
    "nothing is deleted, but a new, empty one takes its place for all that uses it; the old one "
    "stays outside of the stack, and is paid for"
)
_AT_ONCE: Sequence[Action] = ("replaced", "may be replaced", "deleted")


def _loss_text(change: Change, protection: _Protection, added: set[str], worlds: Worlds) -> str:
    """Return the data or work that a change loses; empty without a loss."""
    old = worlds.old.resources(change.stack)[change.logical_id]
    if change.action == "kept":
        # A key that stays goes on to decrypt what it encrypted.
        if change.type == _KEY or change.type not in added:
            return ""
        return "nothing is deleted, but another, empty one takes its place for all that uses it"
    if change.action in _AT_ONCE:
        new = worlds.new.resources(change.stack).get(change.logical_id)
        if new is not None and {old.get("UpdateReplacePolicy"), new.get("UpdateReplacePolicy")} == {
            "Retain"
        }:
            return _PARTED
        return protection.lost
    return ""


def _with_lost_safeguards(change: Change, protection: _Protection, worlds: Worlds) -> Change:
    if change.action != "updated":
        return change
    key = (change.stack, change.logical_id)
    old, new = (side.resources(key[0])[key[1]] for side in (worlds.old, worlds.new))
    values = (worlds.old.properties(key), worlds.new.properties(key))
    gone = (*_lost_policies(old, new), *_lost_switches(change.type, *values))
    if not gone:
        return change
    lost = f"{'; '.join(gone)}; what may go then: {protection.lost}"
    return replace(change, action="loses protection", lost=lost, instead=_KEEP)


def _lost_policies(old: Resource, new: Resource) -> Iterator[str]:
    """Yield the deletion policies that keep less of a resource than before."""
    for name, words in _POLICIES.items():
        default = _COPIED.get((old["Type"], name), "Delete")
        before, after = (_KEEPS.get(str(side.get(name, default)), 0) for side in (old, new))
        if after < before:
            yield words


def _lost_switches(kind: str, old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Yield the safeguards of a service that end, or last for a shorter time.

    Args:
        kind: The type of the resource.
        old: Its properties before, as `World.properties` returns them.
        new: Its properties after.
    """
    for path, safe, default, words in _SWITCHES.get(kind, ()):
        before, after = (value_at(side, path) or default for side in (old, new))
        if before == safe != after:
            yield words
    for path, least, words in _NUMBERS.get(kind, ()):
        before, after = (count(value_at(side, path) or least) for side in (old, new))
        if before is not None and (after is None or after < before):
            later = shown(value_at(new, path)) if after is None else after
            yield f"{words}: {before}, then {later}"
    if kind == "AWS::S3::Bucket":
        yield from _shorter_expiry(old, new)


def _shorter_expiry(old: JsonObject, new: JsonObject) -> Iterator[str]:
    for lost, paths in _EXPIRY.items():
        there = list(_expiries(old, paths))
        for limits, path, value in _expiries(new, paths):
            # A rule without limits deletes these objects as well.
            before = [stated for others, _, stated in there if others in ({}, limits)]
            if not any(_is_no_sooner(value, stated) for stated in before):
                yield f"{lost}, which S3 would delete sooner ({path} {shown(value)})"


def _expiries(bucket: JsonObject, paths: Sequence[str]) -> Iterator[tuple[JsonObject, str, Json]]:
    """Yield each enabled rule's limits, the path of its expiry, and the expiry."""
    for rule in sequence(value_at(bucket, "LifecycleConfiguration/Rules")):
        if value_at(rule, "Status") == "Disabled":
            continue
        limits = {name: limit for name in _LIMITS if (limit := value_at(rule, name)) is not None}
        for path in paths:
            if (value := value_at(rule, path)) is not None:
                yield limits, path, value


def _is_no_sooner(after: Json, before: Json) -> bool:
    days, least = count(after), count(before)
    return after == before or (days is not None and least is not None and days >= least)
