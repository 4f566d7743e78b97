"""Uses of the user's own KMS keys by each principal, with the policies that allow them."""

from collections.abc import Callable, Collection, Iterator, Mapping

from ultrascale.parts.keys import statements
from ultrascale.parts.keys.model import KeyAccess, KeyPolicyPlan, Plan, PolicyUse
from ultrascale.parts.keys.statements import DOMAIN, PolicyTarget, grants_of, statements_of
from ultrascale.plan.model import (
    AlarmTopicPlan,
    ClusterPlan,
    ExistingBucketPlan,
    KeyUse,
    StoragePlan,
)
from ultrascale.plan.model.parts import KeyPrincipal
from ultrascale.plan.stacks import LayerId

UNKNOWN_ACCOUNT = "ACCOUNT"
"""Stands in statements for the account of a cluster whose file names none."""

_AUTO_SCALING = f"autoscaling.{DOMAIN}"
_SPOT = f"spot.{DOMAIN}"
_FSX_S3 = f"s3.data-source.lustre.fsx.{DOMAIN}"


def key_policies(plan: ClusterPlan, account: str | None) -> tuple[KeyPolicyPlan, ...]:
    """Return the needed policy of each key of the user's own, in file order.

    Args:
        plan: The cluster.
        account: Account of its deployment; None where unknown.
    """
    uses: dict[str, list[PolicyUse]] = {}
    own = plan.part(Plan)
    for use, arn in own.arns.items() if own is not None else ():
        uses.setdefault(arn, []).append(use)
    for bucket in _used_buckets(plan.storage):
        if bucket.key_arn is not None and "buckets" not in uses.setdefault(bucket.key_arn, []):
            uses[bucket.key_arn].append("buckets")
    target = PolicyTarget(plan, account or UNKNOWN_ACCOUNT)
    return tuple(
        _policy(target, arn, tuple(its_uses), None if account is None else _owner(arn) != account)
        for arn, its_uses in uses.items()
    )


def _policy(
    target: PolicyTarget, arn: str, uses: tuple[PolicyUse, ...], foreign: bool | None
) -> KeyPolicyPlan:
    accesses = tuple(
        access
        for use in uses
        for access in (
            _bucket_users(target, arn, beside=uses) if use == "buckets" else _ACCESSES[use](target)
        )
    )
    linked = [access for access in accesses if access.kind == "linked" and access.grants]
    grants = () if foreign is False else tuple(grants_of(target, arn, linked))
    return KeyPolicyPlan(
        arn=arn,
        uses=uses,
        owner=_owner(arn),
        foreign=foreign,
        accesses=accesses,
        statements=tuple(statements_of(target, accesses, foreign=foreign)),
        grants=grants,
    )


def _owner(arn: str) -> str:
    return arn.split(":")[4]


def volume_accesses(target: PolicyTarget) -> Iterator[KeyAccess]:
    """Yield the principals that launch nodes or attach volumes to them, whoever owns the key."""
    plan = target.plan
    launches = "each of its nodes ends at its launch"
    if any(pool.is_node_group for pool in plan.all_pools):
        yield _linked(target, _AUTO_SCALING, launches, statements.key_actions("auto-scaling"))
    karpenter = [pool for pool in plan.all_pools if pool.is_karpenter]
    if any(pool.purchase == "spot" for pool in karpenter):
        ends = "its Spot nodes may end at their launch"
        yield _linked(target, _SPOT, ends, statements.key_actions("spot"), certain=False)
    if karpenter:
        yield _ec2_user(
            target,
            "Karpenter",
            "Karpenter's controller",
            "karpenter",
            launches,
            statements.key_actions("karpenter"),
        )
    if plan.control_plane.auto_mode:
        who = "EKS Auto Mode's cluster role"
        actions = statements.key_actions("auto-mode")
        yield _ec2_user(target, "AutoMode", who, "cluster", launches, actions)
    if any(addon.volume_key for addon in plan.control_plane.workload_addons):
        yield _ec2_user(
            target,
            "Claims",
            "the EBS CSI driver",
            "addons",
            "no volume that a pod claims is made",
            statements.key_actions("ebs-csi"),
        )
    yield from _part_users(target, "volumes")


def _part_users(target: PolicyTarget, use: KeyUse) -> Iterator[KeyAccess]:
    # Without a key of the user's own, the parts' resources have one of the service.
    for part in target.plan.parts if target.plan.key(use) is not None else ():
        for user in part.key_principals:
            if user.use == use:
                yield _part_user(target, user)


def _part_user(target: PolicyTarget, user: KeyPrincipal) -> KeyAccess:
    needed = statements.key_actions(user.actions)
    if not user.layer:
        sid, does, certain = user.name, user.does, user.certain
        return _deployer(target, sid, does, needed, via=user.via, certain=certain)
    return KeyAccess(
        sid=user.name,
        who=user.who,
        does=user.does,
        kind="role",
        principals=target.roles(user.layer),
        actions=needed.actions,
        via=None if user.via is None else target.host(user.via),
        source=needed.source,
    )


def _ec2_user(
    target: PolicyTarget,
    sid: str,
    who: str,
    layer: LayerId,
    does: str,
    needed: statements.KeyActions,
) -> KeyAccess:
    return KeyAccess(
        sid=f"VolumesBy{sid}",
        who=who,
        does=does,
        kind="role",
        principals=target.roles(layer),
        actions=needed.actions,
        least=needed.least,
        grants=True,
        via=target.host("ec2"),
        source=needed.source,
    )


def _linked(
    target: PolicyTarget,
    service: str,
    does: str,
    needed: statements.KeyActions,
    *,
    certain: bool = True,
) -> KeyAccess:
    role = statements.LINKED_ROLES[service]
    return KeyAccess(
        sid=f"VolumesBy{role.removeprefix('AWSServiceRoleFor')}",
        who=role,
        does=does,
        kind="linked",
        principals=(target.linked(service),),
        actions=needed.actions,
        least=needed.least,
        grants=True,
        # Its statement names the role, as AWS's does: no condition has to tell it from others.
        via=target.host("ec2"),
        certain=certain,
        source=needed.source,
    )


def _secret_users(target: PolicyTarget) -> Iterator[KeyAccess]:
    does = "EKS refuses to make the cluster"
    yield _deployer(target, "Cluster", does, statements.key_actions("eks"))


def _storage_users(target: PolicyTarget) -> Iterator[KeyAccess]:
    plan = target.plan
    if plan.storage.lustre:
        does = "FSx refuses to make the file systems"
        yield _deployer(target, "FileSystems", does, statements.key_actions("fsx"), via="fsx")
    made = {bucket.name for bucket in plan.storage.buckets}
    if any(
        system.repository and system.repository.bucket in made for system in plan.storage.lustre
    ):
        yield _link_user(target)
    if _output_bucket(plan.storage) in made or any(
        bucket.access != "none" for bucket in plan.storage.buckets
    ):
        yield _object_user(target, written=True)
    yield from _part_users(target, "storage")


def _bucket_users(
    target: PolicyTarget, arn: str, *, beside: Collection[PolicyUse]
) -> Iterator[KeyAccess]:
    """Yield the users of the key of existing buckets.

    Args:
        target: The cluster's place.
        arn: ARN of the key.
        beside: Its other uses.
    """
    plan = target.plan
    of_storage = (
        {access.sid for access in _storage_users(target)} if "storage" in beside else set[str]()
    )
    own = [bucket for bucket in _used_buckets(plan.storage) if bucket.key_arn == arn]
    written = any(
        bucket.access == "write" or bucket.name == _output_bucket(plan.storage) for bucket in own
    )
    mounted = [bucket for bucket in own if bucket.access != "none"]
    linked = {
        system.repository.bucket for system in plan.storage.lustre if system.repository is not None
    }
    accesses: list[KeyAccess] = []
    if mounted or written:
        accesses.append(_object_user(target, written=written))
    if any(bucket.name in linked for bucket in own):
        accesses.append(_link_user(target))
    yield from (access for access in accesses if access.sid not in of_storage)


def _used_buckets(storage: StoragePlan) -> Iterator[ExistingBucketPlan]:
    linked = {
        system.repository.bucket for system in storage.lustre if system.repository is not None
    }
    for bucket in storage.existing_buckets:
        if bucket.access != "none" or bucket.name in {*linked, _output_bucket(storage)}:
            yield bucket


def _output_bucket(storage: StoragePlan) -> str | None:
    return None if storage.output_access is None else storage.output_access.bucket


def _link_user(target: PolicyTarget) -> KeyAccess:
    needed = statements.key_actions("fsx-links")
    return KeyAccess(
        sid="ObjectsOfLinkedFileSystems",
        who="AWSServiceRoleForFSxS3Access of each linked file system",
        does="FSx refuses the links of file systems to buckets",
        kind="linked",
        principals=(target.linked(_FSX_S3),),
        actions=needed.actions,
        least=needed.least,
        via=target.host("s3"),
        source=needed.source,
    )


def _object_user(target: PolicyTarget, *, written: bool) -> KeyAccess:
    needed = statements.key_actions("s3-write" if written else "s3-read")
    return KeyAccess(
        sid="ObjectsOfPods",
        who="pods that mount buckets or write checkpoints",
        does="they read and write no object",
        kind="role",
        principals=target.roles("storage"),
        actions=needed.actions,
        via=target.host("s3"),
        source=needed.source,
    )


def _registry_users(target: PolicyTarget) -> Iterator[KeyAccess]:
    if target.plan.images.repositories or target.plan.images.cache is not None:
        does = "ECR refuses to make the repositories"
        yield _deployer(target, "Repositories", does, statements.key_actions("ecr"), via="ecr")
    if target.plan.images.builder is not None:
        needed = statements.key_actions("codebuild")
        yield KeyAccess(
            sid="BuildsOfImages",
            who="the role of the image builds",
            does="no build starts",
            kind="role",
            principals=target.roles("images"),
            actions=needed.actions,
            source=needed.source,
        )


def _log_users(target: PolicyTarget) -> Iterator[KeyAccess]:
    needed = statements.key_actions("logs")
    yield KeyAccess(
        sid="LogGroups",
        who="CloudWatch Logs",
        does="no log group can be made",
        kind="service",
        principals=(target.host("logs"),),
        actions=needed.actions,
        least=needed.least,
        context={"kms:EncryptionContext:aws:logs:arn": target.arn("logs", "log-group:*")},
        source=needed.source,
    )
    if target.plan.alarm_topic is not None:
        yield from _topic_users(target, target.plan.alarm_topic)
    yield from _part_users(target, "logs")


def _topic_users(target: PolicyTarget, topic: AlarmTopicPlan) -> Iterator[KeyAccess]:
    of_services, of_roles = (
        statements.key_actions("sns-services"),
        statements.key_actions("sns-roles"),
    )
    yield KeyAccess(
        sid="AlarmsOfCloudWatch",
        who="CloudWatch's alarms",
        does="no alarm reaches anybody",
        kind="service",
        principals=(f"cloudwatch.{DOMAIN}",),
        actions=of_services.actions,
        least=of_services.least,
        context={"aws:SourceAccount": target.account},
        source=of_services.source,
    )
    if topic.events:
        yield KeyAccess(
            sid="EventsOfEventBridge",
            who="EventBridge",
            does="no event reaches anybody",
            kind="service",
            principals=(f"events.{DOMAIN}",),
            # It sends KMS neither its rule nor its account: a condition would shut it out.
            actions=of_services.actions,
            least=of_services.least,
            source=of_services.source,
        )
    if topic.reminders:
        yield KeyAccess(
            sid="Reminders",
            who="the role of the reminders",
            does="nobody is reminded of the ends of blocks",
            kind="role",
            principals=target.roles(topic.layer),
            actions=of_roles.actions,
            via=target.host("sns"),
            source=of_roles.source,
        )


def _deployer(
    target: PolicyTarget,
    sid: str,
    does: str,
    needed: statements.KeyActions,
    *,
    via: str | None = None,
    certain: bool = True,
) -> KeyAccess:
    return KeyAccess(
        sid=f"DeploymentOf{sid}",
        who="the role of CloudFormation",
        does=does,
        kind="role",
        principals=(target.deployer,),
        actions=needed.actions,
        least=needed.least,
        via=None if via is None else target.host(via),
        certain=certain,
        source=needed.source,
    )


_ACCESSES: Mapping[KeyUse, Callable[[PolicyTarget], Iterator[KeyAccess]]] = {
    "volumes": volume_accesses,
    "secrets": _secret_users,
    "storage": _storage_users,
    "registry": _registry_users,
    "logs": _log_users,
}
